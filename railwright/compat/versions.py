"""Versions as kernels, drivers and vendors' packages write them, and ranges of them.

Not PEP 440: ``5.14.0-570.26.1.el9_6`` and ``24.10-1.1.4.0`` are no Python versions.
"""

import re
from functools import total_ordering
from typing import Annotated, Literal

from pydantic import AfterValidator

from railwright.model import Model

_EPOCH = re.compile(r"[0-9]+:")
_SEPARATORS = re.compile(r"[.\-_+~]")
_BOUND = re.compile(r"(<=|>=|<|>|=)\s*(\S+)")


@total_ordering
class Version(Model):
    """The leading numbers of a version; what is missing at the end is 0 (``6.8`` is ``6.8.0``)."""

    numbers: tuple[int, ...]
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._significant == other._significant

    def __lt__(self, other: "Version") -> bool:
        return self._significant < other._significant

    def __hash__(self) -> int:
        return hash(self._significant)

    def __str__(self) -> str:
        return self.text

    @property
    def _significant(self) -> tuple[int, ...]:
        numbers = self.numbers
        while numbers and numbers[-1] == 0:
            numbers = numbers[:-1]
        return numbers

    def cut_to(self, count: int) -> tuple[int, ...]:
        """The first ``count`` numbers."""
        return (*self.numbers, *(0,) * count)[:count]


def parse_version(text: str) -> Version:
    """The version in ``text``: ``580.95.05``, ``6.8.0-60-generic``, ``2.15.8_39_g2d32b59``.

    A Debian epoch is left out, and so is all from the first part that is no number. Raises
    ValueError where there is no number at the start.
    """
    numbers = []
    for part in _SEPARATORS.split(_EPOCH.sub("", text.strip(), count=1)):
        if not (part.isascii() and part.isdigit()):
            break
        numbers.append(int(part))
    if not numbers:
        raise ValueError(f"expected a version such as 6.8.0-60-generic, got {text!r}")
    return Version(numbers=tuple(numbers), text=text.strip())


class Bound(Model):
    """One end of a range. It counts with as many numbers as it has itself.

    So ``<=6.11`` takes in ``6.11.0-17``, ``>6.11`` leaves it out, and ``=2.9`` is all of 2.9.
    """

    relation: Literal["<", "<=", "=", ">=", ">"]
    version: Version

    def holds(self, version: Version) -> bool:
        count = len(self.version.numbers)
        mine, its = self.version.cut_to(count), version.cut_to(count)
        return {
            "<": its < mine,
            "<=": its <= mine,
            "=": its == mine,
            ">=": its >= mine,
            ">": its > mine,
        }[self.relation]

    def __str__(self) -> str:
        return f"{self.relation}{self.version}"


class VersionRange(Model):
    """Versions for which all ``bounds`` hold; without any, every version (written ``any``)."""

    bounds: tuple[Bound, ...] = ()

    def __contains__(self, version: Version) -> bool:
        return all(bound.holds(version) for bound in self.bounds)

    def __str__(self) -> str:
        return ", ".join(map(str, self.bounds)) or "any"


def parse_range(text: str) -> VersionRange:
    """The range in ``text``: ``>=5.14, <6.9``, ``=2.9``, ``any``. Raises ValueError otherwise."""
    if text.strip() == "any":
        return VersionRange()
    bounds = []
    for part in text.split(","):
        found = _BOUND.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"expected a range such as '>=5.14, <6.9' or 'any', got {text!r}")
        relation, version = found.groups()
        bounds.append(Bound.model_validate({"relation": relation, "version": _whole(version)}))
    return VersionRange(bounds=tuple(bounds))


def _whole(text: str) -> Version:
    """A bound's version, all of which has to count."""
    version = parse_version(text)
    if len(version.numbers) != len(_SEPARATORS.split(text)):
        raise ValueError(f"expected a version of numbers such as 570.133.20, got {text!r}")
    return version


def _checked_version(text: str) -> str:
    parse_version(text)
    return text


VersionText = Annotated[str, AfterValidator(_checked_version)]
"""A version as it was read or is asked for."""
