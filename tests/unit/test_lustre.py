"""Lustre's client from what a node shows to what is done: the whole of it."""

import pytest

from deploys.lustre import settings
from facts.lustre import DROP_IN, LNET_CONF, LNET_SCRIPT
from railwright.actions import Run
from railwright.owned import HEADER
from railwright.settings import Effect, Standing, Verdict, changes, is_drift
from railwright.snapshot import Section
from tests.unit.lustre_host import (
    BOTH,
    DEVICE,
    DF,
    LIVE,
    MOUNT_UNIT,
    OURS,
    WHERE,
    bare_node,
    commands,
    converged,
    df,
    done,
    host,
    mounted,
    net_show,
    ni,
    node,
    of,
    removed,
    verdicts,
    written,
)
from tests.unit.units import unit

ASKED = node()
MOUNT_PATH = f"/etc/systemd/system/{MOUNT_UNIT}"


def test_where_nothing_is_asked_for_there_is_nothing() -> None:
    assert settings(bare_node(), host()) == []
    assert done(bare_node(), host()) == []


def test_a_bare_node_gets_lnet_and_then_the_mount() -> None:
    assert set(written(ASKED, host())) == {*OURS, MOUNT_PATH}
    assert commands(ASKED, host()) == [
        "systemctl daemon-reload",
        "systemctl enable lnet.service",
        "systemctl start lnet.service",
        "systemctl daemon-reload",
        f"systemctl enable {MOUNT_UNIT}",
        f"systemctl start {MOUNT_UNIT}",
    ]


def test_the_dry_run_announces_what_is_done() -> None:
    seen = host()
    told = {str(change) for s in settings(ASKED, seen) for change in changes(s, LIVE)}
    assert f"lustre mount {WHERE}: running absent → mounted" in told
    assert "lustre ni o2ib rail0: running absent → up, peer_credits 32, " in "".join(sorted(told))
    assert "lustre unit lnet.service: persisted disabled → enabled" in told


def test_a_converged_node_is_left_alone() -> None:
    assert {key for key, found in verdicts(ASKED, converged(ASKED)).items() if is_drift(found)} == (
        set()
    )
    assert done(ASKED, converged(ASKED)) == []


def test_mounts_require_lnet_and_do_not_hold_up_the_boot() -> None:
    text = written(ASKED, host())[MOUNT_PATH]
    assert f"What={DEVICE}\nWhere={WHERE}\nType=lustre\nOptions=flock,_netdev,nofail\n" in text
    assert "Requires=lnet.service\nAfter=lnet.service\n" in text


def test_lnet_service_is_not_passed_over_where_its_module_is_loaded() -> None:
    text = written(ASKED, host())[DROP_IN]
    assert "\nConditionPathExists=\nConditionVirtualization=!container\n" in text
    assert f"\nExecStart=\nExecStart={LNET_SCRIPT} 60\n" in text
    skipped = converged(
        ASKED,
        units=unit("lnet.service", "inactive", "enabled"),
        condition="ConditionResult=no\nConditionTimestamp=Mon 2026-10-05 12:00:00 UTC",
    )
    setting = of("unit lnet.service", ASKED, skipped)
    assert (setting.running.standing, setting.running.value) == (Standing.WRONG, "skipped")
    assert commands(ASKED, skipped) == ["systemctl start lnet.service"]
    # One that nobody has started yet has no time at which its condition was looked at.
    waiting = converged(
        ASKED,
        units=unit("lnet.service", "inactive", "enabled"),
        condition="ConditionResult=no\nConditionTimestamp=",
    )
    assert of("unit lnet.service", ASKED, waiting).running.value == "inactive"


def test_a_failed_lnet_is_started_where_that_can_help() -> None:
    failed = unit("lnet.service", "failed", "enabled") + "Result=exit-code\n"
    down = converged(ASKED, units=failed, lnet=None, mounts="")
    setting = of("unit lnet.service", ASKED, down)
    assert (setting.running.value, setting.running.detail) == ("failed", "exit-code")
    assert "systemctl start lnet.service" in commands(ASKED, down)
    without = converged(ASKED, units=failed, lnet=None, mounts="", ports=())
    assert of("unit lnet.service", ASKED, without).running.standing is Standing.DEGRADED
    assert verdicts(ASKED, without)["unit lnet.service"] is Verdict.DEGRADED
    assert commands(ASKED, without) == []


def test_a_masked_lnet_is_left_to_whoever_masked_it() -> None:
    masked = converged(ASKED, units=unit("lnet.service", "inactive", "masked", "masked"))
    assert of("unit lnet.service", ASKED, masked).persisted.standing is Standing.OVERRIDDEN


def test_without_the_client_everything_is_written_and_nothing_started() -> None:
    bare = host(units=unit("lnet.service", "inactive", "", "not-found"))
    setting = of("unit lnet.service", ASKED, bare)
    assert not setting.acts
    assert setting.remedy is not None
    assert "install the client's packages" in setting.remedy
    assert set(written(ASKED, bare)) == {*OURS, MOUNT_PATH}
    assert not any("start" in command for command in commands(ASKED, bare))
    mount = of(f"mount {WHERE}", ASKED, bare)
    assert mount.running.standing is Standing.LATE
    assert mount.running.detail == "LNet has no interface of o2ib that is up"


def test_a_mount_whose_network_does_not_come_up_is_not_tried() -> None:
    dead, alive = ni("10.64.0.2@o2ib", "rail0", "down"), ni("10.64.16.2@o2ib", "rail1")
    down = net_show(o2ib=dead + alive.replace("status: up", "status: down"))
    seen = converged(ASKED, lnet=down, mounts="")
    assert of(f"mount {WHERE}", ASKED, seen).running.standing is Standing.LATE
    assert not any(MOUNT_UNIT in command for command in commands(ASKED, seen))
    # One port of two is enough.
    half = net_show(o2ib=dead + alive)
    assert commands(ASKED, converged(ASKED, lnet=half, mounts="")) == [
        f"systemctl start {MOUNT_UNIT}"
    ]


def test_what_is_mounted_otherwise_waits_for_a_remount() -> None:
    other = converged(ASKED, mounts=mounted("10.77.3.9@tcp:/scr"))
    assert verdicts(ASKED, other)[f"mount {WHERE}"] is Verdict.PENDING
    without = converged(ASKED, mounts=mounted(options="rw,localflock"))
    assert of(f"mount {WHERE}", ASKED, without).running.value == "without flock"


def test_a_mount_that_hangs_is_degraded_and_nothing_else_is_held_up() -> None:
    hangs = converged(
        ASKED,
        answers=f"{WHERE} 137 \n",
        targets=Section(stdout="\nm-0 port /mnt/scr df\n", rc=None, ended="deadline"),
    )
    found = verdicts(ASKED, hangs)
    assert found[f"mount {WHERE}"] is Verdict.DEGRADED
    assert found[f"targets {WHERE}"] is Verdict.DEGRADED
    assert of(f"targets {WHERE}", ASKED, hangs).running.detail == "lfs df did not end in time"
    assert [key for key, verdict in found.items() if verdict is Verdict.UNREADABLE] == []
    assert done(ASKED, hangs) == []


@pytest.mark.parametrize(
    ("said", "standing", "detail"),
    [
        (df(), Standing.RIGHT, None),
        (
            df(DF + "scr-OST0001_UUID    : Resource temporarily unavailable\n"),
            Standing.DEGRADED,
            "OST0001: Resource temporarily unavailable",
        ),
        (df(DF + "scr-OST0001_UUID    : inactive device\n"), Standing.RIGHT, "inactive: OST0001"),
        (df(DF.replace(" 66% /mnt/scr[OST", "100% /mnt/scr[OST")), Standing.RIGHT, "full: OST0000"),
        (df("", 137), Standing.DEGRADED, "lfs df did not end in time"),
        (df("lfs df: cannot open", 1), Standing.DEGRADED, "lfs df: lfs df: cannot open"),
        ("", Standing.DEGRADED, "lfs df did not end in time"),
    ],
)
def test_targets_that_do_not_answer_are_told(
    said: str, standing: Standing, detail: str | None
) -> None:
    seen = converged(ASKED, targets=Section(stdout=said, rc=0))
    running = of(f"targets {WHERE}", ASKED, seen).running
    assert (running.standing, running.detail) == (standing, detail)


def test_devices_that_are_not_up_are_told_beside_the_targets() -> None:
    devices = "  4 IN osc scr-OST0000-osc-ffff9a0012340000 0a0b0c0d-5555-6666-7777-000000000002 4\n"
    running = of(f"targets {WHERE}", ASKED, converged(ASKED, devices=devices)).running
    assert running.detail == "not up: scr-OST0000-osc-ffff9a0012340000"


def test_a_container_has_the_files_and_nothing_that_runs() -> None:
    seen = host(container=True, units=unit("lnet.service", "inactive", "disabled"))
    assert set(written(ASKED, seen)) == {*OURS, MOUNT_PATH}
    assert all(s.running.standing is Standing.NOT_APPLICABLE for s in settings(ASKED, seen))
    assert commands(ASKED, seen) == [
        "systemctl daemon-reload",
        "systemctl enable lnet.service",
        "systemctl daemon-reload",
        f"systemctl enable {MOUNT_UNIT}",
    ]


def test_files_of_ours_go_where_nothing_is_asked_for_any_more() -> None:
    files = dict.fromkeys(OURS, HEADER + "x\n")
    asked = bare_node()
    seen = host(files, units=unit("lnet.service", "active", "enabled"))
    assert removed(asked, seen) == set(OURS)
    assert commands(asked, seen) == ["systemctl disable lnet.service", "systemctl daemon-reload"]
    # That of the package is all comments, and stays.
    assert settings(asked, host({LNET_CONF: "# lnet.conf - configuration file\n"})) == []


def test_a_mount_that_is_not_asked_for_any_more_goes_first() -> None:
    text = written(ASKED, host())[MOUNT_PATH]
    link = f"/etc/systemd/system/remote-fs.target.wants/{MOUNT_UNIT}"
    seen = host({MOUNT_PATH: text}, links=(link,), lnet=BOTH)
    actions = done(bare_node(), seen)
    assert actions[0] == Run(command=("systemctl", "disable", "--now", MOUNT_UNIT))
    # What is mounted is taken from nobody without leave.
    used = host({MOUNT_PATH: text}, links=(link,), lnet=BOTH, mounts=mounted())
    assert done(bare_node(), used) == []
    assert Effect.REMOUNT not in ASKED.effects.allow


def test_an_answer_of_systemd_that_cannot_be_read_is_told() -> None:
    silent = host(units="")
    silent = silent.model_copy(
        update={
            "sections": {
                **silent.sections,
                "lustre_units": Section(stdout="", stderr="no bus", rc=1),
            }
        }
    )
    setting = of("unit lnet.service", ASKED, silent)
    assert setting.persisted.standing is Standing.UNREADABLE
    assert setting.persisted.detail == "systemctl show: no bus"
