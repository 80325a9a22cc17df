"""The index of each rail's RoCE v2 GID: reported, compared in time and between hosts.

It follows from the order in which addresses came to a port, and is never to be pinned. What was
seen earlier comes from a saved reading: reading a node writes nothing on it.
"""

from collections import Counter
from collections.abc import Mapping

from facts.nics import SECTIONS as NICS
from facts.nics import read_nics
from facts.ports import TABLES, PortTables, read_tables, v2_indices
from railwright.model import Model
from railwright.resolve.nics import FoundRail, find_rails
from railwright.schema import Node
from railwright.snapshot import Snapshot

SECTIONS = (*NICS, TABLES)
"""The sections that ``gid_indices`` reads."""


class GidChange(Model):
    """A rail whose index is another one than before; None where it has none, or several."""

    rail: str
    before: int | None
    after: int | None

    def __str__(self) -> str:
        return f"{self.rail}: GID index {self.before} → {self.after}"


def gid_indices(node: Node, snapshot: Snapshot) -> dict[str, int | None]:
    """The index of the one RoCE v2 GID of each rail's address, by rail (``rail0``).

    None for a rail that has none, or several. Raises ValueError where the node cannot be read.
    """
    tables = read_tables(snapshot)
    return {
        rail.key: _index(rail, tables)
        for rail in find_rails(node, read_nics(snapshot))
        if rail.plan.address is not None
    }


def _index(rail: FoundRail, tables: Mapping[str, PortTables]) -> int | None:
    device = rail.port.rdma if rail.port else None
    if device is None or rail.plan.address is None:
        return None
    indices = [
        index
        for name, table in sorted(tables.items())
        if name.rpartition("/")[0] == device.name
        for index in v2_indices(table.gids, rail.plan.address.ip)
    ]
    return indices[0] if len(indices) == 1 else None


def gid_changes(node: Node, before: Snapshot, after: Snapshot) -> tuple[GidChange, ...]:
    """The rails whose index changed between two readings of ``node``."""
    was, now = gid_indices(node, before), gid_indices(node, after)
    return tuple(
        GidChange(rail=rail, before=was.get(rail), after=now.get(rail))
        for rail in sorted(was.keys() | now.keys())
        if was.get(rail) != now.get(rail)
    )


def usual_indices(by_host: Mapping[str, Mapping[str, int | None]]) -> dict[str, int]:
    """The index that most hosts have, by rail; of a tie that of the first host by name.

    A rail without an index on any host is not there.
    """
    found: dict[str, Counter[int]] = {}
    for _, indices in sorted(by_host.items()):
        for rail, index in indices.items():
            if index is not None:
                found.setdefault(rail, Counter())[index] += 1
    return {rail: counts.most_common(1)[0][0] for rail, counts in found.items()}


def gid_differences(
    by_host: Mapping[str, Mapping[str, int | None]],
) -> dict[str, dict[str, int | None]]:
    """Hosts, by rail, whose index is another one than that of most hosts, or that have none.

    A job that is told one index for all its hosts fails on these. Source: NVIDIA/nccl#426.
    """
    usual = usual_indices(by_host)
    found: dict[str, dict[str, int | None]] = {}
    for host, indices in sorted(by_host.items()):
        for rail, index in indices.items():
            if index is None or index != usual[rail]:
                found.setdefault(rail, {})[host] = index
    return found
