"""A node as the sysctl component sees it, built by hand."""

from collections.abc import Mapping

from deploys.sysctl import actions, settings
from facts.sysctl import DROP_IN
from railwright.actions import Action
from railwright.owned import HEADER
from railwright.schema import KernelSpec, ModulesSpec, Node, SysctlSpec
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.units import unit

MARKER = "m-0"
HEALTHY = {
    "kernel.numa_balancing": "0",
    "net.core.rmem_max": "212992",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.tcp_adv_win_scale": "-2",
    "net.ipv4.tcp_rmem": "4096\t131072\t6291456",
    "vm.swappiness": "60",
}
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
RMEM_MAX = "net.core.rmem_max = 212992"


def record(path: str, content: str) -> str:
    """A file as the probe prints it; ``-> TARGET`` begins the content of a link."""
    head, kind, target = f"644 root 1700000000 {len(content)}", "file", ""
    if content.startswith("-> "):
        link, _, content = content.partition("\n")
        kind, target = "link", f"{MARKER} target {link.removeprefix('-> ')}\n"
    return f"\n{MARKER} file {kind} {head} {path}\n{target}{MARKER} content\n{content}\n"


def snapshot(
    files: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    modules: str = "",
    **more: Section,
) -> Snapshot:
    output = "".join(f"{k} = {v}\n" for k, v in {**HEALTHY, **(values or {})}.items())
    sections = {
        "identity": Section(stdout="kernel=6.1.0\n", rc=0),
        "sysctl_files": Section(
            stdout="".join(record(*item) for item in (files or {}).items()), rc=0
        ),
        "sysctl_values": Section(stdout=output, rc=0),
        "sysctl_modules": Section(stdout=modules, rc=0),
        "sysctl_units": Section(stdout=unit("systemd-sysctl.service"), rc=0),
        "sysctl_refusals": Section(stdout="", rc=0),
        "nic_ports": Section(stdout="", rc=0),
        "nic_rdma": Section(stdout="", rc=0),
        "nic_addresses": Section(stdout="[]", rc=0),
        "way_in": Section(stdout="", rc=0),
    }
    return Snapshot(host="n1", marker=MARKER, sections={**sections, **more})


def node(*, numa: bool | None = None, load: frozenset[str] = frozenset(), **values: object) -> Node:
    given = {key.replace("__", "."): value for key, value in values.items()}
    return Node(
        name="n1",
        sysctl=SysctlSpec.model_validate({"values": given}),
        kernel=KernelSpec(numa_balancing=numa),
        modules=ModulesSpec(load=load),
    )


def ours(*lines: str) -> dict[str, str]:
    return {DROP_IN: HEADER + "".join(f"{line}\n" for line in lines)}


def of(key: str, node: Node, seen: Snapshot) -> Setting:
    return next(setting for setting in settings(node, seen) if setting.key == key)


def verdicts(node: Node, seen: Snapshot) -> dict[str, Verdict]:
    return {s.key: verdict(s, node.effects.allow) for s in settings(node, seen)}


def done(node: Node, seen: Snapshot) -> list[Action]:
    return list(actions(node, seen, settings(node, seen)))
