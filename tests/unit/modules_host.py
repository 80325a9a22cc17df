"""A node as the modules component sees it, built by hand."""

from collections.abc import Mapping
from typing import Any

from deploys.modules import actions, settings
from railwright.actions import Action, InstallFile, Run
from railwright.schema import EffectsSpec, ModulesSpec, Node
from railwright.settings import Effect, Setting
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, metadata, records

KERNEL = "6.1.0-57-amd64"
IMAGE = f"/boot/initrd.img-{KERNEL}"
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
DRIVER = LIVE | {Effect.DRIVER}

PATHS = {
    "dummy": "kernel/drivers/net/dummy.ko",
    "mlx5_core": "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.zst",
    "nf_conntrack": "kernel/net/netfilter/nf_conntrack.ko",
    "nouveau": "kernel/drivers/gpu/drm/nouveau/nouveau.ko",
    "rds": "kernel/net/rds/rds.ko",
}


def node(allow: frozenset[Effect] = LIVE, **spec: object) -> Node:
    return Node(
        name="n1", modules=ModulesSpec.model_validate(spec), effects=EffectsSpec(allow=allow)
    )


def host(
    files: Mapping[str, str] | None = None,
    loaded: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    *,
    drives: str = "",
    cmdline: str = "quiet",
    image_mtime: int = 200,
    builtin: str = "",
    mtime: int = 100,
    container: bool = False,
    others: str = "",
) -> Snapshot:
    """``loaded`` is module to ``REFERENCES USERS``, ``values`` ``MODULE/PARAMETER`` to text."""
    lines = [f"loaded {m} 16384 {v} Live 0x0" for m, v in (loaded or {}).items()]
    lines += [f"cmdline {cmdline}", *drives.splitlines(), *others.splitlines()]
    if not container:
        lines += [f"dep {KERNEL} {path}" for path in PATHS.values()]
    lines += [f"builtin {KERNEL} kernel/x/{name}.ko" for name in builtin.split()]
    shown = [f"/sys/module/{k.replace('/', '/parameters/')}:{v}" for k, v in (values or {}).items()]
    shown += [f"declared {module}" for module in PATHS]
    shown += ["declared nf_conntrack acct", "declared dummy numdummies", "declared rds hidden"]
    image = metadata(IMAGE, mtime=image_mtime)
    return Snapshot(
        host="n1",
        marker=MARKER,
        sections={
            "identity": Section(
                stdout=f"kernel={KERNEL}\n" + ("container=podman\n" if container else ""), rc=0
            ),
            "modules_config": Section(stdout=records(files or {}, mtime), rc=0),
            "modules_kernel": Section(stdout="\n".join(lines) + "\n", rc=0),
            "modules_parameters": Section(stdout="\n".join(shown) + "\n", rc=0),
            "modules_initramfs": Section(stdout="" if container else image, rc=0),
        },
    )


def found(node: Node, snapshot: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings(node, snapshot)}


def done(node: Node, snapshot: Snapshot) -> list[Action]:
    return list(actions(node, snapshot, settings(node, snapshot)))


def commands(node: Node, snapshot: Snapshot) -> list[tuple[str, ...]]:
    return [a.command for a in done(node, snapshot) if isinstance(a, Run)]


def ours_of(node: Node, snapshot: Snapshot) -> dict[str, str]:
    """Our files as a run puts them on the host of ``snapshot``."""
    return {a.path: a.content for a in done(node, snapshot) if isinstance(a, InstallFile)}


def ours(node: Node) -> dict[str, str]:
    """Our files as a run puts them on a bare host."""
    return ours_of(node, host())


ASKED = node(
    load=["nf-conntrack"],
    options={"nf-conntrack": {"hashsize": 65536, "acct": True}, "dummy": {"numdummies": 2}},
    blacklist=["rds"],
)


def converged(asked: Node = ASKED, **more: Any) -> Snapshot:
    values: dict[str, object] = {
        "files": ours(asked),
        "loaded": {"nf_conntrack": "0 -"},
        "values": {"nf_conntrack/hashsize": "65536", "nf_conntrack/acct": "Y"},
    }
    return host(**{**values, **more})
