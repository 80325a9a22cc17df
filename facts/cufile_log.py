"""cufile.log: what libcufile says of a process, and whether its files are read through the host.

In compatibility mode IO works and nothing fails; one line of level NOTICE is all that tells
(NVIDIA/gds-nvidia-fs#62, NVIDIA/cudf#13651). Format: `` DD-MM-YYYY hh:mm:ss:ms [pid=N tid=N] LEVEL
PLACE text``; what is pasted into reports mostly begins at the level.
"""

import re
from typing import Literal

from railwright.model import Model

Level = Literal["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR"]


class LogLine(Model):
    """One line; ``place`` is libcufile's file and line (``cufio:294``), ``pid`` None where the
    line has none."""

    level: Level
    place: str
    text: str
    pid: int | None = None


class CufileLog(Model):
    """``lines`` counts all that were read, ``compat`` are those by which IO goes through the host,
    ``errors`` those of level ERROR. ``unsupported`` are block devices that it cannot use."""

    lines: int
    compat: tuple[LogLine, ...] = ()
    errors: tuple[LogLine, ...] = ()
    unsupported: tuple[str, ...] = ()


_LINE = re.compile(
    r"\s*(?:\d\d-\d\d-\d{4} [\d:]+ )?(?:\[pid=(?P<pid>\d+)[^\]]*\]\s+)?"
    r"(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|ERROR)\s+(?P<place>[\w-]+:\d+)\s+(?P<text>.*\S)\s*"
)
_COMPAT = re.compile(r"\bcompat mode enabled\b|\brunning in compatible mode\b", re.IGNORECASE)


_UNSUPPORTED = re.compile(r"Unsupported block device: *(\S+)")


def parse_cufile_log(text: str) -> CufileLog:
    """Read cufile.log. Raises ValueError where no line is one of libcufile's.

    Lines of another form are passed over: a line may go on in the next.
    """
    found = [_line(row) for line in text.splitlines() if (row := _LINE.fullmatch(line))]
    if not found:
        raise ValueError(f"expected lines of cufile.log, got {text.strip()[:60]!r}")
    return CufileLog(
        lines=len(found),
        compat=tuple(line for line in found if _COMPAT.search(line.text)),
        errors=tuple(line for line in found if line.level == "ERROR"),
        unsupported=tuple(dict.fromkeys(_UNSUPPORTED.findall(text))),
    )


def _line(row: re.Match[str]) -> LogLine:
    return LogLine.model_validate(row.groupdict())
