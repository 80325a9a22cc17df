"""The drivers' first release, on a node that may be rebooted."""

from railwright.site import inventory
from tests.drivers.site import rebootable, release

globals().update(inventory(__file__, *rebootable(release(0, 0))))
