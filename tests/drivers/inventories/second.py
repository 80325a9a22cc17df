"""The second release, whose nvidia-fs builds for the lab's other kernel too, and the argument."""

from railwright.site import inventory
from tests.drivers.site import rebootable, release

_kernel = {"arguments": {"split_lock_detect": "off"}}
globals().update(inventory(__file__, *rebootable({**release(1, 1), "kernel": _kernel})))
