"""Which disks a scratch takes, and why it takes no other."""

from dataclasses import replace
from typing import Any

import pytest

from railwright.schema.scratch import DiskRule
from railwright.scratch import choose, choose_all, reasons_against
from tests.unit.scratch_host import ROOT, Array, B, C, D, member, scratch, seen

MOUNTED = "mount 254:16 /data ext4 /dev/vdb -\n"

REFUSED: list[tuple[D, dict[str, Any], str]] = [
    (replace(B, upper=("vdb1",)), {"mounted": "mount 254:17 /data xfs /dev/vdb1 -\n"},
     "is mounted at /data (by vdb1); has partitions: vdb1"),
    (replace(B, signatures=(("ext4", "backup"),)), {"mounted": MOUNTED},
     "is mounted at /data; has a signature: ext4 (label backup)"),
    (replace(B, signatures=(("ext4", "backup"),)), {}, "has a signature: ext4 (label backup)"),
    (replace(B, signatures=(("gpt", None), ("PMBR", None))), {},
     "has a signature: gpt, PMBR"),
    (replace(B, signatures=(("LVM2_member", None),), upper=("dm-0",)), {},
     "is held by dm-0; has a signature: LVM2_member"),
    (replace(B, signatures=(("swap", None),)), {"mounted": "swap partition /dev/vdb\n"},
     "is in use as swap; has a signature: swap"),
    (replace(B, upper=("vdb1",)), {"mounted": "swap partition /dev/vdb1\n"},
     "is in use as swap (by vdb1); has partitions: vdb1"),
    (replace(B, read_only=True), {}, "is read-only"),
    (replace(B, removable=True), {}, "is removable"),
    (replace(B, gib=0), {}, "has no size: it may have failed"),
    (replace(B, wipefs=1), {}, "cannot be read: wipefs vdb: exit 1"),
    (replace(B, fabric="rdma"), {}, "is on another machine, over rdma"),
    (member(B, "n1:data"), {"arrays": (Array({"vdb": "in_sync"}),)},
     "is held by md127; has a signature: linux_raid_member (label n1:data)"),
]  # fmt: skip


@pytest.mark.parametrize(("disk", "more", "reason"), REFUSED)
def test_a_disk_that_holds_anything_is_refused_with_its_reason(
    disk: D, more: dict[str, Any], reason: str
) -> None:
    found = seen(ROOT, disk, C, **more)
    choice = choose(scratch(), found)
    assert choice.error is not None
    assert choice.error.endswith(f"virtio-vdb {reason}")
    assert choice.disks == ()
    by_rule = choose(scratch(disks={"count": 2, "transport": "virtio"}), found)
    assert by_rule.disks == ()
    assert f"virtio-vdb {reason}" in (by_rule.error or "")


@pytest.mark.parametrize("transport", ["iscsi", "fc", "fcoe"])
def test_a_blank_disk_of_storage_that_others_reach_too_is_refused(transport: str) -> None:
    found = seen(ROOT, replace(B, transport=transport), C)
    said = f"virtio-vdb is on another machine, over {transport}"
    assert choose(scratch(), found).error == said
    by_rule = choose(scratch(disks={"count": 2, "min_size": "1GiB"}), found)
    assert by_rule.disks == ()
    assert said in (by_rule.error or "")


def test_the_root_disk_is_refused_by_every_way_that_leads_to_it() -> None:
    plain = seen()
    assert reasons_against(plain.disks[0], plain)[0] == "holds the root file system"
    lvm = seen(
        replace(ROOT, upper=("vda1",)), B, C,
        stack="number dm-0 253:0\nunder dm-0 vda1\n",
        mounted="mount 253:0 / xfs /dev/mapper/root -\n",
    )  # fmt: skip
    assert reasons_against(lvm.disks[0], lvm)[0] == "holds the root file system"
    asked = scratch(disks=("virtio-vda", "virtio-vdb"))
    error = choose(asked, plain).error
    assert error is not None
    assert error.startswith("virtio-vda holds the root file system; has partitions: vda1, vda2")


def test_a_btrfs_of_several_disks_holds_each_of_them() -> None:
    found = seen(
        ROOT, B, C,
        stack="btrfs u vdb\nbtrfs u vdc\nsource /dev/vdb /dev/vdb\n",
        mounted="mount 0:53 /data btrfs /dev/vdb -\n",
    )  # fmt: skip
    assert reasons_against(found.disks[2], found)[0] == "is mounted at /data"


def test_disks_that_hold_nothing_are_taken_as_they_are_named() -> None:
    choice = choose(scratch(disks=("virtio-vdc", "virtio-vdb")), seen())
    assert [disk.name for disk in choice.disks] == ["vdc", "vdb"]
    assert choice.refused == ()


def test_a_name_that_leads_to_no_disk_is_told() -> None:
    assert "virtio-vdz is not there" in (
        choose(scratch(disks=("virtio-vdb", "virtio-vdz")), seen()).error or ""
    )
    twice = seen(ROOT, B, C)
    ids = {**twice.ids, "virtio-other": "vdb", "virtio-x": "vda1"}
    twice = twice.model_copy(update={"ids": ids})
    assert "virtio-other is the same disk, vdb, as another" in (
        choose(scratch(disks=("virtio-vdb", "virtio-other")), twice).error or ""
    )
    assert "virtio-x is vda1, no whole disk" in (
        choose(scratch(disks=("virtio-vdb", "virtio-x")), twice).error or ""
    )


FOUR = (ROOT, B, C, D("vdd"), D("vde", numa=1, gib=8, model="BIG 1"))


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ({"count": 4, "transport": "virtio"}, ["vdb", "vdc", "vdd", "vde"]),
        ({"count": 3, "model": "Virtio*"}, ["vdb", "vdc", "vdd"]),
        ({"count": 3, "max_size": "4GiB"}, ["vdb", "vdc", "vdd"]),
    ],
)
def test_a_rule_takes_what_matches_and_is_free(rule: dict[str, Any], names: list[str]) -> None:
    choice = choose(scratch(disks=rule), seen(*FOUR))
    assert [disk.name for disk in choice.disks] == names


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"count": 2, "transport": "virtio"}, "virtio-vdb, virtio-vdc, virtio-vdd, virtio-vde"),
        ({"count": 2, "transport": "virtio", "numa_node": 1}, "can be taken: virtio-vde"),
        ({"count": 2, "transport": "nvme"}, "can be taken: none"),
        ({"count": 2, "min_size": "8GiB"}, "can be taken: virtio-vde"),
    ],
)
def test_a_rule_that_does_not_tell_its_disks_apart_takes_none(
    rule: dict[str, Any], said: str
) -> None:
    choice = choose(scratch(disks=rule), seen(*FOUR))
    assert choice.disks == ()
    assert said in (choice.error or "")


def test_a_disk_that_could_not_be_found_again_is_refused() -> None:
    found = seen(ROOT, replace(B, id=None), C)
    choice = choose(scratch(disks={"count": 2, "transport": "virtio"}), found)
    assert "vdb has no name in /dev/disk/by-id" in (choice.error or "")


def test_a_rule_leaves_what_others_name_or_have_taken() -> None:
    rule = DiskRule(count=2, transport="virtio")
    asked = {
        "/a": scratch(disks={"count": 2, "transport": "virtio", "max_size": "4GiB"}),
        "/b": scratch(name="b", disks=rule),
        "/c": scratch(name="c", raid=None, disks=("virtio-vdd",)),
    }
    disks = (*FOUR, D("vdf", gib=8))
    choices = choose_all(asked, seen(*disks))
    taken = {where: [disk.name for disk in choice.disks] for where, choice in choices.items()}
    assert taken == {"/a": ["vdb", "vdc"], "/b": ["vde", "vdf"], "/c": ["vdd"]}


def test_an_array_by_another_name_is_told_as_one_and_not_adopted() -> None:
    disks = (ROOT, member(B, "n1:data"), member(C, "n1:data"))
    choice = choose(scratch(), seen(*disks, arrays=(Array({"vdb": "in_sync", "vdc": "in_sync"}),)))
    assert choice.error is not None
    assert choice.error.startswith("they are the raid0 n1:data already, which is not adopted: ")


def test_what_has_its_name_and_is_made_otherwise_is_told() -> None:
    found = seen(ROOT, B, C, replace(D("vdd"), signatures=(("xfs", "rw-scratch"),)))
    assert choose(scratch(), found).error == (
        "there is one already by the name scratch, made otherwise: virtio-vdd"
    )


@pytest.mark.parametrize(("raid", "refused"), [(0, False), (1, True)])
def test_mirrors_of_unequal_disks_are_refused(raid: int, refused: bool) -> None:
    choice = choose(scratch(raid=raid), seen(ROOT, B, replace(C, gib=3.9)))
    assert ("of more than 1 % difference" in (choice.error or "")) is refused
    assert choose(scratch(raid=1), seen(ROOT, B, replace(C, gib=3.99))).error is None


@pytest.mark.parametrize(
    ("fields", "gib", "refused"),
    [
        ({"raid": 0}, 0.14, True),
        ({"raid": 0}, 0.15, False),
        ({"raid": 1}, 0.28, True),
        ({"raid": 1}, 0.3, False),
        ({"raid": 0, "filesystem": "ext4"}, 0.1, False),
        ({"raid": None, "disks": ("virtio-vdb",)}, 0.28, True),
    ],
)
def test_xfs_has_a_least_size(fields: dict[str, Any], gib: float, refused: bool) -> None:
    choice = choose(scratch(**fields), seen(ROOT, replace(B, gib=gib), replace(C, gib=gib)))
    assert ("less than 300 MiB" in (choice.error or "")) is refused
