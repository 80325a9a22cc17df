"""DOCA's repository, whose key file holds another key than the fingerprint says."""

from railwright.site import inventory
from tests.dnf.asked import HOST, node, repository

_other = repository("doca", fingerprint="0123456789ABCDEF0123456789ABCDEF01234567")
globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: node(0, doca=_other)}))
