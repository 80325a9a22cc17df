"""The container of the molecule scenario ``drivers``."""

from railwright.site import inventory
from tests.drivers.asked import MOUNTED, node

HOST = "@podman/railwright-drivers"
_effects = {"allow": ["live", "new_processes", "service"]}
_gpu = {"persistence": True, "power_limit_w": 500}
_asked = node(0, 0, MOUNTED)

globals().update(
    inventory(
        __file__,
        {"nodes": [HOST]},
        {HOST: {**_asked, "gpu_driver": {**_asked["gpu_driver"], **_gpu}, "effects": _effects}},
    )
)
