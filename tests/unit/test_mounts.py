"""Mounts by units of ours: what is there, whether it answers, and what puts it right."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.mounts import (
    ANSWERED,
    ANSWERS,
    FSTAB,
    HANGS,
    MOUNTS,
    SECTIONS,
    STATES,
    UNITS,
    parse_answers,
    parse_fstab,
    parse_mounts,
)
from facts.probe import Focus, script
from railwright.actions import InstallFile, RemoveFile, Run
from railwright.mounts import OwnedMount, mount_actions, mount_settings, unit_name
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot, parse_probe
from tests.unit.records import MARKER, enablement, record
from tests.unit.units import unit

LUSTRE = OwnedMount(
    where="/mnt/lustre",
    what="10.1.1.1@o2ib:/fs",
    fstype="lustre",
    options=("flock",),
    requires=("lnet.service",),
    shown=("flock",),
)
LINE = "10.1.1.1@o2ib:/fs /mnt/lustre lustre rw,flock,lazystatfs 0 0\n"
LIVE = frozenset({Effect.LIVE})
REMOUNT = LIVE | {Effect.REMOUNT}


def host(
    *,
    mounts: str = LINE,
    answers: str = "/mnt/lustre 0 ok\n",
    fstab: str = "",
    files: str | None = None,
    active: str = "active",
    container: bool = False,
) -> Snapshot:
    """A node; without a word on files our unit is there and enabled."""
    owned = LUSTRE.owned("lustre")
    if files is None:
        files = record(owned.path, str(owned.content)) + enablement(LUSTRE.unit)
    texts = {
        "identity": "container=podman\n" if container else "",
        MOUNTS.name: mounts,
        ANSWERS.name: answers,
        FSTAB.name: record("/etc/fstab", fstab) if fstab else "",
        UNITS.name: files,
        STATES.name: unit(LUSTRE.unit.name, active=active),
    }
    sections = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
    return Snapshot(host="a", marker=MARKER, sections=sections)


def by_key(
    snapshot: Snapshot,
    *mounts: OwnedMount,
    allowed: frozenset[Effect] = LIVE,
    lacks: Mapping[str, str] | None = None,
) -> dict[str, Setting]:
    found = mount_settings("lustre", mounts, snapshot, allowed, lacks=lacks)
    return {setting.key: setting for setting in found}


def running(snapshot: Snapshot, lacks: Mapping[str, str] | None = None) -> Setting:
    return by_key(snapshot, LUSTRE, lacks=lacks)[LUSTRE.key]


def commands(
    snapshot: Snapshot, *mounts: OwnedMount, allowed: frozenset[Effect] = LIVE
) -> list[object]:
    settings = by_key(snapshot, *mounts, allowed=allowed)
    found: list[object] = []
    for action in mount_actions("lustre", mounts, snapshot, settings, allowed):
        if isinstance(action, Run):
            found.append(" ".join(action.command))
        elif isinstance(action, InstallFile):
            found.append(f"install {action.path}")
        elif isinstance(action, RemoveFile):
            found.append(f"remove {action.path}")
    return found


def test_what_is_mounted_and_answers_is_right_and_nothing_is_done() -> None:
    snapshot = host()
    verdicts = {verdict(s, LIVE) for s in by_key(snapshot, LUSTRE).values()}
    assert verdicts == {Verdict.OK}
    assert commands(snapshot, LUSTRE) == []


def test_a_bare_node_gets_the_unit_and_the_mount() -> None:
    snapshot = host(mounts="", answers="", files="", active="inactive")
    assert commands(snapshot, LUSTRE) == [
        f"install {LUSTRE.path}",
        "systemctl daemon-reload",
        "systemctl enable mnt-lustre.mount",
        "systemctl start mnt-lustre.mount",
    ]
    told = [
        str(change)
        for setting in by_key(snapshot, LUSTRE).values()
        for change in changes(setting, LIVE)
    ]
    assert told[1:] == [
        "lustre unit mnt-lustre.mount: persisted absent → at boot",
        "lustre mount /mnt/lustre: running absent → mounted",
    ]


def test_the_unit_neither_holds_up_the_boot_nor_runs_before_its_network() -> None:
    lines = str(LUSTRE.owned("lustre").content).splitlines()
    assert "Options=flock,_netdev,nofail" in lines
    assert "After=network-online.target" in lines
    assert "Requires=lnet.service" in lines
    assert "After=lnet.service" in lines
    assert "WantedBy=remote-fs.target" in lines
    local = OwnedMount(where="/scratch", what="LABEL=x", fstype="xfs", network=False)
    text = str(local.owned("scratch").content)
    assert "Options=nofail\n" in text
    assert "WantedBy=local-fs.target" in text
    assert "network" not in text


def test_systemd_takes_the_unit_as_it_is(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.fail("systemd-analyze is missing: see tests/lab/packages.txt")
    mount = LUSTRE.model_copy(update={"requires": (), "after": ("network.target",)})
    path = tmp_path / mount.unit.name
    path.write_text(str(mount.owned("lustre").content))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True
    )
    assert [line for line in done.stderr.splitlines() if "mnt-lustre" in line] == []


@pytest.mark.parametrize(
    ("answers", "value", "detail"),
    [
        ("/mnt/lustre 137 Killed\n", HANGS, "statfs did not come back"),
        ("", HANGS, "statfs did not come back"),
        ("/mnt/lustre 1 stat: cannot read: Stale file handle\n", None, "Stale file handle"),
    ],
)
def test_a_mount_that_does_not_answer_is_degraded(
    answers: str, value: str | None, detail: str
) -> None:
    found = running(host(answers=answers))
    assert verdict(found, LIVE) is Verdict.DEGRADED
    assert found.running.value == value
    assert detail in str(found.running.detail)
    assert commands(host(answers=answers), LUSTRE) == []


def test_a_file_system_that_became_read_only_is_degraded() -> None:
    snapshot = host(mounts=LINE.replace("rw,", "ro,"))
    assert running(snapshot).running.value == "read-only"
    asked = LUSTRE.model_copy(update={"options": ("flock", "ro")})
    assert by_key(snapshot, asked)[LUSTRE.key].running.standing is Standing.RIGHT


@pytest.mark.parametrize("flag", ["ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime"])
def test_a_flag_that_is_in_the_unit_and_not_in_force_is_told(flag: str) -> None:
    asked = LUSTRE.model_copy(update={"options": ("flock", flag)})
    without = by_key(host(), asked)[LUSTRE.key]
    assert (without.running.value, without.effect) == (f"without {flag}", Effect.REMOUNT)
    line = LINE.replace("rw,", f"{'' if flag == 'ro' else 'rw,'}{flag},")
    assert by_key(host(mounts=line), asked)[LUSTRE.key].running.standing is Standing.RIGHT


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("10.9.9.9@tcp:/fs /mnt/lustre lustre rw,flock 0 0\n", "10.9.9.9@tcp:/fs"),
        ("tmpfs /mnt/lustre tmpfs rw 0 0\n", "tmpfs of tmpfs"),
        ("10.1.1.1@o2ib:/fs /mnt/lustre lustre rw 0 0\n", "without flock"),
    ],
)
def test_another_file_system_there_is_changed_only_where_that_is_allowed(
    line: str, value: str
) -> None:
    snapshot = host(mounts=line)
    found = running(snapshot)
    assert (found.running.value, found.effect) == (value, Effect.REMOUNT)
    assert commands(snapshot, LUSTRE) == []
    assert commands(snapshot, LUSTRE, allowed=REMOUNT) == [
        "systemctl stop mnt-lustre.mount",
        "systemctl start mnt-lustre.mount",
    ]


def test_of_two_on_one_directory_the_last_is_looked_at() -> None:
    assert running(host(mounts=f"{LINE}tmpfs /mnt/lustre tmpfs rw 0 0\n")).running.value


def test_what_cannot_be_mounted_yet_waits_and_says_for_what() -> None:
    found = running(host(mounts="", answers=""), lacks={"/mnt/lustre": "lnet is down"})
    assert verdict(found, LIVE) is Verdict.PENDING
    assert found.running.detail == "lnet is down"


def test_a_unit_that_failed_is_told_and_started_again() -> None:
    snapshot = host(mounts="", answers="", active="failed")
    assert "mnt-lustre.mount failed" in str(running(snapshot).running.detail)
    assert commands(snapshot, LUSTRE) == ["systemctl start mnt-lustre.mount"]


def test_a_line_of_fstab_for_the_same_directory_is_told_and_left() -> None:
    snapshot = host(fstab="# /etc/fstab\n10.9.9.9@tcp:/old /mnt/lustre/ lustre defaults 0 0\n")
    found = by_key(snapshot, LUSTRE)["fstab /mnt/lustre"]
    assert verdict(found, LIVE) is Verdict.OVERRIDDEN
    assert found.persisted.decider == "/etc/fstab:2"
    assert commands(snapshot, LUSTRE) == []


def test_a_mount_that_nothing_asks_for_any_more_goes_where_that_is_allowed() -> None:
    assert commands(host(), allowed=REMOUNT) == [
        "systemctl disable --now mnt-lustre.mount",
        f"remove {LUSTRE.link}",
        f"remove {LUSTRE.path}",
        "systemctl daemon-reload",
    ]
    kept = by_key(host())
    assert {verdict(setting, LIVE) for setting in kept.values()} == {Verdict.WRONG}
    assert all("allow remount" in str(setting.remedy) for setting in kept.values())
    assert commands(host()) == []
    # What is not mounted is taken from nobody.
    assert len(commands(host(mounts="", answers=""))) == 4


def test_units_of_another_component_and_of_nobody_are_left() -> None:
    other = LUSTRE.owned("beegfs")
    foreign = record("/etc/systemd/system/x.mount", "[Mount]\nWhere=/x\n")
    files = record(other.path, str(other.content)) + foreign
    assert by_key(host(files=files)) == {}


def test_a_container_has_the_unit_alone() -> None:
    found = by_key(host(container=True, mounts="", answers=""), LUSTRE)
    assert {verdict(setting, LIVE) for setting in found.values()} == {
        Verdict.OK,
        Verdict.NOT_APPLICABLE,
    }
    assert commands(host(container=True, mounts="", answers=""), LUSTRE) == []


def test_nothing_is_looked_at_where_nothing_is_asked_for() -> None:
    assert mount_settings("lustre", [], Snapshot(host="a", marker="m", sections={}), LIVE) == []


@pytest.mark.parametrize(
    "where", ["/mnt/lustre", "/data-1/a.b", "/mnt/my_fs", "/a/.b", "/x+y", "/ä"]
)
def test_a_unit_has_the_name_that_systemd_gives_it(where: str) -> None:
    done = subprocess.run(
        ["systemd-escape", "-p", "--suffix=mount", where], capture_output=True, text=True
    )
    if where == "/a/.b":
        assert unit_name(where) == "a-.b.mount"
    assert unit_name(where) == done.stdout.strip()


def test_the_root_is_no_directory_to_mount_on() -> None:
    with pytest.raises(ValueError, match="below /"):
        unit_name("/")


def test_blanks_in_names_are_read() -> None:
    (entry,) = parse_mounts("/dev/sda1 /mnt/my\\040disk ext4 rw,relatime 0 0\n")
    assert entry.target == "/mnt/my disk"
    (line,) = parse_fstab("LABEL=a /mnt/my\\040disk ext4\n\n#x /y z\n")
    assert (line.target, line.line, line.options) == ("/mnt/my disk", 1, ("defaults",))


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_mounts, parse_answers):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert len(found) <= len(text.splitlines())
    assert len(parse_fstab(text)) <= len(text.splitlines())


def test_the_probe_reads_this_machine() -> None:
    text = script(SECTIONS, Focus(storage=True, mounts=("/proc", "/no/such")))
    done = subprocess.run(["sh", "-c", text], capture_output=True, timeout=60)
    snapshot = parse_probe(done.stdout.decode("ascii"), host="here")
    assert "/proc" in {entry.target for entry in parse_mounts(snapshot.text(MOUNTS.name))}
    assert parse_answers(snapshot.text(ANSWERS.name)) == {"/proc": ANSWERED}


def test_a_mount_that_hangs_does_not_hold_up_the_others(tmp_path: Path) -> None:
    stub = tmp_path / "stat"
    stub.write_text('#!/bin/sh\n[ "$5" = /sys ] || exit 0\ntrap "" TERM\nexec sleep 60\n')
    stub.chmod(0o755)
    section = ANSWERS.model_copy(
        update={"script": f"PATH={tmp_path}:$PATH\n{ANSWERS.script}".replace("KILL 5", "KILL 1")}
    )
    text = script([section], Focus(storage=True, mounts=("/sys", "/proc")))
    done = subprocess.run(["sh", "-c", text], capture_output=True, timeout=60)
    snapshot = parse_probe(done.stdout.decode("ascii"), host="here")
    told = parse_answers(snapshot.section(ANSWERS.name).stdout)
    assert told == {"/proc": ANSWERED, "/sys": HANGS}
