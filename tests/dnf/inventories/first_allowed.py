"""The first release, on a node that has another flavour of the driver, which may go."""

from railwright.site import inventory
from tests.dnf.asked import ALLOWED, HOST, node

globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: {**node(0), "effects": ALLOWED}}))
