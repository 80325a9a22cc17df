"""What every spec is built on, and the field types that several of them share."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ValidationError, WithJsonSchema

from railwright.model import Model


@dataclass(frozen=True)
class FailedSpec:
    """A spec that did not validate: what stands in for it, its data, and who built it."""

    spec: "Spec"
    data: dict[str, Any]
    error: ValidationError
    file: str
    line: int


_failures: ContextVar[list[FailedSpec] | None] = ContextVar("failures", default=None)


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _SpecType
else:

    class _SpecType(type(Model)):
        """Notes what fails to validate when it is built by name; pydantic itself does not."""

        def __call__(cls, **data: Any) -> Any:
            failures = _failures.get()
            if failures is None:
                return super().__call__(**data)
            try:
                return super().__call__(**data)
            except ValidationError as error:
                stand_in = cls.model_construct()
                frame = sys._getframe(1)
                failures.append(
                    FailedSpec(stand_in, data, error, frame.f_code.co_filename, frame.f_lineno)
                )
                return stand_in


class Spec(Model, metaclass=_SpecType):
    """A part of a node's description.

    A group file builds specs while it is executed. So that all errors of a site can be told at
    once, a spec that does not validate is noted and stands in for itself while
    ``collecting_failures`` is active; everywhere else it raises.
    """


@contextmanager
def collecting_failures() -> Iterator[list[FailedSpec]]:
    """Note specs that fail to validate instead of raising, and yield the list of them."""
    found: list[FailedSpec] = []
    token = _failures.set(found)
    try:
        yield found
    finally:
        _failures.reset(token)


@dataclass(frozen=True)
class Finding:
    """One value that is refused; ``path`` leads to it from the field that is validated."""

    path: tuple[str, ...]
    value: object
    expected: str


class RefusedError(ValueError):
    """All that a validator refuses of one field, so that it is told at once."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(
            "; ".join(f"{'.'.join(f.path)} is {f.value!r}: expected {f.expected}" for f in findings)
        )


def reject(findings: Sequence[Finding]) -> None:
    """Raise ``RefusedError`` where there are findings."""
    if findings:
        raise RefusedError(findings)


_UNITS_KIB = {"KiB": 1, "MiB": 1024, "GiB": 1024**2, "TiB": 1024**3}


def size_kib(text: str) -> int:
    """Kibibytes in a size such as ``64MiB``. Raises ValueError where the unit is missing."""
    for unit, factor in _UNITS_KIB.items():
        if text.endswith(unit) and text.removesuffix(unit).strip().isascii():
            number = text.removesuffix(unit).strip()
            if number.isdigit():
                return int(number) * factor
    raise RefusedError(
        [Finding((), text, f"a size with its unit ({', '.join(_UNITS_KIB)}), such as 64MiB")]
    )


def _checked_size(text: str) -> str:
    size_kib(text)
    return text


Size = Annotated[str, AfterValidator(_checked_size)]
"""A size with its binary unit: ``8192KiB``, ``64MiB``, ``2GiB``."""

Unlimited = Literal["unlimited"]


def word(pattern: str, expected: str) -> Any:
    """The type of text that matches ``pattern`` as a whole; ``expected`` says so to a person."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise RefusedError([Finding((), text, expected)])
        return text

    return Annotated[
        str, AfterValidator(check), WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})
    ]


if TYPE_CHECKING:
    ModuleName = str
    UnitName = str
    PackageName = str
else:
    ModuleName = word(r"[A-Za-z0-9][A-Za-z0-9_-]*", "a module's name, such as nvme_rdma")
    """A kernel module; ``-`` and ``_`` are the same to the kernel."""
    UnitName = word(r"[A-Za-z0-9][A-Za-z0-9:_.@-]*\.service", "a unit, such as slurmd.service")
    PackageName = word(r"[A-Za-z0-9][A-Za-z0-9+._-]+", "a package's name")


def module_name(name: str) -> str:
    """A module's name as the kernel lists it in /proc/modules."""
    return name.replace("-", "_")
