"""The lab, with every command that pyinfra's ssh connector runs noted in a file."""

import os
import runpy
from pathlib import Path
from typing import Any

from pyinfra.connectors.ssh import SSHConnector

from railwright.site import inventory

_lab = runpy.run_path(str(Path(__file__).parents[3] / "inventories" / "lab.py"))
_run_shell_command = SSHConnector.run_shell_command


def _noted(self: SSHConnector, *args: Any, **kwargs: Any) -> Any:
    with Path(os.environ["RAILWRIGHT_LAB_COMMANDS"]).open("a", encoding="utf-8") as file:
        file.write(f"{self.host.name}\n")
    return _run_shell_command(self, *args, **kwargs)


SSHConnector.run_shell_command = _noted  # type: ignore[method-assign]

globals().update(inventory(_lab["__file__"], _lab["GROUPS"], _lab["HOSTS"]))
