"""How the counters of each rail grew between two readings of a node."""

from collections.abc import Iterable

from facts.counters import Counters, PortCounters, growth
from facts.nics import read_nics
from railwright.fabric.meaning import fails, meaning_of
from railwright.model import Model
from railwright.resolve.nics import FoundRail, find_rails
from railwright.schema import Node
from railwright.snapshot import Snapshot

PRIORITIES = range(8)
_WORD_BYTES = 4
"""InfiniBand counts data in words of 4 bytes (sysfs-class-infiniband: port_xmit_data)."""


class RailPort(Model):
    """Where the counters of a rail are: its interface, and the RDMA port as DEVICE/PORT."""

    host: str
    rail: int
    interface: str | None
    rdma_port: str | None


class Window(Model):
    """The growth of a rail's counters over ``seconds``; ``values`` has those that are known.

    ``unknown`` are counters that fell or that one reading lacks; ``errors`` says of a port why it
    told nothing.
    """

    host: str
    rail: int
    seconds: float
    values: dict[str, int]
    unknown: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()

    def of(self, names: Iterable[str]) -> int | None:
        """The growth of all ``names`` together; None where one of them is not known."""
        found = [self.values.get(name) for name in names]
        known = [value for value in found if value is not None]
        return sum(known) if len(known) == len(found) else None

    def moved(self) -> dict[str, int]:
        """Counters that say something of the fabric and grew; those of a duration left out."""
        return {
            name: value
            for name, value in self.values.items()
            if value and meaning_of(name) is not None
        }

    def failing(self, lossless: int | None) -> dict[str, int]:
        """Counters that may not grow, and did; ``lossless`` is the priority that may not drop."""
        return {name: value for name, value in self.moved().items() if fails(name, lossless)}

    def bits_per_second(self, way: str) -> float | None:
        """What went through the port, ``way`` being tx or rx; None where it is not counted."""
        sent = self.of(f"{way}_prio{priority}_bytes" for priority in PRIORITIES)
        if sent is None:
            words = self.of(["port_xmit_data" if way == "tx" else "port_rcv_data"])
            sent = None if words is None else words * _WORD_BYTES
        return None if sent is None or self.seconds <= 0 else 8 * sent / self.seconds


def rail_ports(node: Node, snapshot: Snapshot) -> tuple[RailPort, ...]:
    """The rails of ``node`` whose NIC is there. Raises ValueError where it cannot be read."""
    found = find_rails(node, read_nics(snapshot))
    return tuple(_rail_port(node, rail) for rail in found if rail.port is not None)


def _rail_port(node: Node, rail: FoundRail) -> RailPort:
    device = rail.port.rdma if rail.port else None
    interface = rail.interface.name if rail.interface else None
    links = device.links if device else ()
    link = next((one for one in links if one.netdev == interface), links[0] if links else None)
    return RailPort(
        host=node.name,
        rail=rail.plan.rail,
        interface=interface,
        rdma_port=link.name if link else None,
    )


def window(port: RailPort, before: Counters, after: Counters) -> Window:
    """What happened on ``port`` between the two readings."""
    values: dict[str, int] = {}
    unknown: set[str] = set()
    errors = []
    for what, name, first, last in (
        ("ethtool", port.interface, before.ports, after.ports),
        ("sysfs", port.rdma_port, before.rdma, after.rdma),
    ):
        if name is None or (name not in first and name not in last):
            continue
        one, two = first.get(name, _GONE), last.get(name, _GONE)
        grown = growth(one.values, two.values)
        values |= grown.values
        unknown |= grown.reset | grown.missing
        errors += [f"{what} {name}: {error}" for error in {one.error, two.error} if error]
    return Window(
        host=port.host,
        rail=port.rail,
        seconds=after.uptime_s - before.uptime_s,
        values=values,
        unknown=frozenset(name for name in unknown if meaning_of(name) is not None),
        errors=tuple(sorted(errors)),
    )


_GONE = PortCounters(values={}, error="was there in one of two readings only")

BUSY_BPS = 10_000_000
"""A rail with more than this on it, in bits per second, is in use: ARP and LLDP are far below."""


def busy(found: Window) -> float | None:
    """What runs on the rail, in bits per second; None where it is next to nothing, or unknown."""
    rates = [found.bits_per_second(way) for way in ("tx", "rx")]
    most = max((rate for rate in rates if rate is not None), default=0.0)
    return most if most > BUSY_BPS else None
