"""The one engine behind ``plan`` and ``drift``: a node and its reading in, judgements out.

Pure. It judges settings, never pyinfra's plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from railwright.component import Component, settings_of
from railwright.drivers import known_sets
from railwright.reading import Reading, Unread
from railwright.schema import Node
from railwright.settings import (
    Change,
    Effect,
    Setting,
    Standing,
    Verdict,
    changes,
    enforces,
    persists,
    verdict,
    verdict_of,
)


@dataclass(frozen=True)
class Finding:
    """One setting of one node: its verdict, what a run does to it, and what is left then."""

    setting: Setting
    verdict: Verdict
    changes: tuple[Change, ...]
    left: Verdict


@dataclass(frozen=True)
class HostReport:
    """All settings of one node; or, where it could not be read, the error and no finding.

    ``refused`` says why a run would not touch the node, ``warnings`` what nobody knows of its set
    of drivers.
    """

    host: str
    findings: tuple[Finding, ...] = ()
    error: str | None = None
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def judge(
    nodes: Iterable[Node], readings: Mapping[str, Reading], components: Sequence[Component]
) -> list[HostReport]:
    """The report on each of ``nodes``; one without a reading is an error, never without drift."""
    return [_judge(node, readings.get(node.name), components) for node in nodes]


def _judge(node: Node, reading: Reading | None, components: Sequence[Component]) -> HostReport:
    if reading is None:
        return HostReport(host=node.name, error="was not read")
    if isinstance(reading, Unread):
        return HostReport(host=node.name, error=reading.error)
    allowed = node.effects.allow
    found = (
        _finding(setting, allowed)
        for component in components
        for setting in settings_of(component, node, reading)
    )
    judged = known_sets.judgement(node, reading)
    return HostReport(
        host=node.name,
        findings=tuple(found),
        refused=judged.refused,
        warnings=judged.warnings,
    )


def _finding(setting: Setting, allowed: frozenset[Effect]) -> Finding:
    return Finding(
        setting=setting,
        verdict=verdict(setting, allowed),
        changes=tuple(changes(setting, allowed)),
        left=_left(setting, allowed),
    )


def _left(setting: Setting, allowed: frozenset[Effect]) -> Verdict:
    """The verdict after a run in which all that was announced comes true."""
    persisted = Standing.RIGHT if persists(setting) else setting.persisted.standing
    running = Standing.RIGHT if enforces(setting, allowed) else setting.running.standing
    return verdict_of(persisted, running, setting.effect in allowed)


def reason(setting: Setting, found: Verdict) -> str:
    """Why a setting has the verdict ``found``, and what a person can do; "" where it is plain."""
    parts = []
    persisted = setting.persisted
    if persisted.decider and persisted.standing not in (Standing.RIGHT, Standing.NOT_APPLICABLE):
        parts.append(f"decided by {persisted.decider}")
    if found is Verdict.PENDING:
        late = setting.running.standing is Standing.LATE
        parts.append(
            "comes with its module or service" if late else f"waits for {setting.effect.value}"
        )
    # Why a state does not apply is worth a word only where neither does.
    parts += dict.fromkeys(
        state.detail
        for state in (persisted, setting.running)
        if state.detail
        and (state.standing is not Standing.NOT_APPLICABLE or found is Verdict.NOT_APPLICABLE)
    )
    if setting.remedy:
        parts.append(setting.remedy)
    elif not setting.acts:
        parts.append("reported only, never acted on")
    return "; ".join(parts)
