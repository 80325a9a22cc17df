"""The group of commands ``railwright fabric``."""

import click

from railwright.cli.fabric_links import links
from railwright.cli.fabric_look import counters, gids
from railwright.cli.fabric_test import test


@click.group()
def fabric() -> None:
    """Test the rails with RDMA traffic, and read their counters, GIDs and links."""


for _command in (test, counters, gids, links):
    fabric.add_command(_command)
