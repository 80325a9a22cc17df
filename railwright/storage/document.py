"""What the tests of mounts said, as data: what ``--format json`` prints."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from railwright.gds.judge import Trial
from railwright.model import Model
from railwright.storage.judge import Result


class GpuTrial(Model):
    """gdsio on one mount of one node; it counts where the node is asked for GPUDirect Storage."""

    mount: str
    counts: bool
    trial: Trial


class NotRun(Model):
    """A test that the run did not come to."""

    host: str
    mount: str


class StorageReport(Model):
    """What ``railwright storage test`` found.

    Exit code: 1 where something was not measured, or was left on a node; 2 where a mount is below
    what is expected of it. What is not judged is neither.
    """

    format: Literal[1] = 1
    command: Literal["storage test"] = "storage test"
    exit_code: Literal[0, 1, 2]
    hosts: int
    unread: dict[str, str] = Field(description="Nodes that could not be read, and why.")
    not_run: tuple[NotRun, ...] = Field(description="Tests left out, as the run was stopped.")
    results: tuple[Result, ...]
    gpu: tuple[GpuTrial, ...] = Field(description="The same from GPUs, by gdsio.")


def storage_report(
    asked: Sequence[tuple[str, str]],
    unread: Mapping[str, str],
    results: Sequence[Result],
    gpu: Sequence[GpuTrial],
) -> StorageReport:
    """The report on ``results``; ``asked`` are host and mount of all tests there were to be."""
    done = {(one.host, one.mount) for one in results}
    not_run = tuple(
        NotRun(host=host, mount=mount)
        for host, mount in asked
        if (host, mount) not in done and host not in unread
    )
    return StorageReport(
        exit_code=_exit_code(unread, not_run, results, gpu),
        hosts=len({host for host, _ in asked}),
        unread=dict(unread),
        not_run=not_run,
        results=tuple(results),
        gpu=tuple(gpu),
    )


def _exit_code(
    unread: Mapping[str, str],
    not_run: Sequence[NotRun],
    results: Sequence[Result],
    gpu: Sequence[GpuTrial],
) -> Literal[0, 1, 2]:
    outcomes = {one.outcome for one in results}
    ways = {one.trial.outcome for one in gpu if one.counts}
    left = any(one.left for one in results) or any(one.trial.left for one in gpu)
    if unread or not_run or left or not results:
        return 1
    if "not_measured" in outcomes or "not_proven" in ways:
        return 1
    return 2 if "below" in outcomes or ways & {"host", "failed"} else 0
