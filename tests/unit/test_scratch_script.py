"""The script that makes a scratch, run by a real shell over a tree in place of /sys and /dev.

It decides on the node what Python has decided before: both are held together here.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from railwright.actions import RunScript, render
from railwright.schema.scratch import LocalScratch
from railwright.scratch import reasons_against
from railwright.templates import render as template
from tests.unit.scratch_host import ROOT, Array, B, C, D, done, host, node, scratch, seen
from tests.unit.test_block_devices import tool
from tests.unit.test_block_path import put
from tests.unit.test_scratch_choice import REFUSED

SCRIPT = template("scratch/railwright-scratch.sh.j2")
TOOLS = {
    "wipefs": """
for last; do :; done
[ -e "$RW_ROOT/signatures/${last##*/}" ] || exit 1
cat "$RW_ROOT/signatures/${last##*/}"
""",
    "udevadm": 'echo "udevadm $*" >>"$RW_ROOT/log"\n',
    "mkfs.xfs": 'echo "mkfs.xfs $*" >>"$RW_ROOT/log"; exit "$(cat "$RW_ROOT/mkfs")"\n',
    "mkfs.ext4": 'echo "mkfs.ext4 $*" >>"$RW_ROOT/log"\n',
    # It reads what it is asked, as mdadm does where it asks a person.
    "mdadm": """
if [ "$1" = --detail ]; then cat "$RW_ROOT/detail"; exit; fi
echo "mdadm $*" >>"$RW_ROOT/log"
! read -r answer || echo "answered $answer" >>"$RW_ROOT/log"
[ ! -e "$RW_ROOT/busy" ] || { echo "mdadm: Device or resource busy" >&2; exit 1; }
for arg; do
    case $arg in /dev/disk/by-id/*) ;; *) continue ;; esac
    disk=$(readlink -f "$RW_ROOT$arg")
    mkdir -p "$RW_ROOT/sys/class/block/${disk##*/}/holders/md127"
done
""",
}


def block(root: Path, name: str, number: str, size: int = 8388608) -> Path:
    folder = root / "sys/class/block" / name
    for key, value in {"dev": number, "ro": "0", "removable": "0", "size": str(size)}.items():
        put(folder / key, f"{value}\n")
    put(root / "dev" / name)
    put(root / "signatures" / name, "")
    return folder


def tree(root: Path, *disks: D, mounted: str = "", arrays: tuple[Array, ...] = ()) -> None:
    """The disks as the script finds them; the arguments are those of ``host``."""
    put(root / "mkfs", "0\n")
    put(root / "detail", "MD_LEVEL=raid0\nMD_NAME=any:railwright-scratch\n")
    mounts, swaps = [], ["Filename Type"]
    for line in mounted.splitlines():
        words = line.split()
        if words[0] == "swap":
            swaps.append(f"{words[2]} partition")
        else:
            mounts.append(f"40 27 {words[1]} / {words[2]} rw - {words[3]} {words[4]} rw")
    put(root / "proc/self/mountinfo", "\n".join(mounts) + "\n")
    put(root / "proc/swaps", "\n".join(swaps) + "\n")
    for position, disk in enumerate(disks):
        number = disk.number or f"254:{16 * position}"
        folder = block(root, disk.name, number, int(disk.gib * 2**21))
        put(folder / "ro", f"{int(disk.read_only)}\n")
        put(folder / "removable", f"{int(disk.removable)}\n")
        (folder / "device").mkdir()
        if disk.fabric != "-":
            put(folder / "device/transport", f"{disk.fabric}\n")
        for at, upper in enumerate(disk.upper, start=1):
            if upper.startswith(disk.name):
                block(root, upper, f"254:{16 * position + at}")
                put(folder / upper / "partition", "1\n")
                put(root / "sys/class/block" / upper / "partition", "1\n")
            else:
                put(folder / "holders" / upper)
        if any(disk.name in array.members for array in arrays):
            put(folder / "holders/md127")
        told = "".join(f"{kind} {label or ''}\n" for kind, label in disk.signatures)
        put(root / "signatures" / disk.name, told)
        if disk.wipefs:
            (root / "signatures" / disk.name).unlink()
        by_id = root / "dev/disk/by-id"
        by_id.mkdir(parents=True, exist_ok=True)
        if disk.by_id:
            (by_id / disk.by_id).symlink_to(f"../../{disk.name}")
    block(root, "md127", "9:127")


def run(root: Path, asked: LocalScratch, mode: str = "make") -> tuple[int, str, list[str]]:
    """Its exit, what it says, and the commands that it ran."""
    for name, body in TOOLS.items():
        if not (root / "bin" / name).exists():
            tool(root / "bin", name, body)
    level = "-" if asked.raid is None else str(asked.raid)
    assert isinstance(asked.disks, tuple)
    arguments = (mode, "scratch", level, "512", asked.filesystem, *asked.disks)
    ran = subprocess.run(
        ["dash", "-s", "--", *arguments],
        input=SCRIPT,
        text=True,
        capture_output=True,
        env={"PATH": f"{root}/bin:/usr/bin:/bin", "RW_ROOT": str(root)},
    )
    log = root / "log"
    return ran.returncode, ran.stderr, log.read_text().splitlines() if log.exists() else []


MKFS = [
    "mkfs.xfs -q -L rw-scratch /dev/md127",
    "udevadm trigger --action=change /sys/class/block/md127",
    "udevadm settle",
]


@pytest.mark.parametrize(
    ("raid", "options"),
    [
        (0, "--chunk=512"),
        (1, "--bitmap=internal"),
        (10, "--chunk=512 --bitmap=internal"),
    ],
)
def test_disks_that_hold_nothing_become_an_array_with_a_file_system(
    tmp_path: Path, raid: int, options: str
) -> None:
    names = "vdb", "vdc", "vdd", "vde"
    tree(tmp_path, ROOT, *map(D, names))
    asked = scratch(raid=raid, disks=tuple(f"virtio-{name}" for name in names))
    code, said, log = run(tmp_path, asked)
    assert (code, said) == (0, "")
    assert log == [
        "mdadm --create /dev/md/railwright-scratch --quiet --homehost=any "
        f"--name=railwright-scratch --metadata=1.2 --level={raid} --raid-devices=4 {options} "
        + " ".join(f"/dev/disk/by-id/virtio-{name}" for name in names),
        "udevadm settle",
        *MKFS,
    ]


def test_one_disk_gets_a_file_system_of_its_own(tmp_path: Path) -> None:
    tree(tmp_path, ROOT, B)
    code, said, log = run(tmp_path, scratch(raid=None, disks=("virtio-vdb",), filesystem="ext4"))
    assert (code, said) == (0, "")
    assert log[0] == "mkfs.ext4 -q -L rw-scratch /dev/vdb"


@pytest.mark.parametrize(("disk", "more", "reason"), REFUSED)
def test_what_python_refuses_the_script_refuses_and_nothing_is_touched(
    tmp_path: Path, disk: D, more: dict[str, Any], reason: str
) -> None:
    tree(tmp_path, ROOT, disk, C, **more)
    code, said, log = run(tmp_path, scratch())
    assert (code, log) == (1, [])
    assert "scratch scratch: virtio-vdb " in said
    assert "virtio-vdc" not in said
    found = seen(ROOT, disk, C, **more)
    assert reasons_against(found.disks[1], found)


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("platform/host3/session1/target3:0:0/3:0:0:0", "over iscsi"),
        ("pci0000:00/host7/rport-7:0-0/target7:0:0/7:0:0:0", "over fc"),
    ],
)
def test_a_disk_of_storage_that_others_reach_too_is_refused(
    tmp_path: Path, way: str, said: str
) -> None:
    tree(tmp_path, ROOT, B, C)
    far = tmp_path / "sys/devices" / way
    far.mkdir(parents=True)
    (tmp_path / "sys/class/block/vdb/device").rmdir()
    (tmp_path / "sys/class/block/vdb/device").symlink_to(far)
    code, told, log = run(tmp_path, scratch())
    assert (code, log) == (1, [])
    assert told == f"scratch scratch: virtio-vdb is on another machine, {said}\n"


def test_what_python_takes_the_script_takes(tmp_path: Path) -> None:
    nvme = replace(B, fabric="pcie")
    tree(tmp_path, ROOT, nvme, C)
    found = seen(ROOT, nvme, C)
    assert [reasons_against(disk, found) for disk in found.disks[1:]] == [(), ()]
    assert run(tmp_path, scratch())[0] == 0


def test_the_root_disk_a_partition_and_a_name_that_is_not_there_are_refused(
    tmp_path: Path,
) -> None:
    tree(tmp_path, ROOT, B, C)
    (tmp_path / "dev/disk/by-id/virtio-x").symlink_to("../../vda1")
    (tmp_path / "dev/disk/by-id/virtio-same").symlink_to("../../vdb")
    for disks, said in {
        ("virtio-vda", "virtio-vdb"): "virtio-vda has a partition: vda1",
        ("virtio-x", "virtio-vdb"): "virtio-x is vda1, no whole disk",
        ("virtio-gone", "virtio-vdb"): "virtio-gone is not there",
        ("virtio-vdb", "virtio-same"): "virtio-same is the same disk, vdb, as another",
    }.items():
        code, told, log = run(tmp_path, scratch(disks=disks))
        assert (code, log) == (1, [])
        assert said in told


@pytest.mark.parametrize("link", ["by-label/rw-scratch", "by-id/md-name-any:railwright-scratch"])
def test_a_name_that_is_taken_is_refused(tmp_path: Path, link: str) -> None:
    tree(tmp_path, ROOT, B, C)
    put(tmp_path / "dev/disk" / link)
    code, said, log = run(tmp_path, scratch())
    assert (code, log) == (1, [])
    assert f"/dev/disk/{link} is there already" in said


@pytest.mark.parametrize("missing", ["wipefs", "mdadm", "mkfs.xfs", "udevadm"])
def test_a_tool_that_is_missing_is_told_before_anything_is_done(
    tmp_path: Path, missing: str
) -> None:
    tree(tmp_path, ROOT, B, C)
    run_root = tmp_path / "bin"
    for name, body in TOOLS.items():
        if name != missing:
            tool(run_root, name, body)
    for name in ("cat", "awk", "readlink", "tr", "grep", "mkdir"):
        (run_root / name).symlink_to(f"/usr/bin/{name}")
    (action,) = [a for a in done(node(scratch=scratch()), host()) if isinstance(a, RunScript)]
    ran = subprocess.run(
        ["/bin/dash", "-s", "--", *action.arguments],
        input=action.script,
        text=True,
        capture_output=True,
        env={"PATH": str(run_root), "RW_ROOT": str(tmp_path)},
    )
    assert ran.returncode == 1
    assert f"{missing} is not installed" in ran.stderr
    assert not (tmp_path / "log").exists()


def test_mdadm_that_finds_a_disk_busy_ends_it(tmp_path: Path) -> None:
    tree(tmp_path, ROOT, B, C)
    put(tmp_path / "busy")
    code, said, log = run(tmp_path, scratch())
    assert code == 1
    assert "Device or resource busy" in said
    assert [line.split()[0] for line in log] == ["mdadm"]


def test_what_an_array_brings_to_light_is_not_formatted(tmp_path: Path) -> None:
    tree(tmp_path, ROOT, B, C)
    put(tmp_path / "signatures/md127", "xfs old\n")
    code, said, log = run(tmp_path, scratch())
    assert code == 1
    assert "/dev/md127 has a signature: xfs old" in said
    assert not any(line.startswith("mkfs") for line in log)


@pytest.mark.parametrize("part", ["count=1 ", "skip=4095 "])
def test_a_disk_that_cannot_be_read_is_not_blank(tmp_path: Path, part: str) -> None:
    """wipefs says nothing of a disk that it cannot read, and ends well."""
    tree(tmp_path, ROOT, B, C)
    body = f'case "$* " in if=*/dev/vdb\\ *"{part}"*) exit 1 ;; esac; exec /bin/dd "$@"\n'
    tool(tmp_path / "bin", "dd", body)
    code, said, log = run(tmp_path, scratch())
    assert (code, log) == (1, [])
    assert "virtio-vdb cannot be read" in said


def test_what_was_left_half_made_is_formatted_and_nothing_else(tmp_path: Path) -> None:
    tree(tmp_path, ROOT, B, C)
    code, said, log = run(tmp_path, scratch(), "format")
    assert (code, log) == (1, [])
    assert "its disks are not the array railwright-scratch" in said
    for name in ("vdb", "vdc"):
        put(tmp_path / "sys/class/block" / name / "holders/md127")
    put(tmp_path / "detail", "MD_NAME=n1:data\n")
    assert run(tmp_path, scratch(), "format")[::2] == (1, [])
    put(tmp_path / "detail", "MD_NAME=any:railwright-scratch\n")
    assert run(tmp_path, scratch(), "format") == (0, "", MKFS)


def test_a_file_system_that_could_not_be_made_is_a_failure(tmp_path: Path) -> None:
    tree(tmp_path, ROOT, B, C)
    put(tmp_path / "mkfs", "1\n")
    assert run(tmp_path, scratch())[0] == 1


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_it_runs_as_part_of_what_a_run_sends(tmp_path: Path, shell: str) -> None:
    tree(tmp_path, ROOT, B, C)
    for name, body in TOOLS.items():
        tool(tmp_path / "bin", name, body)
    scripts = [a for a in done(node(scratch=scratch()), host()) if isinstance(a, RunScript)]
    whole = render(scripts).replace("PATH=/usr/sbin:", f"PATH={tmp_path}/bin:/usr/sbin:")
    ran = subprocess.run(
        [shell, "-c", whole], capture_output=True, env={**os.environ, "RW_ROOT": str(tmp_path)}
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    log = (tmp_path / "log").read_text()
    # mdadm found the end of its input, and neither an answer nor the rest of the script.
    assert "answered" not in log
    assert log.endswith("\n".join(MKFS) + "\n")


def test_the_script_is_what_shellcheck_accepts_and_forces_nothing() -> None:
    (action,) = [a for a in done(node(scratch=scratch()), host()) if isinstance(a, RunScript)]
    checked = subprocess.run(
        ["shellcheck", "-s", "sh", "-"], input=action.script, text=True, capture_output=True
    )
    assert checked.stdout == ""
    code = "\n".join(
        line for line in action.script.splitlines() if not line.strip().startswith("#")
    )
    for word in (
        "--force",
        "--run",
        "--zero-superblock",
        "--assume-clean",
        "wipefs -a",
        " -f",
        " -F",
    ):
        assert word not in code
