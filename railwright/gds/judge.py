"""What a test of the direct path proved on one node, from all that it left. Pure.

Who counts what: nvidia-fs counts bytes, of all processes, and none of compatibility mode or P2PDMA
(GDS troubleshooting guide, GDS driver statistics). libcufile counts IO of its process, by way since
GDS 1.14, before that only what went through the host. So nvidia-fs is the proof of its own way, and
libcufile's counters that of P2PDMA. Where nobody counted, IO that succeeded under a cufile.json
that lets none through the host is a proof too. gdsio's ``XferType`` is none, nor is a silent log.
"""

from collections.abc import Iterator
from typing import Literal

from facts.nvidia_fs import IoCounters, NvidiaFsStats
from railwright.gds.choice import Mode, Reason, reasons_against
from railwright.gds.cufile import Cufile, Path
from railwright.gds.gdsio import Evidence, Look
from railwright.gds.jsonc import Json
from railwright.gds.meaning import GdsHost, findings
from railwright.gds.mounts import FILE_SYSTEMS, reason_against
from railwright.gds.proof import (
    IoDone,
    Proof,
    Way,
    by_cufile,
    by_log,
    by_nvidia_fs,
    done_by,
    ways_through_host,
)
from railwright.model import Model

Outcome = Literal["direct", "host", "failed", "not_proven"]
"""``host`` is that some of it went through the host, ``failed`` that gdsio could do no IO."""

_MIB = 1 << 20
_FOREIGN_MIB = 64
"""Growth beyond the test's own IO that is another process' for sure: gdsio may leave IO that is on
its way at the end out of its account, one per thread of 1 MiB, and libcufile cuts it in chunks."""

# The lines of gdscheck that are about a file system; the others of storages are not.
_ROWS = {
    "ext4": ("NVMe", "NVMe P2PDMA"),
    "xfs": ("NVMe", "NVMe P2PDMA"),
    "nfs": ("NFS",),
    "nfs4": ("NFS",),
    "lustre": ("DDN EXAScaler", "FSx Lustre"),
    "beegfs": ("BeeGFS",),
    "wekafs": ("WekaFS", "Userspace RDMA", "rdma devices"),
    "gpfs": ("IBM Spectrum Scale", "Userspace RDMA", "rdma devices"),
}
_OVER_FABRICS = ("NVMeOF",)
_SECTIONS = {"wekafs": "weka", "nfs4": "nfs"}
"""What cufile.json calls a file system, where that is another name."""


class Rate(Model):
    """What gdsio measured, in GiB/s; with one thread, so no benchmark."""

    write: float | None = None
    read: float | None = None


class Trial(Model):
    """The test of one node. ``shows`` is the evidence that decided.

    ``unseen_bytes`` were moved and not seen by nvidia-fs, None where its counters are not known or
    the way is one that it never sees. ``left`` is what the test could not put back.
    """

    host: str
    outcome: Outcome
    way: Way
    shows: str
    file_system: str = ""
    config: str = ""
    done: IoDone = IoDone()
    unseen_bytes: int | None = None
    rate: Rate = Rate()
    causes: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def not_tested(host: str, why: str, look: Look | None = None) -> Trial:
    """A node on which gdsio was not run."""
    return Trial(
        host=host,
        outcome="not_proven",
        way="unknown",
        shows=why,
        file_system=look.file_system if look else "",
        config=look.config if look else "",
        notes=look.notes if look else (),
    )


def judge(host: str, look: Look, seen: Evidence) -> Trial:
    """The verdict on the test of ``host``."""
    done = done_by(seen.runs)
    proof = _failed(seen) or _proof(look, seen, done)
    outcome = _outcome(proof, seen)
    rates = {run.direction: run.gib_per_s for run in seen.runs}
    return Trial(
        host=host,
        outcome=outcome,
        way=proof.way,
        shows=proof.shows,
        file_system=look.file_system,
        config=look.config,
        done=done,
        unseen_bytes=_unseen(seen, done) if proof.way not in ("p2pdma", "direct") else None,
        rate=Rate(**rates),
        causes=() if outcome == "direct" else tuple(_causes(look, seen)),
        notes=(*look.notes, *seen.faults),
        left=seen.left,
    )


def _failed(seen: Evidence) -> Proof | None:
    """What keeps the test from proving anything, whatever was counted."""
    if seen.failure is not None:
        return Proof(way="unknown", shows=seen.failure)
    missing = {"write", "read"} - {run.direction for run in seen.runs}
    if missing:
        return Proof(way="unknown", shows=f"gdsio has no result of a {min(missing)}")
    return None


def _outcome(proof: Proof, seen: Evidence) -> Outcome:
    if seen.failure is not None:
        return "failed"
    outcomes: dict[Way, Outcome] = {"host": "host", "both": "host", "unknown": "not_proven"}
    return outcomes.get(proof.way, "direct")


def _proof(look: Look, seen: Evidence, done: IoDone) -> Proof:
    kernel = _by_kernel(seen, done)
    library = by_cufile(seen.stats) if seen.stats is not None else None
    if library is not None and library.way in ("host", "both", "p2pdma"):
        return library
    if kernel.way == "nvidia-fs":
        return kernel
    if library is not None and library.way in ("nvidia-fs", "direct"):
        return _library_alone(look, library, kernel)
    if seen.log is not None and seen.log.compat:
        return by_log(seen.log, None)
    if kernel.way == "unknown" or _asks_p2pdma(look):
        return _by_configuration(look, kernel)
    return kernel


def _by_kernel(seen: Evidence, done: IoDone) -> Proof:
    """What nvidia-fs counted, where it can have been of the test alone."""
    if seen.before is None or seen.after is None:
        return Proof(way="unknown", shows="the counters of nvidia-fs could not be read")
    proof = by_nvidia_fs(seen.before, seen.after, done)
    if proof.way != "nvidia-fs":
        # What others did can only have added to it.
        return proof
    processes = (seen.before.processes, seen.after.processes)
    if any(processes) or None in processes:
        others = max(number or 0 for number in processes) or "maybe"
        told = f"{others} other processes use nvidia-fs, and its counters are of all of them"
        return Proof(way="unknown", shows=told)
    if _grown(seen.before, seen.after) > (done.read + done.written) // _MIB + _FOREIGN_MIB:
        told = "nvidia-fs moved more than the test did: another process used it meanwhile"
        return Proof(way="unknown", shows=told)
    return proof


def _library_alone(look: Look, library: Proof, kernel: Proof) -> Proof:
    """libcufile says that nothing went through the host, and nvidia-fs does not say the same."""
    if kernel.way in ("host", "both") and not (
        library.way == "direct" and kernel.way == "host" and _asks_p2pdma(look)
    ):
        told = f"libcufile and nvidia-fs contradict: {library.shows}; {kernel.shows}"
        return Proof(way="unknown", shows=told)
    return library


def _by_configuration(look: Look, kernel: Proof) -> Proof:
    """The proof without counters: IO succeeded, and no other way was open to it."""
    if not _readable(look):
        return Proof(way="unknown", shows=f"{kernel.shows}; {look.config} cannot be read")
    if kernel.way == "both":
        return kernel
    ways = _ways(look)
    if ways:
        told = f"{kernel.shows}; libcufile counted nothing; {look.config} lets IO through the host"
        return Proof(way="unknown", shows=f"{told}: {', '.join(ways)}")
    if look.variables:
        told = f"{kernel.shows}; libcufile counted nothing; {look.variables[0]} may decide"
        return Proof(way="unknown", shows=told)
    way: Way = "p2pdma" if _asks_p2pdma(look) else "direct"
    return Proof(way=way, shows=f"IO succeeded, and {look.config} lets none through the host")


def _cufile(look: Look) -> Cufile | None:
    """The file in force; None where nobody can read it."""
    try:
        return None if look.config_error else Cufile(look.text if look.text is not None else "{}")
    except ValueError:
        return None


def _readable(look: Look) -> bool:
    return _cufile(look) is not None


def _ways(look: Look) -> list[str]:
    """Keys by which the file in force lets IO through the host, none where it cannot be read."""
    file = _cufile(look)
    if file is None:
        return []

    def value_at(path: Path) -> Json:
        found = file.find(path)
        return found.value if found else None

    return list(ways_through_host(value_at, _SECTIONS.get(look.file_system, look.file_system)))


def _asks_p2pdma(look: Look) -> bool:
    file = _cufile(look)
    found = file.find(("properties", "use_pci_p2pdma")) if file is not None else None
    return found is not None and found.value is True


def _unseen(seen: Evidence, done: IoDone) -> int | None:
    """Bytes that nvidia-fs did not count; below a MiB it cannot tell, and nor can this."""
    if seen.before is None or seen.after is None:
        return None
    if not (seen.before.loaded and seen.after.loaded):
        return done.read + done.written
    pairs = (
        (done.read, seen.before.reads, seen.after.reads),
        (done.written, seen.before.writes, seen.after.writes),
    )
    missed = 0
    for moved, first, last in pairs:
        grown = _mib(first, last)
        if grown is None:
            return None
        # Off by up to a MiB, as in railwright.gds.proof.
        gap = moved - grown * _MIB
        missed += gap if gap >= 2 * _MIB else 0
    return missed


def _mib(first: IoCounters | None, last: IoCounters | None) -> int | None:
    if first is None or last is None or first.mib is None or last.mib is None:
        return None
    return max(0, last.mib - first.mib)


def _grown(before: NvidiaFsStats, after: NvidiaFsStats) -> int:
    return sum(
        _mib(first, last) or 0
        for first, last in ((before.reads, after.reads), (before.writes, after.writes))
    )


def _causes(look: Look, seen: Evidence) -> Iterator[Reason]:
    """Why IO may have gone through the host: what is said of this file first, then of the node."""
    if seen.log is not None:
        log = "cufile.log of the test"
        for device in seen.log.unsupported:
            yield Reason(text=f"libcufile cannot use the block device {device}", source=log)
        for line in seen.log.errors[:3]:
            yield Reason(text=f"{line.place}: {line.text}", source=log)
    if look.file_system not in FILE_SYSTEMS:
        known = ", ".join(sorted(FILE_SYSTEMS))
        yield Reason(
            text=f"{look.file_system or 'the file system'} is none that libcufile knows",
            source=f"GDS overview guide: {known}",
        )
    elif look.mount is not None and (reason := reason_against(look.mount)):
        yield reason
    mode: Mode = "p2pdma" if _asks_p2pdma(look) else "nvidia-fs"
    yield from reasons_against(mode, look.platform, look.storage)
    yield from _gdscheck(look)


def _gdscheck(look: Look) -> Iterator[Reason]:
    """The bad lines of gdscheck, those of other storages left out."""
    if look.check is None:
        return
    users = look.platform.nvidia_fs_users
    host = GdsHost(
        registered=None if users is None else dict.fromkeys(users, ""),
        virtual=look.platform.virtual or None,
    )
    wanted = _ROWS.get(look.file_system, ()) + (_OVER_FABRICS if look.storage.fabrics else ())
    storages = {*look.check.storages, *(row for rows in _ROWS.values() for row in rows)}
    for one in findings(look.check, host):
        if one.subject in wanted or one.subject not in storages:
            text = f"gdscheck: {one.line}: {one.cause}"
            yield Reason(text=text, source=one.source, remedy=one.remedy)
