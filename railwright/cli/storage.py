"""The group of commands ``railwright storage``."""

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
    from collections.abc import Mapping

    from railwright.schema import Node
    from railwright.storage.document import StorageReport
    from railwright.storage.run import Asked, Step, Targets
    from railwright.storage.sizes import Wanted


@click.group()
def storage() -> None:
    """Test whether mounts reach what is expected of them."""


@storage.command("test")
@inventory_argument
@limit_option
@click.option(
    "--mount",
    "mounts",
    multiple=True,
    metavar="PATH",
    help="Only this mount, or in this directory on it. Repeatable.",
)
@click.option("--seconds", type=click.IntRange(1, 3600), default=10, show_default=True)
@click.option(
    "--max-gib",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="N",
    help="What a node writes at most.",
)
@click.option("--serial", is_flag=True, help="One node after the other.")
@click.option(
    "--buffered",
    is_flag=True,
    help="Through the page cache, with twice the memory: where direct IO is refused.",
)
@table_or_json
def test(
    inventory: Path,
    limits: Sequence[str],
    mounts: Sequence[str],
    seconds: int,
    max_gib: int,
    serial: bool,
    buffered: bool,
    form: Literal["table", "json"],
) -> int:
    """Run fio on the mounts of each node, and hold it against what the inventory expects.

    Mounts come one after the other. On each, fio writes files for --seconds, and reads them for as
    long, with direct IO. They lie in a directory of their own below the mount, take a tenth of what
    is free there at most, for all nodes together, and are removed.

    Nodes run side by side, which measures servers that they share as much as the nodes: the report
    says how many ran at once, and --serial has each run alone.

    Where a node has a GPU that libcufile can reach the mount from, gdsio tells the way of IO to it
    as well, which counts where gds.mode is set.

    Ctrl-C ends it: what was tested until then is reported, the rest as not run. The nodes end what
    they run and clean up within a few seconds.

    Exit codes: 0 nothing is below what is expected, 2 something is, 1 something could not be
    measured, or was left behind (which outranks findings). A mount of which nothing is expected is
    not judged.
    """
    patch_sockets()
    from railwright.storage.sizes import Wanted

    nodes = chosen_nodes(load_site(inventory), limits)
    targets = _targets(nodes, mounts)
    wanted = Wanted(seconds=seconds, most_gib=max_gib, buffered=buffered)
    report = _run([node for node in nodes if targets[node.name]], targets, wanted, serial)
    if form == "json":
        click.echo(report.model_dump_json(indent=2))
    else:
        from railwright.report.table import console
        from railwright.storage.table import print_storage

        print_storage(report, console())
    return report.exit_code


def mounts_of(node: Node) -> Mapping[str, Asked]:
    """The mounts that the inventory asks of a node, by where they are mounted."""
    return node.storage.mounts


def _targets(nodes: Sequence[Node], paths: Sequence[str]) -> Targets:
    """What is tested, by node. Raises ClickException where that is nothing."""
    from railwright.storage.run import is_on, targets_of
    from railwright.words import unknown

    known = {mount for node in nodes for mount in mounts_of(node)}
    if not known:
        raise click.ClickException("none of these hosts has a mount (storage.mounts)")
    paths = [path.rstrip("/") for path in paths]
    for path in paths:
        if not any(is_on(path, mount) for mount in known) or "\n" in path:
            raise click.ClickException(f"--mount: {unknown('mount', path, sorted(known))}")
        if ".." in path.split("/"):
            raise click.ClickException(f"--mount {path}: expected a path without ..")
    try:
        return {node.name: targets_of(mounts_of(node), paths) for node in nodes}
    except ValueError as error:
        raise click.ClickException(f"--mount: {error}") from error


def _run(nodes: Sequence[Node], targets: Targets, wanted: Wanted, serial: bool) -> StorageReport:
    """The report on all nodes: also on what was found until somebody stopped it."""
    from railwright import fleet
    from railwright.reading import Unread
    from railwright.storage import run
    from railwright.storage.document import GpuTrial, storage_report
    from railwright.storage.judge import Result

    steps = run.steps_of(nodes, targets, serial)
    unread: dict[str, str] = {}
    results: list[Result] = []
    gpu: list[GpuTrial] = []
    try:
        looked = run.look(nodes, targets, fleet.ask)
        unread |= {name: one.error for name, one in looked.items() if isinstance(one, Unread)}
        found = {name: one for name, one in looked.items() if not isinstance(one, Unread)}
        for done in run.run(steps, targets, found, wanted, fleet.ask, _tell):
            results += done.results
            gpu += done.gpu
    except fleet.FleetError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("stopped: this is what was tested until now", err=True)
    asked = [(node.name, step.mount) for step in steps for node in step.nodes]
    return storage_report(asked, unread, results, gpu)


def _tell(step: Step) -> None:
    hosts = len(step.nodes)
    click.echo(f"{step.mount}: {hosts} host{'' if hosts == 1 else 's at once'}", err=True)
