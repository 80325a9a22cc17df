"""The second release, where no service may be restarted."""

from railwright.site import inventory
from tests.dnf.asked import HOST, node

globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: node(1)}))
