"""The same, where the index must be signed by DOCA's key too."""

from railwright.site import inventory
from tests.dnf.asked import HOST, MOUNTED, node, repository

_other = repository("doca", url=f"file://{MOUNTED}/dnf/doca-other-key", signed_index=True)
globals().update(inventory(__file__, {"el9": [HOST]}, {HOST: node(0, doca=_other)}))
