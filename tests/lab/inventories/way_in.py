"""The lab, where the NIC that ssh comes in by is said to be a rail."""

import runpy
from pathlib import Path

from railwright.site import inventory

_lab = runpy.run_path(str(Path(__file__).parents[3] / "inventories" / "lab.py"))

HOSTS = {
    **_lab["HOSTS"],
    "gpu002": {
        **_lab["HOSTS"]["gpu002"],
        "rails": {"nics": {8: {"mac": "52:54:00:12:34:56"}}},
    },
}

globals().update(inventory(_lab["__file__"], _lab["GROUPS"], HOSTS))
