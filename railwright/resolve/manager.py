"""Which line decides the limits that systemd gives to a service.

A unit's own ``LimitX=`` beats the manager's ``DefaultLimitX=``. Source: systemd-system.conf(5),
systemd.exec(5), config_parse_rlimit of src/shared/conf-parser.c.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from railwright.files import FileRecord, effective_files
from railwright.model import Model
from railwright.rlimits import SIZES, UNLIMITED, LimitName, Pair

Manager = Literal["system", "user"]

BASES = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")


class Decision(Model):
    """The limits and the ``path:line`` that decides them."""

    pair: Pair
    decider: str


class Assignment(Model):
    """``key=value`` of a section of a systemd file, with its line; an empty value resets."""

    number: int
    key: str
    value: str


def assignments(text: str, section: str) -> Iterator[Assignment]:
    """The assignments of ``[section]``. Lines that end in a backslash go on in the next one that
    is no comment. Source: systemd.syntax(7)."""
    inside, held, start = False, "", 0
    for number, raw in enumerate(text.split("\n"), start=1):
        if raw.lstrip().startswith(("#", ";")):
            continue
        start = start if held else number
        line = held + raw
        held = f"{line[:-1]} " if line.endswith("\\") else ""
        if held:
            continue
        line = line.strip()
        if line.startswith("["):
            inside = line == f"[{section}]"
        elif inside and "=" in line:
            key, _, value = line.partition("=")
            yield Assignment(number=start, key=key.rstrip(), value=value.strip())


def manager_files(files: Iterable[FileRecord], manager: Manager) -> list[FileRecord]:
    """The files that ``manager`` reads, in order: the first main file, then the drop-ins."""
    records = [record for record in files if record.target != ""]
    by_path = {record.path: record for record in records}
    mains = [f"{base}/{manager}.conf" for base in BASES]
    main = next((by_path[path] for path in mains if path in by_path), None)
    drop_ins = effective_files(records, [f"{base}/{manager}.conf.d" for base in BASES])
    return ([main] if main else []) + drop_ins


def decide_default(
    files: Iterable[FileRecord], manager: Manager, name: LimitName
) -> Decision | None:
    """The manager's default for ``name``; None where no file sets it and the built-in one holds."""
    found = None
    for record in manager_files(files, manager):
        for said in assignments(record.content or "", "Manager"):
            if said.key == f"DefaultLimit{name.upper()}":
                found = _next(found, name, said.value, f"{record.path}:{said.number}")
    return found


def decide_own(name: LimitName, said: Iterable[tuple[str, str]]) -> Decision | None:
    """What a unit's own lines say (place and value, in order); None where the default holds."""
    found = None
    for place, value in said:
        found = _next(found, name, value, place)
    return found


def _next(found: Decision | None, name: LimitName, value: str, place: str) -> Decision | None:
    if not value:
        return None
    pair = parse_rlimit(name, value)
    return found if pair is None else Decision(pair=pair, decider=place)


def parse_rlimit(name: LimitName, text: str) -> Pair | None:
    """``LimitX=`` as systemd reads it; None where it refuses the value and keeps the one before."""
    soft, colon, hard = text.partition(":")
    parts = [_bound(name, part) for part in ((soft, hard) if colon else (soft, soft))]
    if parts[0] is None or parts[1] is None or parts[0] > parts[1]:
        return None
    return Pair(soft=parts[0], hard=parts[1])


def _bound(name: LimitName, text: str) -> int | None:
    if text == "infinity":
        return UNLIMITED
    return _size(text) if name in SIZES else _count(text)


def _count(text: str) -> int | None:
    """A count as strtoull(3) reads it to base 0: a leading 0 means octal, 0x hexadecimal."""
    digits = text.strip().removeprefix("+")
    if not re.fullmatch(r"[0-9a-zA-Z]+", digits, re.ASCII):
        return None
    try:
        value = int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0)
    except ValueError:
        return None
    return value if value < UNLIMITED else None


def _size(text: str) -> int | None:
    """Bytes, to the base of 1024: ``64M``, ``1.5G``, ``1G 512M``."""
    total, last = 0, -1
    rest = text.strip()
    if not rest:
        return None
    while rest:
        match = re.match(r"(\d+)(?:\.(\d*))?\s*([EPTGMKB]?)(?=\s|\d|$)\s*", rest, re.ASCII)
        if match is None:
            return None
        place = "EPTGMKB".index(match[3]) if match[3] else 6
        if place <= last:
            return None
        last, factor = place, 1024 ** (6 - place)
        total += int(match[1]) * factor
        if match[2]:
            total += int(match[2]) * factor // 10 ** len(match[2])
        rest = rest[match.end() :]
    return total if total < UNLIMITED else None
