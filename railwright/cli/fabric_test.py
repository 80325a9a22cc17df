"""``railwright fabric test``."""

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
from railwright.cli.fabric_common import look_at, rails_option, wanted_rails

if TYPE_CHECKING:
    from railwright.fabric.document import FabricReport
    from railwright.fabric.judge import Trial
    from railwright.fabric.perftest import Load
    from railwright.fabric.run import Looked, Step

STEP_S = 8
"""Seconds that a step takes beside its load: connecting, reading counters, setting up. A guess."""


@click.command("test")
@inventory_argument
@limit_option
@rails_option
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

    Ctrl-C ends it: what was tested until then is reported, the rest as not run. The nodes end what
    they run within a second or two.

    Exit codes: 0 fine, 2 findings, 1 something could not be tested (which outranks findings).
    """
    patch_sockets()
    from railwright.fabric.document import fabric_report
    from railwright.fabric.perftest import Load
    from railwright.fabric.run import plan

    nodes = chosen_nodes(load_site(inventory), limits)
    wanted = wanted_rails(nodes, rails)
    load = Load(size=size, seconds=seconds, iterations=iterations)
    found, unread = look_at(nodes)
    steps, untested = plan(list(found.values()), wanted, rounds)
    if not busy:
        _refuse_busy(found, wanted)
    if steps:
        _permit(steps, load, yes)
    trials = _run(steps, found, load, min_percent)
    report = fabric_report(len(nodes), unread, untested, trials, steps)
    _show(report, form)
    return report.exit_code


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


def _run(
    steps: Sequence[Step], found: dict[str, Looked], load: Load, min_percent: int
) -> list[Trial]:
    """The tests that came to their end: all, or those until somebody stopped it."""
    from railwright import fleet
    from railwright.fabric.run import run

    trials: list[Trial] = []
    try:
        # One by one: a list that is made in one go is lost with what stops it.
        for trial in run(steps, found, load, fleet.ask, min_percent, _tell):
            trials.append(trial)
    except KeyboardInterrupt:
        click.echo("stopped: this is what was tested until now", err=True)
    return trials


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
