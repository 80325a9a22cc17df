"""Which line of limits.conf(5) decides for a login.

Written after pam_limits of Linux-PAM 1.4 to 1.7 (modules/pam_limits/pam_limits.c): the files are
read in order, and a line takes effect unless one of a narrower domain did before: a user or a range
of uids beats a group, a group beats ``*``. Among equals the last wins. A ``DOMAIN -`` line without
item and value frees its user of all limits. A soft limit is cut to the hard one.
"""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from pathlib import PurePosixPath
from typing import Literal

from railwright.files import FileRecord
from railwright.model import Model
from railwright.rlimits import LIMIT_NAMES, SIZES, UNLIMITED, LimitName

Bound = Literal["soft", "hard"]

MAIN = "/etc/security/limits.conf"
DROPINS = "/etc/security/limits.d"
VENDOR = ("/usr/etc/security", "/usr/share/security")
"""Where pam is built with a vendor directory (openSUSE, Fedora): files of the same name in /etc
take their place."""

ORDINARY_UIDS = (1000, 60000)
"""UID_MIN and UID_MAX of login.defs(5): who is meant by an ordinary user."""


_BOTH: tuple[Bound, ...] = ("soft", "hard")
_BOUNDS: dict[str, frozenset[Bound]] = {
    "soft": frozenset({"soft"}),
    "hard": frozenset({"hard"}),
    "-": frozenset(_BOTH),
}


class Reach(IntEnum):
    """How narrow a domain is; the lower number wins. Source: LIMITS_DEF_* of pam_limits.c."""

    USER = 0
    GROUP = 1
    ALL = 4


class Line(Model):
    """One line that counts; ``item`` and ``value`` are None in one that frees of all limits."""

    path: str
    number: int
    domain: str
    bounds: frozenset[Bound]
    item: LimitName | None
    value: int | None

    @property
    def place(self) -> str:
        return f"{self.path}:{self.number}"

    @property
    def uids(self) -> tuple[int, int] | None:
        """The uids of a range (``1000:``, ``:500``, ``500:999``); None where it is no range."""
        match = re.fullmatch(r"(\d*):(\d*)", self.domain)
        if match is None or not any(match.groups()):
            return None
        if not match[1]:
            return int(match[2]), int(match[2])
        return int(match[1]), int(match[2]) if match[2] else 2**32


class Subject(Model):
    """Whose login: root's, or that of a user of no group and no name that any line knows.

    ``wildcard`` tells whether ``*`` reaches the subject: Debian and its kin keep it from root
    (their patch 027_pam_limits_better_init_allow_explicit_root), others do not.
    """

    root: bool
    wildcard: bool = True

    def reach(self, line: Line) -> Reach | None:
        """How ``line`` reaches the subject; None where it does not."""
        if line.domain == "*":
            # A line that frees of all limits does so for nobody where its domain is the wildcard.
            return Reach.ALL if self.wildcard and line.item is not None else None
        if line.uids is not None:
            low, high = (0, 0) if self.root else ORDINARY_UIDS
            return Reach.USER if line.uids[0] <= low and high <= line.uids[1] else None
        return Reach.USER if self.root and line.domain == "root" else None


ORDINARY = Subject(root=False)


class Decision(Model):
    """The value that a login gets and the ``path:line`` that decides it; ``value`` is None where
    a line frees the login of all limits: it keeps what its parent has."""

    value: int | None
    decider: str


def pam_files(files: Iterable[FileRecord]) -> list[FileRecord]:
    """The files that pam_limits reads, in order."""
    by_path = {record.path: record for record in files if record.target != ""}
    mains = [f"{base}/limits.conf" for base in ("/etc/security", *VENDOR)]
    main = next((by_path[path] for path in mains if path in by_path), None)
    by_name: dict[str, FileRecord] = {}
    for directory in (DROPINS, *(f"{base}/limits.d" for base in VENDOR)):
        for record in by_path.values():
            name = PurePosixPath(record.path).name
            if record.directory == directory and name.endswith(".conf") and name[0] != ".":
                by_name.setdefault(name, record)
    return ([main] if main else []) + [record for _, record in sorted(by_name.items())]


def pam_lines(files: Iterable[FileRecord]) -> list[Line]:
    """All lines that set one of our limits or free of all, in the order in which they are read.

    Lines that pam_limits refuses are left out, as it leaves them out.
    """
    return [
        line
        for record in pam_files(files)
        for number, text in enumerate((record.content or "").split("\n"), start=1)
        for line in _parse(record.path, number, text)
    ]


def _parse(path: str, number: int, text: str) -> list[Line]:
    words = text.partition("#")[0].split(maxsplit=3)
    # A domain with % is for maxlogins alone.
    if len(words) < 2 or words[0].startswith("%"):
        return []
    domain, kind, *rest = words
    bounds = _BOUNDS.get(kind.lower())
    if len(words) == 2 and kind.startswith("-"):
        return [
            Line(
                path=path,
                number=number,
                domain=domain,
                bounds=frozenset(_BOTH),
                item=None,
                value=None,
            )
        ]
    if len(words) != 4 or bounds is None:
        return []
    item = next((name for name in LIMIT_NAMES if name == rest[0].lower()), None)
    amount = None if item is None else _amount(item, rest[1].strip().lower())
    if amount is None:
        return []
    return [Line(path=path, number=number, domain=domain, bounds=bounds, item=item, value=amount)]


def _amount(item: LimitName, text: str) -> int | None:
    """Bytes or count, as strtoull(3) reads them: what follows the digits is ignored."""
    if text in ("-1", "-", "unlimited", "infinity"):
        return UNLIMITED
    match = re.match(r"([+-]?)(\d+)", text, re.ASCII)
    if match is None:
        return None
    number = int(match[2])
    if match[1] == "-" and number:
        number = max(UNLIMITED + 1 - number, 0)
    scale = 1024 if item in SIZES else 1
    return UNLIMITED if number >= UNLIMITED // scale else number * scale


def decide(
    lines: Sequence[Line], item: LimitName, bound: Bound, subject: Subject
) -> Decision | None:
    """What a login of ``subject`` gets; None where no line says."""
    reached = [(line, subject.reach(line)) for line in lines]
    for line, reach in reached:
        if line.item is None and reach is not None:
            return Decision(value=None, decider=line.place)
    found: dict[Bound, Line] = {}
    best: dict[Bound, Reach] = {}
    for line, reach in reached:
        if reach is None or line.item != item:
            continue
        # In this order, and a line that loses by its soft bound is dropped with its hard one.
        for one in _BOTH:
            if one in line.bounds:
                if reach > best.get(one, Reach.ALL):
                    break
                best[one], found[one] = reach, line
    if bound not in found:
        return None
    line = found[bound]
    if bound == "soft" and "hard" in found and _value(found["hard"]) < _value(line):
        line = found["hard"]
    return Decision(value=_value(line), decider=line.place)


def _value(line: Line) -> int:
    return 0 if line.value is None else line.value


def exceptions(
    lines: Sequence[Line], item: LimitName, bound: Bound, wanted: int
) -> list[tuple[str, Decision]]:
    """Users, groups and ranges whose own lines give them less than ``wanted``, whatever ``*`` says.

    Each domain is looked at on its own. Lines that free of all limits count: who they are for does
    not get what is set for all.
    """
    found = []
    domains = dict.fromkeys(line.domain for line in lines)
    for domain in domains:
        if domain in ("*", "root"):
            continue
        own = [line.model_copy(update={"domain": "*"}) for line in lines if line.domain == domain]
        free = next((line for line in own if line.item is None), None)
        if free is not None:
            found.append((domain, Decision(value=None, decider=free.place)))
            continue
        decision = decide(own, item, bound, ORDINARY)
        if decision is None and bound == "soft":
            # A hard limit cuts the soft one that comes from ``*``.
            decision = decide(own, item, "hard", ORDINARY)
        if decision is not None and decision.value is not None and decision.value < wanted:
            found.append((domain, decision))
    return found
