"""The same question again with other values: sweeps with their knee, and what-ifs."""

import itertools
import re
from collections.abc import Sequence

from pydantic import ValidationError

from railwright.sizing.document import Answer, Point, Sweep, WhatIf
from railwright.sizing.parallel import SizingError
from railwright.sizing.question import Question
from railwright.words import unknown

MOST_POINTS = 200
KNEE_SHARE = 0.5
"""More nodes must bring this share of what they ideally would; below it lies past the knee."""

_DOUBLING = re.compile(r"([0-9]+)\.\.([0-9]+)")
_STEPPING = re.compile(r"([0-9]+)\.\.([0-9]+)\+([0-9]+)")


def assignment(text: str) -> tuple[str, str]:
    """Name and values of ``nodes=8,16``. Raises SizingError where it is none."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise SizingError(f"expected NAME=VALUE, such as nodes=8,16,32, got {text!r}")
    return name.strip().replace("-", "_"), values.strip()


def values_of(text: str) -> list[str]:
    """The values of a sweep: ``8,16,32``, ``8..1024`` (doubling) or ``8..64+8`` (in steps)."""
    if found := _STEPPING.fullmatch(text):
        start, end, step = map(int, found.groups())
        steps = range(start, end + 1, step) if step else range(0)
        values = [str(value) for value in steps[: MOST_POINTS + 1]]
    elif found := _DOUBLING.fullmatch(text):
        start, end = map(int, found.groups())
        values = [str(start << shift) for shift in range(64) if start and start << shift <= end]
    else:
        values = [value.strip() for value in text.split(",") if value.strip()]
    if not values:
        raise SizingError(f"expected values, such as 8,16,32 or 8..64, got none in {text!r}")
    if len(values) > MOST_POINTS:
        raise SizingError(f"expected {MOST_POINTS} values at most, got more in {text!r}")
    return values


def varied(question: Question, changes: dict[str, str]) -> Question:
    """The question with ``changes``. Raises SizingError for a name or a value it does not take."""
    known = question.inputs()
    for name in changes:
        if name not in known:
            raise SizingError(unknown("input", name, known))
    try:
        return type(question).model_validate({**dict(question), **changes})
    except ValidationError as error:
        raise SizingError(said(error)) from error


def said(error: ValidationError) -> str:
    """What a question's values lack, in words."""
    lines = []
    for one in error.errors():
        name = "--" + "-".join(str(part).replace("_", "-") for part in one["loc"])
        text = one["msg"].removeprefix("Value error, ")
        lines.append(f"{name}: {text}" if one["loc"] else text)
    return "; ".join(lines)


def sweep(question: Question, text: str) -> Sweep:
    """Answers over the values in ``text``. A value that cannot be is listed with its reason."""
    name, values = assignment(text)
    points = []
    for value in values_of(values):
        try:
            answer = varied(question, {name: value}).answer()
        except SizingError as error:
            if name not in question.inputs():
                raise
            points.append(Point(value=value, refused=str(error)))
        else:
            points.append(Point(value=value, results=answer.results, speed=answer.speed))
    if name != "nodes":
        return Sweep(name=name, points=tuple(points))
    measured = _with_efficiency(points)
    return Sweep(name=name, points=tuple(measured), knee=knee(measured))


def _with_efficiency(points: Sequence[Point]) -> list[Point]:
    first = next((point for point in points if point.speed is not None), None)
    if first is None or first.speed is None:
        return list(points)
    base = first.speed.value / float(first.value)
    return [
        point
        if point.speed is None
        else point.model_copy(update={"efficiency": point.speed.value / float(point.value) / base})
        for point in points
    ]


def knee(points: Sequence[Point]) -> str | None:
    """The last number of nodes before more of them bring less than half of what they should.

    From one point to the next, nodes grow by some share; ideally speed grows by the same.
    """
    known = sorted(
        (float(point.value), point.speed.value, point.value)
        for point in points
        if point.speed is not None
    )
    for (nodes, speed, value), (more, faster, _) in itertools.pairwise(known):
        ideal = more / nodes - 1
        if ideal > 0 and (faster / speed - 1) / ideal < KNEE_SHARE:
            return value
    return None


def what_if(question: Question, base: Answer, texts: Sequence[str]) -> WhatIf:
    """The question with all of ``texts`` (NAME=VALUE) changed at once."""
    changes = dict(assignment(text) for text in texts)
    answer = varied(question, changes).answer()
    moved = {
        name: amount.value / base.results[name].value - 1
        for name, amount in answer.results.items()
        if name in base.results and base.results[name].value
    }
    return WhatIf(changed=changes, answer=answer, moved=moved)
