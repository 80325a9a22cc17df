"""The group of commands ``railwright gds``."""

from __future__ import annotations

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
from railwright.cli.fabric_common import table_or_json

if TYPE_CHECKING:
    from railwright.gds.document import GdsReport
    from railwright.gds.gdsio import Where
    from railwright.schema import Node


@click.group()
def gds() -> None:
    """Test whether IO between storage and GPUs takes the direct path."""


@gds.command("test")
@inventory_argument
@limit_option
@click.option(
    "--directory",
    metavar="DIR",
    help="Where on the nodes the test makes a file of its own, by a name that is not taken.",
)
@click.option("--file", metavar="PATH", help="That file; it must not be there. Not with DIR.")
@click.option("--gpu", type=click.IntRange(0), default=0, show_default=True, metavar="N")
@click.option("--seconds", type=click.IntRange(1, 3600), default=10, show_default=True)
@table_or_json
def test(
    inventory: Path,
    limits: Sequence[str],
    directory: str | None,
    file: str | None,
    gpu: int,
    seconds: int,
    form: Literal["table", "json"],
) -> int:
    """Run gdsio on each node, and prove by counters which way its IO took.

    It writes a file of 1 GiB or less, reads it for --seconds, and removes it. The cufile.json that
    is in force on the node decides the way; only libcufile's own counters are switched on for the
    test (profile.cufile_stats). nvidia-fs counts while it runs: rw_stats_enabled is put back.

    Direct is what nvidia-fs counted whole, or libcufile counted as nvidia-fs or P2PDMA. Through the
    host is what they did not see. All else is not proven, with the reason.

    Ctrl-C ends it; the nodes end what they run and clean up within a few seconds.

    Exit codes: 0 direct everywhere, 2 IO went through the host or failed, 1 something could not be
    tested or proven, or was left behind (which outranks findings).
    """
    where = _where(directory, file)
    patch_sockets()
    nodes = chosen_nodes(load_site(inventory), limits)
    report = _run(nodes, where, gpu, seconds)
    if form == "json":
        click.echo(report.model_dump_json(indent=2))
    else:
        from railwright.gds.table import print_gds
        from railwright.report.table import console

        print_gds(report, console())
    return report.exit_code


def _where(directory: str | None, file: str | None) -> Where:
    """Where the test's file goes. Raises ClickException for none, both, or no absolute path."""
    from railwright.gds.gdsio import Where

    given = file or directory
    if given is None or (file and directory):
        raise click.ClickException("say where: either --directory DIR or --file PATH")
    if not given.startswith("/") or "\n" in given or "\0" in given:
        raise click.ClickException(f"expected an absolute path on the nodes, got {given!r}")
    if file is None:
        return Where(directory=given)
    parent, _, name = file.rpartition("/")
    if not name:
        raise click.ClickException(f"--file {file}: expected a file, got a directory")
    return Where(directory=parent or "/", file=file)


def _run(nodes: Sequence[Node], where: Where, gpu: int, seconds: int) -> GdsReport:
    """The report on all nodes: also on what was found until somebody stopped it."""
    from railwright import fleet
    from railwright.gds import run
    from railwright.gds.document import gds_report
    from railwright.gds.judge import Trial
    from railwright.reading import Unread

    unread: dict[str, str] = {}
    trials: list[Trial] = []
    try:
        looked = run.look(nodes, where, fleet.ask)
        unread |= {name: one.error for name, one in looked.items() if isinstance(one, Unread)}
        found = {name: one for name, one in looked.items() if not isinstance(one, Unread)}
        click.echo(f"gdsio on {len(found)} hosts, about {seconds} s of reading each", err=True)
        trials += run.run(nodes, found, where, gpu, seconds, fleet.ask)
    except fleet.FleetError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("stopped: no host came to its end", err=True)
    return gds_report([node.name for node in nodes], unread, trials)
