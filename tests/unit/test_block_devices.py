"""Disks: the probe's own sections over a tree in place of /sys, and what is made of them."""

import contextlib
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.block_devices import (
    ARRAYS,
    DISKS,
    PLACES,
    SECTIONS,
    SIGNATURES,
    Signature,
    Superblock,
    parse_arrays,
    parse_disks,
    parse_places,
    parse_signatures,
    read_block_devices,
)
from facts.probe import Focus, script
from railwright.snapshot import Snapshot, parse_probe
from tests.unit.scratch_host import ROOT, B, host, member, seen
from tests.unit.test_block_path import put

# As util-linux 2.38 (Debian 12) and 2.32 (EL 8) print them.
LSBLK = """{
   "blockdevices": [
      {"name": "vda", "type": "disk", "size": 274877906944, "ro": false, "rm": false,
       "model": null, "serial": "root", "tran": "virtio"},
      {"name": "nvme0n1", "type": "disk", "size": 3840755982336, "ro": false, "rm": false,
       "model": "SAMSUNG MZQL23T8HCLS-00A07              ", "serial": "S64H", "tran": "nvme"},
      {"name": "md127", "type": "raid0", "size": 1, "ro": false, "rm": false,
       "model": null, "serial": null, "tran": null},
      {"name": "zram0", "type": "disk", "size": 0, "ro": false, "rm": false,
       "model": null, "serial": null, "tran": null}
   ]
}"""
LSBLK_EL8 = """{"blockdevices": [
      {"name": "sda", "type": "disk", "size": "480103981056", "ro": "0", "rm": "1",
       "model": "MTFDDAK480TDS   ", "serial": "19", "tran": "sata"}]}"""
# mdadm 4.2 --examine --export, and wipefs 2.38.1 -J, of a member.
EXAMINE = """MD_LEVEL=raid0
MD_DEVICES=2
MD_NAME=any:railwright-scratch
MD_UUID=11112222:33334444:55556666:77778888
MD_UPDATE_TIME=1700000100
MD_DEV_UUID=00000000:00000000:00000000:00000000
MD_EVENTS=0
"""
MEMBER = """{
   "signatures": [
      {
         "device": "vdb",
         "offset": "0x1000",
         "type": "linux_raid_member",
         "uuid": "11112222-3333-4444-5555-666677778888",
         "label": "any:railwright-scratch"
      }
   ]
}
"""
BLANK = '{\n   "signatures": [\n\n   ]\n}\n'
GPT = """{"signatures": [
 {"device": "vda", "offset": "0x200", "type": "gpt", "uuid": null, "label": null},
 {"device": "vda", "offset": "0x3fffe00", "type": "gpt", "uuid": null, "label": null},
 {"device": "vda", "offset": "0x1fe", "type": "PMBR", "uuid": null, "label": null}]}
"""


def tool(folder: Path, name: str, body: str) -> None:
    put(folder / name, f"#!/bin/sh\n{body}")
    (folder / name).chmod(0o755)


def disk(root: Path, name: str, signatures: str | None, numa: str = "0") -> Path:
    """A disk of virtio in the tree; wipefs fails on it where ``signatures`` is None."""
    folder = root / f"sys/devices/pci0000:00/0000:00:0{len(name)}.0-{name}/virtio0/block/{name}"
    put(folder / "size", "8388608\n")
    put(folder.parents[2] / "numa_node", f"{numa}\n")
    (folder / "device").symlink_to(folder.parents[1])
    (root / "sys/class/block").mkdir(parents=True, exist_ok=True)
    (root / "sys/class/block" / name).symlink_to(folder)
    put(root / "dev" / name)
    if signatures is not None:
        put(root / "signatures" / name, signatures)
    return folder


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Root on vda, a member on vdb, blank vdc, vdd that cannot be read, one over a fabric."""
    tools = tmp_path / "bin"
    tool(tools, "lsblk", f"cat <<'END'\n{LSBLK}\nEND\n")
    tool(tools, "wipefs", f'cat "{tmp_path}/signatures/${{2##*/}}"\n')
    tool(tools, "mdadm", f"cat <<'END'\n{EXAMINE}END\n")
    put(tmp_path / "proc/self/mountinfo", "27 1 254:1 / / rw - ext4 /dev/vda1 rw\n")
    put(tmp_path / "proc/swaps", "Filename Type\n")
    vda = disk(tmp_path, "vda", GPT)
    put(vda / "vda1/partition", "1")
    put(vda / "vda1/dev", "254:1")
    (tmp_path / "sys/class/block/vda1").symlink_to(vda / "vda1")
    disk(tmp_path, "vdb", MEMBER)
    disk(tmp_path, "vdc", BLANK, numa="-1")
    disk(tmp_path, "vdd", None)
    # With native multipath a namespace lies below its subsystem.
    system = tmp_path / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    put(system / "nvme0n1/size", "7501476528\n")
    (system / "nvme0n1/device").symlink_to(system)
    (tmp_path / "sys/class/block/nvme0n1").symlink_to(system / "nvme0n1")
    controller = tmp_path / "sys/devices/pci0000:16/0000:17:00.0/nvme/nvme0"
    put(controller / "transport", "pcie\n")
    put(controller.parents[1] / "numa_node", "1\n")
    (system / "nvme0").symlink_to(controller)
    put(tmp_path / "dev/nvme0n1")
    put(tmp_path / "signatures/nvme0n1", BLANK)
    by_id = tmp_path / "dev/disk/by-id"
    by_id.mkdir(parents=True)
    for name, target in {
        "virtio-s1": "vdb",
        "nvme-eui.36": "nvme0n1",
        "nvme-SAMSUNG_S64H": "nvme0n1",
        "virtio-root-part1": "vda1",
    }.items():
        (by_id / name).symlink_to(f"../../{target}")
    return tmp_path


def array(root: Path) -> None:
    folder = root / "sys/devices/virtual/block/md127"
    values = {"level": "raid0", "raid_disks": "2", "chunk_size": "524288", "array_state": "clean"}
    for key, value in values.items():
        put(folder / "md" / key, f"{value}\n")
    put(folder / "md/dev-vdb/state", "in_sync\n")
    put(folder / "size", "16760832\n")
    put(root / "dev/md127")
    put(root / "signatures/md127", BLANK)
    (root / "sys/class/block/md127").symlink_to(folder)


def probe(root: Path, shell: str = "sh") -> Snapshot:
    text = script(SECTIONS, Focus(storage=True))
    text = re.sub(r"/proc/(self/mountinfo|swaps)", rf"{root}/proc/\1", text)
    text = re.sub(r"(?<=[ \"])/(sys|dev/(?=\$|disk))", rf"{root}/\1", text)
    text = text.replace("dir#/sys/", f"dir#{root}/sys/")
    text = text.replace("PATH=/usr/sbin:", f"PATH={root}/bin:/usr/sbin:")
    done = subprocess.run([shell, "-c", text], capture_output=True, timeout=60)
    return parse_probe(done.stdout.decode("ascii"), host="n1")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_sections_tell_what_a_node_has(node: Path, shell: str) -> None:
    array(node)
    snapshot = probe(node, shell)
    ids, places = parse_places(snapshot.text(PLACES.name))
    assert ids == {
        "virtio-s1": "vdb",
        "nvme-eui.36": "nvme0n1",
        "nvme-SAMSUNG_S64H": "nvme0n1",
        "virtio-root-part1": "vda1",
    }
    assert places == {
        "vda": (0, None),
        "vdb": (0, None),
        "vdc": (None, None),
        "vdd": (0, None),
        "nvme0n1": (1, "pcie"),
    }
    found = read_block_devices(snapshot)
    assert [d.name for d in found.disks] == ["vda", "nvme0n1"]
    assert found.disks[1].ids == ("nvme-SAMSUNG_S64H", "nvme-eui.36")
    assert found.disks[1].model == "SAMSUNG MZQL23T8HCLS-00A07"
    assert found.disks[0].signatures == (Signature(type="gpt"), Signature(type="PMBR"))
    told, superblocks = parse_signatures(snapshot.text(SIGNATURES.name))
    assert told["vdc"] == ((), None)
    assert told["vdd"] == (None, "wipefs vdd: exit 1")
    assert superblocks == {
        "vdb": Superblock(
            name="any:railwright-scratch",
            uuid="11112222:33334444:55556666:77778888",
            level="raid0",
            disks=2,
        )
    }
    (made,) = found.arrays
    assert (made.name, made.level, made.chunk_kib, made.members) == (
        "md127",
        "raid0",
        512,
        {"vdb": "in_sync"},
    )
    assert made.signatures == ()
    assert "mdadm" in found.tools


def test_a_node_without_wipefs_cannot_be_read_and_one_without_mdadm_can(node: Path) -> None:
    snapshot = probe(node)
    assert snapshot.section(SIGNATURES.name).rc == 0
    mute = SIGNATURES.model_copy(
        update={"script": SIGNATURES.script.replace("command -v wipefs", "command -v nowipefs")}
    )
    text = script((mute,), Focus(storage=True))
    done = subprocess.run(["sh", "-c", text], capture_output=True, timeout=60)
    section = parse_probe(done.stdout.decode("ascii"), host="n1").section(SIGNATURES.name)
    assert (section.rc, section.stderr) == (127, "wipefs: not found")
    broken = snapshot.model_copy(
        update={"sections": {**snapshot.sections, SIGNATURES.name: section}}
    )
    with pytest.raises(ValueError, match="block_signatures: wipefs: not found"):
        read_block_devices(broken)


def test_wipefs_of_this_machine_answers_as_it_is_read(tmp_path: Path) -> None:
    blank = tmp_path / "blank"
    with blank.open("wb") as file:
        file.truncate(1 << 20)
    told = subprocess.run(["wipefs", "-J", blank], capture_output=True, text=True)
    line = f"signatures vdb {told.returncode} {told.stdout}".replace("\n", " ")
    assert parse_signatures(line)[0] == {"vdb": ((), None)}
    with blank.open("r+b") as file:
        # The header of a swap: version 1, and its last page.
        file.seek(1024)
        file.write(struct.pack("<II", 1, 255))
        file.seek(4086)
        file.write(b"SWAPSPACE2")
    told = subprocess.run(["wipefs", "-J", blank], capture_output=True, text=True)
    line = f"signatures vdb {told.returncode} {told.stdout}".replace("\n", " ")
    signatures = parse_signatures(line)[0]["vdb"][0]
    assert signatures is not None
    assert [signature.type for signature in signatures] == ["swap"]


def test_disks_of_old_and_new_util_linux() -> None:
    new = {disk.name: disk for disk in parse_disks(LSBLK)}
    assert new.keys() == {"vda", "nvme0n1"}
    assert (new["vda"].transport, new["vda"].model) == ("virtio", None)
    assert new["nvme0n1"].size_bytes == 3840755982336
    (old,) = parse_disks(LSBLK_EL8)
    assert (old.size_bytes, old.read_only, old.removable) == (480103981056, False, True)
    (untold,) = parse_disks(
        '{"blockdevices": [{"name": "vdb", "type": "disk", "size": 1, "ro": false, "rm": false}]}'
    )
    assert untold.transport == "virtio"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"blockdevices": 3}',
        '{"blockdevices": [{"name": "a", "type": "disk", "size": "1G", "ro": 0, "rm": 0}]}',
    ],
)
def test_what_is_no_output_of_lsblk_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="lsblk"):
        parse_disks(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("signatures vdb 0 {", "wipefs vdb: expected JSON"),
        ("signatures vdb", "expected a device's signatures"),
        ("superblock vdb oops", "expected a device's signatures"),
    ],
)
def test_what_is_no_list_of_signatures_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_signatures(text)


def test_no_output_of_wipefs_that_went_well_is_no_signature() -> None:
    assert parse_signatures("signatures vdb 0 \n")[0] == {"vdb": ((), None)}


def test_an_array_of_which_too_little_is_there_has_no_values() -> None:
    tools, (found,) = parse_arrays(
        "tool mdadm\narray md127 level -\narray md127 raid_disks 0\narray md127 chunk_size 0\n"
        "array md127 array_state inactive\narray md127 degraded -\narray md127 sync_action -\n"
        "array md127 sync_completed -\nmember md127 vdb spare\n"
    )
    assert tools == {"mdadm"}
    assert (found.state, found.disks, found.sync) == ("inactive", 0, None)
    with pytest.raises(ValueError, match="a line of md's sysfs"):
        parse_arrays("oops")
    with pytest.raises(ValueError, match="a disk's name or place"):
        parse_places("oops")


def test_a_resync_is_told_with_how_far_it_is() -> None:
    (found,) = parse_arrays("array md1 sync_action resync\narray md1 sync_completed 12 / 34\n")[1]
    assert found.sync == "resync 12 / 34"


def test_what_is_built_upon_a_disk_is_found_to_the_last() -> None:
    found = seen(ROOT, B, stack="under dm-0 vda2\nnumber dm-0 253:0\nunder dm-1 dm-0\n")
    assert found.upon("vda") == ("vda", "vda1", "vda2", "dm-0", "dm-1")
    assert found.upon("vdb") == ("vdb",)


def test_a_member_without_mdadm_is_known_by_its_signature_alone() -> None:
    snapshot = host(ROOT, member(B), tools=())
    text = "\n".join(
        line
        for line in snapshot.text(SIGNATURES.name).splitlines()
        if not line.startswith("superblock")
    )
    section = snapshot.section(SIGNATURES.name).model_copy(update={"stdout": text})
    found = read_block_devices(
        snapshot.model_copy(update={"sections": {**snapshot.sections, SIGNATURES.name: section}})
    )
    assert found.disks[1].superblock is None
    assert found.disks[1].signatures == (
        Signature(type="linux_raid_member", label="any:railwright-scratch"),
    )


@given(st.text(alphabet='sigature vdb0{}[]":,\n', max_size=60))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    for parse in (parse_disks, parse_signatures, parse_arrays, parse_places):
        with contextlib.suppress(ValueError):
            parse(text)


def test_the_sections_are_what_shellcheck_accepts() -> None:
    for section in (DISKS, PLACES, SIGNATURES, ARRAYS):
        # ``first`` is a function of the probe that sets $first.
        body = f"first() {{ first=$1; }}\nf() {{\n{section.script}\n}}\nf\n"
        told = subprocess.run(
            ["shellcheck", "-s", "sh", "-e", "SC2034", "-"], input=body, text=True,
            capture_output=True,
        )  # fmt: skip
        assert told.stdout == ""
