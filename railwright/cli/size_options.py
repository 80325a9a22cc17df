"""Options of ``railwright size``, made from what a question takes, so that both are one."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

import click

from railwright.cli.common import PATH

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from railwright.sizing.question import Question

Command = TypeVar("Command", bound=Callable[..., Any])


def options_of(question: type[Question]) -> Callable[[Command], Command]:
    """An option for each input of ``question``: ``rail_rate`` is ``--rail-rate``.

    Values are handed over as text, or None where the option is not given: the question reads them.
    """

    def decorate(command: Command) -> Command:
        for name in reversed(question.inputs()):
            command = _option(name, question.model_fields[name])(command)
        return command

    return decorate


def _option(name: str, field: FieldInfo) -> Callable[[Command], Command]:
    option = "--" + name.replace("_", "-")
    shown = _default(field)
    text = f"{field.description or ''}{f'  [{shown}]' if shown else ''}"
    if field.annotation is bool:
        return click.option(option, name, is_flag=True, default=None, help=text)
    words = _words(field.annotation)
    if words:
        return click.option(option, name, type=click.Choice(words), help=text)
    return click.option(option, name, metavar=_metavar(field), help=text)


def _default(field: FieldInfo) -> str:
    default = field.get_default()
    return "" if default is None or default is False or field.is_required() else str(default)


def _words(annotation: Any) -> list[str]:
    """The words of a Literal of words; empty for all else."""
    words = get_args(annotation)
    return list(words) if words and all(isinstance(word, str) for word in words) else []


def _metavar(field: FieldInfo) -> str:
    kinds = set(_kinds(field.annotation))
    if kinds & {int, float}:
        return "N"
    return "NAME" if str in kinds else "AMOUNT"


def _kinds(annotation: Any) -> list[Any]:
    """The types that a value may have, without what is said about them."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [kind for one in get_args(annotation) for kind in _kinds(one)]
    return [annotation]


inventory_option = click.option(
    "--inventory", type=PATH, help="Take GPU, GPUs, rails, their rate and the nodes from it."
)
mount_option = click.option(
    "--mount", metavar="DIR", help="Which mount of the inventory, where it has several."
)
measured_option = click.option(
    "--measured", type=PATH, help="JSON of measured bandwidths and MFU (docs/sizing.md)."
)
sweep_option = click.option(
    "--sweep", "swept", metavar="NAME=VALUES", help="nodes=8,16,32, nodes=8..1024 or nodes=8..64+8"
)
what_if_option = click.option(
    "--what-if", "supposed", multiple=True, metavar="NAME=VALUE", help="Repeatable: all at once."
)
plot_option = click.option(
    "--plot", "plotted", type=PATH, help="Write the breakdown, or the sweep, as SVG to this file."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
rules_option = click.option(
    "--rules", is_flag=True, help="Add rules of thumb, with what they leave out."
)


def output_options(command: Command) -> Command:
    """What all commands take beside their question."""
    for option in (json_option, rules_option, plot_option, what_if_option, sweep_option):
        command = option(command)
    return command


def asked(given: dict[str, object], names: tuple[str, ...]) -> dict[str, object]:
    """Of all that the command line gave, what a question takes and was given."""
    return {name: given[name] for name in names if given.get(name) is not None}


def path_or_none(given: dict[str, object], name: str) -> Path | None:
    """An option that is a file."""
    value = given.get(name)
    return value if isinstance(value, Path) else None
