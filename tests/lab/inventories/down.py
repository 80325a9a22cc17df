"""The lab and a third node, at a loopback port where nothing listens."""

import runpy
from pathlib import Path

from railwright.site import inventory

_lab = runpy.run_path(str(Path(__file__).parents[3] / "inventories" / "lab.py"))

GROUPS = {**_lab["GROUPS"], "roce": [*_lab["GROUPS"]["roce"], "gpu003"]}
HOSTS = {
    **_lab["HOSTS"],
    "gpu003": {"ssh": {**_lab["HOSTS"]["gpu001"]["ssh"], "port": 1}},
}

globals().update(inventory(_lab["__file__"], GROUPS, HOSTS))
