"""Scratch on disks that hold something: refused by name and reason, and nothing is touched."""

from tests.lab.lab import Lab
from tests.storage.conftest import pyinfra, said, site
from tests.storage.site import CLIENT

DISK = f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{CLIENT}s2"
DISKS = f"for d in /dev/vda {DISK}; do wipefs $d; done; sha256sum {DISK}; lsblk -rno NAME,TYPE"


def refused(lab: Lab) -> str:
    """What a run and drift say of the scratches; the run leaves all disks as they are."""
    disks = lab.run(CLIENT, DISKS).stdout
    done = pyinfra("refused", "-y", "--limit", CLIENT)
    assert lab.run(CLIENT, DISKS).stdout == disks
    drift = site("refused").drift("--component", "scratch")
    reasons = [
        f"{entry['key']}: {entry['reason']}"
        for host in drift["hosts"]
        for entry in host["findings"]
        if entry["outcome"] != "fine"
    ]
    return "\n".join([said(done), *reasons])


def test_the_disk_of_the_root_file_system_and_foreign_ones_are_refused(railed: Lab) -> None:
    made = railed.run(CLIENT, f"mkfs.ext4 -q -F -L backup {DISK}")
    assert made.returncode == 0, made.stderr
    told = refused(railed)
    assert "holds the root file system" in told
    assert "has a signature: ext4 (label backup)" in told


def test_a_mounted_disk_is_refused(railed: Lab) -> None:
    mounted = railed.run(CLIENT, f"mkdir -p /data && mount -o ro,noload {DISK} /data")
    assert mounted.returncode == 0, mounted.stderr
    try:
        told = refused(railed)
        assert "is mounted at /data" in told
    finally:
        railed.run(CLIENT, f"umount /data; wipefs -qa {DISK}")
