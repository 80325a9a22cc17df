"""Parameters of Lustre's client: our unit sets them after each mount."""

import pytest

from deploys.lustre import settings
from facts.lustre import PARAMETERS_PATH, PARAMETERS_SCRIPT, PARAMETERS_UNIT, PARAMETERS_UNIT_PATH
from railwright.resolve.lustre_parameters import same
from railwright.settings import Standing, Verdict
from tests.unit.lustre_host import (
    MOUNT_UNIT,
    PARAMETER,
    commands,
    converged,
    done,
    host,
    node,
    of,
    removed,
    verdicts,
    written,
)

ASKED = node(lustre={"parameters": {PARAMETER: 32, "llite.*.max_read_ahead_mb": 1024}})
KEY = f"param {PARAMETER}"
IN_FORCE = (
    "osc.scr-OST0000-osc-ffff9a.max_rpcs_in_flight=32\n"
    "osc.scr-OST0001-osc-ffff9a.max_rpcs_in_flight=32\n"
    "llite.scr-ffff9a.max_read_ahead_mb=1024.00\n"
)


def test_a_bare_node_gets_a_unit_that_each_mount_starts() -> None:
    found = written(ASKED, host())
    assert {PARAMETERS_PATH, PARAMETERS_SCRIPT, PARAMETERS_UNIT_PATH} < set(found)
    lines = found[PARAMETERS_PATH].splitlines()
    assert lines[1:] == ["llite.*.max_read_ahead_mb=1024", f"{PARAMETER}=32"]
    unit = found[PARAMETERS_UNIT_PATH]
    assert f"\nAfter={MOUNT_UNIT}\n" in unit
    assert f"\nWantedBy={MOUNT_UNIT}\n" in unit
    assert "RemainAfterExit=" not in unit
    assert f"systemctl enable {PARAMETERS_UNIT}" in commands(ASKED, host())


def test_the_unit_is_there_before_the_mount_that_starts_it() -> None:
    ran = commands(ASKED, host())
    order = [
        f"systemctl enable {PARAMETERS_UNIT}",
        f"systemctl start {MOUNT_UNIT}",
        # The end of it is waited for: what is looked at next has them.
        f"systemctl start {PARAMETERS_UNIT}",
    ]
    assert [command for command in ran if command in order] == order
    assert order[-1] not in commands(node(), host())


def test_before_anything_is_mounted_they_wait_for_it() -> None:
    setting = of(KEY, ASKED, host())
    assert setting.running.standing is Standing.LATE
    assert not any(command.startswith("lctl") for command in commands(ASKED, host()))


def test_a_converged_node_is_left_alone() -> None:
    seen = converged(ASKED, parameters=IN_FORCE)
    assert verdicts(ASKED, seen)[KEY] is Verdict.OK
    assert verdicts(ASKED, seen)["param llite.*.max_read_ahead_mb"] is Verdict.OK
    assert done(ASKED, seen) == []


def test_one_device_that_differs_is_enough() -> None:
    lower = IN_FORCE.replace(
        "OST0001-osc-ffff9a.max_rpcs_in_flight=32", "OST0001-osc-x.max_rpcs_in_flight=8"
    )
    seen = converged(ASKED, parameters=lower)
    setting = of(KEY, ASKED, seen)
    assert verdicts(ASKED, seen)[KEY] is Verdict.NOT_RUNNING
    assert setting.running.value == "8"
    assert setting.running.detail == "osc.scr-OST0001-osc-x.max_rpcs_in_flight"
    assert commands(ASKED, seen) == [f"lctl set_param {PARAMETER}=32"]


def test_what_is_in_force_and_lost_at_the_next_mount_is_not_persisted() -> None:
    seen = converged(ASKED, parameters=IN_FORCE, files={PARAMETERS_PATH: "# nothing\n"})
    assert verdicts(ASKED, seen)[KEY] is Verdict.NOT_PERSISTED
    unlinked = converged(
        ASKED,
        parameters=IN_FORCE,
        links=(f"/etc/systemd/system/remote-fs.target.wants/{MOUNT_UNIT}",),
    )
    setting = of(KEY, ASKED, unlinked)
    assert setting.persisted.detail == f"nothing sets it: {PARAMETERS_UNIT} is not right"
    assert commands(ASKED, unlinked) == [
        "systemctl daemon-reload",
        f"systemctl enable {PARAMETERS_UNIT}",
    ]


def test_a_link_of_a_mount_that_is_gone_goes_too() -> None:
    old = f"/etc/systemd/system/mnt-old.mount.wants/{PARAMETERS_UNIT}"
    links = (
        f"/etc/systemd/system/remote-fs.target.wants/{MOUNT_UNIT}",
        f"/etc/systemd/system/{MOUNT_UNIT}.wants/{PARAMETERS_UNIT}",
        old,
    )
    seen = converged(ASKED, parameters=IN_FORCE, links=links)
    assert of(f"unit {PARAMETERS_UNIT}", ASKED, seen).persisted.standing is Standing.WRONG
    assert old in removed(ASKED, seen)


def test_what_is_not_asked_for_any_more_goes() -> None:
    with_files = converged(ASKED, parameters=IN_FORCE)
    asked = node()
    assert removed(asked, with_files) == {
        PARAMETERS_PATH,
        PARAMETERS_SCRIPT,
        PARAMETERS_UNIT_PATH,
        f"/etc/systemd/system/{MOUNT_UNIT}.wants/{PARAMETERS_UNIT}",
    }
    assert [s for s in settings(asked, with_files) if s.key.startswith("param ")] == []


@pytest.mark.parametrize(
    ("said", "standing", "detail"),
    [
        (
            "error: get_param: param_path 'osc/*/max_rpcs_in_flight': No such file or directory\n",
            Standing.WRONG,
            "lctl get_param: No such file or directory",
        ),
        ("", Standing.UNREADABLE, "lctl says nothing of it"),
        ("Segmentation fault\n", Standing.UNREADABLE, None),
    ],
)
def test_a_parameter_that_is_not_told_is_never_right(
    said: str, standing: Standing, detail: str | None
) -> None:
    seen = converged(ASKED, parameters=said)
    running = of(KEY, ASKED, seen).running
    assert running.standing is standing
    assert detail is None or running.detail == detail
    assert not any(PARAMETER in command for command in commands(ASKED, seen))


def test_an_lru_that_sizes_itself_shows_its_size() -> None:
    asked = node(lustre={"parameters": {"ldlm.namespaces.*.lru_size": 0}})
    shown = "ldlm.namespaces.scr-OST0000-osc-ffff9a.lru_size=1600\n"
    setting = of("param ldlm.namespaces.*.lru_size", asked, converged(asked, parameters=shown))
    assert setting.running.standing is Standing.NOT_APPLICABLE
    assert setting.running.detail == "sizes itself, and shows its size: 1600"


@pytest.mark.parametrize(
    ("value", "told", "alike"),
    [
        (1024, "1024.00", True),
        (0, "0", True),
        ("crc32c", "crc32c", True),
        ("4096", "4096", True),
        (8, "16", False),
        ("crc32c", "adler", False),
        (1, "on", False),
    ],
)
def test_values_are_compared_by_what_they_mean(value: int | str, told: str, alike: bool) -> None:
    assert same(value, told) is alike
