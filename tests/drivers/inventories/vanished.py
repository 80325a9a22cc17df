"""The first release, with a version of one package that no repository has any more."""

from railwright.site import inventory
from tests.drivers.asked import vanished
from tests.drivers.site import rebootable, release

globals().update(inventory(__file__, *rebootable(vanished(release(0, 0)))))
