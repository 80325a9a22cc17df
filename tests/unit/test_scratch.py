"""Local scratch from what a node shows to what is done."""

from dataclasses import replace
from typing import Any

import pytest

from deploys.scratch import COMPONENT, DROP_IN, TIMER, settings
from facts.block_devices import SIGNATURES
from railwright.actions import InstallFile, RemoveFile, Run, RunScript
from railwright.component import UNREAD, settings_of
from railwright.converge import unmet
from railwright.schema import Node
from railwright.settings import Effect, Standing, Verdict, changes
from railwright.snapshot import Snapshot
from tests.unit.records import MARKER, record
from tests.unit.scratch_host import (
    LIVE,
    ROOT,
    B,
    C,
    D,
    by_key,
    converged,
    done,
    host,
    made,
    node,
    scratch,
    verdicts,
)

RAID0 = node(scratch=scratch())
RAID1 = node(scratch=scratch(raid=1))
ALONE = node(scratch=scratch(raid=None, disks=("virtio-vdb",), filesystem="ext4"))
RULED = node(scratch=scratch(disks={"count": 2, "transport": "virtio"}))
ASKED = [RAID0, RAID1, ALONE, RULED]
ARRAY, FILES, MOUNT = "scratch array", "scratch file system", "mount /scratch"


def test_where_nothing_is_asked_for_there_is_nothing() -> None:
    empty = Snapshot(host="n1", marker=MARKER, sections={})
    assert settings(node(), empty) == []
    assert done(node(), empty) == []


@pytest.mark.parametrize("asked", ASKED)
def test_a_converged_node_is_ok_and_left_alone(asked: Node) -> None:
    assert set(verdicts(asked, converged(asked)).values()) == {Verdict.OK}
    assert done(asked, converged(asked)) == []


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_announced_of_a_bare_node_is_what_the_run_makes_of_it(asked: Node) -> None:
    before, after = by_key(asked, host()), by_key(asked, converged(asked))
    assert before.keys() == after.keys()
    for key, setting in before.items():
        expected = changes(setting, LIVE)
        assert expected != []
        assert unmet(after.values(), key, expected) == []
        for change in expected:
            assert getattr(after[key], change.state).value == change.after


def test_the_disks_are_announced_by_the_names_that_stay() -> None:
    assert str(changes(by_key(RAID0, host())[ARRAY], LIVE)[0]) == (
        "scratch scratch array: persisted absent → raid0 of virtio-vdb, virtio-vdc"
    )
    assert by_key(RULED, host())[ARRAY].desired == "raid0 of virtio-vdb, virtio-vdc"
    assert by_key(ALONE, host())[FILES].desired == "ext4 rw-scratch on virtio-vdb"


def test_a_bare_node_gets_its_scratch_made_before_it_is_mounted() -> None:
    found = done(RAID0, host())
    assert isinstance(found[0], RunScript)
    assert found[0].arguments == (
        "make", "scratch", "0", "512", "xfs", "virtio-vdb", "virtio-vdc",
    )  # fmt: skip
    assert found[-1] == Run(command=("systemctl", "start", "scratch.mount"))
    assert made(ALONE, host()) == [("make", "scratch", "-", "512", "ext4", "virtio-vdb")]
    assert made(RULED, host())[0][-2:] == ("virtio-vdb", "virtio-vdc")


def test_the_mount_is_by_label_and_keeps_no_boot_waiting() -> None:
    (unit,) = [
        a for a in done(RAID0, host()) if isinstance(a, InstallFile) and "Mount" in a.content
    ]
    lines = unit.content.splitlines()
    assert "What=/dev/disk/by-label/rw-scratch" in lines
    assert "Options=noatime,nofail" in lines
    assert "WantedBy=local-fs.target" in lines


REFUSED = [
    (RAID0, (ROOT, replace(B, signatures=(("ext4", "backup"),)), C), "has a signature: ext4"),
    (RAID0, (ROOT, B), "virtio-vdc is not there"),
    (ALONE, (ROOT, replace(B, upper=("dm-0",))), "is held by dm-0"),
    (RULED, (ROOT, B), "can be taken: virtio-vdb; virtio-vda holds the root file system"),
    (node(scratch=scratch(disks=("virtio-vda", "virtio-vdb"))), (), "holds the root file system"),
]


@pytest.mark.parametrize(("asked", "disks", "reason"), REFUSED)
def test_a_scratch_that_cannot_be_made_is_told_and_nothing_is_made(
    asked: Node, disks: tuple[D, ...], reason: str
) -> None:
    snapshot = host(*disks)
    found = by_key(asked, snapshot)
    for key in {ARRAY, FILES} & found.keys():
        assert reason in (found[key].persisted.detail or "")
        assert changes(found[key], frozenset(Effect)) == []
    assert verdicts(asked, snapshot)[FILES] is Verdict.WRONG
    # Mounted it cannot be; that it will be is in place.
    assert verdicts(asked, snapshot)[MOUNT] is Verdict.PENDING
    assert reason in (found[MOUNT].running.detail or "")
    assert made(asked, snapshot) == []
    assert Run(command=("systemctl", "start", "scratch.mount")) not in done(asked, snapshot)


def test_a_tool_that_is_not_there_is_told_with_its_package() -> None:
    for asked, tools, package in (
        (RAID0, ("mkfs.xfs",), "mdadm"),
        (RAID0, ("mdadm",), "xfsprogs"),
        (ALONE, ("mdadm", "mkfs.xfs"), "e2fsprogs"),
    ):
        setting = by_key(asked, host(tools=tools))[FILES]
        assert f"is not installed (package {package})" in (setting.persisted.detail or "")
        assert made(asked, host(tools=tools)) == []
    assert made(ALONE, host(tools=("mkfs.ext4",))) != []


def test_packages_that_come_with_the_run_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploys.scratch.arriving", lambda *_: frozenset({"mdadm", "xfsprogs"}))
    assert changes(by_key(RAID0, host(tools=()))[ARRAY], LIVE) != []
    kept = converged(RAID0, arrays=(), tools=("mkfs.xfs",), lines="")
    text = kept.text(SIGNATURES.name)
    mute = "".join(f"{x}\n" for x in text.splitlines() if not x.startswith("superblock"))
    section = kept.section(SIGNATURES.name).model_copy(update={"stdout": mute})
    kept = kept.model_copy(update={"sections": {**kept.sections, SIGNATURES.name: section}})
    assert by_key(RAID0, kept)[ARRAY].running.detail == "mdadm comes with this run"
    assert verdicts(RAID0, kept)[ARRAY] is Verdict.PENDING
    assert done(RAID0, kept) == []
    monkeypatch.setattr("deploys.scratch.arriving", lambda *_: frozenset())
    assert verdicts(RAID0, kept)[ARRAY] is Verdict.UNREADABLE
    assert done(RAID0, kept) == []


def test_peers_23_the_boot_disk_is_never_taken_by_a_rule() -> None:
    wide = node(scratch=scratch(disks={"count": 3, "min_size": "1GiB"}))
    assert made(wide, host()) == []
    assert "virtio-vda holds the root file system" in (
        by_key(wide, host())[ARRAY].persisted.detail or ""
    )
    assert len(made(RULED, host())) == 1


def test_two_scratches_are_made_each_of_its_own_disks() -> None:
    asked = node(
        scratch=scratch(raid=None, disks=("virtio-vdb",)),
        other=scratch(name="other", raid=None, disks=("virtio-vdc",)),
    )
    assert [arguments[1::4] for arguments in made(asked, host())] == [
        ("other", "virtio-vdc"),
        ("scratch", "virtio-vdb"),
    ]
    (drop_in,) = [
        a for a in done(asked, host()) if isinstance(a, InstallFile) and a.path == DROP_IN
    ]
    assert drop_in.content.count("ExecStart=-/usr/sbin/fstrim /") == 2


def test_trimming_is_put_right() -> None:
    snapshot = converged(RAID0, ticks="inactive")
    assert verdicts(RAID0, snapshot)[TIMER.key] is Verdict.NOT_RUNNING
    enable = Run(command=("systemctl", "enable", "--now", "fstrim.timer"))
    assert done(RAID0, snapshot) == [enable]
    drifted = converged(RAID0, trim=record(DROP_IN, "[Service]\n"))
    assert [type(action) for action in done(RAID0, drifted)] == [InstallFile, Run, Run]
    assert done(RAID0, drifted)[1:] == [Run(command=("systemctl", "daemon-reload")), enable]


def test_what_is_mounted_in_the_place_of_a_scratch_that_is_not_there_stays() -> None:
    every = node(allow=frozenset(Effect), scratch=scratch())
    snapshot = host(ROOT, B, lines="/dev/vdd /scratch ext4 rw 0 0\n")
    assert verdicts(every, snapshot)[MOUNT] is Verdict.NOT_RUNNING
    assert Run(command=("systemctl", "stop", "scratch.mount")) not in done(every, snapshot)


def test_a_mount_that_is_not_of_the_scratch_is_wrong() -> None:
    snapshot = converged(RAID0, lines="/dev/vdd /scratch xfs rw,noatime 0 0\n")
    assert by_key(RAID0, snapshot)[MOUNT].running.value == "/dev/vdd"
    assert verdicts(RAID0, snapshot)[MOUNT] is Verdict.PENDING


def test_a_container_has_files_and_no_disks() -> None:
    found = verdicts(RAID0, host(container=True))
    assert found[FILES] is Verdict.NOT_APPLICABLE
    assert found[DROP_IN] is Verdict.WRONG
    assert made(RAID0, host(container=True)) == []
    commands = [a.command for a in done(RAID0, host(container=True)) if isinstance(a, Run)]
    assert ("systemctl", "enable", "fstrim.timer") in commands
    assert set(verdicts(RAID0, converged(RAID0, container=True)).values()) == {
        Verdict.OK,
        Verdict.NOT_APPLICABLE,
    }
    assert done(RAID0, converged(RAID0, container=True)) == []


def test_a_scratch_that_is_not_asked_for_any_more_goes_and_its_disks_stay() -> None:
    gone = node(allow=frozenset(Effect))
    found = done(gone, converged(RAID0))
    assert RemoveFile(path=DROP_IN) in found
    assert Run(command=("systemctl", "disable", "--now", "scratch.mount")) in found
    words = [word for action in found if isinstance(action, Run) for word in action.command]
    assert not {"mdadm", "wipefs", "fstrim.timer"} & set(words)
    assert not any(isinstance(action, RunScript) for action in found)


@pytest.mark.parametrize("broken", [{"rc": 1, "stderr": "boom"}, {"stdout": "oops\n"}])
def test_a_node_that_cannot_be_read_is_not_acted_upon(broken: dict[str, Any]) -> None:
    snapshot = host()
    section = snapshot.section(SIGNATURES.name).model_copy(update=broken)
    snapshot = snapshot.model_copy(
        update={"sections": {**snapshot.sections, SIGNATURES.name: section}}
    )
    (setting,) = settings_of(COMPONENT, RAID0, snapshot)
    assert (setting.key, setting.persisted.standing) == (UNREAD, Standing.UNREADABLE)


def test_a_timer_of_which_nothing_is_known_is_unreadable() -> None:
    snapshot = converged(RAID0)
    mute = snapshot.section("fstrim_state").model_copy(update={"stdout": ""})
    snapshot = snapshot.model_copy(update={"sections": {**snapshot.sections, "fstrim_state": mute}})
    assert verdicts(RAID0, snapshot)[TIMER.key] is Verdict.UNREADABLE
