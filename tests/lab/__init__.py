"""Virtual GPU nodes: Debian with its own kernel in QEMU, on loopback ports of this machine.

`python -m tests.lab up` on the command line, :class:`tests.lab.lab.Lab` in tests.
"""

from .lab import Lab
from .layout import LabError, Node

__all__ = ["Lab", "LabError", "Node"]
