"""The lab with less allowed on gpu002: no service is restarted, and no version is named."""

import runpy
from pathlib import Path

from railwright.site import inventory

_lab = runpy.run_path(str(Path(__file__).parents[3] / "inventories" / "lab.py"))

HOSTS = {
    **_lab["HOSTS"],
    "gpu002": {
        **_lab["HOSTS"]["gpu002"],
        "effects": {"allow": ["live", "new_processes"]},
        "holds": {"packages": {"railwright-lab-held": None}},
    },
}

globals().update(inventory(_lab["__file__"], _lab["GROUPS"], HOSTS))
