"""fio on a node: what is asked before it, how it is run, what comes back.

Files grow as they are written (``--fallocate=none``): else they have all their length at once, and
what was not written yet is read as zeros that come from nowhere. Options: fio(1) of 3.16 and 3.36.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from importlib.resources import files as resources
from typing import Literal

from facts import gds_mounts
from facts.answers import Answer
from facts.fio import FioRun, parse_fio
from facts.mounts import MOUNTS, MountEntry, parse_mounts
from facts.probe import Section
from railwright.attend import ASKER, TELL, answers_of, last_words, left_by
from railwright.gds.mounts import Mount
from railwright.model import Model
from railwright.snapshot import Snapshot
from railwright.storage.sizes import Load, Target

PLACES, TOOLS, TEST = "storage_places", "storage_tools", "storage_test"
GPUS = "/proc/driver/nvidia/gpus"
"""A directory for each GPU that the driver runs."""

_ANSWER_S = 5
_ASIDE_S = 30 + 30 + 30 + 60 + 40
"""Seconds beside fio: a directory, two times stat, rm, each as fio.sh gives them, and slack."""
_MIB = 1 << 20


class Place(Model):
    """A directory of the test: what a user may write there, or why that is not known."""

    free_mib: int | None = None
    error: str | None = None


class Look(Model):
    """What a node is before the test. ``fio`` is its version, None where it is not there.

    ``places`` are by directory; one that is not in there does not answer. ``gds`` are the mounts of
    file systems that libcufile knows, by where they are mounted.
    """

    fio: str | None
    memory_mib: int
    gpu: bool
    places: dict[str, Place]
    mounted: tuple[MountEntry, ...]
    gds: dict[str, Mount]

    def on(self, target: str) -> MountEntry | None:
        """What is mounted on ``target``: of several, the last lies on top."""
        return next((entry for entry in reversed(self.mounted) if entry.target == target), None)


Way = Literal["write", "read"]
WAYS: tuple[Way, ...] = ("write", "read")


class Evidence(Model):
    """What is left of a test: the runs that came to a result, and why there are no more.

    ``refuses_direct`` is that the file system takes no direct IO. ``left`` stayed on the node.
    """

    write: FioRun | None = None
    read: FioRun | None = None
    failure: str | None = None
    refuses_direct: bool = False
    left: tuple[str, ...] = ()


def look_sections(directories: Sequence[str]) -> tuple[Section, ...]:
    """What is asked of a node before it is tested. Nothing stays on it."""
    # They are asked for whatever the node's description has of drivers and storage.
    everywhere = {"for_drivers": False, "for_storage": False}
    return (
        Section(name=TOOLS, script=_TOOLS.format(gpus=GPUS), deadline_s=20),
        Section(name=PLACES, script=_places(directories), deadline_s=_ANSWER_S + 5),
        MOUNTS.model_copy(update=everywhere),
        gds_mounts.MOUNTS.model_copy(update=everywhere),
    )


_TOOLS = """
sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/memory=\\1/p' /proc/meminfo
echo "fio=$(fio --version)"
for one in {gpus}/*; do [ ! -e "$one" ] || echo gpu=yes; done
true
"""


def _places(directories: Sequence[str]) -> str:
    """Each is asked on its own: one that hangs can neither be killed nor hold up the others."""
    asked = "\n".join(
        f"asked {number} {shlex.quote(directory)} &" for number, directory in enumerate(directories)
    )
    return f"""
asked() {{
    told=$(timeout -s KILL {_ANSWER_S} df -B1 --output=avail -- "$2" 2>&1)
    printf '%s %s %s\\n' "$1" "$?" "$(echo "$told" | tail -n 1)"
}}
{asked}
wait
"""


def run_section(target: Target, load: Load) -> Section:
    """Writes files in a directory of its own, reads them, and removes them."""
    values = {
        "mount": target.mount,
        "directory": target.directory,
        "block_mib": load.block_mib,
        "jobs": load.jobs,
        "depth": load.depth,
        "engine": load.engine,
        "direct": int(load.direct),
        "file_mib": load.file_mib,
        "seconds": "" if load.seconds is None else load.seconds,
        "limit_s": load.limit_s,
    }
    head = "\n".join(f"{name}={shlex.quote(str(value))}" for name, value in values.items())
    body = (resources("railwright.storage") / "fio.sh").read_text(encoding="ascii")
    return Section(
        name=TEST,
        script=f"{ASKER}{TELL}\n{head}\n{body}",
        deadline_s=len(WAYS) * (load.limit_s + 15) + _ASIDE_S,
    )


def read_look(snapshot: Snapshot, directories: Sequence[str]) -> Look:
    """What was found of a node. Raises ValueError where that cannot be read."""
    told = snapshot.facts(TOOLS)
    if not told.get("memory", "").isdecimal():
        raise ValueError("expected MemTotal of /proc/meminfo, got none")
    of_gds = gds_mounts.parse_mounts(snapshot.text(gds_mounts.MOUNTS.name))
    return Look(
        fio=told.get("fio") or None,
        memory_mib=int(told["memory"]) // 1024,
        gpu="gpu" in told,
        # Whoever has not answered by the end of the section's time hangs.
        places=dict(_answers(snapshot.section(PLACES).stdout, directories)),
        mounted=tuple(parse_mounts(snapshot.text(MOUNTS.name))),
        gds={mount.target: mount for mount in of_gds},
    )


_KILLED = "137"


def _answers(text: str, directories: Sequence[str]) -> Iterator[tuple[str, Place]]:
    for line in filter(str.strip, text.splitlines()):
        number, _, rest = line.partition(" ")
        code, _, said = rest.partition(" ")
        if not (number.isdecimal() and int(number) < len(directories) and code.isdecimal()):
            raise ValueError(f"expected 'NUMBER STATUS TEXT', got {line[:80]!r}")
        if code == _KILLED:
            continue
        if code == "0" and said.strip().isdecimal():
            yield directories[int(number)], Place(free_mib=int(said) // _MIB)
        else:
            yield directories[int(number)], Place(error=said.strip() or f"df: exit {code}")


def read_evidence(snapshot: Snapshot) -> Evidence:
    """What a test left. Raises ValueError where it was not run, or its answer breaks off."""
    told = answers_of(snapshot, TEST)
    runs: dict[str, FioRun] = {}
    failure = None
    for way in WAYS:
        found = _run(told, way)
        if isinstance(found, str):
            failure = found
            break
        runs[way] = found
    errors = "".join(told[f"{way}.err"].text for way in WAYS if f"{way}.err" in told)
    return Evidence(
        write=runs.get("write"),
        read=runs.get("read"),
        failure=failure,
        refuses_direct=failure is not None and any(words in errors for words in _NOT_DIRECT),
        left=left_by(told),
    )


# What fio says of an open, and of an IO, that ends by EINVAL. Source: fio's filesetup.c, io_u.c.
_NOT_DIRECT = (
    "does not support direct=1",
    "does not support O_DIRECT",
    "Invalid argument: write offset",
    "Invalid argument: read offset",
)
_OVERDUE, _KILL = 124, 137
# Which file, and where in it: another on each node, and of each stream.
_DETAIL = re.compile(r" on file \S+(?=:)|: (read|write) offset=.*$", re.MULTILINE)


def _words(text: str) -> str:
    """What fio says, so that it is the same of all streams and on all nodes."""
    return last_words("\n".join(dict.fromkeys(_DETAIL.sub("", text).splitlines())))


def _run(told: dict[str, Answer], way: Way) -> FioRun | str:
    """The result of one way, or why there is none."""
    answer = told.get(way)
    if answer is None:
        return f"{way}: fio was not run"
    if answer.rc == _OVERDUE:
        return f"{way}: fio came to no end in time"
    if answer.rc == _KILL:
        return f"{way}: fio was killed: by somebody, or as it came to no end in time"
    said = _words(told[f"{way}.err"].text) if f"{way}.err" in told else ""
    if answer.rc != 0:
        return f"{way}: {said or f'fio ended with exit {answer.rc}'}"
    try:
        run = parse_fio(answer.text)
    except ValueError as error:
        return f"{way}: {said or error}"
    moved = run.write if way == "write" else run.read
    if run.error:
        return f"{way}: {said or f'fio tells of errno {run.error}'}"
    return run if moved.io_bytes else f"{way}: fio moved nothing"
