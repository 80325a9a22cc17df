"""The commands of ``railwright fabric``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from railwright.cli.common import (
    chosen_nodes,
    inventory_argument,
    limit_option,
    load_site,
    patch_sockets,
)

if TYPE_CHECKING:
    from railwright.fabric.document import FabricReport
    from railwright.fabric.perftest import Load
    from railwright.fabric.run import Looked, Step
    from railwright.reading import Unread
    from railwright.schema import Node

STEP_S = 8
"""Seconds that a step takes beside its load: connecting, reading counters, setting up. A guess."""

_rails = click.option(
    "--rail", "rails", multiple=True, type=int, metavar="N", help="Only this rail. Repeatable."
)


@click.group()
def fabric() -> None:
    """Test the rails with RDMA traffic, and read their counters."""


@fabric.command("test")
@inventory_argument
@limit_option
@_rails
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="At most N rounds a rail.")
@click.option("--size", type=click.IntRange(2), default=65536, show_default=True, metavar="BYTES")
@click.option("--seconds", type=click.IntRange(1, 3600), default=5, show_default=True)
@click.option("--iterations", type=click.IntRange(5), metavar="N", help="In place of --seconds.")
@click.option(
    "--min-percent",
    type=click.IntRange(0, 100),
    default=90,
    show_default=True,
    help="Share of rails.rate_gbps that a test must reach.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "junit"]),
    default="table",
    show_default=True,
)
@click.option("--busy", is_flag=True, help="Test rails that carry traffic of others too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def test(
    inventory: Path,
    limits: Sequence[str],
    rails: Sequence[int],
    rounds: int | None,
    size: int,
    seconds: int,
    iterations: int | None,
    min_percent: int,
    form: Literal["table", "json", "junit"],
    busy: bool,
    yes: bool,
) -> int:
    """Drive ib_write_bw between all pairs of nodes, a rail at a time, and judge the counters.

    It loads the rails, so it asks before it starts, and refuses where a rail carries traffic
    already. It changes nothing on the nodes; perftest must be installed on them.

    Each pair meets once, in rounds in which no node is in two pairs: n nodes take n - 1 rounds a
    rail (n where n is odd). --rounds 1 tests each node once a rail.

    Checked are the bandwidth, that the traffic ran on the lossless priority of this rail and of no
    other, that PFC is on for it at both ends, the traffic class, and that nothing was dropped or
    sent again.

    Exit codes: 0 fine, 2 findings, 1 something could not be tested (which outranks findings).
    """
    patch_sockets()
    from railwright import fleet
    from railwright.fabric.document import fabric_report
    from railwright.fabric.perftest import Load
    from railwright.fabric.run import plan, run

    nodes = chosen_nodes(load_site(inventory), limits)
    wanted = _wanted(nodes, rails)
    load = Load(size=size, seconds=seconds, iterations=iterations)
    found, unread = _look(nodes)
    steps, untested = plan(list(found.values()), wanted, rounds)
    if not busy:
        _refuse_busy(found, wanted)
    if steps:
        _permit(steps, load, yes)
    trials = list(run(steps, found, load, fleet.ask, min_percent, _tell))
    report = fabric_report(len(nodes), unread, untested, trials)
    _show(report, form)
    return report.exit_code


def _wanted(nodes: Sequence[Node], rails: Sequence[int]) -> frozenset[int] | None:
    """The rails that are asked for; None is all."""
    known = {rail for node in nodes for rail in node.rails.nics}
    if not known:
        raise click.ClickException("none of these hosts has a rail (rails.nics)")
    strange = sorted(set(rails) - known)
    if strange:
        raise click.ClickException(f"--rail {strange[0]}: no host has it; there are {_list(known)}")
    return frozenset(rails) or None


def _list(numbers: set[int]) -> str:
    return ", ".join(str(number) for number in sorted(numbers))


def _look(nodes: Sequence[Node], seconds: int = 1) -> tuple[dict[str, Looked], dict[str, str]]:
    """The nodes that could be read, and of the others why not."""
    from railwright import fleet
    from railwright.fabric.run import look
    from railwright.fleet import FleetError
    from railwright.reading import Unread

    try:
        looked: dict[str, Looked | Unread] = look(nodes, fleet.ask, seconds)
    except FleetError as error:
        raise click.ClickException(str(error)) from error
    found = {name: one for name, one in looked.items() if not isinstance(one, Unread)}
    return found, {name: one.error for name, one in looked.items() if isinstance(one, Unread)}


def _refuse_busy(found: dict[str, Looked], wanted: frozenset[int] | None) -> None:
    from railwright.fabric.run import occupied

    in_use = occupied(list(found.values()), wanted)
    if in_use:
        more = f" and {len(in_use) - 3} more" if len(in_use) > 3 else ""
        raise click.ClickException(
            f"in use: {'; '.join(in_use[:3])}{more}. A test would slow it, and its counters would "
            "prove nothing; --busy tests all the same"
        )


def _permit(steps: Sequence[Step], load: Load, yes: bool) -> None:
    tests = sum(len(step.pairs) for step in steps)
    rails = len({step.rail for step in steps})
    minutes = len(steps) * (load.seconds + STEP_S) / 60
    click.echo(
        f"{tests} tests on {rails} rails in {len(steps)} steps, about {minutes:.0f} min, "
        f"each at full load between two nodes",
        err=True,
    )
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("it loads the rails of these hosts: say --yes")
    click.confirm("Run them?", abort=True, err=True)


def _tell(step: Step) -> None:
    click.echo(f"rail{step.rail} round {step.round}: {len(step.pairs)} tests", err=True)


def _show(report: FabricReport, form: Literal["table", "json", "junit"]) -> None:
    if form == "json":
        click.echo(report.model_dump_json(indent=2))
    elif form == "junit":
        from railwright.fabric.junit import junit

        click.echo(junit(report))
    else:
        from railwright.fabric.table import print_fabric
        from railwright.report.table import console

        print_fabric(report, console())


@fabric.command("counters")
@inventory_argument
@limit_option
@_rails
@click.option("--seconds", type=click.IntRange(1, 3600), default=10, show_default=True)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
def counters(
    inventory: Path,
    limits: Sequence[str],
    rails: Sequence[int],
    seconds: int,
    form: Literal["table", "json"],
) -> int:
    """Read each rail's counters twice, --seconds apart, and tell what moved. Loads nothing.

    Exit codes: 0 fine, 2 packets were lost or a link went down meanwhile, 1 something could not be
    read (which outranks findings).
    """
    patch_sockets()
    from railwright.fabric.document import counters_report

    nodes = chosen_nodes(load_site(inventory), limits)
    wanted = _wanted(nodes, rails)
    found, unread = _look(nodes, seconds)
    windows = [
        (window, looked.lossless)
        for looked in found.values()
        for window in looked.windows
        if wanted is None or window.rail in wanted
    ]
    report = counters_report(unread, windows)
    if form == "json":
        click.echo(report.model_dump_json(indent=2))
    else:
        from railwright.fabric.table import print_counters
        from railwright.report.table import console

        print_counters(report, console())
    return report.exit_code
