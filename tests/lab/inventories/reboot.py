"""The lab, where gpu002 may be rebooted and is asked for one more kernel argument."""

import runpy
from pathlib import Path

from railwright.site import inventory

_lab = runpy.run_path(str(Path(__file__).parents[3] / "inventories" / "lab.py"))

HOSTS = {
    **_lab["HOSTS"],
    "gpu002": {
        **_lab["HOSTS"]["gpu002"],
        "effects": {"allow": ["live", "new_processes", "service", "link", "reboot"]},
        "kernel": {"arguments": {"split_lock_detect": "off"}},
    },
}

globals().update(inventory(_lab["__file__"], _lab["GROUPS"], HOSTS))
