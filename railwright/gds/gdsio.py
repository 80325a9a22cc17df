"""gdsio of GPUDirect Storage on a node: what is asked before it, how it is run, what comes back.

Options and output: NVIDIA GDS benchmarking and configuration guide, gdsio utility; those that are
used here are in 1.1 (GDS 1.0) and 1.12 (CUDA 12.8) alike.

What has to be proven is that the node's own configuration does not fall back. A cufile.json of ours
with ``allow_compat_mode`` false would prove another thing: there IO fails where it would have been
copied by the CPU. So gdsio gets the file that is in force on the node, with one value changed that
decides about no IO: ``profile.cufile_stats`` is 3, as libcufile else counts nothing, and in P2PDMA
mode nobody else does. Its log goes to a place of its own by ``CUFILE_LOGFILE_PATH``, which comes
before all of the file. Sources: GDS benchmarking guide, gds_stats; GDS configuration guide.
"""

import base64
import binascii
import shlex
from collections.abc import Iterator
from importlib.resources import files as resources
from typing import Literal

from facts.answers import Answer
from facts.cufile_log import CufileLog, parse_cufile_log
from facts.gds_config import CUFILE, ENVIRONMENT, PLATFORM, VARIABLE, read_overrides, read_platform
from facts.gds_mounts import MOUNTS, parse_mounts
from facts.gdscheck import GdsCheck, parse_gdscheck
from facts.nvidia_fs import PROC, NvidiaFsStats, parse_stats
from facts.probe import Section
from railwright.attend import ASKER, TELL, answers_of, last_words, left_by
from railwright.gds.choice import Platform, Storage
from railwright.gds.cufile import Cufile
from railwright.gds.mounts import Mount
from railwright.gds.proof import GdsioRun, GpuIo, parse_gdsio, parse_gpu_stats
from railwright.model import Model
from railwright.snapshot import Section as Said
from railwright.snapshot import Snapshot

TOOLS = ("/usr/local/cuda/gds/tools", "/usr/local/cuda-*/gds/tools", "/usr/libexec/gds/tools")
"""Where gdsio may be, the first one counts: NVIDIA's packages, and Debian's nvidia-gds."""
STATS = f"{PROC}/stats"
SWITCH = "/sys/module/nvidia_fs/parameters/rw_stats_enabled"
"""0 where nvidia-fs counts no IO, the default. Source: nvfs-mod.c of gds-nvidia-fs."""

MOST_MIB, LEAST_MIB = 1024, 16
"""Size of the test's file in MiB. nvidia-fs counts in whole MiB, so a small file proves little."""
SHARE = 10
"""At most one part in so many of what is free is written."""
WRITE_S = 180
"""Seconds for the write: 1 GiB at 10 MiB/s, and a minute for CUDA to see to eight GPUs."""
_SETTING_UP_S = 60
_SLACK_S = 60
_STATS_LEVEL = ("profile", "cufile_stats")

PLACE, IN_FORCE, CHECK, TEST = "gds_place", "gds_in_force", "gds_check", "gds_test"


class Where(Model):
    """Where the test's file goes: into ``directory``, or to ``file``, which must not be there."""

    directory: str
    file: str | None = None


class Look(Model):
    """What a node is before the test. ``tools`` is where gdsio is, None where it is not.

    ``free_mib`` is what a user may write. ``config`` is the path of the cufile.json that a process
    takes, ``text`` what is in it (None: nothing is there, or ``config_error`` says why it could not
    be read). ``variables`` of libcufile are set in the environment of the test, and override the
    file; ``notes`` tell what takes other processes to another one.
    """

    tools: str | None
    file_system: str
    mount: Mount | None
    free_mib: int
    config: str
    text: str | None = None
    config_error: str | None = None
    check: GdsCheck | None = None
    platform: Platform
    storage: Storage
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Evidence(Model):
    """What is left of a test; of each None, or nothing, where the node did not tell it.

    ``runs`` are what gdsio did, ``failure`` why it came to no result. ``faults`` tell what of the
    answer could not be read, ``left`` what the node has not been rid of.
    """

    before: NvidiaFsStats | None = None
    after: NvidiaFsStats | None = None
    runs: tuple[GdsioRun, ...] = ()
    failure: str | None = None
    log: CufileLog | None = None
    stats: tuple[GpuIo, ...] | None = None
    faults: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def look_sections(where: Where) -> tuple[Section, ...]:
    """What is asked of a node before it is tested. Nothing stays on it."""
    # They are asked for whatever the node's description has of drivers.
    everywhere = {"for_drivers": False}
    return (
        Section(name=PLACE, script=_place(where), deadline_s=30),
        Section(
            name=IN_FORCE,
            script=f"config=${{{VARIABLE}:-{CUFILE}}}\n"
            '[ -e "$config" ] || return 66\nbase64 <"$config"',
        ),
        Section(name=CHECK, script=_gdscheck(), deadline_s=90),
        *(part.model_copy(update=everywhere) for part in (MOUNTS, ENVIRONMENT, PLATFORM)),
    )


def _place(where: Where) -> str:
    return f"""
{_find()}
echo "tools=$tools"
echo "config=${{{VARIABLE}:-{CUFILE}}}"
env | sed -n 's/^\\(CUFILE_[A-Z0-9_]*\\)=.*/set \\1/p'
directory={shlex.quote(where.directory)}
[ -d "$directory" ] || {{ echo "$directory is no directory" >&2; return 66; }}
for what in fstype target avail; do
    echo "$what=$(df -B1 --output="$what" -- "$directory" | sed -n 2p)"
done
"""


def _find() -> str:
    return f"""tools=
for one in {" ".join(TOOLS)}; do
    [ -n "$tools" ] || [ ! -x "$one/gdsio" ] || tools=$one
done"""


def _gdscheck() -> str:
    # libcufile would leave a cufile.log in the working directory.
    return f"""
{_find()}
set -- "$tools/gdscheck" "$tools/gdscheck.py"
[ -x "$1" ] || shift
[ -n "$tools" ] && [ -x "$1" ] || return 127
CUFILE_LOGFILE_PATH=/dev/null timeout 60 "$1" -p 2>&1
"""


def size_mib(look: Look) -> int:
    """How long the file may be. Raises ValueError where there is no room for one."""
    size = min(MOST_MIB, look.free_mib // SHARE)
    if size < LEAST_MIB:
        raise ValueError(f"expected {LEAST_MIB * SHARE} MiB free at least, got {look.free_mib} MiB")
    return size


def run_section(where: Where, look: Look, gpu: int, seconds: int) -> Section:
    """Writes a file, reads it for ``seconds``, and puts back what it changed.

    Raises ValueError where there is no gdsio, or no room.
    """
    if look.tools is None:
        raise ValueError(f"gdsio is not installed (gds-tools of CUDA; looked in {TOOLS[0]})")
    values = {
        "tools": look.tools,
        "directory": "" if where.file else where.directory,
        "file": where.file or "",
        "gpu": str(gpu),
        "size_mib": str(size_mib(look)),
        "seconds": str(seconds),
        "write_s": str(WRITE_S),
        "config": base64.b64encode((counting(look) or "").encode()).decode("ascii"),
        "stats": STATS,
        "switch": SWITCH,
    }
    head = "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
    body = (resources("railwright.gds") / "gdsio.sh").read_text(encoding="ascii")
    return Section(
        name=TEST,
        script=f"{ASKER}{TELL}\n{head}\n{body}",
        deadline_s=WRITE_S + seconds + _SETTING_UP_S + _SLACK_S,
    )


def counting(look: Look) -> str | None:
    """The file in force with libcufile's counters on; None where it is taken as it is.

    So it is where it has them on already, and where it is a file that nobody can read: then
    libcufile refuses it too, which is what there is to be shown.
    """
    if look.config_error is not None:
        return None
    try:
        file = Cufile(look.text if look.text is not None else "{}\n")
        return None if _level(file) == 3 else file.set(_STATS_LEVEL, 3).text
    except ValueError:
        return None


def _level(file: Cufile) -> object:
    found = file.find(_STATS_LEVEL)
    return found.value if found else None


def read_look(snapshot: Snapshot) -> Look:
    """What a node told before the test. Raises ValueError where that cannot be read."""
    place = snapshot.section(PLACE)
    if place.complete and place.rc != 0:
        raise ValueError(place.stderr or f"section {PLACE}: exit {place.rc}")
    facts = snapshot.facts(PLACE)
    free = facts.get("avail", "").strip()
    if not free.isdecimal():
        raise ValueError(f"expected what is free in bytes, got {free[:40]!r}")
    platform, storage = read_platform(snapshot)
    others = [one for one in read_overrides(snapshot) if one.path != facts.get("config")]
    text, error = _config(snapshot.section(IN_FORCE))
    mounts = {mount.target: mount for mount in parse_mounts(snapshot.text(MOUNTS.name))}
    return Look(
        tools=facts.get("tools") or None,
        file_system=facts.get("fstype", "").strip(),
        mount=mounts.get(facts.get("target", "")),
        free_mib=int(free) >> 20,
        config=facts.get("config", CUFILE),
        text=text,
        config_error=error,
        check=_check(snapshot.section(CHECK)),
        platform=platform,
        storage=storage,
        variables=tuple(_variables(snapshot)),
        notes=tuple(f"{one.decider} takes other processes to {one.path}" for one in others),
    )


def _config(said: Said) -> tuple[str | None, str | None]:
    """The text of the file in force, and what is wrong with it."""
    if said.rc == 66:
        return None, None
    if said.rc != 0:
        return None, said.stderr or f"exit {said.rc}"
    try:
        return base64.b64decode("".join(said.stdout.split()), validate=True).decode(), None
    except (binascii.Error, UnicodeDecodeError) as error:
        return None, str(error)


def _check(said: Said) -> GdsCheck | None:
    """The report, None where there is none that can be read: it explains, it proves nothing."""
    if said.rc is None:
        return None
    try:
        return parse_gdscheck(said.stdout, said.rc)
    except ValueError:
        return None


def _variables(snapshot: Snapshot) -> Iterator[str]:
    for line in snapshot.text(PLACE).splitlines():
        name = line.removeprefix("set ")
        # The file is looked at itself, and the log is sent elsewhere.
        if line != name and name not in (VARIABLE, *_OF_LOG):
            yield name


_OF_LOG = ("CUFILE_LOGFILE_PATH", "CUFILE_LOGGING_LEVEL", "CUFILE_LOGFILE_MAX_SIZE_MB")


def read_evidence(snapshot: Snapshot) -> Evidence:
    """What a test left. Raises ValueError where it was not run, or its answer breaks off."""
    told = answers_of(snapshot, TEST)
    faults: list[str] = []
    runs, failure = _runs(told)
    return Evidence(
        before=_counters(told, "before", faults),
        after=_counters(told, "after", faults),
        runs=runs,
        failure=failure,
        log=_log(told, faults),
        stats=_stats(told, faults),
        faults=tuple(faults),
        left=left_by(told),
    )


_Step = Literal["write", "read"]
_STEPS: tuple[_Step, ...] = ("write", "read")
_TIMED_OUT = (124, 137)


def _runs(told: dict[str, Answer]) -> tuple[tuple[GdsioRun, ...], str | None]:
    found: list[GdsioRun] = []
    for step in _STEPS:
        answer = told.get(step)
        if answer is None:
            return tuple(found), f"{step}: gdsio was not run"
        if answer.rc in _TIMED_OUT:
            return tuple(found), f"{step}: gdsio came to no end in time"
        if answer.rc != 0:
            return tuple(found), f"{step}: {last_words(answer.text) or f'exit {answer.rc}'}"
        try:
            runs = parse_gdsio(answer.text)
        except ValueError as error:
            return tuple(found), f"{step}: {last_words(answer.text) or error}"
        found += [run for run in runs if run.direction == step]
    return tuple(found), None


def _counters(told: dict[str, Answer], name: str, faults: list[str]) -> NvidiaFsStats | None:
    if name not in told:
        return None
    try:
        return parse_stats(told[name].text, told[name].rc)
    except ValueError as error:
        faults.append(str(error))
        return None


def _log(told: dict[str, Answer], faults: list[str]) -> CufileLog | None:
    """Both steps' lines as one log: they have a configuration and a file in common."""
    text = "\n".join(told[f"{step}.log"].text for step in _STEPS if f"{step}.log" in told)
    if not text.strip():
        return None
    try:
        return parse_cufile_log(text)
    except ValueError as error:
        faults.append(str(error))
        return None


def _stats(told: dict[str, Answer], faults: list[str]) -> tuple[GpuIo, ...] | None:
    """What libcufile counted in both steps; None where it did not tell it of each.

    The end of the log has all, a reading by gds_stats what was done until then.
    """
    found: list[GpuIo] = []
    for step in _STEPS:
        of_step = None
        for name in (f"{step}.log", f"{step}.stats"):
            # Without counters there is no such line, which is no fault.
            if of_step is None and name in told and "Read: bw=" in told[name].text:
                try:
                    of_step = parse_gpu_stats(told[name].text)
                except ValueError as error:
                    faults.append(f"{name}: {error}")
        if not of_step:
            return None
        found += of_step
    return tuple(found)
