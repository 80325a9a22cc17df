"""A node as the lustre component sees it, built by hand: two rails, and LNet's o2ib over both."""

import json
from collections.abc import Mapping
from typing import Any

from deploys.lustre import actions, settings
from facts.lustre import DROP_IN, LNET_CONF, LNET_SCRIPT, PARAMETERS_UNIT
from railwright.actions import Action, InstallFile, RemoveFile, Run, RunScript
from railwright.schema import Node
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit import gpu_host
from tests.unit.gpu_host import modinfo
from tests.unit.rails_host import WAY_IN, Port, set_up
from tests.unit.records import MARKER, MTIME, records
from tests.unit.units import unit

KERNEL = "6.1.0-57-amd64"
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
SERVICE = LIVE | {Effect.SERVICE}
REMOUNT = LIVE | {Effect.REMOUNT}
MGS = "10.77.3.1@o2ib"
WHERE = "/mnt/scr"
MOUNT_UNIT = "mnt-scr.mount"
DEVICE = f"{MGS}:10.77.3.2@o2ib:/scr"
TUNED = {"peer_credits": 32, "peer_credits_hiw": 16, "concurrent_sends": 64}
PARAMETER = "osc.*.max_rpcs_in_flight"

NI = """\
        - nid: {nid}
          status: {status}
          interfaces:
              0: {iface}
          health stats:
              fatal_error: 0
              health value: 1000
          tunables:
              peer_timeout: 180
              peer_credits: {peer_credits}
              peer_buffer_credits: 0
              credits: 256
          lnd tunables:
              peercredits_hiw: {hiw}
              concurrent_sends: {sends}
              conns_per_peer: 1
"""


def node(
    allow: frozenset[Effect] = LIVE,
    *,
    tunables: Mapping[str, int] | None = None,
    mounts: Mapping[str, Mapping[str, object]] | None = None,
    networks: Mapping[str, object] | None = None,
    **more: Any,
) -> Node:
    """A node with o2ib over its two rails, and one file system."""
    o2ib = {"o2ib": {"rails": "all", "tunables": dict(TUNED if tunables is None else tunables)}}
    scr = {WHERE: {"kind": "lustre", "mgs": [[MGS], ["10.77.3.2@o2ib"]], "fsname": "scr"}}
    lustre = {"networks": o2ib if networks is None else networks, **more.pop("lustre", {})}
    return Node.model_validate(
        {
            "name": "gpu001",
            "fabric": {"kind": "roce"},
            "effects": {"allow": allow},
            "ofed": {"kind": "inbox"},
            "rails": {
                "nics": {0: {"pci": "0000:1a:00.0"}, 1: {"pci": "0000:3d:00.0"}},
                "plan": {"prefix": "10.64.0.0/12", "rail_prefix_length": 20},
            },
            "lustre": lustre,
            "storage": {"mounts": scr if mounts is None else mounts},
            **more,
        }
    )


def bare_node() -> Node:
    """A node that asks for nothing of Lustre."""
    return Node.model_validate({"name": "gpu001"})


def ni(
    nid: str, iface: str, status: str = "up", *, peer_credits: int = 32, health: str = "1000"
) -> str:
    text = NI.format(
        nid=nid, iface=iface, status=status, peer_credits=peer_credits, hiw=16, sends=64
    )
    return text.replace("health value: 1000", f"health value: {health}")


def net_show(**nets: str) -> str:
    """What lnetctl says: network to its interfaces."""
    lo = "    - net type: lo\n      local NI(s):\n        - nid: 0@lo\n          status: up\n"
    listed = (f"    - net type: {net}\n      local NI(s):\n{nis}" for net, nis in nets.items())
    return f"net:\n{lo}{''.join(listed)}"


BOTH = net_show(o2ib=ni("10.64.0.2@o2ib", "rail0") + ni("10.64.16.2@o2ib", "rail1"))
DF = (
    "UUID                   1K-blocks        Used   Available Use% Mounted on\n"
    "scr-MDT0000_UUID      1163120416     8012344  1055999999   1% /mnt/scr[MDT:0]\n"
    "scr-OST0000_UUID     93746100224 61234560000 31566321152  66% /mnt/scr[OST:0]\n"
    "\nfilesystem_summary:  93746100224 61234560000 31566321152  66% /mnt/scr\n"
)


def df(text: str = DF, rc: int = 0, where: str = WHERE) -> str:
    return f"\n{MARKER} port {where} df\n{text}\n{MARKER} exit {rc}\n"


def mounted(device: str = DEVICE, where: str = WHERE, options: str = "rw,flock,lazystatfs") -> str:
    return f"{device} {where} lustre {options} 0 0\n"


def link(path: str) -> str:
    return f"\n{MARKER} file link 644 root {MTIME} 64 {path}\n{MARKER} target /x\n"


def host(
    files: Mapping[str, str] | None = None,
    *,
    links: tuple[str, ...] = (),
    lnet: str | None = None,
    lnet_rc: int = 0,
    kernel: str = "",
    units: str | None = None,
    condition: str = "",
    mounts: str = "",
    answers: str = f"{WHERE} 0 ok\n",
    targets: Section | None = None,
    devices: str = "",
    parameters: str = "",
    modprobe: Mapping[str, str] | None = None,
    ports: tuple[Port, ...] = (set_up(0), set_up(1)),
    container: bool = False,
    **sections: Section,
) -> Snapshot:
    """``lnet`` is what lnetctl says, None where its module is not loaded."""
    way = Port("eth0", "0000:01:00.0", "52:54:00:00:00:01", "192.0.2.5/24", up=True)
    every = (way, *ports)
    addresses = [port.entry() for port in every]
    for entry in addresses:
        infos = entry["addr_info"]
        assert isinstance(infos, list)
        entry["addr_info"] = [{**info, "family": "inet"} for info in infos]
    files = files or {}
    mine = {path: text for path, text in files.items() if not path.endswith(".mount")}
    of_mounts = {path: text for path, text in files.items() if path.endswith(".mount")}
    mount_links = [path for path in links if path.endswith(".mount")]
    told = unit("lnet.service", "inactive", "disabled") if units is None else units
    found = {
        "identity": f"kernel={KERNEL}\n" + ("container=podman\n" if container else ""),
        "nic_ports": "".join(f"{port.line()}\n" for port in every),
        "nic_rdma": "",
        "nic_addresses": json.dumps(addresses),
        "way_in": WAY_IN,
        "modules_config": records(modprobe or {}),
        "lustre_files": records(mine)
        + "".join(link(path) for path in links if path.endswith(PARAMETERS_UNIT)),
        "lustre_units": told.rstrip("\n") + f"\n{condition}\n",
        "lustre_kernel": kernel,
        "lustre_interfaces": json.dumps(addresses),
        "lustre_devices": devices,
        "lustre_parameters": parameters,
        "mounts": f"/dev/vda1 / ext4 rw 0 0\n{mounts}",
        "mount_answers": answers if mounts else "",
        "fstab": "",
        "mount_units": records(of_mounts) + "".join(map(link, mount_links)),
        "mount_states": unit(MOUNT_UNIT, "active" if mounts else "inactive", "enabled"),
    }
    as_sections = {name: Section(stdout=text, rc=0) for name, text in found.items()}
    failed = lnet_rc != 0
    as_sections["lustre_lnet"] = Section(
        stdout="" if failed else lnet or "", stderr=(lnet or "") if failed else "", rc=lnet_rc
    )
    as_sections["lustre_targets"] = targets or Section(stdout=df() if mounts else "", rc=0)
    return Snapshot(host="gpu001", marker=MARKER, sections={**as_sections, **sections})


def of(key: str, asked: Node, seen: Snapshot) -> Setting:
    return next(setting for setting in settings(asked, seen) if setting.key == key)


def verdicts(asked: Node, seen: Snapshot) -> dict[str, Verdict]:
    return {s.key: verdict(s, asked.effects.allow) for s in settings(asked, seen)}


def done(asked: Node, seen: Snapshot) -> list[Action]:
    return list(actions(asked, seen, settings(asked, seen)))


def commands(asked: Node, seen: Snapshot) -> list[str]:
    """What is run, scripts by their name and arguments."""
    found = []
    for action in done(asked, seen):
        if isinstance(action, Run):
            found.append(" ".join(action.command))
        elif isinstance(action, RunScript):
            found.append(" ".join((action.name, *action.arguments)))
    return found


def written(asked: Node, seen: Snapshot) -> dict[str, str]:
    return {a.path: a.content for a in done(asked, seen) if isinstance(a, InstallFile)}


def removed(asked: Node, seen: Snapshot) -> set[str]:
    return {a.path for a in done(asked, seen) if isinstance(a, RemoveFile)}


def converged(asked: Node, **more: Any) -> Snapshot:
    """The node after a run that was allowed everything."""
    files = written(asked, host())
    links = [f"/etc/systemd/system/remote-fs.target.wants/{MOUNT_UNIT}"]
    if asked.lustre.parameters:
        links.append(f"/etc/systemd/system/{MOUNT_UNIT}.wants/{PARAMETERS_UNIT}")
    given: dict[str, Any] = {
        "lnet": BOTH,
        "kernel": "loaded lnet 2.16.1\nloaded ko2iblnd 2.16.1\nloaded lustre 2.16.1\n",
        "units": unit("lnet.service", "active", "enabled"),
        "mounts": mounted(),
        "links": tuple(links),
        **more,
    }
    return host({**files, **given.pop("files", {})}, **given)


OURS = (LNET_CONF, DROP_IN, LNET_SCRIPT)


def client(version: str = "2.16.1", *without: str, path: str = "updates/dkms") -> str:
    """The client's modules on disk for the kernel that runs."""
    names = [name for name in ("lnet", "ko2iblnd", "lustre") if name not in without]
    said = (modinfo(name, KERNEL, version, path=f"{path}/{name}.ko") for name in names)
    return "".join(said)


def drivers(disk: str = "", dkms: str = "", symbols: str = "") -> dict[str, Any]:
    """Sections of drivers, of a node with the kernel's own RDMA stack."""
    inbox = "".join(
        modinfo(name, KERNEL, path=f"kernel/drivers/{name}.ko") for name in ("ib_core", "mlx5_core")
    )
    head = f"kernel {KERNEL}\nvermagic {KERNEL} SMP\n"
    of_gpu = gpu_host.host(
        KERNEL,
        KERNEL,
        drivers_disk=head + inbox + (disk or client()),
        drivers_dkms=dkms,
        drivers_symbols=symbols,
        drivers_loaded="",
        drivers_ofed="",
    )
    of_gpu = gpu_host.with_section(of_gpu, "drivers_ofed", rc=127)
    taken = ("kernel_boot", "kernels_installed", "modules_initramfs")
    return {
        name: section
        for name, section in of_gpu.sections.items()
        if name.startswith("drivers_") or name in taken
    }
