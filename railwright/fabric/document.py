"""What the tests and the counters of a fabric said, as data: what ``--format json`` prints."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from railwright.fabric.ends import NoEnd
from railwright.fabric.judge import Trial, Verdict
from railwright.fabric.meaning import Kind, meaning_of
from railwright.fabric.run import Step
from railwright.fabric.window import PRIORITIES, Window
from railwright.model import Model

ExitCode = Literal[0, 1, 2]


class RailSummary(Model):
    """All tests of one rail."""

    rail: int
    tests: int
    fine: int
    failed: int
    unknown: int = Field(description="Tests that could not be judged.")
    least_gbps: float | None
    most_gbps: float | None
    share_percent: dict[int, float] = Field(
        description="Priority to its share of the bytes that all nodes sent and received."
    )
    moved: dict[str, int] = Field(
        description="Growth of the other counters, of all nodes together, the still ones left out."
    )


class NotRun(Model):
    """Tests of one round that were planned and did not come to their end: the run was stopped.

    Each of ``pairs`` is the host that would have sent, and the other.
    """

    rail: int
    round: int
    pairs: tuple[tuple[str, str], ...]


class FabricReport(Model):
    """What ``railwright fabric test`` found. Exit code: 1 not all could be judged, 2 findings."""

    format: Literal[1] = 1
    command: Literal["fabric test"] = "fabric test"
    exit_code: ExitCode
    hosts: int
    unread: dict[str, str] = Field(description="Nodes that could not be read, and why.")
    untested: tuple[NoEnd, ...] = Field(description="Rails that could not be tested, and why.")
    not_run: tuple[NotRun, ...] = Field(description="Tests left out, as the run was stopped.")
    rails: tuple[RailSummary, ...]
    trials: tuple[Trial, ...]


def fabric_report(
    hosts: int,
    unread: Mapping[str, str],
    untested: Sequence[NoEnd],
    trials: Sequence[Trial],
    planned: Sequence[Step] = (),
) -> FabricReport:
    """The report on ``trials``; a run in which nothing was tested has proved nothing.

    What of ``planned`` is not among them was not run.
    """
    not_run = tuple(_not_run(planned, trials))
    verdicts = {trial.verdict for trial in trials}
    code: ExitCode = 0
    if untested or Verdict.FAILED in verdicts:
        code = 2
    if unread or not_run or not trials or Verdict.UNKNOWN in verdicts:
        code = 1
    return FabricReport(
        exit_code=code,
        hosts=hosts,
        unread=dict(unread),
        untested=tuple(untested),
        not_run=not_run,
        rails=tuple(
            _summary(rail, [trial for trial in trials if trial.rail == rail])
            for rail in sorted({trial.rail for trial in trials})
        ),
        trials=tuple(trials),
    )


def _not_run(planned: Sequence[Step], trials: Sequence[Trial]) -> Iterator[NotRun]:
    done = {(trial.rail, trial.round, trial.client, trial.server) for trial in trials}
    for step in planned:
        pairs = tuple((client.host, server.host) for client, server in step.pairs)
        left = tuple(pair for pair in pairs if (step.rail, step.round, *pair) not in done)
        if left:
            yield NotRun(rail=step.rail, round=step.round, pairs=left)


def _summary(rail: int, trials: Sequence[Trial]) -> RailSummary:
    verdicts = Counter(trial.verdict for trial in trials)
    measured = [trial.gbps for trial in trials if trial.gbps is not None]
    moved: Counter[str] = Counter()
    for trial in trials:
        for values in trial.moved.values():
            moved.update(values)
    return RailSummary(
        rail=rail,
        tests=len(trials),
        fine=verdicts[Verdict.FINE],
        failed=verdicts[Verdict.FAILED],
        unknown=verdicts[Verdict.UNKNOWN],
        least_gbps=min(measured, default=None),
        most_gbps=max(measured, default=None),
        share_percent=shares(moved),
        moved=_untraffic(moved),
    )


def shares(values: Mapping[str, int]) -> dict[int, float]:
    """Each priority's part of the bytes, in percent; those without any left out."""
    by_priority = {
        priority: sum(values.get(f"{way}_prio{priority}_bytes", 0) for way in ("tx", "rx"))
        for priority in PRIORITIES
    }
    total = sum(by_priority.values())
    return {n: round(100 * value / total, 4) for n, value in by_priority.items() if value}


def _untraffic(values: Mapping[str, int]) -> dict[str, int]:
    kinds = {name: meaning.kind for name in values if (meaning := meaning_of(name))}
    return {name: values[name] for name in sorted(kinds) if kinds[name] is not Kind.TRAFFIC}


class RailCounters(Model):
    """One rail of one node over a window. Rates are per second, of what is known."""

    host: str
    rail: int
    seconds: float
    tx_gbps: float | None
    rx_gbps: float | None
    share_percent: dict[int, float]
    moved: dict[str, int] = Field(description="Growth of counters that say something, but traffic.")
    failing: dict[str, int] = Field(description="Those of them that may not grow.")
    unknown: tuple[str, ...] = Field(description="Counters that were reset, or are gone.")
    errors: tuple[str, ...] = Field(description="Why a port told nothing.")


class CountersReport(Model):
    """What ``railwright fabric counters`` found; exit codes as of ``fabric test``."""

    format: Literal[1] = 1
    command: Literal["fabric counters"] = "fabric counters"
    exit_code: ExitCode
    unread: dict[str, str] = Field(description="Nodes that could not be read, and why.")
    rails: tuple[RailCounters, ...]


def counters_report(
    unread: Mapping[str, str], windows: Iterable[tuple[Window, int | None]]
) -> CountersReport:
    """The report on ``windows``, each with the priority that may not drop (None: InfiniBand)."""
    rails = tuple(_counters(found, lossless) for found, lossless in windows)
    code: ExitCode = 2 if any(rail.failing for rail in rails) else 0
    if unread or not rails or any(rail.unknown or rail.errors for rail in rails):
        code = 1
    return CountersReport(exit_code=code, unread=dict(unread), rails=rails)


def _counters(found: Window, lossless: int | None) -> RailCounters:
    rates = {way: found.bits_per_second(way) for way in ("tx", "rx")}
    gbps = {way: None if rate is None else rate / 1e9 for way, rate in rates.items()}
    moved = found.moved()
    return RailCounters(
        host=found.host,
        rail=found.rail,
        seconds=found.seconds,
        tx_gbps=gbps["tx"],
        rx_gbps=gbps["rx"],
        share_percent=shares(moved),
        moved=_untraffic(moved),
        failing=found.failing(lossless),
        unknown=tuple(sorted(found.unknown)),
        errors=found.errors,
    )
