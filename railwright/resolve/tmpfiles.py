"""Which line of tmpfiles.d writes a file of the kernel at boot, and which has the last word.

Files are read by name over all directories. Of lines with the very same path only the first
counts, unless both append (``w+``). Lines with different patterns that match one file all write,
in the order they are read, so there the last one wins. ``f`` and ``F`` lines come before ``w``.
Source: tmpfiles.d(5); checked against systemd-tmpfiles 252 in the tests.
"""

import base64
import binascii
import posixpath
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from railwright.files import FileRecord, effective_files
from railwright.model import Model

DIRECTORIES = (
    "/etc/tmpfiles.d",
    "/run/tmpfiles.d",
    "/usr/local/lib/tmpfiles.d",
    "/usr/lib/tmpfiles.d",
)
DROPIN = "/etc/tmpfiles.d/00-railwright.conf"

_FIELD = r"(?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\S+)"
_LINE = re.compile(rf"\s*({_FIELD})\s+({_FIELD})(?:\s+{_FIELD}){{4}}\s+(\S.*?)\s*$")
_TYPE = re.compile(r"([wfF])([+!=~^$-]*)")


class Write(Model):
    """One line that writes; ``value`` None where it is not in the file (a credential)."""

    pattern: str
    value: str | None
    origin: str
    appends: bool
    late: bool
    """Whether it is a ``w`` line, which come after all ``f`` lines."""


def writes(files: Iterable[FileRecord]) -> list[Write]:
    """All lines that write, in the order in which they take effect at boot."""
    found: list[Write] = []
    for record in effective_files(files, DIRECTORIES):
        for number, line in enumerate((record.content or "").splitlines(), start=1):
            write = _parse(line, f"{record.path}:{number}")
            if write and not any(_shadows(earlier, write) for earlier in found):
                found.append(write)
    return sorted(found, key=lambda write: write.late)


def decider(found: Iterable[Write], path: str) -> Write | None:
    """The line that decides what ``path`` holds after boot."""
    return next((write for write in reversed(list(found)) if _matches(write.pattern, path)), None)


def _shadows(earlier: Write, later: Write) -> bool:
    return earlier.pattern == later.pattern and not (earlier.appends and later.appends)


def _matches(pattern: str, path: str) -> bool:
    # glob(7): no wildcard stands for a slash.
    wanted, parts = pattern.split("/"), path.split("/")
    return len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted))


def _parse(line: str, origin: str) -> Write | None:
    matched = _LINE.match(line)
    if matched is None or line.lstrip().startswith("#"):
        return None
    kind = _TYPE.fullmatch(matched[1].strip("\"'"))
    if kind is None or (kind[1] == "f" and "+" not in kind[2]):
        # f without + writes only what it creates itself: never a file of the kernel.
        return None
    return Write(
        pattern=posixpath.normpath(matched[2].strip("\"'")),
        value=_argument(matched[3], kind[2]),
        origin=origin,
        appends="+" in kind[2] and kind[1] == "w",
        late=kind[1] == "w",
    )


def _argument(text: str, modifiers: str) -> str | None:
    if "^" in modifiers:
        return None
    if "~" in modifiers:
        try:
            return base64.b64decode(text, validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError):
            return None
    return text.replace("%%", "%").strip()
