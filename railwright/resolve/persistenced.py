"""How nvidia-persistenced is started: the command of its unit, and of the drop-ins over it.

Rules of systemd.unit(5): the first of the directories that has the unit counts, its drop-ins are
read by name over all directories; ExecStart= without a command takes the former ones away.
"""

import re
from collections.abc import Iterable

from facts.gpu_driver import DROP_IN, PERSISTENCED
from railwright.files import FileRecord, effective_files
from railwright.owned import HEADER
from railwright.resolve.modules import Decided
from railwright.templates import render

FLAG = "--no-persistence-mode"
_PLACES = tuple(
    f"{place}/systemd/system" for place in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)


def command(files: Iterable[FileRecord]) -> Decided | None:
    """The command that starts the daemon, and the file that decides it; None without a unit."""
    records = list(files)
    found = None
    for record in _read(records):
        for line in (record.content or "").splitlines():
            if given := re.fullmatch(r"\s*ExecStart\s*=\s*(.*?)\s*", line):
                found = Decided(value=given[1], decider=record.path) if given[1] else None
    return found


def is_installed(files: Iterable[FileRecord]) -> bool:
    return any(file.name == PERSISTENCED and not file.masks for file in files)


def drop_in(files: Iterable[FileRecord]) -> str | None:
    """Our drop-in, None where the daemon starts in persistence mode without it."""
    decided = command(file for file in files if file.path != DROP_IN)
    if decided is None or FLAG not in decided.value.split():
        return None
    kept = " ".join(word for word in decided.value.split() if word != FLAG)
    return render("gpu_driver/nvidia-persistenced.conf.j2", header=HEADER, command=kept)


def overriding(files: Iterable[FileRecord]) -> Decided | None:
    """What takes persistence mode away with our drop-in in place; None where nothing does."""
    records = list(files)
    content = drop_in(records)
    if content is None:
        return None
    ours = FileRecord(path=DROP_IN, kind="file", content=content, size=len(content))
    decided = command((*(file for file in records if file.path != DROP_IN), ours))
    return decided if decided is not None and FLAG in decided.value.split() else None


def _read(records: list[FileRecord]) -> list[FileRecord]:
    units = effective_files((r for r in records if r.name == PERSISTENCED), _PLACES)
    folders = tuple(f"{place}/{PERSISTENCED}.d" for place in _PLACES)
    return [*units, *effective_files(records, folders)]
