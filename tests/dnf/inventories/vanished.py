"""The second release, with a version of one package that its repository has no more."""

from railwright.site import inventory
from tests.dnf.asked import ALLOWED, HOST, node, vanished

_asked = {**vanished(node(1)), "effects": ALLOWED}
globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: _asked}))
