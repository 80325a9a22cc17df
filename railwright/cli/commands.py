"""The commands of ``railwright``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from railwright.cli.common import (
    PATH,
    chosen_nodes,
    inventory_argument,
    limit_option,
    load_site,
    patch_sockets,
)
from railwright.cli.parsers import QUERIES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from railwright.component import Component
    from railwright.drift import HostReport
    from railwright.schema import Node

Command = TypeVar("Command", bound=Callable[..., Any])

_component = click.option(
    "--component",
    "names",
    multiple=True,
    metavar="C",
    help="Only this component. Repeatable.",
)


def _looking(command: Command) -> Command:
    """The options of the commands that look at nodes and report on them."""
    options = [
        inventory_argument,
        click.option(
            "--format",
            "form",
            type=click.Choice(["table", "json", "junit"]),
            default="table",
            show_default=True,
        ),
        limit_option,
        _component,
        click.option(
            "--from",
            "saved",
            type=PATH,
            metavar="DIR",
            help="Replay snapshots saved in DIR; no host is connected to.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="railwright")
def railwright() -> None:
    """Typed configuration of bare-metal GPU hosts, with drift that names what decides.

    INVENTORY is a Python inventory or a site in one YAML file.

    Exit codes: 0 fine, 2 drift, 1 error (which outranks drift).
    """


@railwright.command()
@inventory_argument
def validate(inventory: Path) -> int:
    """Check an inventory as a whole; no host is connected to."""
    from railwright.site import SiteError, load_inventory

    try:
        site = load_inventory(inventory)
    except SiteError as error:
        click.echo(str(error))
        return 1
    for warning in _unproven(site.nodes.values()):
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"{inventory}: {len(site.nodes)} nodes in {len(site.groups)} groups, all valid")
    return 0


def _unproven(nodes: Iterable[Node]) -> Iterator[str]:
    """What the site asks of drivers and nobody is known to have run.

    Each once, with its nodes; sets that are known to be bad are refused by the site itself.
    """
    from railwright.compat.judge import judge
    from railwright.hosts import fold
    from railwright.schema.drivers_compat import facts_of

    by_set: dict[str, list[Node]] = {}
    for node in nodes:
        by_set.setdefault(node.drivers.model_dump_json(), []).append(node)
    by_warning: dict[str, list[str]] = {}
    for alike in by_set.values():
        for warning in map(str, judge(facts_of(alike[0].drivers))):
            by_warning.setdefault(warning, []).extend(node.name for node in alike)
    for warning, names in by_warning.items():
        yield f"{fold(names)}: {warning}"


@railwright.command()
def schema() -> None:
    """Print the JSON Schema of a YAML site, for editors."""
    import json

    from railwright.site import site_schema

    click.echo(json.dumps(site_schema(), indent=2))


@railwright.command()
@_looking
def plan(
    inventory: Path,
    form: Form,
    limits: Sequence[str],
    names: Sequence[str],
    saved: Path | None,
) -> int:
    """Show what a run would do, and what it cannot do. Changes nothing.

    Exits with 1 where a run would refuse a node: its set of drivers is known not to work.
    """
    reports = _judge(inventory, limits, names, saved)
    return _report("plan", reports, form, accept_pending=False)


@railwright.command()
@_looking
@click.option("--accept-pending", is_flag=True, help="Exit 0 where all that is left is pending.")
def drift(
    inventory: Path,
    form: Form,
    limits: Sequence[str],
    names: Sequence[str],
    saved: Path | None,
    accept_pending: bool,
) -> int:
    """Compare hosts with the inventory: what is not as desired, and what decides it."""
    reports = _judge(inventory, limits, names, saved)
    return _report("drift", reports, form, accept_pending=accept_pending)


@railwright.command()
@inventory_argument
@limit_option
@click.option("--out", type=PATH, required=True, metavar="DIR", help="Where the files go.")
def snapshot(inventory: Path, limits: Sequence[str], out: Path) -> int:
    """Save what is read of each host, one JSON file per host, for --from and for bug reports."""
    patch_sockets()
    from deploys.components import COMPONENTS
    from railwright import fleet, reading

    nodes = chosen_nodes(load_site(inventory), limits)
    try:
        out.mkdir(parents=True, exist_ok=True)
        readings = fleet.read(nodes, COMPONENTS)
        for found in readings.values():
            reading.save(found, out)
    except (OSError, fleet.FleetError) as error:
        raise click.ClickException(str(error)) from error
    unread = [found for found in readings.values() if isinstance(found, reading.Unread)]
    for found in unread:
        click.echo(f"{found.host}: not read: {found.error}", err=True)
    click.echo(f"{len(readings) - len(unread)} of {len(readings)} hosts saved in {out}")
    return 1 if unread else 0


@railwright.command()
@click.argument("tool", type=click.Choice(sorted({*TOOLS, *QUERIES})), metavar="TOOL")
@click.argument("file", type=click.Path(allow_dash=True), metavar="FILE")
@click.option("--rc", type=int, default=0, show_default=True, help="Exit code of the tool.")
@click.option(
    "--command",
    default="",
    help="What was run; it names nvidia-smi's columns where they have no header.",
)
def parse(tool: str, file: str, rc: int, command: str) -> int:
    """Print as JSON what the parser of TOOL makes of a recorded output (FILE, or - for stdin)."""
    from railwright.cli.parsers import parse_output

    try:
        with click.open_file(file, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
        click.echo(parse_output(tool, text, rc, command))
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror or error}") from error
    except ValueError as error:
        raise click.ClickException(f"{file}: {error}") from error
    return 0


parse.help = f"{parse.help}\n\nTOOL is one of: {', '.join(sorted({*TOOLS, *QUERIES}))}."


@railwright.command()
@inventory_argument
@limit_option
@_component
@click.option("--junit", type=PATH, metavar="FILE", help="Write the results as JUnit XML too.")
def verify(inventory: Path, limits: Sequence[str], names: Sequence[str], junit: Path | None) -> int:
    """Test hosts by their own means: the independent witness of tests/verify."""
    from railwright import verify as witness

    nodes = chosen_nodes(load_site(inventory), limits)
    components = [component.name for component in _components(names)]
    try:
        return witness.verify(nodes, components, junit)
    except witness.VerifyError as error:
        raise click.ClickException(str(error)) from error


Form = Literal["table", "json", "junit"]


def _judge(
    inventory: Path, limits: Sequence[str], names: Sequence[str], saved: Path | None
) -> list[HostReport]:
    """The reports on the hosts that are asked for, read now or replayed from ``saved``."""
    if saved is None:
        patch_sockets()
    from railwright.drift import judge

    nodes = chosen_nodes(load_site(inventory), limits)
    components = _components(names)
    if saved is not None:
        from railwright.reading import load

        if not saved.is_dir():
            raise click.ClickException(f"--from {saved}: is no directory")
        readings = {node.name: load(node.name, saved) for node in nodes}
    else:
        from railwright import fleet

        try:
            readings = fleet.read(nodes, components)
        except fleet.FleetError as error:
            raise click.ClickException(str(error)) from error
    return judge(nodes, readings, components)


def _report(
    command: Literal["plan", "drift"],
    reports: Sequence[HostReport],
    form: Form,
    *,
    accept_pending: bool,
) -> int:
    from railwright.report.document import document

    report = document(command, reports, accept_pending=accept_pending)
    if form == "json":
        click.echo(report.model_dump_json(indent=2))
    elif form == "junit":
        from railwright.report.junit import junit

        click.echo(junit(command, reports, accept_pending=accept_pending))
    else:
        from railwright.report.table import console, print_report

        print_report(report, console())
    return report.exit_code


def _components(names: Sequence[str]) -> list[Component]:
    from deploys.components import COMPONENTS
    from railwright.words import unknown

    known = [component.name for component in COMPONENTS]
    for name in names:
        if name not in known:
            raise click.ClickException(unknown("component", name, known))
    return [component for component in COMPONENTS if not names or component.name in names]
