"""Kernel modules: loaded at boot, their options, and those never to be loaded."""

from typing import TYPE_CHECKING, Annotated

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

from railwright.schema.base import (
    Finding,
    ModuleName,
    RefusedError,
    Spec,
    module_name,
    reject,
    word,
)

if TYPE_CHECKING:
    Parameter = str
else:
    Parameter = word(r"[A-Za-z0-9_]+", "a parameter's name")


def _printable(value: str) -> str:
    if not value or any(c in "\"'\\#" or not (c.isascii() and c.isprintable()) for c in value):
        raise RefusedError(
            [Finding((), value, "ASCII text without quotes, backslash, # and line breaks")]
        )
    return value


ParameterText = Annotated[StrictStr, AfterValidator(_printable)]


class ModulesSpec(Spec):
    """Kernel modules. Names may be written with ``-`` or ``_``."""

    load: frozenset[ModuleName] = Field(default=frozenset(), description="Loaded at boot.")
    options: dict[ModuleName, dict[Parameter, StrictBool | StrictInt | ParameterText]] = Field(
        default={}, description="Module to its parameters (modprobe.d options)."
    )
    blacklist: frozenset[ModuleName] = Field(
        default=frozenset(), description="Never loaded, by alias nor by name."
    )

    @model_validator(mode="after")
    def _not_both(self) -> "ModulesSpec":
        load = {module_name(name) for name in self.load}
        reject(
            [
                Finding(("blacklist", name), name, "not to be in load as well")
                for name in sorted(self.blacklist)
                if module_name(name) in load
            ]
        )
        return self
