"""Converge GPU nodes: ``pyinfra inventories/prod.py deploys/gpu_node.py``."""

from pyinfra.context import host

from deploys.components import COMPONENTS
from deploys.node import converge

converge(host, COMPONENTS)
