"""Scratch on disks that hold the root file system, or a file system of somebody else."""

from railwright.site import inventory
from tests.storage.site import CLIENT, SERVER, hosts, scratch

MOUNTS = {
    "/refused/root": {
        "kind": "scratch",
        "name": "root",
        "raid": None,
        "disks": {"count": 1, "transport": "virtio"},
    },
    "/refused/foreign": {**scratch("2"), "name": "foreign", "raid": None},
}

globals().update(
    inventory(__file__, {"nodes": [CLIENT, SERVER]}, hosts(storage={"mounts": MOUNTS}))
)
