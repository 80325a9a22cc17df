"""A node as the rails component sees it, built by hand: eth0 is the way in, two ports are rails."""

import json
from collections.abc import Mapping
from typing import Any

from deploys.rails import actions, settings
from railwright.actions import Action, InstallFile, RunScript
from railwright.schema import (
    Effect,
    EffectsSpec,
    Node,
    Rail,
    RailPlan,
    RailsSpec,
    RoceFabric,
)
from railwright.settings import Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER
from tests.unit.records import record as file_record
from tests.unit.units import unit

BOOT, SINCE = 1_700_000_000, 10
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
LINK = LIVE | {Effect.LINK}
PCI = {0: "0000:1a:00.0", 1: "0000:3d:00.0"}
MAC = {0: "b8:3f:d2:00:00:01", 1: "b8:3f:d2:00:00:02"}
ADDRESS = {0: "10.64.0.2/20", 1: "10.64.16.2/20"}
WAY_IN = 'ssh 192.0.2.9 50000 192.0.2.5 22\n[{"dst":"192.0.2.9","dev":"eth0"}]\n'


def node(
    *,
    allow: frozenset[Effect] = LINK,
    name: str | None = "rail{rail}",
    rails: tuple[int, ...] = (0, 1),
    **more: Any,
) -> Node:
    plan = {"prefix": "10.64.0.0/12", "rail_prefix_length": 20}
    return Node(
        name="gpu001",
        fabric=RoceFabric(),
        effects=EffectsSpec(allow=allow),
        rails=RailsSpec.model_validate(
            {
                "nics": {rail: Rail(pci=PCI[rail]) for rail in rails},
                "plan": RailPlan.model_validate(plan),
                "name": name,
                **more,
            }
        ),
    )


class Port:
    """A network interface of the fake host."""

    def __init__(
        self,
        name: str,
        pci: str,
        mac: str,
        *addresses: str,
        mtu: int = 1500,
        up: bool = False,
    ) -> None:
        self.name, self.pci, self.mac = name, pci, mac
        self.addresses, self.mtu, self.up = addresses, mtu, up

    def line(self) -> str:
        path = f"/sys/devices/pci0000:00/{self.pci}"
        state = "up" if self.up else "down"
        return f"port net {self.name} {path} mlx5_core {self.mac} {self.mtu} {state} 200000 0 1"

    def entry(self) -> dict[str, object]:
        return entry(self.name, *self.addresses, up=self.up)


def entry(name: str, *addresses: str, up: bool = True) -> dict[str, object]:
    infos = [
        {"local": a.partition("/")[0], "prefixlen": int(a.partition("/")[2]), "scope": "global"}
        for a in addresses
    ]
    return {"ifname": name, "flags": ["UP"] if up else [], "addr_info": infos}


def bare(rail: int, name: str | None = None) -> Port:
    return Port(name or f"enp{rail}s0np0", PCI[rail], MAC[rail])


def set_up(rail: int, name: str | None = None, mtu: int = 9000, *more: str) -> Port:
    name = name or f"rail{rail}"
    return Port(name, PCI[rail], MAC[rail], ADDRESS[rail], *more, mtu=mtu, up=True)


def rule(source: str, table: int, priority: int) -> dict[str, object]:
    return {"priority": priority, "src": source, "table": str(table)}


RULES = [rule("10.64.0.2", 100, 1000), rule("10.64.16.2", 101, 1001)]
ROUTES = [
    {"dst": "10.64.0.0/20", "dev": "rail0", "table": "100", "scope": "253"},
    {"dst": "10.64.0.0/12", "gateway": "10.64.0.1", "dev": "rail0", "table": "100"},
    {"dst": "10.64.16.0/20", "dev": "rail1", "table": "101", "scope": "253"},
    {"dst": "10.64.0.0/12", "gateway": "10.64.16.1", "dev": "rail1", "table": "101"},
]


def record(path: str, content: str, mtime: int = BOOT) -> str:
    secret = path.endswith(".nmconnection") or path.startswith("/etc/netplan")
    mode = "600" if secret else "644"
    return file_record(path, content, mode=mode, mtime=mtime)


def host(
    ports: tuple[Port, ...] = (bare(0), bare(1)),
    files: Mapping[str, str] | None = None,
    *,
    managers: tuple[str, ...] = ("systemd-networkd",),
    netplan: bool = False,
    rules: list[dict[str, object]] | None = None,
    routes: list[dict[str, object]] | None = None,
    others: tuple[dict[str, object], ...] = (),
    way_in: str = WAY_IN,
    arp: Mapping[str, tuple[int, int]] | None = None,
    mtimes: Mapping[str, int] | None = None,
    container: bool = False,
    **sections: Section,
) -> Snapshot:
    way = Port("eth0", "0000:01:00.0", "52:54:00:00:00:01", "192.0.2.5/24", up=True)
    every = (way, *ports)
    start = "ExecMainStartTimestampMonotonic=10000000\nUptime=500.0\n"
    start += "/usr/sbin/netplan\n" if netplan else ""
    networkctl = {
        "Interfaces": [{"Name": p.name, "AdministrativeState": "unmanaged"} for p in every]
    }
    identity = f"time={BOOT + 500}\n" + ("container=podman\n" if container else "")
    found = {
        "identity": identity,
        "nic_ports": "".join(f"{p.line()}\n" for p in every),
        "nic_rdma": "",
        "nic_addresses": json.dumps([*(p.entry() for p in every), *others]),
        "way_in": way_in,
        "network_units": _units(managers),
        "network_start": start,
        "network_files": "".join(
            record(path, text, (mtimes or {}).get(path, BOOT))
            for path, text in (files or {}).items()
        ),
        "network_udev": "".join(
            f"DEVPATH=/x\nINTERFACE={p.name}\nID_PATH=pci-{p.pci}\nID_NET_DRIVER=mlx5_core\n"
            for p in every
        ),
        "network_networkd": json.dumps(networkctl) if "systemd-networkd" in managers else "",
        "network_nm": "".join(f"{p.name}:disconnected:\n" for p in ports)
        if "NetworkManager" in managers
        else "",
        "network_rules": json.dumps(rules or []),
        "network_routes": json.dumps(routes or []),
        "network_arp": "".join(
            f"{name}/arp_ignore:{one}\n{name}/arp_announce:{two}\n"
            for name, (one, two) in {"all": (0, 0), **(arp or {})}.items()
        ),
    }
    all_ = {name: Section(stdout=text, rc=0) for name, text in found.items()}
    return Snapshot(host="gpu001", marker=MARKER, sections={**all_, **sections})


def _units(managers: tuple[str, ...]) -> str:
    return "\n".join(
        unit(f"{name}.service")
        if name in managers
        else unit(f"{name}.service", "inactive", "disabled")
        for name in ("systemd-networkd", "NetworkManager", "networking")
    )


def found(node: Node, seen: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings(node, seen)}


def verdicts(node: Node, seen: Snapshot) -> dict[str, Verdict]:
    return {s.key: verdict(s, node.effects.allow) for s in settings(node, seen)}


def done(node: Node, seen: Snapshot) -> list[Action]:
    return list(actions(node, seen, settings(node, seen)))


def installed(node: Node, seen: Snapshot) -> dict[str, str]:
    return {a.path: a.content for a in done(node, seen) if isinstance(a, InstallFile)}


def told(node: Node, seen: Snapshot) -> list[str]:
    """What the script on the node is told to do."""
    return [word for a in done(node, seen) if isinstance(a, RunScript) for word in a.arguments]


def converged(node: Node, **more: Any) -> Snapshot:
    """The host after a run on a bare one, managed as that one was."""
    how = {k: v for k, v in more.items() if k in ("managers", "netplan", "container")}
    kept: Mapping[str, str] = more.pop("files", None) or {}
    files = {**installed(node, host(files=kept, **how)), **kept}
    values: dict[str, object] = {
        "ports": (set_up(0), set_up(1)),
        "files": files,
        "rules": RULES,
        "routes": ROUTES,
    }
    return host(**{**values, **more})


INTERFACES = {"/etc/network/interfaces": "auto lo\nsource /etc/network/interfaces.d/*\n"}
NETPLAN = {"/etc/netplan/50-mgmt.yaml": "network:\n  ethernets:\n    eth0:\n      dhcp4: true\n"}
NM_PLAN = {
    "/etc/netplan/50-mgmt.yaml": "network:\n  renderer: NetworkManager\n  ethernets: {eth0: {}}\n"
}
MANAGED: dict[str, dict[str, object]] = {
    "networkd": {},
    "NetworkManager": {"managers": ("NetworkManager",)},
    "netplan": {"netplan": True, "files": NETPLAN},
    "netplan-nm": {"netplan": True, "files": NM_PLAN, "managers": ("NetworkManager",)},
    "ifupdown": {"files": INTERFACES, "managers": ("networking",)},
}
"""How the fake host is managed, as arguments of ``host`` and ``converged``."""
