"""The first release, and a kernel argument that a reboot brings."""

from railwright.site import inventory
from tests.drivers.site import rebootable, release

_kernel = {"arguments": {"split_lock_detect": "off"}}
globals().update(inventory(__file__, *rebootable({**release(0, 0), "kernel": _kernel})))
