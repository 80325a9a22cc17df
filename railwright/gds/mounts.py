"""Whether GPUDirect Storage can reach what is mounted, mount by mount.

Where it cannot, libcufile reads through the host without an error (NVIDIA/gds-nvidia-fs#62).
"""

import re

from railwright.gds.choice import Reason
from railwright.model import Model

NETWORK_BY_RDMA = frozenset({"lustre", "beegfs", "wekafs", "gpfs"})
"""File systems that bring their own way over RDMA; whether it is used is theirs to tell."""
FILE_SYSTEMS = frozenset({"ext4", "xfs", "nfs", "nfs4"}) | NETWORK_BY_RDMA
"""Those that libcufile knows. Source: GDS overview guide, and the lines of gdscheck -p."""


class Mount(Model):
    """One mounted file system; ``device`` is its block device's name (``nvme0n1p1``, ``dm-0``),
    None of one that is not on a block device."""

    target: str
    fstype: str
    source: str
    device: str | None
    options: tuple[str, ...]


def reason_against(mount: Mount) -> Reason | None:
    """Why IO on ``mount`` goes through the host; None where nothing is known against it."""
    if mount.fstype in ("nfs", "nfs4"):
        if {"proto=rdma", "proto=rdma6"} & set(mount.options):
            return None
        proto = next((o for o in mount.options if o.startswith("proto=")), "proto=tcp")
        return Reason(
            text=f"NFS without RDMA ({proto})",
            source="GDS troubleshooting guide, NFS: mounted with proto=rdma",
            remedy="mount it with proto=rdma,port=20049",
        )
    if mount.device is not None and re.fullmatch(r"dm-\d+", mount.device):
        return Reason(
            text=f"{mount.source} is of the device mapper ({mount.device})",
            source="NVIDIA/gds-nvidia-fs#62: Unsupported block device: /dev/dm-0",
            remedy="a file system on the NVMe drive itself, or on an array of md",
        )
    if mount.fstype == "ext4" and {"data=journal", "data=writeback"} & set(mount.options):
        return Reason(
            text="ext4 is not in ordered mode",
            source="GDS installation guide: ext4 has to be mounted with data=ordered",
            remedy="mount it with data=ordered",
        )
    return None
