"""The containers of the molecule scenario ``storage``, whose environment has the secrets."""

from typing import Any

from railwright.site import inventory
from tests.drivers.asked import MOUNTED
from tests.storage.asked import beegfs, beegfs_mount, lustre, lustre_mount, repositories

ALL = "@podman/railwright-storage"
CLASSIC = "@podman/railwright-beegfs7"


def _node(index: int) -> dict[str, Any]:
    """What both have: rails of a container, which has no NICs, with the addresses of a host."""
    return {
        "fabric": "roce",
        "ofed": {"kind": "inbox"},
        "rails": {
            "nics": {0: {"pci": "0000:13:00.0"}, 1: {"pci": "0000:14:00.0"}},
            "plan": {"prefix": "10.64.0.0/12", "rail_prefix_length": 20, "host_index": index},
        },
        "effects": {"allow": ["live", "new_processes", "service", "remount"]},
    }


_secret = {"env": "RAILWRIGHT_MOLECULE_BEEGFS"}
_volume = {
    "kind": "nvmeof",
    "transport": "rdma",
    "nqn": "nqn.2014-08.org.example:volume1",
    "portals": [{"address": "10.64.0.9", "rail": 0}, {"address": "10.64.16.9", "rail": 1}],
    "namespace": {"uuid": "0a0b0c0d-0102-0304-0506-0708090a0b0c"},
    "host_key": {"env": "RAILWRIGHT_MOLECULE_DHCHAP"},
    "filesystem": "xfs",
}
_mounts = {
    "/mnt/scr": lustre_mount("10.77.3.1", "10.77.3.2"),
    "/mnt/beegfs": beegfs_mount(
        "10.20.0.21", auth=_secret, tls_certificate=_secret, other={"quotaEnabled": True}
    ),
    "/mnt/second": beegfs_mount(
        "mgmt02", config="/etc/beegfs/second.conf", client_port=8104, interfaces=["eno1"]
    ),
    "/mnt/volume": _volume,
    "/mnt/nfs": {"kind": "nfs", "server": "10.64.0.9", "export": "/export/data"},
    "/scratch": {"kind": "scratch", "raid": 0, "disks": ["nvme-disk_a", "nvme-disk_b"]},
}
_all = {
    **_node(0),
    "repositories": repositories(MOUNTED, "lustre", "beegfs"),
    "lustre": lustre(),
    "beegfs": beegfs(8, "dkms"),
    "nvmeof": {"host_nqn": "nqn.2014-08.org.example:container", "iopolicy": "round-robin"},
    "storage": {"mounts": _mounts},
}
_classic = {
    **_node(1),
    "repositories": repositories(MOUNTED, "beegfs"),
    "beegfs": beegfs(7, "autobuild"),
    "storage": {"mounts": {"/mnt/beegfs": beegfs_mount("mgmt01", auth=_secret)}},
}

globals().update(
    inventory(__file__, {"nodes": [ALL, CLASSIC]}, {ALL: _all, CLASSIC: _classic}),
)
