"""NUMA nodes as ``numactl -H`` prints them."""

import re
from typing import ClassVar

from pydantic import Field

from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

SECTIONS = (Section(name="numactl", script="numactl -H"),)

_WITHOUT_NUMA = re.compile(r"No NUMA (support )?available|does not support NUMA")
_NODE = re.compile(r"^node (\d+) (cpus|size|free):(.*)$")
_ROW = re.compile(r"^\s*(\d+):((?:\s+\d+)+)\s*$")


class Numa(Model):
    """The nodes of a host; all but ``available`` is empty where the kernel has no NUMA.

    Sizes are in MiB (numactl writes MB). A node may have memory and no CPU (HBM, CXL), or CPUs
    and no memory; numbers may have holes. ``distance`` is keyed ``"FROM,TO"``.
    """

    available: bool
    nodes: int | None = None
    node_ids: tuple[int, ...] = ()
    cpus: dict[int, tuple[int, ...]] = Field(default={})
    size_mb: dict[int, int] = Field(default={})
    free_mb: dict[int, int] = Field(default={})
    memoryless: tuple[int, ...] = ()
    cpuless: tuple[int, ...] = ()
    distance: dict[str, int] = Field(default={})


def parse_numactl(text: str, rc: int = 0) -> Numa:
    """Read ``numactl -H``. Raises ValueError where it is not that.

    Lines of libnuma's warnings among it are passed over. Source: numactl.c, ``hardware()``.
    """
    if _WITHOUT_NUMA.search(text):
        return Numa(available=False)
    head = re.search(r"^available: (\d+) nodes? \(([\d,-]*)\)", text, re.MULTILINE)
    if head is None:
        raise ValueError(f"expected 'available: N nodes (...)' (numactl exited {rc})")
    found: dict[str, dict[int, str]] = {"cpus": {}, "size": {}, "free": {}}
    for line in text.splitlines():
        match = _NODE.match(line)
        if match:
            found[match[2]][int(match[1])] = match[3]
    cpus = {node: _numbers(listed) for node, listed in found["cpus"].items()}
    size = _megabytes(found["size"])
    return Numa(
        available=True,
        nodes=int(head[1]),
        node_ids=_numbers(head[2]),
        cpus=cpus,
        size_mb=size,
        free_mb=_megabytes(found["free"]),
        memoryless=tuple(node for node, megabytes in size.items() if megabytes == 0),
        cpuless=tuple(node for node, listed in cpus.items() if not listed),
        distance=_distances(text),
    )


def _megabytes(listed: dict[int, str]) -> dict[int, int]:
    """Sizes by node; numactl writes ``<not available>`` for one that it cannot read."""
    numbers = {node: re.match(r"\s*(\d+) MB", value) for node, value in listed.items()}
    return {node: int(number[1]) for node, number in numbers.items() if number}


def _numbers(listed: str) -> tuple[int, ...]:
    """CPUs or nodes: ``0 1 2``, ``0-1,8``, and ``0-5, 24-29 (12)`` of newer versions."""
    found: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", re.sub(r"\(\d+\)", "", listed)):
        found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)


def _distances(text: str) -> dict[str, int]:
    """The matrix under ``node distances:``, whose header line says which nodes there are."""
    _, there, matrix = text.partition("node distances:\n")
    lines = matrix.splitlines()
    if not there or not lines:
        return {}
    columns = [int(word) for word in lines[0].split()[1:]]
    found = {}
    for row in filter(None, map(_ROW.match, lines[1:])):
        values = [int(word) for word in row[2].split()]
        if len(values) != len(columns):
            raise ValueError(f"expected {len(columns)} distances of node {row[1]}, got {row[2]!r}")
        found.update({f"{row[1]},{to}": value for to, value in zip(columns, values, strict=True)})
    return found


class Numactl(SnapshotFact):
    """``pyinfra INVENTORY fact facts.numa.Numactl``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Numa:
        return parse_numactl(snapshot.text("numactl"), snapshot.section("numactl").rc or 0)
