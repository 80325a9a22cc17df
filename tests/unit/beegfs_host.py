"""A node as the beegfs component sees it: what lies on it, and what a run makes of that."""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deploys.beegfs import actions, settings
from facts.beegfs import CLIENT, FORCED, HELPERD
from railwright.actions import Action, InstallFile, InstallSecret, RemoveFile, Run, RunScript
from railwright.beegfs_conf import Conf
from railwright.replacing import NAME
from railwright.schema import Node
from railwright.schema.beegfs import STOCK_CONFIG
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, MTIME, metadata, records
from tests.unit.units import unit

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
REMOUNT = LIVE | {Effect.REMOUNT}
KERNEL = "6.8.0-60-generic"
WHERE = "/mnt/beegfs"
MODULE = f"/lib/modules/{KERNEL}/updates/dkms/beegfs.ko.zst"
AUTOBUILT = f"/lib/modules/{KERNEL}/updates/fs/beegfs_autobuild/beegfs.ko"
BUILD_MK = "/etc/beegfs/beegfs-client-build.mk"
AUTOBUILD = "/etc/beegfs/beegfs-client-autobuild.conf"
MOUNTS = "/etc/beegfs/beegfs-mounts.conf"
HELPERD_CONF = "/etc/beegfs/beegfs-helperd.conf"
MOUNT_UNIT = "/etc/systemd/system/mnt-beegfs.mount"

# In the manner of the files of the packages: settings first, then what documents them.
STOCK = {
    8: """\
# settings of a client

sysMgmtdHost                  =

connAuthFile                  = /etc/beegfs/conn.auth
connDisableAuthentication     = false
connClientPort                = 8004
connMgmtdPort                 = 8008
connMaxInternodeNum           = 12
connUseRDMA                   = true
connTCPFallbackEnabled        = true
tuneFileCacheType             = buffered

# [connUseRDMA]
# what it does
""",
    7: """\
# settings of a client
sysMgmtdHost                  =
connAuthFile                  =
connDisableAuthentication     = false
connClientPortUDP             = 8004
connMgmtdPortTCP              = 8008
connMgmtdPortUDP              = 8008
connUseRDMA                   = true
connTCPFallbackEnabled        = true
logType                       = helperd
""",
}
STOCK_BUILD = "# against what it is built\n#OFED_INCLUDE_PATH=/usr/src/ofa_kernel/default/include\n"
STOCK_AUTOBUILD = "# how it is built\nbuildArgs=-j8\n\nbuildEnabled=true\n"
STOCK_HELPERD = "connAuthFile       =\nconnDisableAuthentication = false\nlogNumLines = 50000\n"
STOCK_MOUNTS = f"{WHERE} {STOCK_CONFIG}\n"
IDLE = "stor01 [ID: 3]\n   Connections: <none>\n"


@dataclass(frozen=True)
class World:
    """What is on the node; ``clients`` are the configurations in force, by their file."""

    files: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    enabled: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    active: frozenset[str] = frozenset()
    modules: Mapping[str, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    dkms: str | None = "beegfs/8.3.1, 6.8.0-60-generic, x86_64: installed\n"
    loaded: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    mounted: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    storage: str = IDLE
    interfaces: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    servers: str = ""
    container: bool = False
    stuck: bool = False
    mtime: int = MTIME
    installed: frozenset[str] = frozenset()


def stock(major: int = 8, build: str = "dkms") -> World:
    """A node with the packages as they come, and nothing else."""
    files = {STOCK_CONFIG: STOCK[major]}
    if build == "dkms":
        files[BUILD_MK] = STOCK_BUILD
        modules, installed = {MODULE: MTIME}, frozenset[str]()
        dkms: str | None = (
            f"beegfs/{'8.3.1' if major == 8 else '7.4.6'}, {KERNEL}, x86_64: installed\n"
        )
    else:
        files |= {AUTOBUILD: STOCK_AUTOBUILD, MOUNTS: STOCK_MOUNTS}
        modules, installed, dkms = {}, frozenset({CLIENT}), None
    if major == 7:
        files[HELPERD_CONF] = STOCK_HELPERD
        installed |= {HELPERD}
    return World(files=files, modules=modules, dkms=dkms, installed=installed)


def node(
    mounts: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    allow: Iterable[Effect] = LIVE,
    rails: bool = True,
    data: Mapping[str, Any] | None = None,
    **beegfs: Any,
) -> Node:
    """A node with two rails; ``mounts`` have a management host and no secret unless they say."""
    nics = {0: {"pci": "0000:10:00.0"}, 1: {"pci": "0000:20:00.0"}} if rails else {}
    asked = mounts if mounts is not None else {WHERE: {}}
    parsed = {
        where: {"kind": "beegfs", "management": "10.20.0.21", "auth": "disabled", **mount}
        for where, mount in asked.items()
    }
    return Node.model_validate(
        {
            "name": "n1",
            "effects": {"allow": frozenset(allow)},
            "rails": {"nics": nics},
            **({"fabric": {"kind": "infiniband"}} if nics else {}),
            **(data or {}),
            "beegfs": {"major": 8, **beegfs},
            "storage": {"mounts": parsed},
        }
    )


def snapshot(world: World) -> Snapshot:
    mounts = "".join(
        f"beegfs_nodev {where} beegfs rw,relatime,cfgFile={config} 0 0\n"
        for where, config in world.mounted.items()
    )
    states = "\n".join(
        unit(path.rpartition("/")[2], "active" if path in world.active else "inactive")
        for path in world.units
    )
    texts = {
        "identity": f"kernel={KERNEL}\n" + ("container=podman\n" if world.container else ""),
        "beegfs_files": "".join(_file(p, t, world.mtime) for p, t in world.files.items()),
        "beegfs_state": records(world.ours) + "".join(_meta(world)),
        "beegfs_module": _module(world),
        "beegfs_units": "\n".join(_service(name, world) for name in (HELPERD, CLIENT)),
        "beegfs_proc": "".join(_client(n, c, world) for n, c in enumerate(world.clients.items())),
        "beegfs_servers": world.servers,
        "mounts": mounts,
        "mount_answers": "".join(f"{where} 0 ok\n" for where in world.mounted),
        "fstab": "",
        "mount_units": records(world.units) + "".join(_link(link) for link in world.links),
        "mount_states": states or unit("mnt-beegfs.mount", "inactive", "", "not-found"),
        "secrets": "".join(f"{path} {told}\n" for path, told in world.secrets.items()),
        "nic_ports": "",
        "nic_rdma": "[]",
        "nic_addresses": "[]",
        "way_in": "",
    }
    sections = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
    if world.stuck:
        sections["beegfs_proc"] = Section(stdout="", rc=None, ended="deadline")
    return Snapshot(host="n1", marker=MARKER, sections=sections)


def _file(path: str, text: str, mtime: int) -> str:
    content = text.encode("utf-8", "surrogateescape")
    head = f"\n{MARKER} file file 644 root {mtime} {len(content)} {path}\n"
    return f"{head}{MARKER} base64\n{base64.encodebytes(content).decode('ascii')}"


def _meta(world: World) -> Iterable[str]:
    for path, mtime in world.modules.items():
        yield metadata(path, mtime=mtime)
    yield from map(metadata, world.others)


def _link(path: str) -> str:
    return f"\n{MARKER} file link 644 root {MTIME} 64 {path}\n{MARKER} target x\n"


def _module(world: World) -> str:
    told = world.loaded
    if world.dkms is not None:
        told += "dkms_rc=0\n" + "".join(f"dkms {line}\n" for line in world.dkms.splitlines())
    return told


def _service(name: str, world: World) -> str:
    there = name in world.installed
    return unit(
        name,
        "active" if name in world.active else "inactive",
        "enabled" if name in world.enabled else "disabled" if there else "",
        "loaded" if there else "not-found",
    )


def answer(name: str, what: str, text: str, rc: int = 0) -> str:
    return f"\n{MARKER} port {name} {what}\n{text}\n{MARKER} exit {rc}\n"


def _client(number: int, client: tuple[str, Mapping[str, str]], world: World) -> str:
    name, (path, config) = f"{number}A-65-n1", client
    shown = "".join(f"{key} = {value}\n" for key, value in {"cfgFile": path, **config}.items())
    info = f"ClientID: {name}\n"
    if world.interfaces is not None:
        told, rdma = world.interfaces
        info += "Interfaces:\n" + "".join(f"+ {n}[ip addr: 1.2.3.4; type: TCP]\n" for n in told)
        info += "Outbound RDMA Interfaces:\n"
        info += "".join(f"+ {n}[ip addr: 1.2.3.4; type: RDMA]\n" for n in rdma) or "+ Any\n"
    return "".join(
        answer(name, what, text)
        for what, text in (
            ("config", shown),
            ("client_info", info),
            ("mgmt_nodes", "mgmt01 [ID: 1]\n   Connections: TCP: 1 (10.20.0.21:8008); \n"),
            ("meta_nodes", "meta01 [ID: 2]\n   Root: <yes>\n   Connections: <none>\n"),
            ("storage_nodes", world.storage),
        )
    )


def applied(world: World, todo: Iterable[Action]) -> World:
    """The node after these actions, as far as they are the component's."""
    for action in todo:
        world = _applied(world, action)
    return world


def _applied(world: World, action: Action) -> World:
    if isinstance(action, InstallSecret):
        file = action.file
        return replace(world, secrets={**world.secrets, file.path: f"equal root {file.mode}"})
    if isinstance(action, InstallFile):
        if action.path.startswith("/etc/systemd/"):
            return replace(world, units={**world.units, action.path: action.content})
        return replace(world, ours={**world.ours, action.path: action.content})
    if isinstance(action, RemoveFile):
        return replace(world, ours={p: t for p, t in world.ours.items() if p != action.path})
    if isinstance(action, RunScript) and action.name == NAME:
        return replace(world, files={**world.files, action.arguments[0]: text_of(action)})
    if isinstance(action, RunScript) and action.name == "railwright-dkms":
        return replace(world, modules={**world.modules, MODULE: MTIME + 10})
    if isinstance(action, Run):
        return _ran(world, action.command)
    return world


def _ran(world: World, command: tuple[str, ...]) -> World:
    if command == ("/etc/init.d/beegfs-client", "rebuild"):
        others = tuple(path for path in world.others if path != FORCED)
        return replace(world, modules={AUTOBUILT: MTIME + 10}, others=others)
    verb, name = command[1], command[-1]
    if verb == "enable" and name.endswith(".mount"):
        link = f"/etc/systemd/system/remote-fs.target.wants/{name}"
        return replace(world, links=world.links | {link})
    if verb == "enable":
        return replace(world, enabled=world.enabled | {name})
    if verb in ("start", "restart") and name.endswith(".mount"):
        text = world.units[f"/etc/systemd/system/{name}"]
        where, config = (re.search(rf"{k}=([^,\n]+)", text) for k in ("Where", "cfgFile"))
        assert where is not None
        assert config is not None
        return _mounted(world, where[1], config[1])
    return replace(world, active=world.active | {name}) if verb == "start" else world


def _mounted(world: World, where: str, config: str) -> World:
    rows = (line.partition("=") for line in world.files[config].splitlines() if line[:1] != "#")
    shown = {key.strip(): value.strip() for key, sets, value in rows if sets}
    words = {"true": "1", "false": "0"}
    switched = {key: words.get(value, value) for key, value in shown.items()}
    return replace(
        world,
        mounted={**world.mounted, where: config},
        clients={**world.clients, config: switched},
    )


def text_of(action: Action) -> str:
    """The text that a script puts in a file's place."""
    assert isinstance(action, RunScript)
    body = action.script.partition("<<'END' || exit 1\n")[2].partition("\nEND\n")[0]
    return base64.b64decode(body).decode("utf-8", "surrogateescape")


def done(asked: Node, world: World) -> list[Action]:
    seen = snapshot(world)
    return list(actions(asked, seen, settings(asked, seen)))


def converged(asked: Node, world: World) -> World:
    return applied(world, done(asked, world))


def found(asked: Node, world: World) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings(asked, snapshot(world))}


def verdicts(asked: Node, world: World) -> dict[str, Verdict]:
    return {key: verdict(s, asked.effects.allow) for key, s in found(asked, world).items()}


def written(asked: Node, world: World, path: str = STOCK_CONFIG) -> str:
    """What a run writes to a file, which it has to write."""
    return next(
        text_of(action)
        for action in done(asked, world)
        if isinstance(action, RunScript) and action.arguments[:1] == (path,)
    )


def value(text: str, key: str) -> str | None:
    line = Conf(text).find(key)
    return None if line is None else line.value


def commands(todo: Iterable[Action]) -> list[tuple[str, ...]]:
    return [action.command for action in todo if isinstance(action, Run)]
