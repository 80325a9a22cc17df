"""DOCA's repository with DOCA's key, where its packages are signed by another one."""

from railwright.site import inventory
from tests.dnf.asked import HOST, MOUNTED, node, repository

_other = repository("doca", url=f"file://{MOUNTED}/dnf/doca-other-key")
globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: node(0, doca=_other)}))
