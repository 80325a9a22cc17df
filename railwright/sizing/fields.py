"""Fields of models that take an amount with its unit, from text or as a Quantity."""

import math
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator

from railwright.sizing.units import Quantity, UnitError, read

_SUCH_AS = {
    "B": "80GB",
    "s": "120s or 6000h",
    "B/s": "50GB/s or 400Gb/s",
    "FLOP": "1e24FLOP",
    "FLOP/s": "989TFLOP/s",
    "W": "700W",
}
"""Units, and an amount to show of each."""


def _amount(given: object, unit: str) -> object:
    """``given`` as an amount of ``unit``; what is no text, number or amount is left as it is."""
    if isinstance(given, (int, float)):
        raise UnitError(f"expected an amount with its unit, such as {_SUCH_AS[unit]}, got {given}")
    amount = read(given) if isinstance(given, str) else given
    if isinstance(amount, Quantity) and amount.unit != unit:
        raise UnitError(f"expected an amount in {unit}, such as {_SUCH_AS[unit]}, got {given}")
    return amount


def _or_none(unit: str) -> Callable[[object], object]:
    """A reader of amounts of 0 or more."""

    def check(given: object) -> object:
        amount = _amount(given, unit)
        if isinstance(amount, Quantity) and not 0 <= amount.value < math.inf:
            raise UnitError(f"expected 0 {unit} or more, got {given}")
        return amount

    return check


def _some(unit: str) -> Callable[[object], object]:
    """A reader of amounts over 0: of what is divided by."""

    def check(given: object) -> object:
        amount = _amount(given, unit)
        if isinstance(amount, Quantity) and not 0 < amount.value < math.inf:
            raise UnitError(f"expected more than 0 {unit}, got {given}")
        return amount

    return check


Bytes = Annotated[Quantity, BeforeValidator(_or_none("B"))]
Seconds = Annotated[Quantity, BeforeValidator(_or_none("s"))]
Demand = Annotated[Quantity, BeforeValidator(_or_none("B/s"))]
"""Bytes a second that are asked for."""
Flop = Annotated[Quantity, BeforeValidator(_or_none("FLOP"))]
Power = Annotated[Quantity, BeforeValidator(_or_none("W"))]

Capacity = Annotated[Quantity, BeforeValidator(_some("B"))]
"""Bytes that something holds."""
Span = Annotated[Quantity, BeforeValidator(_some("s"))]
"""Time in which something is done."""
Rate = Annotated[Quantity, BeforeValidator(_some("B/s"))]
"""Bytes a second that something carries."""
FlopRate = Annotated[Quantity, BeforeValidator(_some("FLOP/s"))]
