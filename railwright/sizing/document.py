"""An answer as data: what ``--json`` prints, and what table and plots are made of."""

from typing import Annotated, Literal

from pydantic import Field

from railwright.model import Model
from railwright.sizing.rules import RuleResult
from railwright.sizing.units import Quantity

Command = Literal["memory", "checkpoint", "train", "step", "storage", "cost"]


class Line(Model):
    """One figure: an amount, or what is said in its place."""

    name: str
    amount: Quantity | None = None
    says: str = ""

    @property
    def text(self) -> str:
        return " ".join(filter(None, [str(self.amount) if self.amount else "", self.says]))


class Section(Model):
    """Lines under one title."""

    title: str
    lines: tuple[Line, ...]


class Breakdown(Model):
    """Parts that add up, and what they are held against (the memory there is).

    ``bars`` has the parts of each thing compared, by its name; one that stands alone has none.
    """

    title: str
    bars: dict[str, dict[str, Quantity]]
    limit: Quantity | None = None
    limit_name: str = ""


class Change(Model):
    """What changing one fact of the host would bring. ``gain`` is a share: 0.2 is 20 % better."""

    fact: str
    now: str
    then: str
    brings: str
    gain: float


class Limit(Model):
    """The host fact that limits, why, and what changing it and others would bring."""

    fact: str
    why: str
    changes: tuple[Change, ...] = ()


class Answer(Model):
    """What one command answers.

    ``results`` are the figures that a sweep follows, the main one first; ``speed`` is what grows
    with more hardware, from which a sweep over nodes tells its knee.
    """

    format: Literal[1] = 1
    command: Command
    question: str
    facts: tuple[Line, ...] = ()
    sections: tuple[Section, ...]
    results: dict[str, Quantity]
    speed: Quantity | None = None
    breakdown: Breakdown | None = None
    limit: Limit | None = None
    rules: tuple[RuleResult, ...] = ()
    notes: tuple[str, ...] = ()


class Point(Model):
    """One value of a sweep: what comes out, or why nothing can."""

    value: str
    results: dict[str, Quantity] = Field(default={})
    speed: Quantity | None = None
    efficiency: float | None = Field(
        default=None, description="Speed per node, as a share of the first point's."
    )
    refused: str | None = None


class Sweep(Model):
    """One input over several values.

    ``knee`` is the last value up to which more nodes brought half of what they ideally would, or
    more; null where the range has none.
    """

    name: str
    points: tuple[Point, ...]
    knee: str | None = None


class WhatIf(Model):
    """The same question with some inputs changed, and how the results moved (as a share)."""

    changed: dict[str, str]
    answer: Answer
    moved: dict[str, Annotated[float, Field(description="New over old, less 1.")]]


class Report(Model):
    """An answer with its sweep and its what-if, where they were asked for."""

    answer: Answer
    sweep: Sweep | None = None
    what_if: WhatIf | None = None
