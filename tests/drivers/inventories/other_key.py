"""The first release, from a repository that another key has signed."""

from railwright.site import inventory
from tests.drivers.asked import signed_by_another
from tests.drivers.site import URL, rebootable, release

globals().update(inventory(__file__, *rebootable(signed_by_another(release(0, 0), URL))))
