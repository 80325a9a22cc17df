"""A node of EL 9 that is asked for the drivers' first release."""

from railwright.site import inventory
from tests.dnf.asked import HOST, node

globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: node(0)}))
