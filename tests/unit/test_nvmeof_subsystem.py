"""Volumes of one subsystem, which have its connections in common."""

from railwright.schema import Node
from railwright.settings import Effect
from railwright.snapshot import Snapshot
from tests.unit.nvme_host import (
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
    namespace,
    volume,
    with_mounts,
)
from tests.unit.units import unit

SCRIPT = "/usr/local/sbin/railwright-nvmeof"
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


def test_a_path_that_nobody_asks_for_goes_once() -> None:
    stray = controller(3, 0, address="traddr=10.9.9.9,trsvcid=4420")
    assert done(both(), there(both(), stray)) == ["/sys/class/nvme/nvme3/delete_controller=1"]
