"""The report as data: what ``--format json`` prints, and what the other forms are made of.

Its shape is stable within one ``format``; its JSON Schema is
``railwright.report.document.Report.model_json_schema()``.
"""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import Literal

from pydantic import Field

from railwright.drift import Finding, HostReport, reason
from railwright.model import Model
from railwright.settings import Change, Effect, State, Verdict, is_drift


class Outcome(str, Enum):
    """What a verdict means for the exit code."""

    FINE = "fine"
    DRIFT = "drift"
    PENDING = "pending"
    ERROR = "error"


def outcome(verdict: Verdict) -> Outcome:
    """What cannot be read is an error: it says nothing about drift, and outranks it."""
    if verdict in (Verdict.OK, Verdict.NOT_APPLICABLE):
        return Outcome.FINE
    if verdict is Verdict.UNREADABLE:
        return Outcome.ERROR
    return Outcome.PENDING if verdict is Verdict.PENDING else Outcome.DRIFT


class Entry(Model):
    """A setting that is not ``ok``."""

    component: str
    key: str
    verdict: Verdict
    outcome: Outcome
    desired: str
    persisted: State
    running: State
    effect: Effect = Field(description="What it takes to bring it into force.")
    changes: tuple[Change, ...] = Field(description="What a run does to it.")
    left: Verdict = Field(description="The verdict after such a run.")
    reason: str = Field(description="Why, and what a person can do; empty where it is plain.")
    why: str | None = Field(description="Reason and source of the desired value.")


class HostEntry(Model):
    """A node: its settings that are not ``ok``, and how many were looked at."""

    host: str
    error: str | None = Field(description="Why the node could not be read; null where it was.")
    refused: tuple[str, ...] = Field(description="Why a run would not touch the node.")
    warnings: tuple[str, ...] = Field(description="What nobody knows of its set of drivers.")
    settings: int = Field(description="Settings looked at.")
    ok: int = Field(description="Settings with the verdict ok.")
    findings: tuple[Entry, ...] = Field(description="The settings that are not ok.")


class Summary(Model):
    """Counts over all nodes."""

    hosts: int
    unread: tuple[str, ...] = Field(description="Nodes that could not be read.")
    refused: tuple[str, ...] = Field(description="Nodes that a run would not touch.")
    settings: int
    ok: int
    not_applicable: int
    drift: int = Field(description="Settings that are drift, pending ones left aside.")
    pending: int = Field(description="Settings that wait for an effect that is not allowed.")
    unreadable: int = Field(description="Settings that could not be read.")
    changes: int = Field(description="What a run would change.")


class Report(Model):
    """What ``railwright plan`` and ``railwright drift`` found."""

    format: Literal[1] = 1
    command: Literal["plan", "drift"]
    accept_pending: bool
    exit_code: Literal[0, 1, 2]
    summary: Summary
    hosts: tuple[HostEntry, ...]


def document(
    command: Literal["plan", "drift"], reports: Iterable[HostReport], *, accept_pending: bool
) -> Report:
    """The report of ``command`` on the hosts of ``reports``."""
    hosts = tuple(reports)
    summary = _summary(hosts)
    return Report(
        command=command,
        accept_pending=accept_pending,
        exit_code=_exit_code(command, summary, accept_pending),
        summary=summary,
        hosts=tuple(_host(report) for report in hosts),
    )


def _exit_code(
    command: Literal["plan", "drift"], summary: Summary, accept_pending: bool
) -> Literal[0, 1, 2]:
    """1 error, which outranks 2 drift; a plan is no check and knows no drift.

    A plan that a run would refuse is no plan; for drift it is one more thing that is not right.
    """
    if summary.unread or summary.unreadable:
        return 1
    if command == "plan":
        return 1 if summary.refused else 0
    waits = summary.pending and not accept_pending
    return 2 if summary.drift or summary.refused or waits else 0


def _summary(reports: Iterable[HostReport]) -> Summary:
    hosts = tuple(reports)
    findings = [finding for report in hosts for finding in report.findings]
    verdicts = Counter(finding.verdict for finding in findings)
    outcomes = Counter(outcome(finding.verdict) for finding in findings)
    return Summary(
        hosts=len(hosts),
        unread=tuple(report.host for report in hosts if report.error is not None),
        refused=tuple(report.host for report in hosts if report.refused),
        settings=len(findings),
        ok=verdicts[Verdict.OK],
        not_applicable=verdicts[Verdict.NOT_APPLICABLE],
        drift=outcomes[Outcome.DRIFT],
        pending=outcomes[Outcome.PENDING],
        unreadable=outcomes[Outcome.ERROR],
        changes=sum(len(finding.changes) for finding in findings),
    )


def _host(report: HostReport) -> HostEntry:
    notable = tuple(f for f in report.findings if f.verdict is not Verdict.OK)
    return HostEntry(
        host=report.host,
        error=report.error,
        refused=report.refused,
        warnings=report.warnings,
        settings=len(report.findings),
        ok=len(report.findings) - len(notable),
        findings=tuple(_entry(finding) for finding in notable),
    )


def _entry(finding: Finding) -> Entry:
    setting = finding.setting
    return Entry(
        component=setting.component,
        key=setting.key,
        verdict=finding.verdict,
        outcome=outcome(finding.verdict),
        desired=setting.desired,
        persisted=setting.persisted,
        running=setting.running,
        effect=setting.effect,
        changes=finding.changes,
        left=finding.left,
        reason=reason(setting, finding.left if is_drift(finding.left) else finding.verdict),
        why=setting.why,
    )
