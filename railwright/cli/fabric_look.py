"""The commands of ``railwright fabric`` that read the rails and load nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from railwright.cli.common import (
    PATH,
    chosen_nodes,
    inventory_argument,
    limit_option,
    load_site,
    patch_sockets,
)
from railwright.cli.fabric_common import look_at, rails_option, table_or_json, wanted_rails

if TYPE_CHECKING:
    from collections.abc import Mapping

    from railwright.reading import Reading
    from railwright.schema import Node


@click.command("counters")
@inventory_argument
@limit_option
@rails_option
@click.option("--seconds", type=click.IntRange(1, 3600), default=10, show_default=True)
@table_or_json
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
    wanted = wanted_rails(nodes, rails)
    found, unread = look_at(nodes, seconds)
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


@click.command("gids")
@inventory_argument
@limit_option
@rails_option
@click.option(
    "--since",
    type=PATH,
    metavar="DIR",
    help="Tell what changed since the snapshots in DIR (railwright snapshot).",
)
@click.option(
    "--from",
    "saved",
    type=PATH,
    metavar="DIR",
    help="Replay snapshots saved in DIR; no host is connected to.",
)
@table_or_json
def gids(
    inventory: Path,
    limits: Sequence[str],
    rails: Sequence[int],
    since: Path | None,
    saved: Path | None,
    form: Literal["table", "json"],
) -> int:
    """Tell the index of each rail's RoCE v2 GID, and where it is not that of most hosts.

    A job that is given one index for all hosts (NCCL_IB_GID_INDEX) fails on those that have
    another one. Only hosts with RoCE rails that have an address are looked at.

    Exit codes: 0 fine, 2 an index differs, is missing or changed, 1 something could not be read
    (which outranks findings).
    """
    if saved is None:
        patch_sockets()
    from railwright.fabric.gid_report import gid_report, with_gids

    nodes = with_gids(chosen_nodes(load_site(inventory), limits))
    if not nodes:
        raise click.ClickException("none of these hosts has a RoCE rail with an address")
    wanted = wanted_rails(nodes, rails)
    before = None if since is None else _replayed(nodes, since, "--since")
    now = _asked(nodes) if saved is None else _replayed(nodes, saved, "--from")
    report = gid_report(nodes, now, before, wanted)
    if form == "json":
        click.echo(report.model_dump_json(indent=2))
    else:
        from railwright.fabric.table import print_gids
        from railwright.report.table import console

        print_gids(report, console())
    return report.exit_code


def _replayed(nodes: Sequence[Node], folder: Path, option: str) -> Mapping[str, Reading]:
    """What was saved of each node in ``folder``, which ``option`` named."""
    from railwright.reading import load

    if not folder.is_dir():
        raise click.ClickException(f"{option} {folder}: is no directory")
    return {node.name: load(node.name, folder) for node in nodes}


def _asked(nodes: Sequence[Node]) -> Mapping[str, Reading]:
    from railwright import fleet
    from railwright.fabric.gids import SECTIONS

    try:
        return fleet.ask([fleet.Question(node, SECTIONS) for node in nodes])
    except fleet.FleetError as error:
        raise click.ClickException(str(error)) from error
