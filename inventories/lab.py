"""The virtual nodes of tests/lab: ``make lab`` starts them."""

import os
from pathlib import Path

from railwright.site import inventory

DISTRO = os.environ.get("DISTRO", "bookworm")
STATE = Path(os.environ.get("RAILWRIGHT_LAB_STATE", Path(__file__).parents[1] / ".lab")) / DISTRO
PORTS = int(os.environ.get("RAILWRIGHT_LAB_PORTS", "2200"))
PORTS += {"bookworm": 0, "trixie": 100}[DISTRO]
_NODES = ("gpu001", "gpu002")

GROUPS = {"roce": list(_NODES)}
HOSTS = {
    name: {
        "ssh": {
            "address": "127.0.0.1",
            "port": PORTS + number,
            "user": "root",
            "key_file": str(STATE / "login_key"),
            "known_hosts_file": str(STATE / "known_hosts"),
        }
    }
    for number, name in enumerate(_NODES, start=1)
}

globals().update(inventory(__file__, GROUPS, HOSTS))
