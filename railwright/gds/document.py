"""What the tests of the direct path said, as data: what ``--format json`` prints."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from railwright.gds.judge import Trial
from railwright.model import Model


class GdsReport(Model):
    """What ``railwright gds test`` found.

    Exit code: 1 where a node was not proven either way, or something was left on it; 2 where IO
    went through the host, or failed.
    """

    format: Literal[1] = 1
    command: Literal["gds test"] = "gds test"
    exit_code: Literal[0, 1, 2]
    hosts: int
    unread: dict[str, str] = Field(description="Nodes that could not be read, and why.")
    not_run: tuple[str, ...] = Field(description="Nodes left out, as the run was stopped.")
    trials: tuple[Trial, ...]


def gds_report(
    hosts: Sequence[str], unread: Mapping[str, str], trials: Sequence[Trial]
) -> GdsReport:
    """The report on ``trials``; what of ``hosts`` is neither unread nor tested was not run."""
    tested = {trial.host for trial in trials}
    not_run = tuple(host for host in hosts if host not in tested and host not in unread)
    outcomes = {trial.outcome for trial in trials}
    code: Literal[0, 1, 2] = 2 if outcomes & {"host", "failed"} else 0
    left = any(trial.left for trial in trials)
    if unread or not_run or left or not trials or "not_proven" in outcomes:
        code = 1
    return GdsReport(
        exit_code=code,
        hosts=len(hosts),
        unread=dict(unread),
        not_run=not_run,
        trials=tuple(trials),
    )
