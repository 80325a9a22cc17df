"""Counters of a node's ports, Ethernet and RDMA, and how they grew between two readings.

Names: kernel documentation, networking/device_drivers/ethernet/mellanox/mlx5/counters, and
drivers/infiniband/hw/mlx5/counters.c.
"""

import re
from collections.abc import Mapping
from typing import ClassVar

from facts.answers import Answer, parse_answers
from facts.ethtool import Refusal, parse_statistics
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

NAME = "counters"

_SCRIPT = r"""
read -r up rest </proc/uptime && echo "uptime $up"
for port in $(ports); do
    # Counters of single queues are left out: a NIC of 64 queues has thousands.
    answer "$port" statistics ethtool -S "$port" | sed -E '/^ *(rx|tx|ch)[0-9]+_/d'
done
printf '\n%s rdma\n' "$N"
grep -sH '' /sys/class/infiniband/*/ports/*/counters/* /sys/class/infiniband/*/ports/*/hw_counters/*
true
"""


def section(name: str = NAME) -> Section:
    """The section that reads all counters; a probe may take it more than once, by other names."""
    return Section(name=name, script=_SCRIPT, deadline_s=30, cap_bytes=4 << 20)


SECTIONS = (section(),)


class PortCounters(Model):
    """Counters of one port, by name: ``values`` are since the driver was loaded.

    ``error`` says why there are none; a counter that the port does not have is not in ``values``.
    """

    values: dict[str, int]
    error: str | None = None


class Counters(Model):
    """Counters of a node at ``uptime_s``, in seconds since it booted.

    ``ports`` are Ethernet ports by interface; ``rdma`` the ports of RDMA devices by ``DEVICE/PORT``
    as the rdma tool names them, counters and hw_counters of the kernel together.
    """

    uptime_s: float
    ports: dict[str, PortCounters]
    rdma: dict[str, PortCounters]


class Growth(Model):
    """By how much counters grew between two readings.

    ``wrapped`` went past 2^64 and are in ``values`` too. What is in ``reset`` fell, and what is in
    ``missing`` is in one reading only: how much those grew is not known, and not nothing.
    """

    values: dict[str, int]
    wrapped: frozenset[str] = frozenset()
    reset: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()

    def of(self, name: str) -> int | None:
        """The growth of ``name``; None where it is not known, or there is no such counter."""
        return self.values.get(name)


_WIDTH = 1 << 64


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> Growth:
    """How the counters of one port grew.

    A counter that fell has wrapped where the way over 2^64 is the shorter one; else it was reset,
    as by a reload of the driver.
    """
    both = before.keys() & after.keys()
    fell = {name for name in both if after[name] < before[name]}
    wrapped = {name for name in fell if after[name] + _WIDTH - before[name] < _WIDTH // 2}
    return Growth(
        values={
            name: (after[name] - before[name]) % _WIDTH
            for name in sorted(both)
            if name not in fell or name in wrapped
        },
        wrapped=frozenset(wrapped),
        reset=frozenset(fell - wrapped),
        missing=frozenset(before.keys() ^ after.keys()),
    )


_FILE = re.compile(r"/sys/class/infiniband/([^/]+)/ports/(\d+)/(?:hw_)?counters/([^/:]+):(.*)")
_SETTING = "lifespan"
"""In hw_counters, but no counter: how long the kernel keeps them, in ms."""


def read_counters(snapshot: Snapshot, name: str = NAME) -> Counters:
    """What the section ``name`` says. Raises ValueError where it cannot be read."""
    return parse_counters(snapshot.text(name), snapshot.marker)


def parse_counters(text: str, marker: str) -> Counters:
    """Read what the section prints. Raises ValueError."""
    head, found, rdma = f"\n{text}".partition(f"\n{marker} rdma\n")
    if not found:
        raise ValueError("the counters break off: expected those of RDMA devices at the end")
    first = head.partition(f"\n{marker} port ")[0]
    uptime = re.fullmatch(r"uptime (\d+(?:\.\d+)?)", first.strip())
    if uptime is None:
        raise ValueError(f"expected the uptime before the counters, got {first.strip()[:60]!r}")
    return Counters(
        uptime_s=float(uptime[1]),
        ports={answer.port: _port(answer) for answer in parse_answers(head, marker)},
        rdma=_rdma(rdma),
    )


def _port(answer: Answer) -> PortCounters:
    try:
        told = parse_statistics(answer.text, answer.rc)
    except ValueError as error:
        # One port's driver that cannot be read is that port's alone.
        return PortCounters(values={}, error=str(error))
    if isinstance(told, Refusal):
        return PortCounters(values={}, error=f"{told.error}: {told.message}")
    return PortCounters(values=told.counters)


def _rdma(text: str) -> dict[str, PortCounters]:
    values: dict[str, dict[str, int]] = {}
    for line in filter(None, text.splitlines()):
        found = _FILE.fullmatch(line)
        if found is None:
            raise ValueError(f"expected a counter of an RDMA port, got {line[:80]!r}")
        device, port, name, value = found.groups()
        known = values.setdefault(f"{device}/{port}", {})
        # What has no number (N/A) is not known, which is not the same as 0.
        if name != _SETTING and value.strip().isdecimal():
            known[name] = int(value)
    return {port: PortCounters(values=known) for port, known in values.items()}


class CountersFact(SnapshotFact):
    """Counters of a node: ``pyinfra INVENTORY fact facts.counters.CountersFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Counters:
        return read_counters(snapshot)
