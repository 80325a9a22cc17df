"""Amounts with their unit: what cannot be added is refused, and bytes are never taken for bits."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_YEAR = 365.25 * 86400
_UNITS: dict[str, tuple[float, str]] = {
    "": (1.0, ""),
    "%": (0.01, ""),
    "s": (1.0, "s"),
    "ms": (1e-3, "s"),
    "us": (1e-6, "s"),
    "µs": (1e-6, "s"),
    "ns": (1e-9, "s"),
    "min": (60.0, "s"),
    "h": (3600.0, "s"),
    "day": (86400.0, "s"),
    "days": (86400.0, "s"),
    "month": (_YEAR / 12, "s"),
    "months": (_YEAR / 12, "s"),
    "year": (_YEAR, "s"),
    "years": (_YEAR, "s"),
    "GPU·h": (3600.0, "GPU·s"),
    **{f"{prefix}Wh": (size * 3600, "W·s") for prefix, size in _DECIMAL.items()},
    **{
        prefix + unit: (size * factor, base)
        for prefix, size in _DECIMAL.items()
        for unit, factor, base in (
            ("B", 1.0, "B"), ("b", 0.125, "B"), ("FLOP", 1.0, "FLOP"),
            ("W", 1.0, "W"), ("token", 1.0, "token"), ("sample", 1.0, "sample"),
        )
    },
    **{prefix + "B": (size, "B") for prefix, size in _BINARY.items()},
}  # fmt: skip
_CURRENCY = re.compile(r"[A-Z]{3}")
# A comma parts thousands and nothing else: 1,5 would be read as 15.
_WHOLE = r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]+)*"
_AMOUNT = re.compile(rf"\s*([-+]?(?:{_WHOLE})(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*([^\s,]*)\s*")
_SPANS = ((172800, 86400, "days"), (3600, 3600, "h"), (1, 1, "s"), (1e-3, 1e-3, "ms"))


class UnitError(ValueError):
    """Amounts that do not go together, or a text that is no amount."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """``value`` in base units: B, s, FLOP, token, sample, W, GPU, a currency, products of them."""

    value: float
    unit: str = ""

    @property
    def number(self) -> float:
        """The value of what has no unit. Raises UnitError where there is one."""
        self._like(Quantity(0.0))
        return self.value

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.value + self._like(other), self.unit)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.value - self._like(other), self.unit)

    def __mul__(self, other: "Quantity | float") -> "Quantity":
        if not isinstance(other, Quantity):
            return Quantity(self.value * other, self.unit)
        return Quantity(self.value * other.value, _product(self.unit, other.unit, 1))

    __rmul__ = __mul__

    def __truediv__(self, other: "Quantity | float") -> "Quantity":
        if not isinstance(other, Quantity):
            return Quantity(self.value / other, self.unit)
        return Quantity(self.value / other.value, _product(self.unit, other.unit, -1))

    def __lt__(self, other: "Quantity") -> bool:
        return self.value < self._like(other)

    def __le__(self, other: "Quantity") -> bool:
        return self.value <= self._like(other)

    def _like(self, other: "Quantity") -> float:
        if self.unit != other.unit:
            raise UnitError(f"{self.unit or 'a number'} and {other.unit or 'a number'} do not mix")
        return other.value

    def __str__(self) -> str:
        """With five digits and the prefix or span of time that reads best."""
        value, unit = self.value, self.unit
        if _CURRENCY.fullmatch(unit):
            return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:,.2f} {unit}"
        if unit == "s":
            span = next((one for one in _SPANS if abs(value) >= one[0]), (0, 1e-6, "µs"))
            return f"{value / span[1]:.5g} {span[2]}" if value else "0 s"
        if unit == "W·s":
            value, unit = value / 3600, "Wh"
        if unit == "GPU·s":
            return f"{value / 3600:,.0f} GPU·h"
        if not unit or "G" + unit.split("/")[0] not in _UNITS:
            return f"{value:.5g} {unit}".rstrip()
        scale = [one for one in _DECIMAL.items() if abs(value) >= one[1]] or [("", 1.0)]
        return f"{value / scale[-1][1]:.5g} {scale[-1][0]}{unit}"


def _powers(unit: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for index, side in enumerate(unit.split("/")):
        for name in filter(None, side.split("·")):
            found[name] += -1 if index else 1
    return found


@cache
def _product(left: str, right: str, power: int) -> str:
    found = _powers(left)
    for name, count in _powers(right).items():
        found[name] += power * count
    above = "·".join(name for name, count in sorted(found.items()) for _ in range(count))
    below = "".join(f"/{name}" for name, count in sorted(found.items()) for _ in range(-count))
    return f"{above or '1'}{below}" if below else above


def read(text: str) -> Quantity:
    """An amount as people write it: ``80 GB``, ``400 Gb/s``, ``0.12 EUR/kWh``, ``14 us``, ``0.4``.

    Raises UnitError for what is none. b is a bit and B a byte; kB is 1000 and KiB 1024 bytes; a
    month is a twelfth of a year of 365.25 days.
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        comma = "; decimals are written with a point" if "," in text else ""
        raise UnitError(f"expected an amount such as 80 GB or 400 Gb/s, got {text!r}{comma}")
    value = Quantity(float(found[1].replace(",", "").replace("_", "")))
    if math.isinf(value.value):
        raise UnitError(f"expected a finite amount, got {text!r}")
    for index, name in enumerate(found[2].split("/")):
        factor, base = _UNITS.get(name, (1.0, name if _CURRENCY.fullmatch(name) else None))
        if base is None or (index and not name):
            raise UnitError(f"expected a unit such as GB, Gb/s, TFLOP/s or EUR/kWh, got {found[2]}")
        value = value / Quantity(factor, base) if index else value * Quantity(factor, base)
    return value


def size(value: float) -> Quantity:
    """``value`` bytes."""
    return Quantity(value, "B")


def seconds(value: float) -> Quantity:
    """A span of ``value`` seconds."""
    return Quantity(value, "s")
