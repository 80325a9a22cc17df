"""What the commands of ``railwright fabric`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from railwright.fabric.run import Looked
    from railwright.reading import Unread
    from railwright.schema import Node

rails_option = click.option(
    "--rail", "rails", multiple=True, type=int, metavar="N", help="Only this rail. Repeatable."
)
table_or_json = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
)


def wanted_rails(nodes: Sequence[Node], rails: Sequence[int]) -> frozenset[int] | None:
    """The rails that are asked for; None is all."""
    known = {rail for node in nodes for rail in node.rails.nics}
    if not known:
        raise click.ClickException("none of these hosts has a rail (rails.nics)")
    strange = sorted(set(rails) - known)
    if strange:
        raise click.ClickException(
            f"--rail {strange[0]}: no host has it; there are {_listed(known)}"
        )
    return frozenset(rails) or None


def _listed(numbers: set[int]) -> str:
    return ", ".join(str(number) for number in sorted(numbers))


def look_at(nodes: Sequence[Node], seconds: int = 1) -> tuple[dict[str, Looked], dict[str, str]]:
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
