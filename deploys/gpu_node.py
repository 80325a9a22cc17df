"""Converge GPU nodes: ``pyinfra inventories/prod.py deploys/gpu_node.py``."""

from pyinfra.context import ctx_host

from deploys.components import COMPONENTS
from deploys.node import converge

# The host itself: pyinfra's `host` stands for whichever host the code runs for at the moment.
converge(ctx_host.get(), COMPONENTS)  # type: ignore[no-untyped-call]
