"""A host with rails, as the probe brings it back, made of ports as ``qos_tools`` has them."""

import json
from collections.abc import Mapping
from typing import Any

from facts.nics import RdmaDevice
from facts.qos import DATA_DIR, WATCH, read_qos
from facts.rdma import RdmaLink
from railwright.resolve.qos import View
from railwright.schema import EffectsSpec, Node, Rail, RailsSpec, RoceFabric, RoceQos
from railwright.settings import Effect
from railwright.snapshot import Section, Snapshot
from tests.unit import qos_tools
from tests.unit.records import MARKER, enablement, records

PCI = "0000:1a:00.0"
PCIS = (PCI, "0000:3b:00.0")
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
WITH_LINK = LIVE | {Effect.LINK}


def node(
    qos: RoceQos | None = None, allow: frozenset[Effect] = LIVE, rails: int = 2, **more: Any
) -> Node:
    nics = {number: Rail(pci=PCIS[number]) for number in range(rails)}
    values: dict[str, Any] = {
        "name": "gpu001",
        "fabric": RoceFabric(qos=qos or RoceQos()),
        "rails": RailsSpec(nics=nics),
        "effects": EffectsSpec(allow=allow),
        **more,
    }
    return Node(**values)


def answer(port: str, what: str, tool: Any, state: dict[str, Any], *words: str) -> str:
    try:
        said, rc = tool(state, list(words)), 0
    except qos_tools.RefusedError as refused:
        said, rc = f"{refused}\n", 1
    return f"\n{MARKER} port {port} {what}\n{said}\n{MARKER} exit {rc}\n"


def ports_section(ports: Mapping[str, dict[str, Any]], with_dcb: bool = True) -> str:
    things = ("dcbx", "app", "pfc", "ets", "buffer")
    parts = []
    for name, state in ports.items():
        if with_dcb:
            parts += [
                answer(name, thing, qos_tools.dcb, state, "-j", thing, "show", "dev", name)
                for thing in things
            ]
        else:
            parts.append(answer(name, "mlnx_qos", qos_tools.mlnx_qos, state, "-i", name, "-a"))
        parts.append(answer(name, "pause", qos_tools.ethtool, state, "-a", name))
    return "".join(parts)


def kernel_section(files: Mapping[str, str]) -> str:
    """Files by path; their folders are told where the probe tells them."""
    folders = {
        path[: path.index(end) + len(end)]
        for path in files
        for end in ("/ecn", "/cc_params", "/config/rdma_cm")
        if f"{end}/" in path
    }
    lines = [f"folder {folder}" for folder in sorted(folders)]
    lines += [f"value {path} {value}" for path, value in files.items()]
    return "".join(f"{line}\n" for line in lines)


def cm_files(*devices: str, tos: int = 106, mode: str = "RoCE v2") -> dict[str, str]:
    return {
        f"/sys/kernel/config/rdma_cm/{device}/ports/1/default_roce_{name}": str(value)
        for device in devices
        for name, value in (("tos", tos), ("mode", mode))
    }


def ecn_files(interface: str, np: set[int], rp: set[int], dscp: int = 48) -> dict[str, str]:
    tree = f"/sys/class/net/{interface}/ecn"
    points = {"np": np, "rp": rp}
    return {
        f"{tree}/roce_np/cnp_dscp": str(dscp),
        f"{tree}/roce_np/cnp_802p_prio": "6",
        **{
            f"{tree}/roce_{side}/enable/{priority}": str(int(priority in on))
            for side, on in points.items()
            for priority in range(8)
        },
    }


def view_of(port: dict[str, Any], qos: RoceQos, files: Mapping[str, str]) -> View:
    """The one port of a node whose tools told what ``port`` is."""
    snapshot = host({"rail0": port}, files=files)
    link = RdmaLink(
        ifname="mlx5_0", port=1, state="ACTIVE", physical_state="LINK_UP", netdev="rail0"
    )
    rdma = RdmaDevice(name="mlx5_0", guid="-", pci=PCI, links=(link,))
    return View("rail0", PCI, "railsim", rdma, qos, read_qos(snapshot))


def host(
    ports: Mapping[str, dict[str, Any]] | None = None,
    *,
    files: Mapping[str, str] | None = None,
    ours: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    way_in: str = "eth0",
    container: bool = False,
    driver: str = "mlx5_core",
    with_dcb: bool = True,
    rdma: bool = True,
    **sections: Section,
) -> Snapshot:
    """``ours`` are files by path, with the link that enables the watch; ``units`` their states."""
    named = dict(ports or {})
    identity = "kernel=6.1.0\n" + ("container=podman\n" if container else "")
    there = records({path: text for path, text in (ours or {}).items() if path != WATCH.link})
    if ours and WATCH.link in ours:
        there += enablement(WATCH)
    made = {
        "identity": Section(stdout=identity, rc=0),
        **nic_sections(named, way_in, driver, rdma),
        "qos_ports": Section(stdout=ports_section(named, with_dcb), rc=0),
        "qos_kernel": Section(stdout=kernel_section(files or {}), rc=0),
        "qos_files": Section(stdout=there, rc=0),
        "qos_units": Section(stdout=units_section(units or {}), rc=0),
        "qos_lldpad": Section(stdout="", rc=0),
    }
    return Snapshot(host="gpu001", marker=MARKER, sections={**made, **sections})


def units_section(states: Mapping[str, str]) -> str:
    """Unit to ``active``, ``failed``, ``masked``, ...; those of ours alone have a file."""
    blocks = []
    for name, state in states.items():
        load = "masked" if state == "masked" else "loaded"
        active = "inactive" if state in ("masked", "enabled") else state
        enabled = "enabled" if state == "enabled" else "static"
        result = "exit-code" if state == "failed" else "success"
        blocks.append(
            f"Id={name}\nLoadState={load}\nActiveState={active}\nSubState=dead\n"
            f"UnitFileState={enabled}\nResult={result}\n"
        )
    return "\n".join(blocks)


def nic_sections(
    ports: Mapping[str, dict[str, Any]], way_in: str, driver: str, rdma: bool
) -> dict[str, Section]:
    lines, links, addresses = [], [], []
    for number, name in enumerate(ports):
        path = f"/sys/devices/pci0000:00/0000:00:01.0/{PCIS[number]}"
        mac = f"b8:3f:d2:00:00:{number:02x}"
        lines.append(f"port net {name} {path} {driver} {mac} 9000 up 400000 0 1")
        if rdma:
            lines.append(f"rdma mlx5_{number} b83f:d203:0000:000{number} {path}")
            links.append(
                {
                    "ifindex": number,
                    "ifname": f"mlx5_{number}",
                    "port": 1,
                    "state": "ACTIVE",
                    "physical_state": "LINK_UP",
                    "netdev": name,
                }
            )
        addresses.append(interface(name, mac, f"10.64.{number}.2"))
    lines.append(
        "port net eth0 /sys/devices/pci0000:00/0000:00:02.0 igb 02:00:00:00:00:01 1500 up - 0 1"
    )
    addresses.append(interface("eth0", "02:00:00:00:00:01", "192.0.2.10"))
    address = next(a["addr_info"][0]["local"] for a in addresses if a["ifname"] == way_in)
    route = json.dumps([{"dst": "192.0.2.1", "dev": way_in}])
    return {
        "nic_ports": Section(stdout="".join(f"{line}\n" for line in lines), rc=0),
        "nic_rdma": Section(stdout=json.dumps(links), rc=0),
        "nic_addresses": Section(stdout=json.dumps(addresses), rc=0),
        "way_in": Section(stdout=f"ssh 192.0.2.1 50000 {address} 22\n{route}", rc=0),
    }


def interface(name: str, mac: str, address: str) -> dict[str, Any]:
    return {
        "ifname": name,
        "flags": ["UP"],
        "address": mac,
        "addr_info": [{"family": "inet", "local": address, "prefixlen": 24, "scope": "global"}],
    }


def data_path(pci: str) -> str:
    return f"{DATA_DIR}/{pci}.conf"


UNITS_UP = {WATCH.name: "active", **{f"railwright-qos@{pci}.service": "inactive" for pci in PCIS}}


def right_port(number: int = 0, **changed: Any) -> dict[str, Any]:
    """A port as the defaults of the inventory ask for it, with mlx5's 100 % for strict classes."""
    return qos_tools.mlx5(
        **{
            "dcbx": ["host", "ieee"],
            "app": [[dscp, dscp // 8] for dscp in range(64)],
            "prio-pfc": [priority == 3 for priority in range(8)],
            "prio-tc": [0, 0, 0, 3, 0, 0, 6, 0],
            "tc-tsa": ["ets", "strict", "strict", "ets", *["strict"] * 4],
            "tc-bw": [50, 100, 100, 50, 100, 100, 100, 100],
            "pause": [False, False],
            "rdma": f"mlx5_{number}",
            **changed,
        }
    )


def cc_files(*pcis: str, dscp: int = 48, priority: int = 6) -> dict[str, str]:
    """mlx5's parameters of congestion control, as the kernel's driver shows them."""
    return {
        f"/sys/kernel/debug/mlx5/{pci}/cc_params/{name}": str(value)
        for pci in pcis
        for name, value in (
            ("np_cnp_dscp", dscp),
            ("np_cnp_prio", priority),
            ("np_cnp_prio_mode", 0),
        )
    }
