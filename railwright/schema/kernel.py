"""Kernel command line, transparent huge pages, NUMA balancing, CPU power."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr, field_validator

from railwright.schema.base import Finding, Spec, reject

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_OWNED = {
    "hugepages": "hugepages.pools",
    "hugepagesz": "hugepages.pools",
    "default_hugepagesz": "hugepages.pools",
    "transparent_hugepage": "kernel.thp.enabled",
    "numa_balancing": "kernel.numa_balancing",
    "intel_idle.max_cstate": "kernel.max_cstate",
    "processor.max_cstate": "kernel.max_cstate",
}
_REFUSED: dict[tuple[str, str | None], str] = {
    ("amd_iommu", "on"): "iommu=pt (amd_iommu has no value 'on': that IOMMU is on by default)",
    ("pcie_acs_override", None): "pci=disable_acs_redir=... (pcie_acs_override is in no "
    "distribution's kernel, and only fakes isolation)",
    ("idle", "poll"): "kernel.max_cstate (idle=poll burns every idle core)",
}


class ThpSpec(Spec):
    """Transparent huge pages; None leaves a knob alone."""

    enabled: Literal["always", "madvise", "never"] | None = Field(
        default=None, description="/sys/kernel/mm/transparent_hugepage/enabled"
    )
    defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = Field(
        default=None, description="/sys/kernel/mm/transparent_hugepage/defrag"
    )
    shmem_enabled: Literal["always", "within_size", "advise", "never", "deny", "force"] | None = (
        Field(default=None, description="/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    )


ArgumentValue = StrictStr | StrictInt | Literal[True]


class KernelSpec(Spec):
    """What the kernel is started with, and knobs of it that are not sysctls."""

    arguments: dict[str, ArgumentValue] = Field(
        default={},
        description="Kernel argument to value; true for one without a value (nowatchdog).",
    )
    thp: ThpSpec = Field(default=ThpSpec(), description="Transparent huge pages.")
    numa_balancing: bool | None = Field(
        default=None,
        description="Automatic NUMA balancing (sysctl kernel.numa_balancing, off is 0: it is a "
        "bit mask, any other value is on).",
    )
    governor: (
        Literal["performance", "powersave", "schedutil", "ondemand", "conservative"] | None
    ) = Field(default=None, description="cpufreq governor of every CPU.")
    max_cstate: Annotated[StrictInt, Field(ge=0, le=9)] | None = Field(
        default=None,
        description="Deepest C-state (arguments intel_idle.max_cstate, processor.max_cstate); "
        "costs turbo headroom.",
    )

    @field_validator("arguments", mode="before")
    @classmethod
    def _sane(cls, arguments: object) -> object:
        # Before pydantic looks, so that a wrong type does not hide a wrong value.
        if isinstance(arguments, Mapping):
            reject([f for name, value in arguments.items() if (f := _finding(name, value))])
        return arguments


def _finding(name: object, value: object) -> Finding | None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return Finding((str(name),), name, "the name of a kernel argument, such as iommu")
    if name in _OWNED:
        return Finding((name,), value, f"it to be set by {_OWNED[name]}")
    for refused in ((name, str(value)), (name, None)):
        if refused in _REFUSED:
            return Finding((name,), value, _REFUSED[refused])
    # A semicolon would end GRUB's linux command, and lose all arguments after it.
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z0-9_.,:/@=+-]+", value):
        return Finding((name,), value, "letters, digits and .,:/@=+-")
    if value is True or isinstance(value, str) or (isinstance(value, int) and value is not False):
        return None
    return Finding((name,), value, "text, a whole number, or true for an argument without a value")
