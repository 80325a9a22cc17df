"""The lab, where gpu002 is configured by what NVIDIA's driver adds to the kernel's interfaces."""

import runpy
from pathlib import Path

from railwright.site import inventory

_lab = runpy.run_path(str(Path(__file__).parents[3] / "inventories" / "lab.py"))

HOSTS = {
    **_lab["HOSTS"],
    "gpu002": {
        **_lab["HOSTS"]["gpu002"],
        "fabric": {"kind": "roce", "qos": {"backend": "nvidia"}},
    },
}

globals().update(inventory(_lab["__file__"], _lab["GROUPS"], HOSTS))
