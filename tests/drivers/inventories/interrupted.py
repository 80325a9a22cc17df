"""The drivers' first release on gpu002, which may be rebooted."""

from railwright.site import inventory
from tests.drivers.site import rebootable, release

globals().update(inventory(__file__, *rebootable(release(0, 0), name="gpu002")))
