"""Kernel parameters under /proc/sys."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, StrictStr, field_validator, model_validator

from railwright.schema.base import Finding, RefusedError, Spec, reject

_KEY = re.compile(r"^[a-z0-9_]+([./][A-Za-z0-9_.:@-]+)+$")

RANGES = {
    "fs.protected_regular": (0, 2),
    "kernel.numa_balancing": (0, 3),
    "net.ipv4.tcp_mtu_probing": (0, 2),
    "net.ipv4.tcp_slow_start_after_idle": (0, 1),
    "vm.overcommit_memory": (0, 2),
    "vm.swappiness": (0, 200),
    "vm.zone_reclaim_mode": (0, 7),
    "vm.compaction_proactiveness": (0, 100),
}
"""Bounds that the kernel itself enforces. Source: Documentation/admin-guide/sysctl, 6.x."""

_CONF_RANGES = {"arp_announce": (0, 2), "arp_ignore": (0, 8), "rp_filter": (0, 2)}

EXCLUSIVE = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
"""Pairs of which writing one zeroes the other. Source: admin-guide/sysctl/vm.rst."""

OWNED_ELSEWHERE = {
    "vm.nr_hugepages": "hugepages.pools, which is per NUMA node",
    "vm.nr_overcommit_hugepages": "hugepages.pools, which is per NUMA node",
    "kernel.numa_balancing": "kernel.numa_balancing",
}


def normal_key(key: str) -> str:
    """A key as ``sysctl -a`` prints it, whichever of ``.`` and ``/`` came first in ``key``.

    sysctl.d(5): if the first separator is a slash, slashes part the key and dots stand for
    themselves; ``net/ipv4/conf/eth0.100/rp_filter`` is printed with a slash for the dot.
    """
    first = re.search(r"[./]", key)
    if first is None or first.group() == ".":
        return key
    return key.translate(str.maketrans("./", "/."))


def _checked_key(key: str) -> str:
    if not _KEY.match(key):
        raise RefusedError([Finding((), key, "a key such as net.core.rmem_max")])
    return normal_key(key)


SysctlKey = Annotated[str, AfterValidator(_checked_key)]
SysctlValue = StrictInt | tuple[StrictInt, ...] | StrictStr


class SysctlSpec(Spec):
    """Kernel parameters, written to one drop-in that sorts last and put in force at once."""

    values: dict[SysctlKey, SysctlValue | None] = Field(
        default={},
        description="Key to value in the kernel's own unit; null leaves a recommended key alone.",
    )

    @field_validator("values")
    @classmethod
    def _acceptable(cls, values: dict[str, SysctlValue | None]) -> dict[str, SysctlValue | None]:
        reject([f for key, value in values.items() if (f := _finding(key, value))])
        return values

    @model_validator(mode="after")
    def _not_exclusive(self) -> "SysctlSpec":
        given = {key: value for key, value in self.values.items() if value is not None}
        reject(
            [
                Finding(
                    ("values", other),
                    given[other],
                    f"one of {one} and {other}: writing one zeroes the other",
                )
                for one, other in EXCLUSIVE
                if one in given and other in given
            ]
        )
        return self


def _finding(key: str, value: SysctlValue | None) -> Finding | None:
    if key in OWNED_ELSEWHERE:
        return Finding((key,), value, f"it to be set by {OWNED_ELSEWHERE[key]}")
    bounds = RANGES.get(key) or _CONF_RANGES.get(key.rpartition(".")[2])
    if bounds and isinstance(value, int) and not bounds[0] <= value <= bounds[1]:
        return Finding((key,), value, f"{bounds[0]} to {bounds[1]}")
    if isinstance(value, str) and (not value.strip() or not value.isprintable()):
        return Finding((key,), value, "one line of text, not empty")
    return None
