"""``ulimit`` of all common shells, and /proc/PID/limits."""

import re
from typing import Any, Literal

from railwright.model import Model
from railwright.rlimits import UNLIMITED

_NAMES = {
    "memlock": ("max locked memory", "locked memory", "locked-in-memory size",
                "locked address space", "memorylocked"),
    "nofile": ("open files", "nofiles", "file descriptors", "nofile", "descriptors",
               "max open files"),
    "nproc": ("max user processes", "process", "processes", "nproc", "maxproc", "max processes"),
    "stack": ("stack size", "stack", "stacksize", "max stack size"),
    "core": ("core file size", "coredump", "coredumpsize", "max core file size"),
    "data": ("data seg size", "data", "data size", "datasize", "max data size"),
    "fsize": ("file size", "file", "filesize", "max file size"),
    "rss": ("max memory size", "memory", "resident set size", "memoryuse", "max resident set"),
    "as": ("virtual memory", "vmemory", "address space", "address space limit", "vmemoryuse",
           "max address space"),
    "cpu": ("cpu time", "time", "cputime", "max cpu time"),
    "locks": ("file locks", "locks", "maxlocks", "max file locks"),
    "sigpending": ("pending signals", "signal queue size", "maxsignals", "max pending signals"),
    "msgqueue": ("posix message queues", "bytes in posix msg queues", "message queue size",
                 "max msgqueue size"),
    "nice": ("scheduling priority", "max nice", "nice", "maxnice", "max nice priority"),
    "rtprio": ("real-time priority", "rtprio", "max rt priority", "maxrtprio",
               "max realtime priority"),
    "rttime": ("real-time non-blocking time", "rt cpu time", "max realtime timeout"),
    "pipe": ("pipe size", "pipe buffer size"),
}  # fmt: skip
_BY_LABEL = {label: name for name, labels in _NAMES.items() for label in labels}
_LETTERS = {
    "c": "core", "d": "data", "e": "nice", "f": "fsize", "i": "sigpending", "l": "memlock",
    "m": "rss", "n": "nofile", "q": "msgqueue", "r": "rtprio", "s": "stack", "t": "cpu",
    "u": "nproc", "v": "as", "x": "locks", "R": "rttime",
}  # fmt: skip
"""Options of bash, for a label that is not known; p is the pipe in one shell, processes in
another."""
_UNITS = {
    "kbytes": "kb", "kb": "kb", "kibytes": "kb", "blocks": "blocks", "bytes": "bytes",
    "seconds": "seconds", "us": "us", "microseconds": "us", "512 bytes": "512b",
    "files": "", "processes": "", "signals": "", "locks": "",
}  # fmt: skip

_VALUE = r"unlimited|infinity|\d+"
_ALONE = re.compile(rf"^\s*({_VALUE})\s*$")
_PROC = re.compile(rf"^(?:\S+:)?(Max [a-z ]+?)\s{{2,}}({_VALUE})\s+({_VALUE})(?:\s+([a-z]+))?\s*$")
_SHELL = re.compile(
    r"^(?:-(?P<flag>\w+)(?: \d+)?:\s+)?(?P<label>[A-Za-z][\w -]*?)\s*"
    r"(?P<brackets>(?:\([^)]*\)\s*)*)"
    rf"(?<=[\s)])(?P<value>{_VALUE})(?:\s+(?P<unit>[a-z]+))?\s*$"
)


class Amount(Model):
    """One limit; ``unit`` is ``kb`` (KiB), ``bytes``, ``blocks``, ``512b``, ``seconds``, ``us``
    or empty for a count; ``bound`` None where the output does not say which it is."""

    name: str
    bound: Literal["soft", "hard"] | None
    unit: str
    value: int


class Ulimit(Model):
    """All limits of one output."""

    amounts: tuple[Amount, ...]

    @property
    def ok(self) -> bool | None:
        """Whether locked memory is unlimited, soft and hard; None where nothing is said of it.

        RDMA pins whole buffers, so any number is too small for some job.
        """
        found = [amount.value for amount in self.amounts if amount.name == "memlock"]
        return all(value >= UNLIMITED for value in found) if found else None

    def to_json(self) -> dict[str, Any]:
        """``NAME[_BOUND][_UNIT]`` to a number, or to ``unlimited``.

        ``unlimited`` has no unit, and stands under the name without one; a shell's table has
        columns of one unit, so there it stands under both.
        """
        found: dict[str, Any] = {}
        for amount in self.amounts:
            name = f"{amount.name}_{amount.bound}" if amount.bound else amount.name
            keyed = f"{name}_{amount.unit}" if amount.unit else name
            if amount.value < UNLIMITED:
                found[keyed] = amount.value
                continue
            found[name] = "unlimited"
            if amount.bound is None:
                found[keyed] = "unlimited"
        if self.ok is not None:
            found["ok"] = self.ok
        return found


def parse_ulimit(text: str) -> Ulimit:
    """Read ``ulimit -a`` (bash, dash, zsh, ksh, busybox), csh's ``limit``, /proc/PID/limits, or
    the one value of ``ulimit -l``: a value alone does not say what it is, and is taken as that.

    Lines that are no limit are passed over. Raises ValueError where there is none.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and (alone := _ALONE.match(lines[0])):
        only = Amount(name="memlock", bound=None, unit="kb", value=_number(alone[1]))
        return Ulimit(amounts=(only,))
    amounts = tuple(amount for line in lines for amount in _row(line))
    if not amounts:
        raise ValueError(f"no limit in {text[:80]!r}")
    return Ulimit(amounts=amounts)


def _row(line: str) -> list[Amount]:
    if row := _PROC.match(line):
        name = _BY_LABEL.get(row[1].lower())
        unit = _UNITS.get(row[4] or "", "")
        if name is None:
            return []
        return [
            Amount(name=name, bound="soft", unit=unit, value=_number(row[2])),
            Amount(name=name, bound="hard", unit=unit, value=_number(row[3])),
        ]
    row = _SHELL.match(line)
    if row is None:
        return []
    brackets = re.findall(r"[^(),]+", row["brackets"] or "")
    words = [word.strip() for word in brackets if word.strip()]
    flag = row["flag"] or next((word[1:] for word in words if word.startswith("-")), "")
    name = _BY_LABEL.get(row["label"].lower()) or _LETTERS.get(flag)
    if name is None:
        return []
    units = [_UNITS[word.lower()] for word in [*words, row["unit"] or ""] if word.lower() in _UNITS]
    return [Amount(name=name, bound=None, unit=(units or [""])[0], value=_number(row["value"]))]


def _number(text: str) -> int:
    return int(text) if text.isdigit() else UNLIMITED
