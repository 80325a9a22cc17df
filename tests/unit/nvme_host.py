"""A node as the nvmeof and nfs components see it, built by hand: two rails and one volume."""

import json
from collections.abc import Mapping
from typing import Any

from deploys import nfs, nvmeof
from facts.mounts import ANSWERS, FSTAB, MOUNTS, STATES, UNITS
from facts.nvme import AUTOCONNECT, HOSTID, HOSTNQN
from railwright.actions import (
    Action,
    InstallFile,
    InstallSecret,
    RemoveFile,
    Run,
    RunScript,
    WriteValue,
)
from railwright.component import Component, settings_of
from railwright.nvmeof import volumes_of
from railwright.owned import OwnedFile
from railwright.resolve.nvmeof_files import common_files, volume_files
from railwright.schema import Node
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, enablement, metadata, record
from tests.unit.units import unit

KERNEL = "6.1.0-57-amd64"
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
REMOUNT = LIVE | {Effect.REMOUNT}
WHERE, NAME, DEVICE = "/mnt/vol", "mnt:vol", "nvme1n1"
NQN = "nqn.2014-08.org.example:volume1"
UUID = "0a0b0c0d-0102-0304-0506-0708090a0b0c"
HOST_NQN = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
HOST_ID = "11111111-2222-3333-4444-555555555555"
MOUNT_UNIT, CONNECT_UNIT = "mnt-vol.mount", "railwright-nvmeof-mnt:vol.service"
TARGETS = ("10.64.0.9", "10.64.1.9")
OPTIONS = "instance=-1,cntlid=-1,transport=%s,traddr=%s,nqn=%s,tos=%d"
AUTH = f"{OPTIONS},dhchap_secret=%s,dhchap_ctrl_secret=%s"

RAILS: dict[str, Any] = {
    "fabric": {"kind": "roce"},
    "rails": {
        "nics": {0: {"pci": "0000:10:00.0"}, 1: {"pci": "0000:20:00.0"}},
        "plan": {"prefix": "10.64.0.0/16", "rail_prefix_length": 24},
    },
}


def volume(**changes: Any) -> dict[str, Any]:
    """A volume reached by both rails."""
    return {
        "kind": "nvmeof",
        "transport": "rdma",
        "nqn": NQN,
        "portals": [{"address": address, "rail": rail} for rail, address in enumerate(TARGETS)],
        "namespace": {"uuid": UUID},
        "io_queues": 4,
        "keep_alive_s": 5,
        "format": "if_blank",
        **changes,
    }


def node(
    *, allow: frozenset[Effect] = LIVE, host: Mapping[str, Any] | None = None, **changes: Any
) -> Node:
    """``host`` is the node's nvmeof, ``changes`` are those of its one volume."""
    return with_mounts({WHERE: volume(**changes)}, allow=allow, host=host)


def with_mounts(
    mounts: Mapping[str, Any],
    *,
    allow: frozenset[Effect] = LIVE,
    host: Mapping[str, Any] | None = None,
    **more: Any,
) -> Node:
    data = {
        "name": "n1",
        **RAILS,
        "nvmeof": dict(host or {}),
        "storage": {"mounts": dict(mounts)},
        "effects": {"allow": sorted(effect.value for effect in allow)},
        **more,
    }
    return Node.model_validate(data)


def controller(number: int = 1, rail: int = 0, **changes: str) -> str:
    """A line of sysfs on a path to the target; ``changes`` are those of its fields."""
    shown = {
        "transport": "rdma",
        "state": "live",
        "nqn": NQN,
        "hostnqn": HOST_NQN,
        "hostid": HOST_ID,
        "queues": "5",
        "kato": "5",
        "delay": "10",
        "loss": "1800",
        "numa": str(rail),
        "address": f"traddr={TARGETS[rail]},trsvcid=4420,host_traddr=10.64.{rail}.2",
        "given": "-",
    }
    return "\t".join(["ctrl", f"nvme{number}", *{**shown, **changes}.values()]) + "\n"


def namespace(device: str = DEVICE, uuid: str = UUID, nqn: str = NQN, holds: str = "ext4") -> str:
    """A namespace as sysfs and udev have it; ``holds`` "" is a blank one, "?" one not looked at."""
    zeros = "00000000-0000-0000-0000-000000000000"
    eui = "00 00 00 00 00 00 00 00"
    lines = ["\t".join(["ns", device, nqn, "1", uuid, zeros, eui, "2097152"])]
    if holds != "?":
        lines.append(f"holds\t{device}\tUSEC_INITIALIZED\t1")
    if holds.startswith("table "):
        lines.append(f"holds\t{device}\tID_PART_TABLE_TYPE\t{holds.removeprefix('table ')}")
    elif holds not in ("", "?"):
        lines.append(f"holds\t{device}\tID_FS_TYPE\t{holds}")
    return "\n".join(lines) + "\n"


BOTH = controller(1, 0) + controller(2, 1)
SUBSYSTEM = f"subsys\tnvme-subsys1\t{NQN}\tnuma\n"
LINK = f"link\t/dev/railwright/{NAME}\t{DEVICE}\n"
CONNECTED = BOTH + SUBSYSTEM + namespace() + LINK


def modinfo(
    rpcrdma: str = "kernel/net/sunrpc/xprtrdma", stack: str = "kernel/drivers", **more: str
) -> str:
    """Modules on disk, each in a folder: ``stack`` that of mlx5_core and ib_core."""
    folders = {
        "mlx5_core": stack,
        "ib_core": stack,
        "rpcrdma": rpcrdma,
        "nvme_rdma": rpcrdma,
    } | more
    return "".join(
        f"filename:       /lib/modules/{KERNEL}/{folder}/{name}.ko\nname:           {name}\n"
        for name, folder in folders.items()
        if folder
    )


def owned(asked: Node) -> list[OwnedFile]:
    volumes = volumes_of(asked)
    found = list(common_files(asked.nvmeof, volumes))
    for one in volumes:
        found += volume_files(one)
    return found


def ours(asked: Node) -> str:
    """Our files and enablements, as the probe prints them of a node that was converged."""
    text = "".join(record(f.path, str(f.content), mode=f.mode) for f in owned(asked))
    return text + "".join(enablement(one.unit) for one in volumes_of(asked))


def mount_files(asked: Node) -> str:
    mounts = [one.mount(None) for one in volumes_of(asked)]
    text = "".join(record(m.path, str(m.owned("nvmeof").content)) for m in mounts)
    return text + "".join(enablement(m.unit) for m in mounts)


IDENTITY = record(HOSTNQN, f"{HOST_NQN}\n") + record(HOSTID, f"{HOST_ID}\n")


def host(
    *,
    files: str = IDENTITY,
    units: str = "",
    sysfs: str = "",
    mounts: str = "",
    mounted: str = "",
    module: str | None = None,
    foreign: str = "",
    secrets: str = "",
    multipath: str = "Y",
    options: str = OPTIONS,
    autoconnect: str = "enabled",
    container: bool = False,
    active: str = "inactive",
) -> Snapshot:
    """A node; as it is given it is bare, but for what nvme-cli's package brings."""
    rest = f"multipath\t{multipath}\ncpus\t0-7\noptions\t{options}\n"
    texts = {
        "identity": f"kernel={KERNEL}\n" + ("container=podman\n" if container else ""),
        "nvmeof_files": files,
        "nvmeof_units": unit(AUTOCONNECT, active="inactive", file=autoconnect) + "\n" + units,
        "nvmeof_sysfs": sysfs + rest,
        "nvmeof_foreign": foreign,
        "rdma_modules": modinfo() if module is None else module,
        "secrets": secrets,
        MOUNTS.name: mounts,
        ANSWERS.name: f"{WHERE} 0 ok\n",
        FSTAB.name: "",
        UNITS.name: mounted,
        STATES.name: unit(MOUNT_UNIT, active=active),
        **nics(),
    }
    sections = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
    return Snapshot(host="n1", marker=MARKER, sections=sections)


def nics() -> dict[str, str]:
    ports, told = [], []
    for rail, bus in enumerate(("10", "20")):
        mac = f"b8:3f:d2:00:00:0{rail}"
        path = f"/sys/devices/pci0000:00/0000:{bus}:00.0"
        ports.append(f"port net rail{rail} {path} mlx5_core {mac} 9000 up 400000 {rail} 1")
        address = {"scope": "global", "local": f"10.64.{rail}.2", "prefixlen": 24}
        told.append({"ifname": f"rail{rail}", "flags": ["UP"], "addr_info": [address]})
    return {
        "nic_ports": "\n".join(ports) + "\n",
        "nic_rdma": "",
        "nic_addresses": json.dumps(told),
        "way_in": "",
    }


PROC = f"/dev/{DEVICE} {WHERE} ext4 rw,relatime 0 0\n"


def converged(asked: Node, **changes: Any) -> Snapshot:
    """The node after a run."""
    there: dict[str, Any] = {
        "files": IDENTITY + ours(asked),
        "units": unit(CONNECT_UNIT),
        "sysfs": CONNECTED,
        "mounts": PROC,
        "mounted": mount_files(asked),
        "active": "active",
    }
    return host(**{**there, **changes})


def found(
    asked: Node, snapshot: Snapshot, component: Component = nvmeof.COMPONENT
) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings_of(component, asked, snapshot)}


def verdicts(
    asked: Node, snapshot: Snapshot, component: Component = nvmeof.COMPONENT
) -> dict[str, Verdict]:
    settings = found(asked, snapshot, component)
    return {key: verdict(setting, asked.effects.allow) for key, setting in settings.items()}


def actions(
    asked: Node, snapshot: Snapshot, component: Component = nvmeof.COMPONENT
) -> list[Action]:
    return list(component.actions(asked, snapshot, settings_of(component, asked, snapshot)))


def done(asked: Node, snapshot: Snapshot, component: Component = nvmeof.COMPONENT) -> list[str]:
    """What is done, in words."""
    words = []
    for action in actions(asked, snapshot, component):
        match action:
            case Run():
                words.append(" ".join(action.command))
            case InstallFile():
                words.append(f"install {action.path}")
            case InstallSecret():
                words.append(f"secret {action.file.path}")
            case RemoveFile():
                words.append(f"remove {action.path}")
            case RunScript():
                words.append(" ".join((action.name, *action.arguments)))
            case WriteValue():
                words.append(f"{action.path}={action.value}")
    return words


def leftover(path: str) -> str:
    """A file of keys, of which no more is read than that it is there."""
    return metadata(path, mode="600")


NFS = nfs.COMPONENT
