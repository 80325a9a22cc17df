"""What a mount reached on one node, held against what is expected of it. Pure.

Nothing is ok that was not measured, or of which nothing is expected.
"""

from typing import Literal

from facts.fio import FioIo, FioRun
from railwright.model import Model
from railwright.storage.fio import Evidence, Look
from railwright.storage.sizes import Load, Target

Outcome = Literal["ok", "below", "not_judged", "not_measured"]

_GB = 1e9


class Figure(Model):
    """What one way reached in GB/s (10^9 bytes), and what is expected; None where nothing is."""

    gb_s: float
    expected: float | None
    outcome: Literal["ok", "below", "not_judged"]


class Result(Model):
    """The test of one mount on one node.

    ``reason`` is why there is no more than what is told. ``at_once`` nodes ran on it together,
    ``size_mib`` is what was written at most, ``how`` how. ``left`` stayed on the node.
    """

    host: str
    mount: str
    kind: str
    outcome: Outcome
    write: Figure | None = None
    read: Figure | None = None
    reason: str | None = None
    at_once: int = 1
    size_mib: int | None = None
    how: str | None = None
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def obstacle(target: Target, look: Look) -> str | None:
    """Why ``target`` cannot be tested on a node; None where it can."""
    entry = look.on(target.mount)
    expected = target.profile.file_systems
    if entry is None:
        return "not mounted"
    if expected and entry.fstype not in expected:
        return f"expected {' or '.join(sorted(expected))}, got {entry.fstype} ({entry.source})"
    if "ro" in entry.options:
        return "mounted read-only"
    place = look.places.get(target.directory)
    if place is None:
        return "does not answer (df)"
    if place.error is not None:
        return place.error
    if look.fio is None:
        return "fio is not installed (package fio)"
    return None


def not_measured(host: str, target: Target, why: str) -> Result:
    """A mount on which fio was not run, or nobody knows how it ended."""
    return Result(
        host=host, mount=target.mount, kind=target.kind, outcome="not_measured", reason=why
    )


def judge(host: str, target: Target, load: Load, at_once: int, seen: Evidence) -> Result:
    """The verdict on the test of ``target`` on ``host``."""
    write = _figure(seen.write, "write", target.expected.write_gb_s)
    read = _figure(seen.read, "read", target.expected.read_gb_s)
    outcome = _outcome(write, read)
    shared = target.profile.shared and at_once > 1
    notes = []
    if outcome == "below" and shared:
        notes.append(
            "several hosts ran at once, which the servers share: --serial tells them apart"
        )
    if "not_judged" in {figure.outcome for figure in (write, read) if figure}:
        ways = [way for way, one in (("write", write), ("read", read)) if _unjudged(one)]
        notes.append(f"nothing is expected of it: {', '.join(ways)} (expected in the inventory)")
    return Result(
        host=host,
        mount=target.mount,
        kind=target.kind,
        outcome=outcome,
        write=write,
        read=read,
        reason=_reason(load, seen),
        at_once=at_once,
        size_mib=load.size_mib,
        how=str(load),
        notes=tuple(notes),
        left=seen.left,
    )


def _unjudged(figure: Figure | None) -> bool:
    return figure is not None and figure.outcome == "not_judged"


def _figure(
    run: FioRun | None, way: Literal["write", "read"], expected: float | None
) -> Figure | None:
    if run is None:
        return None
    moved: FioIo = run.write if way == "write" else run.read
    reached = moved.bw_bytes / _GB
    if expected is None:
        return Figure(gb_s=reached, expected=None, outcome="not_judged")
    return Figure(gb_s=reached, expected=expected, outcome="ok" if reached >= expected else "below")


def _outcome(write: Figure | None, read: Figure | None) -> Outcome:
    if write is None or read is None:
        return "not_measured"
    outcomes = {write.outcome, read.outcome}
    if "below" in outcomes:
        return "below"
    return "ok" if "ok" in outcomes else "not_judged"


def _reason(load: Load, seen: Evidence) -> str | None:
    if seen.refuses_direct and load.direct:
        return (
            "direct IO is refused (EINVAL), and the page cache would be measured in its place: "
            "--buffered writes twice the memory"
        )
    return seen.failure
