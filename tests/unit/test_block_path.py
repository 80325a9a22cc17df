"""What mounts stand on: mountinfo and sysfs, read by the probe's own sections."""

import re
import subprocess
from pathlib import Path

import pytest

from facts.block_path import MOUNTS, SECTIONS, STACK, parse_stack, read_block_stack
from facts.device_chain import CHAINS, Bound, Devices, parse_chains
from facts.probe import Focus, Section, script
from railwright.snapshot import Snapshot, parse_probe

MOUNTINFO = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
40 27 9:0 / /scratch\040x rw shared:2 - xfs /dev/md0 rw,attr2
41 27 0:50 / /home rw shared:3 - nfs4 srv:/home rw,vers=4.2,clientaddr=10.0.0.9,addr=10.0.0.5
42 27 0:51 / /lustre rw - lustre 10.0.0.1@o2ib:/fs rw,flock,lazystatfs
43 27 0:52 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,lowerdir=/a,upperdir=/b
44 27 0:53 /@ /data rw - btrfs /dev/sda2 rw,space_cache=v2
"""


def run(sections: tuple[Section, ...], root: Path, tools: str = "") -> Snapshot:
    """The sections over the tree at ``root`` in place of /sys and /proc."""
    text = script(sections, Focus(drivers=True))
    text = re.sub(r"/proc/(self/mountinfo|swaps)", rf"{root}/proc/\1", text)
    text = text.replace("/sys/", f"{root}/sys/")
    text = text.replace("PATH=/usr/sbin", f"PATH={tools}:/usr/sbin" if tools else "PATH=/usr/sbin")
    done = subprocess.run(["sh", "-c", text], capture_output=True, timeout=60)
    return parse_probe(done.stdout.decode("ascii"), host="here")


def put(path: Path, content: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def device(root: Path, kind: str, path: str, *, driver: str = "", module: str = "") -> Path:
    """A device below sys/devices, in its class, with a driver on its parent."""
    folder = root / "sys/devices" / path
    folder.mkdir(parents=True, exist_ok=True)
    link(root / f"sys/class/{kind}/{folder.name}", folder)
    if driver:
        of = root / "sys/bus/x/drivers" / driver
        parent = folder.parent.parent
        if not (parent / "driver").exists():
            link(parent / "driver", of)
        if module and not (of / "module").exists():
            link(of / "module", root / "sys/module" / module)
    return folder


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Root on a partition of local NVMe, RAID0 over NVMe over RDMA, NFS and Lustre."""
    put(tmp_path / "proc/self/mountinfo", MOUNTINFO)
    put(tmp_path / "proc/swaps", "Filename Type\n/dev/dm-0     partition 1 0 -2\n")
    disk = device(
        tmp_path, "block", "pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1", driver="", module=""
    )
    pci = tmp_path / "sys/devices/pci0000:00/0000:01:00.0"
    link(pci / "driver", tmp_path / "sys/bus/pci/drivers/nvme")
    link(tmp_path / "sys/bus/pci/drivers/nvme/module", tmp_path / "sys/module/nvme")
    put(disk / "dev", "259:0")
    part = device(tmp_path, "block", "pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2")
    put(part / "dev", "259:2")
    put(part / "partition", "2")
    controller = device(tmp_path, "nvme", "pci0000:00/0000:01:00.0/nvme/nvme0")
    put(controller / "transport", "pcie")
    put(controller / "address", "0000:01:00.0")
    far = device(tmp_path, "block", "virtual/nvme-subsystem/nvme-subsys1/nvme1n1")
    put(far / "dev", "259:5")
    control = device(tmp_path, "nvme", "virtual/nvme-fabrics/ctl/nvme1")
    put(control / "transport", "rdma")
    put(control / "address", "traddr=10.1.0.7,trsvcid=4420,src_addr=10.1.0.2")
    link(tmp_path / "sys/class/nvme-subsystem/nvme-subsys1", far.parent)
    (far.parent / "nvme1").symlink_to(control)
    md = device(tmp_path, "block", "virtual/block/md0")
    put(md / "dev", "9:0")
    put(md / "md/level", "raid0")
    link(md / "slaves/nvme1n1", far)
    dm = device(tmp_path, "block", "virtual/block/dm-0")
    put(dm / "dev", "253:0")
    put(dm / "dm/uuid", "LVM-abc")
    put(tmp_path / "sys/fs/btrfs/u-1/devices/sda2")
    put(tmp_path / "sys/fs/btrfs/u-1/devices/sdb2")
    nic = device(
        tmp_path, "net", "pci0000:00/0000:1a:00.0/net/ens1", driver="mlx5_core", module="mlx5_core"
    )
    put(nic / "uevent", "INTERFACE=ens1\n")
    link(pci.parent / "driver", tmp_path / "sys/bus/pci/drivers/pcieport")
    bond = device(tmp_path, "net", "virtual/net/bond0")
    put(bond / "uevent", "DEVTYPE=bond\nINTERFACE=bond0\n")
    part_of = tmp_path / "sys/devices/pci0000:00/0000:1a:00.0/mlx5_core.rdma.0"
    link(tmp_path / "sys/bus/auxiliary/devices/mlx5_core.rdma.0", part_of)
    link(part_of / "driver", tmp_path / "sys/bus/auxiliary/drivers/mlx5_ib.rdma")
    link(
        tmp_path / "sys/bus/auxiliary/drivers/mlx5_ib.rdma/module", tmp_path / "sys/module/mlx5_ib"
    )
    put(
        tmp_path / "bin/ip",
        '#!/bin/sh\necho \'[{"dst":"\'"$4"\'","dev":"ens1","flags":[]}]\'\n',
    )
    (tmp_path / "bin/ip").chmod(0o755)
    return tmp_path


def test_the_sections_tell_all_that_mounts_stand_on(host: Path) -> None:
    snapshot = run(SECTIONS, host, tools=str(host / "bin"))
    text = snapshot.text(CHAINS.name).replace(f"{host}/sys", "/sys")
    found = parse_stack(snapshot.text(MOUNTS.name), snapshot.text(STACK.name), parse_chains(text))
    assert [(m.target, m.fstype, m.number, m.server) for m in found.mounts] == [
        ("/", "ext4", "259:2", None),
        ("/scratch x", "xfs", "9:0", None),
        ("/home", "nfs4", "0:50", "10.0.0.5"),
        ("/lustre", "lustre", "0:51", None),
        ("/data", "btrfs", "0:53", None),
    ]
    assert found.swaps == ("/dev/dm-0",)
    assert found.numbers["nvme0n1p2"] == "259:2"
    assert found.under == {"nvme0n1p2": ("nvme0n1",), "md0": ("nvme1n1",)}
    assert (found.levels, found.dm) == ({"md0": "raid0"}, {"dm-0": "LVM-abc"})
    assert found.subsystems == {"nvme-subsys1": ("nvme1",)}
    assert found.controllers["nvme1"].server == "10.1.0.7"
    assert found.controllers["nvme0"].server is None
    assert found.routes == {"10.1.0.7": "ens1", "10.0.0.5": "ens1"}
    assert found.btrfs == (("sda2", "sdb2"),)


def test_devices_and_the_modules_on_their_way_up(host: Path) -> None:
    text = run((CHAINS,), host).text(CHAINS.name).replace(f"{host}/sys", "/sys")
    devices = parse_chains(text)

    def modules(kind: str, name: str) -> tuple[str, ...]:
        found = next(d for d in devices.devices if (d.kind, d.name) == (kind, name))
        return devices.modules_under(found)

    assert modules("block", "nvme0n1p2") == ("nvme",)
    assert modules("net", "ens1") == ("mlx5_core",)
    assert modules("net", "bond0") == ("bonding",)
    assert devices.rdma_modules("0000:1a:00.0") == ("mlx5_ib", "mlx5_core")
    nic = devices.named("net", "ens1")
    assert nic is not None
    assert nic.pci == "0000:1a:00.0"
    assert devices.drivers_under(nic) == (
        Bound(driver="mlx5_core", module="mlx5_core"),
        Bound(driver="pcieport", module=None),
    )


def test_this_machine_is_read() -> None:
    done = subprocess.run(
        ["sh", "-c", script(SECTIONS, Focus(drivers=True))], capture_output=True, timeout=60
    )
    snapshot = parse_probe(done.stdout.decode("ascii"), host="here")
    assert all(snapshot.section(section.name).rc == 0 for section in SECTIONS)
    assert read_block_stack(snapshot).mounts[0].target == "/"
    names = {d.name for d in parse_chains(snapshot.text(CHAINS.name)).devices if d.kind == "net"}
    assert names == {path.name for path in Path("/sys/class/net").iterdir() if path.is_dir()}


@pytest.mark.parametrize("line", ["mount / ext4", "route 10.0.0.1 no json", "what is this"])
def test_lines_of_another_kind_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"expected|JSON"):
        parse_stack(f"mount 8:1 / ext4 /dev/sda1 -\n{line}\n", "", Devices(devices=()))


def test_mounts_without_a_root_are_not_the_mounts_of_a_node() -> None:
    with pytest.raises(ValueError, match="expected a mount of /"):
        parse_stack("mount 8:2 /data ext4 /dev/sda2 -\n", "", Devices(devices=()))


@pytest.mark.parametrize("line", ["device disk sda /x", "driver nvme nvme", "nothing"])
def test_a_chain_of_another_kind_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="expected a device or a driver"):
        parse_chains(f"{line}\n")
