"""What the inventory may say of local scratch."""

from typing import Any

import pytest
from pydantic import ValidationError

from railwright.schema.scratch import DiskRule, LocalScratch, scratch_findings
from tests.unit.scratch_host import scratch

TWO = ("nvme-A_1", "nvme-A_2")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"raid": 0, "disks": ("nvme-A_1",)}, "2 disks or more for RAID0"),
        ({"raid": 1, "disks": ("nvme-A_1",)}, "2 disks or more for RAID1"),
        ({"raid": 10, "disks": (*TWO, "nvme-A_3")}, "4 disks or more for RAID10"),
        ({"raid": None, "disks": TWO}, "one disk where raid is null"),
        ({"raid": 0, "disks": ("nvme-A_1", "nvme-A_1")}, "each disk once"),
        ({"raid": 5, "disks": TWO}, "Input should be 0, 1 or 10"),
        ({"raid": 0, "disks": ("/dev/nvme0n1", "nvme-A_2")}, "a whole disk's name"),
        ({"raid": 0, "disks": ("nvme-A_1-part3", "nvme-A_2")}, "a whole disk's name"),
        ({"raid": 0, "disks": ("md-name-any:x", "nvme-A_2")}, "a whole disk's name"),
        ({"raid": 0, "disks": TWO, "name": "muchtoolong"}, "9 characters at most"),
        ({"raid": 0, "disks": TWO, "chunk": "24KiB"}, "a power of two"),
        ({"raid": 0, "disks": TWO, "chunk": "2KiB"}, "a power of two of 4KiB or more"),
        ({"raid": 0, "disks": TWO, "options": ("discard",)}, "fstrim.timer trims"),
        ({"raid": 0, "disks": TWO, "filesystem": "btrfs"}, "'xfs' or 'ext4'"),
        ({"raid": 0, "disks": {"count": 2}}, "model, min_size, max_size or transport"),
        ({"raid": 0, "disks": {"count": 1, "model": "A*"}}, "2 disks or more for RAID0"),
        (
            {"raid": 0, "disks": {"count": 2, "min_size": "2TiB", "max_size": "1TiB"}},
            "2TiB or more",
        ),
    ],
)
def test_what_cannot_be_made_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match="validation error") as refused:
        LocalScratch.model_validate(fields)
    assert said in str(refused.value)


def test_a_scratch_needs_its_level_and_its_disks() -> None:
    with pytest.raises(ValidationError) as refused:
        LocalScratch.model_validate({})
    assert {error["loc"] for error in refused.value.errors()} == {("raid",), ("disks",)}


def test_names_follow_from_the_name() -> None:
    made = LocalScratch(raid=0, disks=TWO, name="scratch01")
    assert (made.array, made.label) == ("railwright-scratch01", "rw-scratch01")
    # XFS has room for 12 characters, md for 32 with the host's name before them.
    assert len(made.label) <= 12
    assert len(f"any:{made.array}") < 32
    assert made.chunk_kib == 512
    assert "kind" in made.model_fields_set


def test_a_rule_counts_and_is_told_in_words() -> None:
    rule = DiskRule(count=4, model="SAMSUNG MZQL2*", transport="nvme", numa_node=1)
    made = LocalScratch(raid=10, disks=rule)
    assert made.count == 4
    assert str(rule) == "4 disks (model SAMSUNG MZQL2*, by nvme, on NUMA node 1)"


def test_two_scratches_name_neither_one_disk_nor_one_name() -> None:
    one = scratch()
    other = scratch(disks=("virtio-vdc", "virtio-vdd"))
    found = list(scratch_findings({"/a": one, "/b": other}, None))
    assert [(f.path, f.value) for f in found] == [
        (("storage", "mounts", "/b", "name"), "scratch"),
        (("storage", "mounts", "/b", "disks"), "virtio-vdc"),
    ]
    healthy = scratch(name="other", disks=("virtio-vdd", "virtio-vde"))
    assert list(scratch_findings({"/a": one, "/b": healthy}, None)) == []


@pytest.mark.parametrize(("raid", "refused"), [(0, True), (1, False)])
def test_p2pdma_does_not_go_over_raid0(raid: int, refused: bool) -> None:
    found = list(scratch_findings({"/scratch": scratch(raid=raid)}, "p2pdma"))
    assert [f.path for f in found] == [("storage", "mounts", "/scratch", "raid")] * refused
    assert list(scratch_findings({"/scratch": scratch(raid=raid)}, "nvidia-fs")) == []
