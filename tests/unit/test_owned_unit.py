"""Units of ours: whether they start at boot and have done their work, and what puts them right."""

import pytest

from railwright.actions import InstallFile, RemoveFile, Run
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, owned_file_setting
from railwright.owned_unit import (
    OwnedUnit,
    enabled_setting,
    started,
    started_setting,
    unit_actions,
)
from railwright.settings import (
    NO_PORTS,
    NOTHING,
    Effect,
    Setting,
    Standing,
    Verdict,
    changes,
    verdict,
)
from railwright.snapshot import Section, Snapshot
from tests.unit.units import unit

UNIT = OwnedUnit(name="railwright-x.service", target="sysinit.target")
LINK = FileRecord(path=UNIT.link, kind="link", target=UNIT.path)
SCRIPT = OwnedFile(path="/usr/local/sbin/railwright-x", content=f"{HEADER}true\n", mode="755")
FILE = OwnedFile(path=UNIT.path, content=f"{HEADER}[Unit]\n")
GONE = tuple(OwnedFile(path=one.path, content=None) for one in (SCRIPT, FILE))
LIVE = frozenset({Effect.LIVE})


def records(*owned: OwnedFile) -> list[FileRecord]:
    return [
        FileRecord(path=o.path, kind="file", content=o.content, mode=o.mode, owner="root")
        for o in owned
    ]


def settings(
    files: list[FileRecord], owned: tuple[OwnedFile, ...] = (SCRIPT, FILE), asked: bool = True
) -> dict[str, Setting]:
    found = [owned_file_setting("x", one, files) for one in owned]
    found.append(enabled_setting("x", UNIT, files, asked=asked))
    return {setting.key: setting for setting in found if setting is not None}


def snapshot(text: str) -> Snapshot:
    return Snapshot(host="n1", marker="m", sections={"x_unit": Section(stdout=text, rc=0)})


def test_paths_follow_from_the_name_and_the_target() -> None:
    assert UNIT.path == "/etc/systemd/system/railwright-x.service"
    assert UNIT.link == "/etc/systemd/system/sysinit.target.wants/railwright-x.service"
    assert (UNIT.key, UNIT.started_key) == (
        "unit railwright-x.service",
        "start of railwright-x.service",
    )


def test_on_a_bare_node_all_is_written_and_the_unit_enabled() -> None:
    assert list(unit_actions(UNIT, (SCRIPT, FILE), settings([]))) == [
        InstallFile(path=SCRIPT.path, content=SCRIPT.content or "", mode="755"),
        InstallFile(path=FILE.path, content=FILE.content or ""),
        Run(command=("systemctl", "daemon-reload")),
        Run(command=("systemctl", "enable", UNIT.name)),
    ]


def test_what_is_right_is_left_alone() -> None:
    by_key = settings([*records(SCRIPT, FILE), LINK])
    assert {verdict(s, LIVE) for s in by_key.values()} == {Verdict.OK}
    assert list(unit_actions(UNIT, (SCRIPT, FILE), by_key)) == []


def test_a_script_alone_needs_no_reload_of_systemd() -> None:
    by_key = settings([*records(FILE), LINK])
    assert [type(a) for a in unit_actions(UNIT, (SCRIPT, FILE), by_key)] == [InstallFile]


def test_a_unit_that_somebody_disabled_is_enabled_again() -> None:
    by_key = settings(records(SCRIPT, FILE))
    assert verdict(by_key[UNIT.key], LIVE) is Verdict.WRONG
    assert list(unit_actions(UNIT, (SCRIPT, FILE), by_key)) == [
        Run(command=("systemctl", "enable", UNIT.name))
    ]


def test_what_no_longer_is_asked_for_is_stopped_before_it_goes() -> None:
    by_key = settings([*records(SCRIPT, FILE), LINK], GONE, asked=False)
    told = [str(change) for change in changes(by_key[UNIT.key], LIVE)]
    assert told == [f"x {UNIT.key}: persisted enabled → absent"]
    assert list(unit_actions(UNIT, GONE, by_key)) == [
        Run(command=("systemctl", "disable", "--now", UNIT.name)),
        RemoveFile(path=UNIT.link),
        RemoveFile(path=SCRIPT.path),
        RemoveFile(path=UNIT.path),
        Run(command=("systemctl", "daemon-reload")),
    ]


def test_of_a_unit_whose_file_is_gone_the_link_is_removed() -> None:
    by_key = settings([LINK], GONE, asked=False)
    assert list(unit_actions(UNIT, GONE, by_key)) == [RemoveFile(path=UNIT.link)]
    assert settings([], GONE, asked=False) == {}


def test_a_unit_that_stays_has_its_running_state_in_the_same_words() -> None:
    setting = enabled_setting("x", UNIT, [LINK], asked=True, word="on", running=NO_PORTS)
    assert setting is not None
    assert (setting.desired, setting.persisted.value, setting.running) == ("on", "on", NO_PORTS)
    stale = enabled_setting("x", UNIT, [LINK], asked=False, word="on", running=NO_PORTS)
    assert stale is not None
    assert (stale.desired, stale.running) == ("absent", NOTHING)


@pytest.mark.parametrize(
    ("active", "lacks", "found", "detail"),
    [
        ("active", [], Verdict.OK, None),
        ("active", ["2M node0"], Verdict.OK, None),
        ("inactive", [], Verdict.NOT_RUNNING, None),
        ("failed", ["2M node0", "2M node1"], Verdict.DEGRADED, "could not set 2M node0, 2M node1"),
        ("failed", [], Verdict.NOT_RUNNING, None),
    ],
)
def test_a_unit_that_failed_is_degraded_while_its_settings_are_not_in_force(
    active: str, lacks: list[str], found: Verdict, detail: str | None
) -> None:
    state = started(UNIT, snapshot(unit(UNIT.name, active=active)), "x_unit", lacks)
    assert state.value == active
    assert verdict(started_setting("x", UNIT, state), LIVE) is found
    assert (state.detail is None) if detail is None else detail in (state.detail or "")


@pytest.mark.parametrize(
    ("text", "detail"),
    [("", "systemctl show"), (unit("other.service", active="active"), "says nothing of")],
)
def test_a_systemd_that_does_not_tell_is_unreadable(text: str, detail: str) -> None:
    state = started(UNIT, snapshot(text), "x_unit", [])
    assert state.standing is Standing.UNREADABLE
    assert detail in (state.detail or "")
