"""The connections of a subsystem: what its volumes have in common, and what its target grants."""

import pytest

from railwright.schema import Node
from railwright.settings import Effect, Verdict, verdict
from railwright.snapshot import Snapshot
from tests.unit.nvme_host import (
    BOTH,
    CONNECT_UNIT,
    CONNECTED,
    DEVICE,
    LIVE,
    MOUNT_UNIT,
    NAME,
    PROC,
    REMOUNT,
    UUID,
    WHERE,
    controller,
    converged,
    done,
    found,
    namespace,
    node,
    volume,
    with_mounts,
)
from tests.unit.units import unit

SCRIPT = "/usr/local/sbin/railwright-nvmeof"
TUNING = f"connections of {WHERE}"
OTHER, OTHER_NAME, OTHER_DEVICE = "/mnt/zoo", "mnt:zoo", "nvme1n2"
OTHER_UUID = UUID.replace("0a0b", "ffff")
OTHER_UNIT = f"railwright-nvmeof-{OTHER_NAME}.service"


def both(allow: frozenset[Effect] = LIVE, **changes: int) -> Node:
    mounts = {
        WHERE: volume(**changes),
        OTHER: volume(namespace={"uuid": OTHER_UUID}, **changes),
    }
    return with_mounts(mounts, allow=allow)


def there(asked: Node, more: str = "") -> Snapshot:
    link = f"link\t/dev/railwright/{OTHER_NAME}\t{OTHER_DEVICE}\n"
    states = unit(MOUNT_UNIT) + "\n" + unit("mnt-zoo.mount")
    snapshot = converged(
        asked,
        units=unit(CONNECT_UNIT) + "\n" + unit(OTHER_UNIT),
        sysfs=CONNECTED + namespace(OTHER_DEVICE, OTHER_UUID) + link + more,
        mounts=PROC + PROC.replace(DEVICE, OTHER_DEVICE).replace(WHERE, OTHER),
    )
    answers = f"{WHERE} 0 ok\n{OTHER} 0 ok\n"
    sections = dict(snapshot.sections)
    for name, text in {"mount_answers": answers, "mount_states": states}.items():
        sections[name] = sections[name].model_copy(update={"stdout": text})
    return snapshot.model_copy(update={"sections": sections})


def test_a_second_run_over_both_does_nothing() -> None:
    assert done(both(REMOUNT), there(both())) == []


def test_all_are_let_go_before_any_is_connected_anew() -> None:
    asked = both(REMOUNT, io_queues=2)
    words = [word for word in done(asked, there(asked)) if "restart" not in word]
    assert words == [
        f"systemctl stop {CONNECT_UNIT}",
        f"systemctl stop {MOUNT_UNIT}",
        f"systemctl stop {OTHER_UNIT}",
        "systemctl stop mnt-zoo.mount",
        f"{SCRIPT} down {NAME}",
        f"{SCRIPT} down {OTHER_NAME}",
        f"{SCRIPT} once {NAME}",
        f"{SCRIPT} once {OTHER_NAME}",
        f"systemctl start {MOUNT_UNIT}",
        "systemctl start mnt-zoo.mount",
    ]


def test_one_that_leaves_takes_no_connection_from_the_other() -> None:
    asked = with_mounts({WHERE: volume()}, allow=REMOUNT)
    words = done(asked, there(both()))
    assert f"remove /etc/railwright/nvmeof/{OTHER_NAME}.conf" in words
    assert f"{SCRIPT} down {OTHER_NAME}" not in words
    neither = done(with_mounts({}, allow=REMOUNT), there(both()))
    assert [word for word in neither if " down " in word] == [
        f"{SCRIPT} down {NAME}",
        f"{SCRIPT} down {OTHER_NAME}",
    ]


GIVEN = "nr_io_queues=16,keep_alive_tmo=5,reconnect_delay=10,ctrl_loss_tmo=1800"


def granted(queues: int, given: str = GIVEN, loss: str = "1800") -> str:
    """Both paths with fewer queues than eight, which is what eight processors take of sixteen."""
    fields = {"queues": str(queues + 1), "given": given, "loss": loss}
    return CONNECTED.replace(BOTH, controller(1, 0, **fields) + controller(2, 1, **fields))


def test_queues_that_a_target_does_not_grant_are_told_and_take_no_mount_away() -> None:
    asked = node(allow=REMOUNT, io_queues=16)
    setting = found(asked, converged(asked, sysfs=granted(4)))[TUNING]
    assert verdict(setting, REMOUNT) is Verdict.NOT_RUNNING
    assert setting.running.detail == "nvme1: fewer queues are granted than it was connected with"
    assert setting.remedy == "io_queues 4, or more of them at the target"
    assert done(asked, converged(asked, sysfs=granted(4))) == []
    # What can be set is set.
    words = done(asked, converged(asked, sysfs=granted(4, loss="600")))
    assert words == [
        f"/sys/class/nvme/nvme{number}/{write}"
        for number in (1, 2)
        for write in ("reconnect_delay=10", "ctrl_loss_tmo=1800")
    ]


@pytest.mark.parametrize("given", ["-", GIVEN.replace("=16", "=1"), GIVEN.replace("=16", "=160")])
def test_a_connection_that_was_given_fewer_is_made_anew(given: str) -> None:
    asked = node(allow=REMOUNT, io_queues=16)
    assert f"{SCRIPT} down {NAME}" in done(asked, converged(asked, sysfs=granted(4, given)))


def test_nothing_is_made_on_a_namespace_whose_target_is_away() -> None:
    """Its first read would hold up the run for as long as the target is away."""
    asked = node()
    away = controller(1, 0, state="connecting") + controller(2, 1, state="connecting")
    blank = CONNECTED.replace(namespace(), namespace(holds=""))
    snapshot = converged(asked, sysfs=blank.replace(BOTH, away), mounts="", active="inactive")
    assert done(asked, snapshot) == []
    setting = found(asked, snapshot)[f"file system of {WHERE}"]
    assert setting.remedy == "the target does not answer: bring it back"
    there = converged(asked, sysfs=blank, mounts="", active="inactive")
    assert any("format" in word for word in done(asked, there))


def test_a_path_that_nobody_asks_for_goes_once() -> None:
    stray = controller(3, 0, address="traddr=10.9.9.9,trsvcid=4420")
    assert done(both(), there(both(), stray)) == ["/sys/class/nvme/nvme3/delete_controller=1"]
