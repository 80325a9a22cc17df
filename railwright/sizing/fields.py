"""Fields of models that take an amount with its unit, from text or as a Quantity."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator

from railwright.sizing.units import Quantity, UnitError, read


def _reader(unit: str) -> Callable[[object], object]:
    def check(given: object) -> object:
        if isinstance(given, (int, float)) and not isinstance(given, bool) and not unit:
            return Quantity(float(given))
        amount = read(given) if isinstance(given, str) else given
        if isinstance(amount, Quantity) and (amount.unit != unit or not amount.value >= 0):
            raise UnitError(f"expected {unit or 'a number'} of 0 or more, got {given}")
        return amount

    return check


Bytes = Annotated[Quantity, BeforeValidator(_reader("B"))]
Seconds = Annotated[Quantity, BeforeValidator(_reader("s"))]
Rate = Annotated[Quantity, BeforeValidator(_reader("B/s"))]
Flop = Annotated[Quantity, BeforeValidator(_reader("FLOP"))]
FlopRate = Annotated[Quantity, BeforeValidator(_reader("FLOP/s"))]
Power = Annotated[Quantity, BeforeValidator(_reader("W"))]
