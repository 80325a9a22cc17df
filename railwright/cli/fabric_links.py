"""``railwright fabric links``."""

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
from railwright.cli.fabric_common import table_or_json, wanted_rails

if TYPE_CHECKING:
    from railwright.fabric.link_report import FabricLinks, LinksReport
    from railwright.fabric.links import Cable
    from railwright.schema import Node


@click.command("links")
@inventory_argument
@limit_option
@click.option(
    "--from-host",
    metavar="HOST",
    help="The host that looks; without it the first one that can be reached.",
)
@click.option(
    "--rail",
    type=int,
    metavar="N",
    help="The rail that it looks through; without it the first one that is active.",
)
@click.option(
    "--expect", type=PATH, metavar="FILE", help="Cables there should be, as --save wrote them."
)
@click.option("--save", type=PATH, metavar="FILE", help="Write the cables that are seen, as JSON.")
@table_or_json
def links(
    inventory: Path,
    limits: Sequence[str],
    from_host: str | None,
    rail: int | None,
    expect: Path | None,
    save: Path | None,
    form: Literal["table", "json"],
) -> int:
    """Look at all links of an InfiniBand fabric from one of its hosts, with iblinkinfo.

    Told are links below rails.rate_gbps (the least of the hosts that are chosen), links that no
    subnet manager configured, and cables of --expect that are not linked: a switch does not tell a
    link that is down from a port without a cable.

    Exit codes: 0 fine, 2 findings, 1 the fabric could not be read, or not all of it (which outranks
    findings).
    """
    patch_sockets()
    from railwright.fabric.link_report import links_report, on_infiniband, rates_of

    nodes = on_infiniband(chosen_nodes(load_site(inventory), limits))
    if not nodes:
        raise click.ClickException("none of these hosts is on InfiniBand (fabric.kind)")
    if rail is not None:
        wanted_rails(nodes, [rail])
    expected = None if expect is None else _expected(expect)
    seen, unread = _look(nodes if from_host is None else [_host(nodes, from_host)], rail)
    report = links_report(seen, unread, min(rates_of(nodes, rail), default=None), expected)
    _show(report, form)
    if save is not None:
        _save(seen, save)
    return report.exit_code


def _expected(file: Path) -> frozenset[Cable]:
    from railwright.fabric.link_report import load_cables

    try:
        return load_cables(file)
    except OSError as error:
        raise click.ClickException(f"--expect {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise click.ClickException(f"--expect {file}: {error}") from error


def _host(nodes: Sequence[Node], name: str) -> Node:
    from railwright.words import unknown

    for node in nodes:
        if node.name == name:
            return node
    known = [node.name for node in nodes]
    raise click.ClickException(f"--from-host: {unknown('host on InfiniBand', name, known)}")


def _look(nodes: Sequence[Node], rail: int | None) -> tuple[FabricLinks | None, dict[str, str]]:
    from railwright import fleet
    from railwright.fabric.link_report import look_at_links

    try:
        return look_at_links(nodes, fleet.ask, rail)
    except fleet.FleetError as error:
        raise click.ClickException(str(error)) from error


def _show(report: LinksReport, form: Literal["table", "json"]) -> None:
    if form == "json":
        click.echo(report.model_dump_json(indent=2))
        return
    from railwright.fabric.table import print_links
    from railwright.report.table import console

    print_links(report, console())


def _save(seen: FabricLinks | None, file: Path) -> None:
    """Save the cables, but not those of a part of the fabric: they would be all that is missed."""
    from railwright.fabric.link_report import save_cables

    if seen is None or seen.warnings:
        raise click.ClickException(f"--save {file}: not written, as the fabric was not read whole")
    try:
        save_cables(seen.cables, file)
    except OSError as error:
        raise click.ClickException(f"--save {file}: {error.strerror or error}") from error
