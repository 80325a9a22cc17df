"""Made-up nodes with two RoCE rails for the tests of the fabric: what a probe of them says."""

import json
from collections.abc import Mapping, Sequence

from facts.counters import parse_counters
from railwright.fabric.window import RailPort, Window, window
from railwright.schema import Node
from railwright.snapshot import Section, Snapshot
from tests.unit.ports_host import gids as port_gids

MARKER = "m"
GB = 10**9
PCI = ("0000:10:00.0", "0000:20:00.0")


def node(name: str = "gpu001", **qos: object) -> Node:
    """Rail r has the NIC at PCI[r] and 10.64.r.(host index + 2)."""
    return Node.model_validate(
        {
            "name": name,
            "fabric": {"kind": "roce", "qos": qos},
            "rails": {
                "nics": {rail: {"pci": pci} for rail, pci in enumerate(PCI)},
                "plan": {"prefix": "10.64.0.0/16", "rail_prefix_length": 24},
                "rate_gbps": 100,
            },
        }
    )


def address(name: str, rail: int) -> str:
    return f"10.64.{rail}.{int(name[-3:]) + 1}"


def statistics(moved: Mapping[str, int], base: int = 1000) -> str:
    """``ethtool -S`` of a port whose counters all stand at ``base`` but for ``moved``."""
    names = [
        f"{way}_prio{priority}_{unit}"
        for way in ("rx", "tx")
        for priority in range(8)
        for unit in ("bytes", "packets", "pause", "discards")
    ]
    names += ["rx_discards_phy", "tx_discards_phy", "rx_out_of_buffer", "link_down_events_phy"]
    lines = [f"     {name}: {base + moved.get(name, 0)}" for name in names]
    return "\n".join(["NIC statistics:", *lines])


HW = ("out_of_sequence", "local_ack_timeout_err", "np_cnp_sent", "rp_cnp_handled")


def counters(moved: Mapping[int, Mapping[str, int]], uptime: float = 100.0) -> str:
    """What the section of counters prints; ``moved`` is by rail."""
    parts = [f"uptime {uptime}"]
    files = []
    for rail in range(len(PCI)):
        grown = moved.get(rail, {})
        parts.append(
            f"\n{MARKER} port rail{rail} statistics\n{statistics(grown)}\n\n{MARKER} exit 0"
        )
        folder = f"/sys/class/infiniband/mlx5_{rail}/ports/1/hw_counters"
        files += [f"{folder}/{name}:{7 + grown.get(name, 0)}" for name in HW]
        files.append(f"{folder}/lifespan:10")
    return "\n".join([*parts, f"\n{MARKER} rdma", *files]) + "\n"


def windows(host: str, moved: Mapping[int, Mapping[str, int]]) -> dict[int, Window]:
    """The windows of 10 s in which ``moved`` happened."""
    before = parse_counters(counters({}), MARKER)
    after = parse_counters(counters(moved, uptime=110.0), MARKER)
    ports = [
        RailPort(host=host, rail=rail, interface=f"rail{rail}", rdma_port=f"mlx5_{rail}/1")
        for rail in range(len(PCI))
    ]
    return {port.rail: window(port, before, after) for port in ports}


def sends(size: int = GB, priority: int = 3, answers_on: int | None = None) -> dict[str, int]:
    """What the counters of the side that sends ``size`` bytes grow by, ARP included."""
    return _traffic("tx", "rx", size, priority, priority if answers_on is None else answers_on)


def receives(size: int = GB, priority: int = 3, answers_on: int | None = None) -> dict[str, int]:
    return _traffic("rx", "tx", size, priority, priority if answers_on is None else answers_on)


def _traffic(data: str, back: str, size: int, priority: int, answers_on: int) -> dict[str, int]:
    moved = {f"{way}_prio0_{unit}": n for way in ("rx", "tx") for unit, n in ARP.items()}
    for name, value in (
        (f"{data}_prio{priority}_bytes", size),
        (f"{data}_prio{priority}_packets", size // 4096),
        (f"{back}_prio{answers_on}_bytes", size // 65536 * 70),
        (f"{back}_prio{answers_on}_packets", size // 65536),
    ):
        moved[name] = moved.get(name, 0) + value
    return moved


ARP = {"bytes": 5000, "packets": 30}


def links(state: str = "ACTIVE") -> str:
    return json.dumps(
        [
            {
                "ifname": f"mlx5_{rail}",
                "port": 1,
                "state": state,
                "physical_state": "LINK_UP",
                "netdev": f"rail{rail}",
            }
            for rail in range(len(PCI))
        ]
    )


def gids(name: str, index: int = 3) -> str:
    """The GID tables of both rails: a link-local address, and then the rail's own."""
    return "".join(
        port_gids(f"mlx5_{rail}", address(name, rail), f"rail{rail}", index)
        for rail in range(len(PCI))
    )


def pfc(enabled: Sequence[int] = (3,)) -> str:
    bits = [priority in enabled for priority in range(8)]
    shown = json.dumps({"pfc_cap": 8, "macsec_bypass": False, "delay": 0, "prio_pfc": bits})
    return "".join(
        f"\n{MARKER} port rail{rail} pfc\n{shown}\n\n{MARKER} exit 0\n" for rail in range(len(PCI))
    )


def snapshot(name: str = "gpu001", **sections: str | Section) -> Snapshot:
    """A node of which nothing is wrong; ``sections`` takes the place of what it says."""
    ports = [
        f"port net rail{rail} /sys/devices/pci0000:00/{pci} mlx5_core 02:00:00:00:00:0{rail} "
        "9000 up 100000 0 1"
        for rail, pci in enumerate(PCI)
    ]
    ports += [
        f"rdma mlx5_{rail} 0200:00ff:fe00:000{rail} /sys/devices/pci0000:00/{pci}"
        for rail, pci in enumerate(PCI)
    ]
    said: dict[str, str | Section] = {
        "identity": "kernel=6.1\n",
        "nic_ports": "\n".join(ports),
        "nic_rdma": links(),
        "nic_addresses": "[]",
        "way_in": "",
        "port_tables": gids(name),
        "qos_ports": pfc(),
        "qos_kernel": "",
        "counters_before": counters({}),
        "counters_after": counters({}, uptime=101.0),
    }
    said |= sections
    return Snapshot(
        host=name,
        marker=MARKER,
        sections={
            key: value if isinstance(value, Section) else Section(stdout=value, rc=0)
            for key, value in said.items()
        },
    )


def result(gbps: float = 95.0, size: int = 65536, iterations: int = 15000) -> str:
    """What ib_write_bw prints at the end, its lines as in perftest 6.06."""
    line = "-" * 87
    heading = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    row = f" {size:<7}    {iterations:<10}       0.00               {gbps:<7.2f}\t\t   0.010101"
    return f"{line}\n                    RDMA_Write BW Test\n{line}\n{heading}\n{row}\n{line}\n"
