"""Kernel parameters under /proc/sys."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, TypeGuard

from pydantic import AfterValidator, Field, StrictInt, StrictStr, field_validator, model_validator

from railwright.schema.base import Finding, Spec, reject

_KEY = re.compile(r"[a-z0-9_]+([./][A-Za-z0-9_:@-]+)+")

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


SysctlKey = Annotated[str, AfterValidator(normal_key)]
SysctlValue = StrictInt | tuple[StrictInt, ...] | StrictStr


class SysctlSpec(Spec):
    """Kernel parameters, written to one drop-in that sorts last and put in force at once."""

    values: dict[SysctlKey, SysctlValue | None] = Field(
        default={},
        description="Key to value in the kernel's own unit; null leaves a recommended key alone.",
    )

    @field_validator("values", mode="before")
    @classmethod
    def _acceptable(cls, values: object) -> object:
        # Before pydantic looks, so that a wrong type does not hide a wrong number.
        if isinstance(values, Mapping):
            reject([f for key, value in values.items() if (f := _finding(key, value))])
            spelled = Counter(normal_key(key) for key in values)
            reject(
                [
                    Finding((key,), value, "each key once, however it is spelled")
                    for key, value in values.items()
                    if spelled[normal_key(key)] > 1
                ]
            )
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


def _finding(key: object, value: object) -> Finding | None:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        return Finding((str(key),), key, "a key such as net.core.rmem_max")
    key = normal_key(key)
    if key in OWNED_ELSEWHERE:
        return Finding((key,), value, f"it to be set by {OWNED_ELSEWHERE[key]}")
    bounds = RANGES.get(key) or _CONF_RANGES.get(key.rpartition(".")[2])
    if bounds and not (_is_number(value) and bounds[0] <= value <= bounds[1]) and value is not None:
        return Finding((key,), value, f"a whole number from {bounds[0]} to {bounds[1]}")
    if isinstance(value, str) and (
        not value.strip() or not (value.isascii() and value.isprintable())
    ):
        return Finding((key,), value, "one line of ASCII text, not empty")
    numbers = value if isinstance(value, list | tuple) else ()
    if value is None or isinstance(value, str) or _is_number(value):
        return None
    if numbers and all(_is_number(number) for number in numbers):
        return None
    return Finding((key,), value, "a whole number, a list of them, or text")


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
