"""An array that is there: as it was made, in part, made otherwise, or kept from the next boot."""

from dataclasses import replace
from typing import Any

import pytest

from railwright.actions import Run
from railwright.schema import Node
from railwright.settings import Verdict
from tests.unit.records import record
from tests.unit.scratch_host import (
    ROOT,
    UUID,
    Array,
    B,
    C,
    D,
    by_key,
    converged,
    done,
    host,
    made,
    member,
    node,
    scratch,
    verdicts,
)
from tests.unit.test_scratch import ALONE, ARRAY, FILES, RAID0, RAID1, RULED

DEGRADED = Array({"vdb": "in_sync"}, level="raid1", degraded="1")


def test_an_array_that_is_not_assembled_is_assembled_and_mounted() -> None:
    snapshot = converged(RAID0, arrays=(), lines="", active="inactive")
    assert verdicts(RAID0, snapshot)[ARRAY] is Verdict.NOT_RUNNING
    commands = [action.command for action in done(RAID0, snapshot) if isinstance(action, Run)]
    assert commands == [
        ("mdadm", "--assemble", "/dev/md/railwright-scratch", f"--uuid={UUID}",
         "/dev/vdb", "/dev/vdc"),
        ("udevadm", "settle"),
        ("systemctl", "start", "scratch.mount"),
    ]  # fmt: skip


def test_a_raid0_without_one_of_its_disks_is_lost_and_not_made_anew() -> None:
    for disks in ((ROOT, member(B)), (ROOT, member(B), C)):
        snapshot = converged(RAID0, *disks, arrays=(), lines="", active="failed")
        setting = by_key(RAID0, snapshot)[ARRAY]
        assert verdicts(RAID0, snapshot)[ARRAY] is Verdict.WRONG
        assert setting.persisted.detail == (
            "1 of its 2 disks are there, without virtio-vdc: RAID0 does not work without all"
        )
        assert "what was on it is lost" in (setting.remedy or "")
        assert done(RAID0, snapshot) == []


def test_a_raid0_that_waits_for_a_disk_is_degraded() -> None:
    waits = Array({"vdb": "spare"}, level="-", disks=0, chunk="-", state="inactive", signatures=())
    snapshot = converged(RAID0, ROOT, member(B), arrays=(waits,), lines="")
    setting = by_key(RAID0, snapshot)[ARRAY]
    assert verdicts(RAID0, snapshot)[ARRAY] is Verdict.DEGRADED
    assert setting.running.detail == "md127 is inactive, with 1 of 2 disks"
    assert verdicts(RAID0, snapshot)[FILES] is Verdict.PENDING
    assert done(RAID0, snapshot) == []


@pytest.mark.parametrize(
    ("disks", "array", "said"),
    [
        ((ROOT, member(B, level="raid1"), C), DEGRADED, "md127 runs without 1 of 2 disks"),
        (
            (ROOT, member(B, level="raid1"), member(C, level="raid1")),
            replace(DEGRADED, members={"vdb": "in_sync", "vdc": "faulty"}),
            "md127 runs without 1 of 2 disks: vdc failed",
        ),
        (
            (ROOT, member(B, level="raid1"), member(C, level="raid1")),
            replace(DEGRADED, members={"vdb": "in_sync", "vdc": "spare"}, sync="recover"),
            "md127 runs without 1 of 2 disks (recover 12 / 34)",
        ),
        (
            (ROOT, member(B, level="raid1"), member(C, level="raid1")),
            Array({"vdb": "in_sync", "vdc": "in_sync"}, level="raid1", state="readonly"),
            "md127 is readonly, with 2 of 2 disks",
        ),
    ],
)
def test_a_raid1_that_lacks_a_disk_is_degraded_and_left(
    disks: tuple[D, ...], array: Array, said: str
) -> None:
    snapshot = converged(RAID1, *disks, arrays=(array,))
    assert verdicts(RAID1, snapshot)[ARRAY] is Verdict.DEGRADED
    assert by_key(RAID1, snapshot)[ARRAY].running.detail == said
    assert done(RAID1, snapshot) == []


def test_a_first_resync_is_told_and_no_fault() -> None:
    array = Array({"vdb": "in_sync", "vdc": "in_sync"}, level="raid1", degraded="0", sync="resync")
    snapshot = converged(RAID1, arrays=(array,))
    assert verdicts(RAID1, snapshot)[ARRAY] is Verdict.OK
    assert by_key(RAID1, snapshot)[ARRAY].running.detail == "resync 12 / 34"
    auto = converged(RAID1, arrays=(replace(array, state="read-auto", sync="idle"),))
    assert by_key(RAID1, auto)[ARRAY].running.detail is None


BOTH = {"vdb": "in_sync", "vdc": "in_sync"}
OTHERWISE = [
    (RAID1, (), {}, "it is raid0"),
    (node(scratch=scratch(disks={"count": 3, "transport": "virtio"})), (), {},
     "it is made of 2 disks"),
    (node(scratch=scratch(chunk="64KiB")), (), {}, "its chunk is 512KiB"),
    (node(scratch=scratch(disks=("virtio-vdb", "virtio-vdd"))), (D("vdd"),), {},
     "virtio-vdc is of it, and is not asked for"),
    (RAID0, (replace(member(D("vdd")), uuid="5555"),), {}, "2 arrays have this name"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "more", "values", "said"), OTHERWISE)
def test_an_array_that_is_made_otherwise_is_told_and_left(
    asked: Node, more: tuple[D, ...], values: dict[str, Any], said: str
) -> None:
    snapshot = converged(asked, ROOT, member(B), member(C), *more, arrays=(Array(BOTH),), **values)
    setting = by_key(asked, snapshot)[ARRAY]
    assert verdicts(asked, snapshot)[ARRAY] is Verdict.WRONG
    assert said in (setting.persisted.detail or "")
    assert setting.remedy == "what is on it is never overwritten"
    assert made(asked, snapshot) == []


def test_an_array_by_another_name_is_not_adopted() -> None:
    disks = (ROOT, member(B, "n1:data"), member(C, "n1:data"))
    snapshot = host(*disks, arrays=(Array(BOTH, signatures=(("xfs", "data"),)),))
    detail = by_key(RAID0, snapshot)[ARRAY].persisted.detail or ""
    assert detail.startswith("they are the raid0 n1:data already, which is not adopted")
    assert made(RAID0, snapshot) == []


def test_an_array_that_was_left_without_a_file_system_gets_one() -> None:
    blank = Array(BOTH, signatures=())
    snapshot = converged(RAID0, arrays=(blank,), lines="", active="inactive")
    assert verdicts(RAID0, snapshot)[FILES] is Verdict.WRONG
    assert made(RAID0, snapshot) == [
        ("format", "scratch", "0", "512", "xfs", "virtio-vdb", "virtio-vdc")
    ]
    assert made(RULED, snapshot) == made(RAID0, snapshot)
    # Not so where the array is another than is asked for.
    assert made(RAID1, snapshot) == []


def test_a_file_system_that_is_another_is_told_and_never_made_anew() -> None:
    for signature in (("ext4", "rw-scratch"), ("xfs", "old"), ("xfs", None)):
        snapshot = converged(RAID0, arrays=(Array(BOTH, signatures=(signature,)),), lines="")
        setting = by_key(RAID0, snapshot)[FILES]
        assert verdicts(RAID0, snapshot)[FILES] is Verdict.WRONG
        assert setting.persisted.detail == "it is formatted once, and never again"
        assert setting.remedy == "wipefs -a /dev/md127 gives it up"
        assert made(RAID0, snapshot) == []


def test_one_disk_is_found_by_its_label_wherever_it_is() -> None:
    signed = (("ext4", "rw-scratch"),)
    moved = converged(ALONE, ROOT, B, replace(C, signatures=signed))
    assert by_key(ALONE, moved)[FILES].persisted.value == "rw-scratch on virtio-vdc"
    assert made(ALONE, moved) == []
    twice = converged(ALONE, ROOT, replace(B, signatures=signed), replace(C, signatures=signed))
    assert by_key(ALONE, twice)[FILES].persisted.detail == (
        "rw-scratch is on each of virtio-vdb, virtio-vdc"
    )
    assert made(ALONE, twice) == []


def _config(line: str) -> dict[str, Any]:
    return {"config": record("/etc/mdadm/mdadm.conf", f"HOMEHOST <system>\n{line}\n")}


@pytest.mark.parametrize(
    ("values", "decider"),
    [
        (_config("AUTO -all"), "/etc/mdadm/mdadm.conf:2"),
        (_config(f"ARRAY <ignore> UUID={UUID}"), "/etc/mdadm/mdadm.conf:2"),
        (_config(f"ARRAY /dev/md0 UUID={UUID}\nARRAY /dev/md1 UUID={UUID}"),
         "/etc/mdadm/mdadm.conf:3"),
        ({"rules": ""}, "udev"),
    ],
)  # fmt: skip
def test_what_keeps_it_from_being_assembled_at_boot_is_named(
    values: dict[str, Any], decider: str
) -> None:
    snapshot = converged(RAID0, **values)
    setting = by_key(RAID0, snapshot)[ARRAY]
    assert verdicts(RAID0, snapshot)[ARRAY] is Verdict.OVERRIDDEN
    assert setting.persisted.decider == decider
    assert done(RAID0, snapshot) == []


@pytest.mark.parametrize(
    "line",
    [
        "",
        "AUTO +1.x -all",
        f"AUTO -all\nARRAY /dev/md/railwright-scratch UUID={UUID}",
        "ARRAY /dev/md0 UUID=0a",
        "ARRAY /dev/md/railwright-scratch name=any:railwright-scratch",
    ],
)
def test_a_configuration_that_lets_it_be_assembled_is_fine(line: str) -> None:
    assert set(verdicts(RAID0, converged(RAID0, **_config(line))).values()) == {Verdict.OK}


def test_peers_23_a_stale_line_of_mdadm_conf_is_told_and_blocks_nothing() -> None:
    line = "ARRAY /dev/md/railwright-scratch metadata=1.2 UUID=99999999:0:0:0"
    key = "mdadm.conf /etc/mdadm/mdadm.conf:2"
    for snapshot in (host(**_config(line)), converged(RAID0, **_config(line))):
        setting = by_key(RAID0, snapshot)[key]
        assert verdicts(RAID0, snapshot)[key] is Verdict.OVERRIDDEN
        assert setting.remedy is not None
        assert "take the line out of /etc/mdadm/mdadm.conf:2" in setting.remedy
    assert len(made(RAID0, host(**_config(line)))) == 1
    healthy = _config(f"ARRAY /dev/md/railwright-scratch metadata=1.2 UUID={UUID}")
    assert key not in by_key(RAID0, converged(RAID0, **healthy))
