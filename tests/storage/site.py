"""Two virtual nodes: gpu001 mounts, gpu002 is the storage server. Two rails join them."""

import os
import runpy
from pathlib import Path
from typing import Any

from railwright.rails import planned
from railwright.schema import Node
from railwright.site import load_inventory
from tests.lab.layout import DISTROS, layout

_lab = runpy.run_path(str(Path(__file__).parents[2] / "inventories" / "lab.py"))

DISTRO = next(known for known in DISTROS if known == _lab["DISTRO"])
CLIENT, SERVER = "gpu001", "gpu002"
RDMA_NQN, TCP_NQN = "nqn.2014-08.lab:rdma", "nqn.2014-08.lab:tcp"
RDMA_UUID = "11111111-1111-4111-8111-111111111111"
TCP_UUID = "22222222-2222-4222-8222-222222222222"
HOST_NQN = "nqn.2014-08.lab:client"
ALLOWED = ["live", "new_processes", "service", "link", "remount"]

AUTHENTICATED = DISTRO != "bookworm"
"""Whether the kernel has DH-HMAC-CHAP; Debian 12's is built without it."""
KEY_FILE = Path(os.environ.get("RAILWRIGHT_LAB_KEY", layout(DISTRO).state / "dhchap.key"))
"""The key of the volume over TCP: made by the tests, known to target and client alone."""

SECRET_FILE = KEY_FILE.with_name("conn.auth")
"""The secret of BeeGFS, made by the tests."""

_RAILS = {
    "nics": {0: {"pci": "0000:13:00.0"}, 1: {"pci": "0000:83:00.0"}},
    "plan": {"prefix": "10.64.0.0/12", "rail_prefix_length": 20},
    "rate_gbps": 400,
}

Overlay = dict[str, Any]


def hosts(**storage: Any) -> dict[str, Overlay]:
    """Both nodes with their rails; ``storage`` is asked of the client."""
    common = {
        "fabric": "roce",
        "rails": _RAILS,
        "pcie": {"acs_in_vm": True},
        "effects": {"allow": ALLOWED},
        "modules": {"load": ["rdma_rxe", "nvme_rdma", "nvme_tcp"]},
        "time": {"sources": {}},
    }
    found = {name: {**_lab["HOSTS"][name], **common} for name in (CLIENT, SERVER)}
    found[CLIENT] |= storage
    return found


def server_address() -> str:
    """The server's address on the first rail."""
    nodes = load_inventory(Path(__file__).parent / "inventories" / "rails.py").nodes
    return _address(nodes[SERVER])


def _address(node: Node) -> str:
    address = next(rail.address for rail in planned(node) if rail.rail == 0)
    assert address is not None
    return str(address.ip)


def volume(transport: str, address: str, **more: Any) -> Overlay:
    """The server's volume over ``transport``."""
    rdma = transport == "rdma"
    return {
        "kind": "nvmeof",
        "transport": transport,
        "nqn": RDMA_NQN if rdma else TCP_NQN,
        "portals": [{"address": address, "port": 4420 if rdma else 4421, "rail": 0}],
        "namespace": {"uuid": RDMA_UUID if rdma else TCP_UUID},
        "reconnect_delay_s": 2,
        "format": "if_blank",
        **more,
    }


def scratch(*serials: str, **more: Any) -> Overlay:
    """A RAID0 of the client's spare disks with these numbers."""
    disks = [f"nvme-QEMU_NVMe_Ctrl_{CLIENT}s{serial}" for serial in serials]
    return {"kind": "scratch", "raid": 0, "disks": disks, **more}
