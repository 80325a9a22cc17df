"""What the unit of a volume does on a node, run here over a root folder of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

from railwright.nvmeof import volumes_of
from tests.unit.nvme_host import DEVICE, HOST_ID, HOST_NQN, NAME, NQN, TARGETS, UUID, node
from tests.unit.nvme_kernel import CONF, Kernel

DATA = f"/etc/railwright/nvmeof/{NAME}.conf"
KEYS = f"/etc/railwright/nvmeof/{NAME}.keys"
KEY = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:"
REQUEST = (
    f"nqn={NQN},transport=rdma,traddr=10.64.0.9,trsvcid=4420,host_traddr=10.64.0.2,"
    f"hostnqn={HOST_NQN},hostid={HOST_ID},nr_io_queues=4,ctrl_loss_tmo=1800"
)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_every_portal_is_connected_by_one_write(kernel: Kernel, shell: str) -> None:
    kernel.put("/offers", "")
    done = kernel.run("once", NAME, shell=shell)
    assert done.returncode == 0, done.stderr
    first, second = kernel.text("/requests").splitlines()
    assert first == REQUEST
    assert second == REQUEST.replace("10.64.0.9", "10.64.1.9").replace(",host_traddr=10.64.0.2", "")
    assert "conv=nocreat" in kernel.text("/arguments")
    assert kernel.text("/calls").splitlines() == ["modprobe nvme-fabrics"] * 2
    assert f"{NAME}: 10.64.0.9:4420 connected" in done.stderr


def test_what_a_path_was_given_is_noted_and_of_one_that_is_there_nothing(kernel: Kernel) -> None:
    kernel.put("/offers", "")
    kernel.connect(TARGETS[0])
    assert kernel.run("once", NAME).returncode == 0
    inode = (kernel.root / "sys/class/nvme/nvme1").stat().st_ino
    assert kernel.text("/run/railwright/nvmeof/nvme1") == (
        f"{inode} nr_io_queues=4,ctrl_loss_tmo=1800\n"
    )
    assert not (kernel.root / "run/railwright/nvmeof/nvme0").exists()


def test_what_python_writes_is_what_the_script_reads(kernel: Kernel) -> None:
    asked = volumes_of(node())[0]
    kernel.put(DATA, asked.conf())
    kernel.put("/offers", "")
    assert kernel.run("once", NAME).returncode == 0
    requests = kernel.text("/requests").splitlines()
    for portal, request in zip(asked.portals, requests, strict=True):
        assert f",traddr={portal.traddr},trsvcid=4420,host_traddr={portal.host}," in request
        assert request.endswith(f",{asked.options}")
        assert request.startswith(f"nqn={NQN},transport=rdma,")


def test_a_path_that_is_there_is_left_in_whatever_state(kernel: Kernel) -> None:
    kernel.put("/offers", "")
    kernel.connect(TARGETS[0])
    kernel.put("/sys/class/nvme/nvme0/state", "connecting\n")
    assert kernel.run("once", NAME).returncode == 0
    assert [line.split(",")[2] for line in kernel.text("/requests").splitlines()] == [
        f"traddr={TARGETS[1]}"
    ]
    kernel.put("/sys/class/nvme/nvme0/state", "deleting (no IO)\n")
    assert kernel.run("once", NAME).returncode == 0
    assert len(kernel.text("/requests").splitlines()) == 2


def test_an_address_is_compared_whole(kernel: Kernel) -> None:
    kernel.connect(f"{TARGETS[0]}9")
    kernel.put("/offers", "")
    assert kernel.run("once", NAME).returncode == 0
    assert len(kernel.text("/requests").splitlines()) == 2


def test_a_target_that_is_away_is_named_with_the_kernels_reason(kernel: Kernel) -> None:
    kernel.put("/refuses", "".join(f"{address} Connection refused\n" for address in TARGETS))
    done = kernel.run("once", NAME)
    assert done.returncode == 1
    assert "10.64.0.9:4420: Connection refused" in done.stderr
    assert "10.64.1.9:4420: Connection refused" in done.stderr


def test_one_path_of_two_connects_and_the_other_is_told(kernel: Kernel) -> None:
    kernel.put("/offers", "")
    kernel.put("/refuses", f"{TARGETS[1]} No route to host\n")
    done = kernel.run("once", NAME)
    assert done.returncode == 1
    assert "10.64.0.9:4420 connected" in done.stderr
    assert "10.64.1.9:4420: No route to host" in done.stderr


def test_a_namespace_that_does_not_come_is_named(kernel: Kernel) -> None:
    done = kernel.run("once", NAME)
    assert done.returncode == 1
    assert f"connected, and has no namespace with uuid {UUID}" in done.stderr


@pytest.mark.parametrize("file", ["hostnqn", "hostid"])
def test_without_an_identity_nothing_is_connected(kernel: Kernel, file: str) -> None:
    (kernel.root / "etc/nvme" / file).unlink()
    done = kernel.run("once", NAME)
    assert "/etc/nvme/hostnqn or hostid is not there" in done.stderr
    assert kernel.text("/requests") == ""


def test_without_the_module_no_file_is_made_in_its_place(kernel: Kernel) -> None:
    (kernel.root / "dev/nvme-fabrics").unlink()
    done = kernel.run("once", NAME)
    assert "there is no /dev/nvme-fabrics" in done.stderr
    assert not (kernel.root / "dev/nvme-fabrics").exists()


def with_keys(kernel: Kernel, *lines: str) -> None:
    kernel.put(DATA, f"{CONF}keys {KEYS}\n")
    kernel.put(KEYS, "".join(f"{line}\n" for line in lines))
    kernel.put("/offers", "")


def test_keys_are_given_and_are_in_no_argument(kernel: Kernel) -> None:
    with_keys(kernel, f"dhchap_secret={KEY}", f"dhchap_ctrl_secret={KEY}")
    done = kernel.run("once", NAME)
    assert done.returncode == 0, done.stderr
    first = kernel.text("/requests").splitlines()[0]
    assert first == f"{REQUEST},dhchap_secret={KEY},dhchap_ctrl_secret={KEY}"
    assert KEY not in kernel.text("/arguments")
    assert KEY not in done.stderr + done.stdout


def test_keys_that_sysfs_shows_to_all_are_roots_alone(kernel: Kernel) -> None:
    with_keys(kernel, f"dhchap_secret={KEY}")
    kernel.connect("10.9.9.9")
    kernel.put("/sys/class/nvme/nvme0/subsysnqn", f"{NQN}0\n")
    assert kernel.run("once", NAME).returncode == 0
    folder = kernel.root / "sys/class/nvme"
    files = list(folder.glob("*/dhchap*"))
    modes = {str(file.relative_to(folder)): file.stat().st_mode & 0o777 for file in files}
    assert modes == {
        f"nvme{number}/{name}": 0o644 if number == 0 else 0o600
        for number in range(3)
        for name in ("dhchap_secret", "dhchap_ctrl_secret")
    }


@pytest.mark.parametrize(
    "line",
    [
        "dhchap_secret=password",
        "dhchap_secret=DHHC-1:00:",
        f"dhchap_secret={KEY},host_iface=eth0",
        f"secret={KEY}",
        KEY,
        "",
    ],
)
def test_what_the_kernel_would_write_to_its_log_is_not_given_to_it(
    kernel: Kernel, line: str
) -> None:
    with_keys(kernel, line)
    done = kernel.run("once", NAME)
    assert done.returncode == 1
    assert KEYS in done.stderr
    assert kernel.text("/requests") == ""
    assert KEY not in done.stderr
    assert "password" not in done.stderr


def test_a_kernel_without_dh_hmac_chap_is_given_no_key(kernel: Kernel) -> None:
    with_keys(kernel, f"dhchap_secret={KEY}")
    kernel.put("/dev/nvme-fabrics", "instance=-1,cntlid=-1,transport=%s,traddr=%s\n")
    done = kernel.run("once", NAME)
    assert "this kernel has no DH-HMAC-CHAP" in done.stderr
    assert kernel.text("/requests") == ""


def test_keys_that_are_missing_are_told(kernel: Kernel) -> None:
    with_keys(kernel)
    (kernel.root / KEYS.lstrip("/")).unlink()
    assert f"{KEYS} cannot be read" in kernel.run("once", NAME).stderr
    assert kernel.text("/requests") == ""


def calls(kernel: Kernel, tool: str) -> list[str]:
    lines = kernel.text("/calls").splitlines()
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{tool} ")]


def test_the_unit_mounts_once_when_the_device_comes(kernel: Kernel) -> None:
    kernel.put("/offers", "")
    assert kernel.run("keep", NAME, turns=3).returncode == 0
    assert calls(kernel, "systemctl") == ["--no-block start mnt-vol\\x2da.mount"]
    assert calls(kernel, "sleep") == ["60"] * 3
    assert len(kernel.text("/requests").splitlines()) == 2


def test_the_unit_tries_again_and_tells_once_why_it_fails(kernel: Kernel) -> None:
    kernel.put("/refuses", "".join(f"{address} Connection refused\n" for address in TARGETS))
    done = kernel.run("keep", NAME, turns=5)
    assert done.returncode == 0
    assert done.stderr.count("10.64.0.9:4420: Connection refused") == 1
    assert len(kernel.text("/requests").splitlines()) == 10
    assert calls(kernel, "sleep") == ["5", "10", "20", "30", "30"]
    assert calls(kernel, "systemctl") == []


def test_the_unit_connects_again_what_was_given_up(tmp_path: Path) -> None:
    root = tmp_path
    lost = f"rm -rf {root}/sys/class/nvme/nvme* {root}/dev/railwright/*"
    # In the first pause the kernel gives the paths up, and with them the device.
    kernel = Kernel(root, sleep=f"[ -e {root}/was ] || {{ : >{root}/was; {lost}; }}")
    kernel.put("/offers", "")
    assert kernel.run("keep", NAME, turns=2).returncode == 0
    assert len(kernel.text("/requests").splitlines()) == 4
    assert len(calls(kernel, "systemctl")) == 2


def test_down_disconnects_every_path(kernel: Kernel) -> None:
    for address in TARGETS:
        kernel.connect(address)
    kernel.block()
    assert kernel.run("down", NAME).returncode == 0
    for number in (0, 1):
        assert kernel.text(f"/sys/class/nvme/nvme{number}/delete_controller") == "1\n"


def test_down_leaves_other_subsystems_alone(kernel: Kernel) -> None:
    kernel.connect(TARGETS[0])
    kernel.put("/sys/class/nvme/nvme0/subsysnqn", f"{NQN}0\n")
    assert kernel.run("down", NAME).returncode == 0
    assert kernel.text("/sys/class/nvme/nvme0/delete_controller") == ""


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (
            "/proc/self/mountinfo",
            "30 1 259:7 / /mnt/vol rw - ext4 /dev/x rw\n",
            "mounted at /mnt/vol",
        ),
        ("/proc/self/mountinfo", "30 1 259:8 / /mnt/p rw - ext4 /dev/x rw\n", "mounted at /mnt/p"),
        ("/proc/swaps", f"/dev/{DEVICE} partition 1 0 -2\n", "in use as swap"),
        (f"/sys/class/block/{DEVICE}/holders/dm-0", "", "held by dm-0"),
    ],
)
def test_down_takes_nothing_that_is_used(kernel: Kernel, path: str, text: str, said: str) -> None:
    kernel.connect(TARGETS[0])
    kernel.block()
    kernel.put(f"/sys/class/block/{DEVICE}/{DEVICE}p1/dev", "259:8\n")
    kernel.put(path, text)
    done = kernel.run("down", NAME)
    assert done.returncode == 1
    assert said in done.stderr
    assert kernel.text("/sys/class/nvme/nvme0/delete_controller") == ""


@pytest.mark.parametrize(
    "arguments", [("once",), ("once", "a/b"), ("up", NAME), ("once", "not-there")]
)
def test_what_makes_no_sense_is_refused(kernel: Kernel, arguments: tuple[str, ...]) -> None:
    assert kernel.run(*arguments).returncode == 2
    assert kernel.text("/requests") == ""


@pytest.mark.parametrize("text", ["nqn x\n", f"{CONF}what is this\n"])
def test_data_that_cannot_be_read_is_refused(kernel: Kernel, text: str) -> None:
    kernel.put(DATA, text)
    assert kernel.run("once", NAME).returncode == 2


LINK = f"/dev/railwright/{NAME}"


@pytest.fixture
def disk(kernel: Kernel) -> Path:
    """A namespace with nothing on it, that is a file."""
    kernel.block()
    device = kernel.root / "dev" / DEVICE
    device.write_bytes(b"")
    with device.open("r+b") as file:
        file.truncate(64 << 20)
    (kernel.root / "dev/railwright").mkdir()
    (kernel.root / LINK.lstrip("/")).symlink_to(f"../{DEVICE}")
    return device


def wipefs(device: Path) -> str:
    done = subprocess.run(
        ["/sbin/wipefs", "-i", "-O", "TYPE", str(device)], capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_file_system_is_made_where_nothing_is_and_once(
    kernel: Kernel, disk: Path, shell: str
) -> None:
    done = kernel.format(LINK, NQN, "ext4", shell=shell)
    assert done.returncode == 0, done.stderr
    assert wipefs(disk) == "ext4"
    made = disk.read_bytes()
    assert kernel.format(LINK, NQN, "ext4", shell=shell).returncode == 0
    assert disk.read_bytes() == made


def test_what_is_there_is_named_and_stays(kernel: Kernel, disk: Path) -> None:
    mkfs = shutil.which("mkswap") or "/sbin/mkswap"
    subprocess.run([mkfs, str(disk)], check=True, capture_output=True)
    before = disk.read_bytes()
    done = kernel.format(LINK, NQN, "ext4")
    assert done.returncode == 1
    assert f"{DEVICE} is not blank, and is left as it is: it has swap" in done.stderr
    assert disk.read_bytes() == before


def test_another_file_system_stays_too(kernel: Kernel, disk: Path) -> None:
    assert kernel.format(LINK, NQN, "ext4").returncode == 0
    (kernel.root / "bin/mkfs.xfs").write_text("#!/bin/sh\nexit 0\n")
    (kernel.root / "bin/mkfs.xfs").chmod(0o755)
    done = kernel.format(LINK, NQN, "xfs")
    assert done.returncode == 1
    assert "it has ext4" in done.stderr
    assert wipefs(disk) == "ext4"


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (f"/sys/class/block/{DEVICE}/device/subsysnqn", f"{NQN}0\n", f"of the subsystem {NQN}0"),
        (f"/sys/class/block/{DEVICE}/ro", "1\n", "is read-only"),
        (f"/sys/class/block/{DEVICE}/size", "0\n", "has no size"),
        (f"/sys/class/block/{DEVICE}/{DEVICE}p1/partition", "1\n", "has partitions"),
        (f"/sys/class/block/{DEVICE}/holders/dm-0", "", "held by dm-0"),
        ("/proc/self/mountinfo", "30 1 259:7 / /x rw - ext4 /dev/x rw\n", "is mounted at /x"),
        ("/proc/swaps", f"/dev/{DEVICE} partition 1 0 -2\n", "in use as swap"),
    ],
)
def test_what_is_used_is_not_formatted(
    kernel: Kernel, disk: Path, path: str, text: str, said: str
) -> None:
    kernel.put(path, text)
    done = kernel.format(LINK, NQN, "ext4")
    assert done.returncode == 1
    assert said in done.stderr
    assert wipefs(disk) == ""


@pytest.mark.parametrize("part", ["count=1", "count=2 skip=0"])
def test_what_cannot_be_read_is_not_blank(kernel: Kernel, disk: Path, part: str) -> None:
    """wipefs says nothing of a disk that it cannot read, and ends well."""
    before = disk.read_bytes()
    kernel.put("/unreadable", f"{part}\n")
    done = kernel.format(LINK, NQN, "ext4")
    assert done.returncode == 1
    assert f"{DEVICE} cannot be read" in done.stderr
    assert disk.read_bytes() == before


def test_a_namespace_that_is_not_there_is_not_formatted(kernel: Kernel) -> None:
    done = kernel.format(LINK, NQN, "ext4")
    assert done.returncode == 1
    assert "is not there: the namespace is not connected" in done.stderr
