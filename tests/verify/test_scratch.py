"""Local scratch: the mounted file system, down to the disks that it is on."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.scratch import LocalScratch
from tests.verify.cases import for_each

Case = tuple[str, LocalScratch]


def _each_scratch(node: Node) -> Iterator[Case]:
    for where, mount in node.storage.mounts.items():
        if mount.kind == "scratch":
            yield where, mount


def _each_array(node: Node) -> Iterator[Case]:
    return ((where, one) for where, one in _each_scratch(node) if one.raid is not None)


def _source(host: Host, where: str) -> str:
    return host.check_output(f"findmnt -n -o SOURCE --mountpoint {where}").strip()


def _disks_under(host: Host, device: str) -> set[str]:
    """The whole disks that a device stands on, by their paths."""
    lines = host.check_output(f"lsblk -s -n -l -p -o NAME,TYPE {device}").splitlines()
    return {line.split()[0] for line in lines if line.split()[1] == "disk"}


@for_each(_each_scratch)
def test_mounted(host: Host, node: Node, case: Case, owns_kernel: bool) -> None:
    where, scratch = case
    if not owns_kernel:
        return
    device = _source(host, where)
    kind, options = host.check_output(f"findmnt -n -o FSTYPE,OPTIONS --mountpoint {where}").split()
    assert kind == scratch.filesystem
    assert "rw" in options.split(",")
    assert "discard" not in options.split(",")
    assert set(options.split(",")) >= {o for o in scratch.options if o == "noatime"}
    # From the disk itself, not from what udev has noted of it.
    label = host.check_output(f"blkid -p -s LABEL -o value {device}").strip()
    assert label == f"rw-{scratch.name}"
    assert host.check_output(f"readlink -f /dev/disk/by-label/{label}").strip() == device


@for_each(_each_scratch)
def test_disks(host: Host, node: Node, case: Case, owns_kernel: bool) -> None:
    """Those that were named, or as many as were asked for; never one that holds the root."""
    where, scratch = case
    if not owns_kernel:
        return
    disks = _disks_under(host, _source(host, where))
    if isinstance(scratch.disks, tuple):
        asked = {
            host.check_output(f"readlink -e /dev/disk/by-id/{disk}").strip()
            for disk in scratch.disks
        }
        assert disks == asked
    else:
        assert len(disks) == scratch.disks.count
    assert not disks & _disks_under(host, _source(host, "/"))
    parts = host.check_output(f"lsblk -n -l -o TYPE {' '.join(sorted(disks))}").split()
    assert "part" not in parts


@for_each(_each_array)
def test_array(host: Host, node: Node, case: Case, owns_kernel: bool) -> None:
    where, scratch = case
    if not owns_kernel:
        return
    device = _source(host, where)
    told = dict(
        line.split("=", 1)
        for line in host.check_output(f"mdadm --detail --export {device}").splitlines()
    )
    assert told["MD_LEVEL"] == f"raid{scratch.raid}"
    # With "any" in the host's place every host takes the array for its own at boot.
    assert told["MD_NAME"] == f"any:railwright-{scratch.name}"
    members = [value for key, value in told.items() if re.fullmatch(r"MD_DEVICE_.+_DEV", key)]
    assert len(members) == int(told["MD_DEVICES"])
    for member in members:
        superblock = host.check_output(f"mdadm --examine --export {member}")
        assert f"MD_UUID={told['MD_UUID']}" in superblock
    name = device.removeprefix("/dev/")
    stat = host.check_output("cat /proc/mdstat")
    line = re.search(rf"^{name} : active (?:\(auto-read-only\) )?(\S+) (.*)$", stat, re.M)
    assert line is not None
    assert line[1] == f"raid{scratch.raid}"
    assert "(F)" not in line[2]
    if scratch.raid != 0:
        assert host.check_output(f"cat /sys/block/{name}/md/degraded").strip() == "0"
    if scratch.raid != 1:
        size = int(host.check_output(f"cat /sys/block/{name}/md/chunk_size"))
        number, unit = re.split(r"(?=[KMG]iB)", scratch.chunk)
        assert size == int(number) << {"KiB": 10, "MiB": 20, "GiB": 30}[unit]


@for_each(_each_scratch)
def test_boot(host: Host, node: Node, case: Case, owns_kernel: bool) -> None:
    """It is mounted at boot, and no boot waits for it; fstab has no word of it."""
    where, scratch = case
    unit = host.check_output(f"systemd-escape -p --suffix=mount {where}").strip()
    assert host.run(f"systemctl is-enabled '{unit}'").stdout.strip() == "enabled"
    content = host.file(f"/etc/systemd/system/{unit}").content_string
    assert f"\nWhat=/dev/disk/by-label/rw-{scratch.name}\n" in content
    found = re.search(r"^Options=(.*)$", content, re.M)
    assert found is not None
    assert "nofail" in found[1].split(",")
    assert "_netdev" not in found[1].split(",")
    assert host.run(rf"grep -qE '^[^#]+\s{where}\s' /etc/fstab").rc != 0
    if owns_kernel:
        assert host.run(f"systemctl is-active '{unit}'").stdout.strip() == "active"


@for_each(_each_scratch)
def test_trim(host: Host, node: Node, case: Case, owns_kernel: bool) -> None:
    where, _ = case
    assert host.run("systemctl is-enabled fstrim.timer").stdout.strip() == "enabled"
    drop_ins = host.check_output("cat /etc/systemd/system/fstrim.service.d/*.conf")
    assert re.search(rf"^ExecStart=-?\S+/fstrim {re.escape(where)}$", drop_ins, re.M)
    if owns_kernel:
        assert host.run("systemctl is-active fstrim.timer").stdout.strip() == "active"
        # What systemd has read, and so what the timer starts.
        starts = host.check_output("systemctl show -p ExecStart fstrim.service")
        assert f"fstrim {where} " in starts
