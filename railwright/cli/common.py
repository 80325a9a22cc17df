"""What several groups of commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from railwright.schema import Node
    from railwright.site import Site

PATH = click.Path(path_type=Path)
inventory_argument = click.argument("inventory", type=PATH)
limit_option = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="HOSTS",
    help="Only these: a group, names, ranges (gpu[001-016]) or globs. Repeatable.",
)


def patch_sockets() -> None:
    """Have gevent patch the standard library, so that many hosts are read side by side."""
    from gevent import monkey  # type: ignore[import-untyped]

    monkey.patch_all()


def load_site(inventory: Path) -> Site:
    from railwright.site import SiteError, load_inventory

    try:
        return load_inventory(inventory)
    except SiteError as error:
        raise click.ClickException(str(error)) from error


def chosen_nodes(site: Site, limits: Sequence[str]) -> list[Node]:
    from railwright.hosts import LimitError, pick

    try:
        nodes = pick(site, limits)
    except LimitError as error:
        raise click.ClickException(str(error)) from error
    if not nodes:
        raise click.ClickException(f"{site.file}: there is no host to look at")
    return nodes
