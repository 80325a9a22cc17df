"""The group of commands ``railwright size``."""

from __future__ import annotations

import click


class _OnDemand(click.Group):
    """Imports its commands when it is asked for them: the models behind their options are many."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _commands().get(cmd_name)


def _commands() -> dict[str, click.Command]:
    from railwright.cli.size_commands import COMMANDS

    return {command.name: command for command in COMMANDS if command.name is not None}


@click.group(cls=_OnDemand)
def size() -> None:
    """Size a cluster: memory, checkpoints, training and step time, storage and cost.

    Amounts are written with their unit: 80GB, 400Gb/s, 989TFLOP/s, 120s, 6000h. Every option of a
    question can be swept (--sweep nodes=8..512) or changed (--what-if rail-rate=800Gb/s).
    """
