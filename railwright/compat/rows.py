"""What is known to work together and what is not: tables of rows, each with source and date."""

import datetime
from collections.abc import Mapping
from functools import cache
from importlib.resources import files as resources
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from railwright.compat.facts import VERSIONED, WORDS, Facts, Part
from railwright.compat.versions import VersionRange, parse_range, parse_version
from railwright.model import Model

# Ten times as fast where libyaml is there.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Condition = VersionRange | frozenset[str]
"""Versions of a part, or the words that it may be."""


class Row(Model):
    """One thing that is known: where all of ``when`` holds of a set, the verdict is so.

    ``why`` says what was reported or promised, in words for an operator; ``source`` is where it
    was read, at ``date``. ``table`` names where it stands.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    table: str
    when: dict[Part, Condition] = Field(min_length=1)
    verdict: Literal["good", "bad"]
    why: str = Field(min_length=10)
    source: Annotated[str, Field(pattern=r"^https://\S+$")]
    date: datetime.date

    @field_validator("when", mode="before")
    @classmethod
    def _as_written(cls, when: object) -> object:
        if not isinstance(when, Mapping):
            return when
        return {part: _condition(part, wanted) for part, wanted in when.items()}

    @property
    def name(self) -> str:
        """``kernel-beegfs/7.4.6-after-6.11``, unique over all tables."""
        return f"{self.table}/{self.id}"

    def applies(self, facts: Facts) -> bool:
        """All parts are known, and as the row has them."""
        return all(_holds(part, wanted, facts) for part, wanted in self.when.items())


def _condition(part: str, wanted: object) -> object:
    """A condition as the tables write it: a range, a word or a list of words."""
    if part in VERSIONED and isinstance(wanted, str):
        return parse_range(wanted)
    known = WORDS.get(part)
    if known is None or not isinstance(wanted, str | list):
        return wanted
    words = frozenset([wanted] if isinstance(wanted, str) else map(str, wanted))
    if words - known:
        raise ValueError(
            f"expected {part} to be of {', '.join(sorted(known))}, got "
            f"{', '.join(sorted(words - known))}"
        )
    return words


def _holds(part: Part, wanted: Condition, facts: Facts) -> bool:
    value = facts.value(part)
    if value is None:
        return False
    return parse_version(value) in wanted if isinstance(wanted, VersionRange) else value in wanted


class Table(Model):
    """The rows of one pairing.

    A set that has all of ``pairing`` and to which no row applies is not known. A good row says so
    of all of them at once; a bad row may do with fewer, or need others as well.
    """

    name: str
    pairing: tuple[Part, ...] = Field(min_length=2)
    rows: tuple[Row, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _good_rows_cover_the_pairing(self) -> "Table":
        for row in self.rows:
            missing = [part for part in self.pairing if part not in row.when]
            if row.verdict == "good" and missing:
                raise ValueError(f"{row.name} is good: expected {', '.join(missing)} in when")
        if len({row.id for row in self.rows}) < len(self.rows):
            raise ValueError(f"expected ids of rows in {self.name} that differ")
        return self


def read_table(name: str, text: str) -> Table:
    """The table in ``text`` (YAML). Raises ValueError that names the table where it is none."""
    try:
        document: Any = yaml.load(text, Loader=_LOADER)
        rows = [{**row, "table": name} for row in document["rows"]]
        return Table.model_validate({"name": name, "pairing": document["pairing"], "rows": rows})
    except (yaml.YAMLError, ValidationError, TypeError, KeyError) as error:
        raise ValueError(f"expected {name} to be a pairing and rows, got {error}") from error


@cache
def tables() -> tuple[Table, ...]:
    """All tables that come with railwright, by name."""
    found = sorted(
        (one for one in resources("railwright.compat").iterdir() if one.name.endswith(".yaml")),
        key=lambda one: one.name,
    )
    return tuple(
        read_table(one.name.removesuffix(".yaml"), one.read_text(encoding="utf-8")) for one in found
    )
