"""Whether a set is known to work, known not to, or not known."""

from collections.abc import Iterable, Iterator
from typing import Literal

from railwright.compat.facts import Facts, Part
from railwright.compat.rows import Row, Table, tables
from railwright.model import Model


class CompatFinding(Model):
    """What a table says against a set: a row that it is known not to work, or no row at all.

    ``parts`` are those of the set that it is about, with their values. A bad finding is a refusal,
    an unknown one a warning.
    """

    verdict: Literal["bad", "unknown"]
    table: str
    parts: dict[Part, str]
    row: Row | None = None

    def __str__(self) -> str:
        first, *others = (f"{part} {value}" for part, value in self.parts.items())
        together = f"{first} with {', '.join(others)}" if others else first
        if self.row is None:
            return f"{together}: not known to work, {self.table} has no row for it"
        return f"{together}: {self.row.why} ({self.row.name}, {self.row.source})"


def judge(facts: Facts, known: Iterable[Table] | None = None) -> list[CompatFinding]:
    """All that ``known`` (the tables of railwright) says against the set, bad findings first."""
    found = [one for table in (tables() if known is None else known) for one in _of(table, facts)]
    return sorted(found, key=lambda one: one.verdict != "bad")


def _of(table: Table, facts: Facts) -> Iterator[CompatFinding]:
    applying = [row for row in table.rows if row.applies(facts)]
    bad = [row for row in applying if row.verdict == "bad"]
    for row in bad:
        yield CompatFinding(
            verdict="bad", table=table.name, parts=_values(row.when, facts), row=row
        )
    values = _values(table.pairing, facts)
    if not applying and len(values) == len(table.pairing):
        yield CompatFinding(verdict="unknown", table=table.name, parts=values)


def _values(parts: Iterable[Part], facts: Facts) -> dict[Part, str]:
    return {part: value for part in parts if (value := facts.value(part)) is not None}
