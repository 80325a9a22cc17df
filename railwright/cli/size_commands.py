"""The commands of ``railwright size``, with options that their questions are asked by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from railwright.cli.common import PATH, chosen_nodes, limit_option, load_site
from railwright.cli.size_options import (
    asked,
    inventory_option,
    measured_option,
    mount_option,
    options_of,
    output_options,
    path_or_none,
)
from railwright.sizing.ask_checkpoint import CheckpointQuestion
from railwright.sizing.ask_cost import CostQuestion
from railwright.sizing.ask_memory import MemoryQuestion
from railwright.sizing.ask_step import StepQuestion
from railwright.sizing.ask_storage import StorageQuestion
from railwright.sizing.ask_train import TrainQuestion

if TYPE_CHECKING:
    from railwright.sizing.question import Question


@click.command("memory")
@inventory_option
@limit_option
@measured_option
@options_of(MemoryQuestion)
@output_options
def memory(**given: Any) -> None:
    """Memory of a GPU in training or serving, and whether it fits.

    Without --model, --parameters gives the model states alone.
    """
    _answer(MemoryQuestion, given, _of_machine(given))


@click.command("checkpoint")
@inventory_option
@limit_option
@mount_option
@measured_option
@options_of(CheckpointQuestion)
@output_options
def checkpoint(**given: Any) -> None:
    """Bytes of a checkpoint, the bandwidth for it, and how often it pays (Young, Daly)."""
    _answer(CheckpointQuestion, given, _of_machine(given))


@click.command("train")
@inventory_option
@limit_option
@measured_option
@options_of(TrainQuestion)
@output_options
def train(**given: Any) -> None:
    """Time of a training from its tokens and the MFU that is reached."""
    _answer(TrainQuestion, given, _of_machine(given))


@click.command("step")
@inventory_option
@limit_option
@measured_option
@options_of(StepQuestion)
@output_options
def step(**given: Any) -> None:
    """Time of one step: computation, collectives, bubble; and which host fact limits.

    Of --sweep nodes=..., the knee is marked: beyond it more nodes bring less than half of what
    they ideally would.
    """
    _answer(StepQuestion, given, _of_machine(given))


@click.command("storage")
@inventory_option
@limit_option
@mount_option
@measured_option
@options_of(StorageQuestion)
@output_options
def storage(**given: Any) -> None:
    """What shared storage must read, write and hold for a training."""
    _answer(StorageQuestion, given, _of_machine(given))


@click.command("cost")
@click.argument("plan", type=PATH, required=False)
@click.option("--example", is_flag=True, help="Print a plan to fill in, and do nothing else.")
@options_of(CostQuestion)
@output_options
def cost(plan: Path | None, example: bool, **given: Any) -> None:
    """Compare ways of having GPUs (own, reserved, on demand) by the figures in PLAN (YAML)."""
    from railwright.sizing.cost import EXAMPLE, load_plan

    if example:
        click.echo(EXAMPLE, nl=False)
        return
    if plan is None:
        raise click.ClickException("which plan? give a file; --example prints one to fill in")
    try:
        found = load_plan(plan)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    _answer(CostQuestion, given, {"found": found})


def _of_machine(given: dict[str, Any]) -> dict[str, object]:
    """What inventory and measurements say, for a question that goes by nodes."""
    from railwright.sizing.inventory import facts_of, storage_of
    from railwright.sizing.measured import load_measured

    limits: Sequence[str] = given["limits"]
    inventory = path_or_none(given, "inventory")
    measured = path_or_none(given, "measured")
    found: dict[str, object] = {}
    if inventory is None and (limits or given.get("mount")):
        raise click.ClickException("--limit and --mount are of an inventory: give --inventory")
    try:
        if inventory is not None:
            nodes = chosen_nodes(load_site(inventory), limits)
            found |= {"found": facts_of(nodes), "inventory_nodes": len(nodes)}
            if "mount" in given:
                found["mounted"] = storage_of(nodes, given["mount"])
        if measured is not None:
            found["measured"] = load_measured(measured)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    return found


def _answer(kind: type[Question], given: dict[str, Any], machine: dict[str, object]) -> None:
    """Ask, and print what comes of it."""
    from pydantic import ValidationError

    from railwright.report.table import console
    from railwright.sizing.document import Report
    from railwright.sizing.parallel import SizingError
    from railwright.sizing.plots import plot
    from railwright.sizing.table import print_report
    from railwright.sizing.variants import said, sweep, what_if

    try:
        question = kind.model_validate({**asked(given, kind.inputs()), **machine})
        answer = question.answer()
        report = Report(
            answer=answer,
            sweep=sweep(question, given["swept"]) if given["swept"] else None,
            what_if=what_if(question, answer, given["supposed"]) if given["supposed"] else None,
        )
        plotted = path_or_none(given, "plotted")
        if plotted is not None:
            plot(report, plotted)
    except ValidationError as error:
        raise click.ClickException(said(error)) from error
    except SizingError as error:
        raise click.ClickException(str(error)) from error
    if given["as_json"]:
        click.echo(report.model_dump_json(indent=2))
    else:
        print_report(report, console(), rules=given["rules"])


COMMANDS: tuple[click.Command, ...] = (memory, checkpoint, train, step, storage, cost)
