"""A virtual node of the lab, without rails, as the inventories beside have it."""

import runpy
from pathlib import Path
from typing import Any

from tests.drivers import asked
from tests.lab.layout import DISTROS, HOST_SEEN_FROM_NODE, layout

_lab = runpy.run_path(str(Path(__file__).parents[2] / "inventories" / "lab.py"))

DISTRO = next(known for known in DISTROS if known == _lab["DISTRO"])
URL = f"http://{HOST_SEEN_FROM_NODE}:{layout(DISTRO).mirror_port}"


def release(number: int, fs: int) -> dict[str, Any]:
    """What is asked of the node's drivers in release ``number``, with nvidia-fs of ``fs``."""
    return asked.node(number, fs, URL)


def rebootable(
    overlay: dict[str, Any], name: str = "gpu001"
) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Groups and hosts of an inventory whose node is asked for ``overlay``, and may be rebooted."""
    allowed = ["live", "new_processes", "service", "reboot"]
    host = {**_lab["HOSTS"][name], **overlay, "effects": {"allow": allowed}}
    return {"nodes": [name]}, {name: host}
