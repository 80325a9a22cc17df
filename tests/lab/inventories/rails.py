"""The lab with its eight rails, of which the links may be dropped."""

import runpy
from pathlib import Path

from railwright.site import inventory

_lab = runpy.run_path(str(Path(__file__).parents[3] / "inventories" / "lab.py"))

# The slots of tests/lab/qemu.py: a PCIe switch with four on each NUMA node. There are no GPUs.
_SLOTS = ("13", "14", "15", "16", "83", "84", "85", "86")
_RAILS = {
    "effects": {"allow": ["live", "new_processes", "service", "link"]},
    "rails": {"nics": {rail: {"pci": f"0000:{bus}:00.0"} for rail, bus in enumerate(_SLOTS)}},
    # The virtual machine's bridges are its own.
    "pcie": {"acs_in_vm": True},
}

GROUPS = _lab["GROUPS"]
HOSTS = {name: {**says, **_RAILS} for name, says in _lab["HOSTS"].items()}

globals().update(inventory(_lab["__file__"], GROUPS, HOSTS))
