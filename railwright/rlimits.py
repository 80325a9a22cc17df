"""The resource limits that railwright sets: their names in each place, and how they are written."""

from typing import Literal, get_args

from railwright.model import Model
from railwright.schema import LimitsSpec
from railwright.schema.base import size_kib

LimitName = Literal["memlock", "nofile", "nproc", "stack"]
LIMIT_NAMES: tuple[LimitName, ...] = get_args(LimitName)

UNLIMITED = 2**64 - 1
"""RLIM_INFINITY; above all other values, so that limits compare as numbers."""

SIZES: frozenset[LimitName] = frozenset({"memlock", "stack"})
"""The limits in bytes; the others are counts."""

PROC_ROWS: dict[str, LimitName] = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max processes": "nproc",
    "Max stack size": "stack",
}
"""Row of /proc/PID/limits to the limit. Source: fs/proc/base.c."""


SERVICE_SOFT_NOFILE = 1024
"""systemd's own soft limit of open files, which services keep: what waits by select(2) breaks on
descriptors above 1023, and what can do better raises its soft limit itself up to the hard one.
Source: systemd.exec(5) on LimitNOFILE=."""


class Pair(Model):
    """A soft and a hard limit, in bytes (``SIZES``) or as counts."""

    soft: int
    hard: int

    def at_least(self, other: "Pair") -> bool:
        return self.soft >= other.soft and self.hard >= other.hard


def bound_text(name: LimitName, value: int) -> str:
    """``unlimited``, ``65536KiB``, ``1000B`` where it is no whole KiB, or a count."""
    if value >= UNLIMITED:
        return "unlimited"
    if name not in SIZES:
        return str(value)
    return f"{value}B" if value % 1024 else f"{value // 1024}KiB"


def pair_text(name: LimitName, pair: Pair) -> str:
    """One value where both bounds are equal, else ``SOFT:HARD``."""
    soft, hard = bound_text(name, pair.soft), bound_text(name, pair.hard)
    return soft if soft == hard else f"{soft}:{hard}"


def wanted(spec: LimitsSpec) -> dict[LimitName, int]:
    """What the inventory asks of logins, soft and hard alike: bytes or count."""
    found: dict[LimitName, int] = {}
    for name in LIMIT_NAMES:
        value = getattr(spec, name)
        if value == "unlimited":
            found[name] = UNLIMITED
        elif value is not None:
            found[name] = size_kib(value) * 1024 if name in SIZES else value
    return found


def service_pair(name: LimitName, value: int) -> Pair:
    """What a service is to have where logins have ``value``."""
    soft = min(value, SERVICE_SOFT_NOFILE) if name == "nofile" else value
    return Pair(soft=soft, hard=value)


def pam_value(name: LimitName, value: int) -> str:
    """One bound as limits.conf(5) takes it: KiB or a count."""
    if value >= UNLIMITED:
        return "unlimited"
    return str(value // 1024 if name in SIZES else value)


def systemd_value(name: LimitName, pair: Pair) -> str:
    """Both bounds as systemd.exec(5) takes them."""

    def one(value: int) -> str:
        if value >= UNLIMITED:
            return "infinity"
        return f"{value // 1024}K" if name in SIZES else str(value)

    return one(pair.hard) if pair.soft == pair.hard else f"{one(pair.soft)}:{one(pair.hard)}"
