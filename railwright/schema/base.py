"""What every spec is built on, and the field types that several of them share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, StringConstraints, ValidationError

from railwright.model import Model

_PACKAGE = str(Path(__file__).parent)


@dataclass(frozen=True)
class FailedSpec:
    """A spec that did not validate, and the place that built it."""

    spec: "Spec"
    error: ValidationError
    file: str
    line: int


_failures: ContextVar[list[FailedSpec] | None] = ContextVar("failures", default=None)


class Spec(Model):
    """A part of a node's description.

    A group file builds specs while it is executed. So that all errors of a site can be told at
    once, a spec that does not validate is noted and stands in for itself while
    ``collecting_failures`` is active; everywhere else it raises.
    """

    if not TYPE_CHECKING:

        def __init__(self, **data: Any) -> None:
            failures = _failures.get()
            try:
                super().__init__(**data)
            except ValidationError as error:
                if failures is None:
                    raise
                file, line = _caller()
                self._stand_in()
                failures.append(FailedSpec(self, error, file, line))

        def _stand_in(self) -> None:
            for slot, value in (
                ("__dict__", dict(type(self).model_construct().__dict__)),
                ("__pydantic_fields_set__", set()),
                ("__pydantic_extra__", None),
                ("__pydantic_private__", None),
            ):
                object.__setattr__(self, slot, value)


@contextmanager
def collecting_failures() -> Iterator[list[FailedSpec]]:
    """Note specs that fail to validate instead of raising, and yield the list of them."""
    found: list[FailedSpec] = []
    token = _failures.set(found)
    try:
        yield found
    finally:
        _failures.reset(token)


def _caller() -> tuple[str, int]:
    """File and line of the code that builds a spec, the frames of the schema passed over."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


_UNITS_KIB = {"KiB": 1, "MiB": 1024, "GiB": 1024**2, "TiB": 1024**3}


def size_kib(text: str) -> int:
    """Kibibytes in a size such as ``64MiB``. Raises ValueError where the unit is missing."""
    for unit, factor in _UNITS_KIB.items():
        if text.endswith(unit) and text.removesuffix(unit).strip().isascii():
            number = text.removesuffix(unit).strip()
            if number.isdigit():
                return int(number) * factor
    raise ValueError(f"expected a size with its unit, such as 64MiB ({', '.join(_UNITS_KIB)})")


def _checked_size(text: str) -> str:
    size_kib(text)
    return text


Size = Annotated[str, AfterValidator(_checked_size)]
"""A size with its binary unit: ``8192KiB``, ``64MiB``, ``2GiB``."""

Unlimited = Literal["unlimited"]

ModuleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""A kernel module; ``-`` and ``_`` are the same to the kernel."""

UnitName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*\.service$")]

PackageName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9A-Z][a-z0-9A-Z+._-]+$")]


def module_name(name: str) -> str:
    """A module's name as the kernel lists it in /proc/modules."""
    return name.replace("-", "_")
