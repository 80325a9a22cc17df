"""What the GID indices of many hosts say together: what ``railwright fabric gids`` prints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from railwright.fabric.document import ExitCode
from railwright.fabric.gids import gid_changes, gid_differences, gid_indices, usual_indices
from railwright.model import Model
from railwright.rails import planned
from railwright.reading import Reading
from railwright.schema import Node
from railwright.schema.fabric import RoceFabric
from railwright.snapshot import Snapshot

Indices = dict[str, int | None]
"""Rail (``rail0``) to its index; None where it has none, or several."""


class GidFinding(Model):
    """A rail of one host whose index is not what it should be.

    ``other`` is the index that most hosts have (``differs``), or that it had (``changed``).
    """

    host: str
    rail: str
    kind: Literal["missing", "differs", "changed"]
    index: int | None
    other: int | None = None

    def __str__(self) -> str:
        if self.kind == "missing":
            return f"{self.rail}: no RoCE v2 GID of its address, or several"
        if self.kind == "differs":
            return f"{self.rail}: GID index {self.index}, others have {self.other}"
        now, before = _told(self.index), _told(self.other)
        return f"{self.rail}: GID index {before} → {now} since the earlier reading"


def _told(index: int | None) -> str:
    return "none" if index is None else str(index)


class GidReport(Model):
    """What ``railwright fabric gids`` found; exit codes as of ``fabric test``."""

    format: Literal[1] = 1
    command: Literal["fabric gids"] = "fabric gids"
    exit_code: ExitCode
    unread: dict[str, str] = Field(description="Nodes that could not be read, and why.")
    unread_before: dict[str, str] = Field(
        description="Nodes whose earlier reading could not be read, and why."
    )
    indices: dict[str, Indices] = Field(description="Host to rail to its index; null is none.")
    usual: dict[str, int] = Field(description="Rail to the index that most hosts have.")
    findings: tuple[GidFinding, ...]


def with_gids(nodes: Iterable[Node]) -> list[Node]:
    """Those of ``nodes`` that have RoCE rails with addresses: only there an index has a meaning."""
    return [
        node
        for node in nodes
        if isinstance(node.fabric, RoceFabric)
        and any(rail.address is not None for rail in planned(node))
    ]


def gid_report(
    nodes: Sequence[Node],
    now: Mapping[str, Reading],
    before: Mapping[str, Reading] | None = None,
    rails: frozenset[int] | None = None,
) -> GidReport:
    """The report on ``nodes`` as they are ``now``, and what changed since ``before``.

    ``rails`` are those that are reported on, None all. Where nothing was read nothing is proved.
    """
    wanted = None if rails is None else {f"rail{rail}" for rail in rails}
    indices, unread = _read(nodes, now)
    _, unread_before = _read(nodes, before) if before is not None else ({}, {})
    found = {
        host: {rail: index for rail, index in have.items() if wanted is None or rail in wanted}
        for host, have in indices.items()
    }
    usual = usual_indices(found)
    findings = [*_differences(found, usual)]
    if before is not None:
        both = [node for node in nodes if node.name in found and node.name not in unread_before]
        changes = _changes(both, now, before)
        findings += [one for one in changes if wanted is None or one.rail in wanted]
    code: ExitCode = 2 if findings else 0
    if unread or unread_before or not any(found.values()):
        code = 1
    return GidReport(
        exit_code=code,
        unread=unread,
        unread_before=unread_before,
        indices=found,
        usual={rail: usual[rail] for rail in sorted(usual, key=rail_number)},
        findings=tuple(findings),
    )


def rail_number(rail: str) -> int:
    """The number of ``rail7``, so that rail10 comes after rail9."""
    return int(rail.removeprefix("rail"))


def _read(
    nodes: Sequence[Node], readings: Mapping[str, Reading]
) -> tuple[dict[str, Indices], dict[str, str]]:
    """The indices of each host, and of those that cannot be read why not."""
    found: dict[str, Indices] = {}
    unread: dict[str, str] = {}
    for node in nodes:
        answer = readings.get(node.name)
        if not isinstance(answer, Snapshot):
            unread[node.name] = answer.error if answer else "was not read"
            continue
        try:
            if answer.is_container:
                unread[node.name] = "is a container, which has no rails of its own"
            else:
                found[node.name] = gid_indices(node, answer)
        except (ValueError, LookupError) as error:
            unread[node.name] = str(error)
    return found, unread


def _differences(found: Mapping[str, Indices], usual: Mapping[str, int]) -> Iterator[GidFinding]:
    for rail, hosts in sorted(gid_differences(found).items(), key=lambda one: rail_number(one[0])):
        for host, index in hosts.items():
            if index is None:
                yield GidFinding(host=host, rail=rail, kind="missing", index=None)
            else:
                yield GidFinding(
                    host=host, rail=rail, kind="differs", index=index, other=usual[rail]
                )


def _changes(
    nodes: Iterable[Node], now: Mapping[str, Reading], before: Mapping[str, Reading]
) -> Iterator[GidFinding]:
    for node in nodes:
        was, is_now = before[node.name], now[node.name]
        if isinstance(was, Snapshot) and isinstance(is_now, Snapshot):
            for change in gid_changes(node, was, is_now):
                yield GidFinding(
                    host=node.name,
                    rail=change.rail,
                    kind="changed",
                    index=change.after,
                    other=change.before,
                )
