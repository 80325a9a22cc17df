"""Mounts on which GPUDirect Storage goes through the host, told before anybody measures."""

import subprocess
from pathlib import Path

import pytest

from facts.gds_mounts import MOUNTS, GdsMountsFact, parse_mounts
from facts.probe import Focus, script
from railwright.gds.mounts import reason_against
from railwright.snapshot import Snapshot, parse_probe

SHOWN = """\
/dev/mapper/vg0-data /data xfs rw,noatime 0 0
/dev/nvme1n1p1 /scratch ext4 rw,relatime 0 0
/dev/nvme2n1 /logs ext4 rw,data=writeback 0 0
10.0.0.1:/set /mnt/set nfs4 rw,vers=4.1,proto=tcp 0 0
10.0.0.1:/fast /mnt/fast\\040one nfs4 rw,vers=4.1,proto=rdma,port=20049 0 0
10.0.0.5@o2ib:/fs /mnt/lustre lustre rw,flock 0 0
tmpfs /tmp tmpfs rw 0 0
"""


def probe(tmp_path: Path) -> Snapshot:
    """The section, run by a real shell over a table of mounts and links of /dev/mapper."""
    (tmp_path / "mounts").write_text(SHOWN)
    mapper = tmp_path / "dev" / "mapper"
    mapper.mkdir(parents=True)
    (tmp_path / "dev" / "dm-0").write_text("")
    (mapper / "vg0-data").symlink_to("../dm-0")
    text = script([MOUNTS], Focus(drivers=True))
    text = text.replace("/proc/self/mounts", str(tmp_path / "mounts"))
    text = text.replace('readlink -f "$source"', f'readlink -f "{tmp_path}$source"')
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return parse_probe(done.stdout, host="here")


def test_bug_44_a_mount_on_the_device_mapper_and_nfs_without_rdma_are_told(tmp_path: Path) -> None:
    found = GdsMountsFact().read(probe(tmp_path))
    assert found.mounts["/data"].device == "dm-0"
    assert found.against.keys() == {"/data", "/logs", "/mnt/set"}
    assert found.against["/data"].text == "/dev/mapper/vg0-data is of the device mapper (dm-0)"
    assert "gds-nvidia-fs#62" in found.against["/data"].source
    assert found.against["/mnt/set"].text == "NFS without RDMA (proto=tcp)"
    assert found.against["/logs"].text == "ext4 is not in ordered mode"


def test_bug_44_twin_nvme_itself_and_nfs_over_rdma_are_not(tmp_path: Path) -> None:
    found = GdsMountsFact().read(probe(tmp_path))
    assert {"/scratch", "/mnt/fast one", "/mnt/lustre"} <= found.mounts.keys()
    assert not {"/scratch", "/mnt/fast one", "/mnt/lustre"} & found.against.keys()
    assert found.mounts["/mnt/lustre"].device is None


@pytest.mark.parametrize("device", ["nvme0n1", "nvme0n1p2", "md0", "dm"])
def test_only_the_device_mapper_itself_is_told(device: str) -> None:
    (mount,) = parse_mounts(f"xfs /dev/{device} {device} rw /data\n")
    assert reason_against(mount) is None
    (other,) = parse_mounts("xfs /dev/mapper/x dm-12 rw /data\n")
    assert reason_against(other) is not None


@pytest.mark.parametrize("line", ["xfs /dev/x nvme0n1 rw", "tmpfs tmpfs - rw /tmp", "oops"])
def test_a_line_of_another_kind_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="expected a mount of five words"):
        parse_mounts(line)


def test_nfs_over_rdma_by_ipv6_goes_over_rdma_too() -> None:
    (mount,) = parse_mounts("nfs4 [fd00::9]:/exp - rw,proto=rdma6,port=20049 /data\n")
    assert reason_against(mount) is None
