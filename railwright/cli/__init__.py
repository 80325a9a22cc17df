"""The command line. Exit codes are a contract: 0 fine, 2 drift and nothing else, 1 any error.

Start-up stays cheap: each command imports what it needs, and only a command that connects has
gevent patch the standard library, before anything else is imported.
"""

import sys
from collections.abc import Sequence

import click

from railwright.cli.commands import railwright
from railwright.cli.fabric import fabric as fabric_group
from railwright.cli.gds import gds as gds_group
from railwright.cli.size import size as size_group
from railwright.cli.storage import storage as storage_group

ERROR = 1

railwright.add_command(fabric_group)
railwright.add_command(gds_group)
railwright.add_command(size_group)
railwright.add_command(storage_group)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; the console script's entry."""
    try:
        code = railwright.main(args=arguments, prog_name="railwright", standalone_mode=False)
    except click.ClickException as error:
        # click's own exit code for wrong usage is 2, which here means drift.
        error.show()
        return ERROR
    except (click.Abort, KeyboardInterrupt):
        click.echo("railwright: stopped", err=True)
        return ERROR
    except BrokenPipeError:
        # The reader went away; nothing can be told to it any more.
        sys.stderr.close()
        return ERROR
    return code if isinstance(code, int) else 0
