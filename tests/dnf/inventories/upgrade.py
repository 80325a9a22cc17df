"""The second release, where services may be restarted."""

from railwright.site import inventory
from tests.dnf.asked import ALLOWED, HOST, node

globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: {**node(1), "effects": ALLOWED}}))
