"""Volumes over a fabric, from what a node shows to what is done."""

from typing import Any

import pytest

from railwright.actions import InstallFile, RunScript
from railwright.settings import Effect, Standing, Verdict, changes
from tests.unit.nvme_host import (
    BOTH,
    CONNECT_UNIT,
    CONNECTED,
    DEVICE,
    LINK,
    LIVE,
    MOUNT_UNIT,
    NAME,
    NQN,
    PROC,
    REMOUNT,
    SUBSYSTEM,
    TARGETS,
    UUID,
    WHERE,
    actions,
    controller,
    converged,
    done,
    found,
    host,
    modinfo,
    namespace,
    node,
    verdicts,
    volume,
    with_mounts,
)
from tests.unit.units import unit

ASKED = node()
SCRIPT = "/usr/local/sbin/railwright-nvmeof"
RULES = "/etc/udev/rules.d/90-railwright-nvmeof.rules"
CONF = f"/etc/railwright/nvmeof/{NAME}.conf"
FORMAT = f"railwright-nvmeof-format /dev/railwright/{NAME} {NQN} ext4"
ONCE, DOWN = f"{SCRIPT} once {NAME}", f"{SCRIPT} down {NAME}"
PATHS = [f"path {address}:4420 of {WHERE}" for address in TARGETS]
TUNING, FILESYSTEM = f"connections of {WHERE}", f"file system of {WHERE}"
NAMESPACE, MOUNT = f"namespace of {WHERE}", f"mount {WHERE}"


def connected(*parts: str) -> str:
    return "".join((*parts, SUBSYSTEM, namespace(), LINK))


def test_a_node_that_asks_for_nothing_has_nothing() -> None:
    asked = with_mounts({})
    assert found(asked, host(files="")) == {}
    assert done(asked, host(files="")) == []


def test_a_bare_node_is_connected_formatted_and_mounted_in_one_run() -> None:
    bare = host(files="")
    assert done(ASKED, bare) == [
        "railwright-nvmeof-identity",
        f"install {SCRIPT}",
        f"install {RULES}",
        f"install {CONF}",
        f"install /etc/systemd/system/{CONNECT_UNIT}",
        "systemctl daemon-reload",
        f"systemctl enable {CONNECT_UNIT}",
        "udevadm control --reload",
        ONCE,
        FORMAT,
        f"install /etc/systemd/system/{MOUNT_UNIT}",
        "systemctl daemon-reload",
        f"systemctl enable {MOUNT_UNIT}",
        f"systemctl start {MOUNT_UNIT}",
        f"systemctl restart {CONNECT_UNIT}",
    ]
    told = [str(c) for s in found(ASKED, bare).values() for c in changes(s, LIVE)]
    assert f"nvmeof {FILESYSTEM}: persisted not seen yet → ext4" in told
    assert f"nvmeof {PATHS[0]}: running absent → live" in told
    assert f"nvmeof {MOUNT}: running absent → mounted" in told
    assert "nvmeof /etc/nvme/hostnqn: persisted absent → made once" in told


def test_a_converged_node_is_left_alone() -> None:
    snapshot = converged(ASKED)
    assert set(verdicts(ASKED, snapshot).values()) == {Verdict.OK}
    assert done(ASKED, snapshot) == []


def test_what_the_unit_is_to_connect_is_in_its_file() -> None:
    (conf,) = (
        a.content for a in actions(ASKED, host()) if isinstance(a, InstallFile) and a.path == CONF
    )
    assert conf.splitlines()[1:] == [
        f"nqn {NQN}",
        "transport rdma",
        "options nr_io_queues=4,keep_alive_tmo=5,reconnect_delay=10,ctrl_loss_tmo=1800",
        "portal 10.64.0.9 4420 10.64.0.2",
        "portal 10.64.1.9 4420 10.64.1.2",
        f"namespace uuid {UUID}",
        f"link /dev/railwright/{NAME}",
        f"mount {MOUNT_UNIT}",
    ]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"uuid": UUID}, f'ATTR{{uuid}}=="{UUID}"'),
        (
            {"nguid": "0a0b0c0d0102030405060708090a0b0c"},
            'ATTR{nguid}=="0a0b0c0d-0102-0304-0506-0708090a0b0c"',
        ),
        ({"eui64": "00253852310a0b0c"}, 'ATTR{eui}=="00 25 38 52 31 0a 0b 0c"'),
        ({"nsid": 3}, 'ATTR{nsid}=="3"'),
    ],
)
def test_the_device_is_found_by_each_identifier(given: dict[str, Any], match: str) -> None:
    asked = node(namespace=given, host={"iopolicy": "round-robin"})
    (rules,) = (
        a.content for a in actions(asked, host()) if isinstance(a, InstallFile) and a.path == RULES
    )
    assert f'ATTRS{{subsysnqn}}=="{NQN}", {match}, SYMLINK+="railwright/{NAME}"\n' in rules
    policy = f'ATTR{{subsysnqn}}=="{NQN}", ATTR{{iopolicy}}="round-robin"\n'
    assert f'SUBSYSTEM=="nvme-subsystem", {policy}' in rules


@pytest.mark.parametrize("mode", ["never", "if_blank"])
@pytest.mark.parametrize("holds", ["xfs", "LVM2_member", "crypto_LUKS", "table gpt"])
def test_what_holds_something_is_never_formatted(holds: str, mode: str) -> None:
    asked = node(format=mode)
    snapshot = host(sysfs=connected(BOTH).replace(namespace(), namespace(holds=holds)))
    setting = found(asked, snapshot)[FILESYSTEM]
    assert (setting.persisted.standing, setting.acts) == (Standing.WRONG, False)
    assert f"holds {holds.replace('table', 'partition table')}" in (setting.remedy or "")
    words = done(asked, snapshot)
    assert FORMAT not in words
    assert f"systemctl start {MOUNT_UNIT}" not in words


def test_a_blank_namespace_is_formatted_where_that_is_asked_for() -> None:
    snapshot = host(sysfs=connected(BOTH).replace(namespace(), namespace(holds="")))
    words = done(ASKED, snapshot)
    assert words.index(FORMAT) < words.index(f"systemctl start {MOUNT_UNIT}")
    assert ONCE not in words
    setting = found(ASKED, snapshot)[FILESYSTEM]
    assert [str(c) for c in changes(setting, LIVE)] == [
        f"nvmeof {FILESYSTEM}: persisted blank → ext4"
    ]


def test_a_blank_namespace_stays_blank_where_it_is_not() -> None:
    asked = node(format="never")
    snapshot = host(sysfs=connected(BOTH).replace(namespace(), namespace(holds="")))
    setting = found(asked, snapshot)[FILESYSTEM]
    assert setting.remedy == f"mkfs.ext4 /dev/railwright/{NAME}, or format='if_blank'"
    words = done(asked, snapshot)
    assert FORMAT not in words
    assert f"systemctl start {MOUNT_UNIT}" not in words
    assert verdicts(asked, snapshot)[MOUNT] is Verdict.PENDING


def test_a_namespace_that_udev_has_not_looked_at_is_not_blank() -> None:
    snapshot = host(sysfs=connected(BOTH).replace(namespace(), namespace(holds="?")))
    assert verdicts(ASKED, snapshot)[FILESYSTEM] is Verdict.UNREADABLE
    assert FORMAT not in done(ASKED, snapshot)


def test_a_target_that_is_away_is_told_and_nothing_is_done_or_announced() -> None:
    snapshot = converged(ASKED, sysfs="", mounts="", active="inactive")
    got = verdicts(ASKED, snapshot)
    assert [got[path] for path in PATHS] == [Verdict.DEGRADED] * 2
    assert got[MOUNT] is Verdict.PENDING
    setting = found(ASKED, snapshot)[PATHS[0]]
    assert setting.running.detail == f"{CONNECT_UNIT} tries again and again"
    assert setting.remedy == f"journalctl -u {CONNECT_UNIT}"
    assert got[FILESYSTEM] is Verdict.PENDING
    assert done(ASKED, snapshot) == []


def test_a_path_that_reconnects_is_degraded_and_the_other_one_is_not() -> None:
    sysfs = connected(controller(1, 0), controller(2, 1, state="connecting"))
    got = found(ASKED, converged(ASKED, sysfs=sysfs))
    assert got[PATHS[0]].running.standing is Standing.RIGHT
    assert got[PATHS[0]].running.detail == "nvme1, on NUMA node 0"
    lost = got[PATHS[1]].running
    assert (lost.standing, lost.value) == (Standing.DEGRADED, "connecting")
    assert got[MOUNT].running.standing is Standing.RIGHT
    assert done(ASKED, converged(ASKED, sysfs=sysfs)) == []


def test_a_unit_that_does_not_run_is_started_and_connects() -> None:
    snapshot = converged(ASKED, units=unit(CONNECT_UNIT, active="failed"), sysfs="", mounts="")
    assert verdicts(ASKED, snapshot)[f"unit {CONNECT_UNIT}"] is Verdict.NOT_RUNNING
    assert ONCE in done(ASKED, snapshot)
    assert f"systemctl restart {CONNECT_UNIT}" in done(ASKED, snapshot)


@pytest.mark.parametrize(
    ("fields", "writes"),
    [
        ({"loss": "600"}, ["reconnect_delay=10", "ctrl_loss_tmo=1800"]),
        ({"loss": "off"}, ["reconnect_delay=10", "ctrl_loss_tmo=1800"]),
        ({"delay": "5", "loss": "900"}, ["reconnect_delay=10", "ctrl_loss_tmo=1800"]),
    ],
)
def test_how_long_a_target_may_be_away_is_set_live(
    fields: dict[str, str], writes: list[str]
) -> None:
    sysfs = connected(controller(1, 0, **fields), controller(2, 1))
    snapshot = converged(ASKED, sysfs=sysfs)
    setting = found(ASKED, snapshot)[TUNING]
    assert (setting.effect, setting.running.standing) == (Effect.LIVE, Standing.WRONG)
    assert done(ASKED, snapshot) == [f"/sys/class/nvme/nvme1/{write}" for write in writes]


def test_for_ever_is_off_to_the_kernel() -> None:
    asked = node(ctrl_loss_s="never")
    snapshot = converged(asked)
    assert found(asked, snapshot)[TUNING].desired.endswith("loss never")
    assert "/sys/class/nvme/nvme1/ctrl_loss_tmo=-1" in done(asked, snapshot)
    off = connected(controller(1, 0, loss="off"), controller(2, 1, loss="off"))
    assert done(asked, converged(asked, sysfs=off)) == []


def test_the_kernel_counts_in_attempts() -> None:
    asked = node(ctrl_loss_s=25, reconnect_delay_s=10)
    shown = connected(controller(1, 0, loss="30"), controller(2, 1, loss="30"))
    assert done(asked, converged(asked, sysfs=shown)) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"queues": "9"}, "nvme1: queues"),
        ({"queues": "3"}, "nvme1: fewer queues, as connected before or as the target grants"),
        ({"kato": "30"}, "nvme1: keep alive"),
        ({"hostnqn": "nqn.2014-08.org.example:other"}, "nvme1: host NQN nqn.2014-08.org.example"),
        ({"address": f"traddr={TARGETS[0]},trsvcid=4420"}, "nvme1: host address none, not 10.64"),
    ],
)
def test_what_is_given_at_the_start_takes_a_remount(fields: dict[str, str], said: str) -> None:
    snapshot = converged(ASKED, sysfs=connected(controller(1, 0, **fields), controller(2, 1)))
    setting = found(ASKED, snapshot)[TUNING]
    assert (setting.effect, setting.running.standing) == (Effect.REMOUNT, Standing.WRONG)
    assert (setting.running.detail or "").startswith(said)
    assert verdicts(ASKED, snapshot)[TUNING] is Verdict.PENDING
    assert done(ASKED, snapshot) == []
    assert done(node(allow=REMOUNT), snapshot) == [
        f"systemctl stop {CONNECT_UNIT}",
        f"systemctl stop {MOUNT_UNIT}",
        DOWN,
        ONCE,
        f"systemctl start {MOUNT_UNIT}",
        f"systemctl restart {CONNECT_UNIT}",
    ]


def test_no_more_queues_are_expected_than_there_are_processors() -> None:
    asked = node(io_queues=64)
    eight = connected(controller(1, 0, queues="9"), controller(2, 1, queues="9"))
    assert found(asked, converged(asked, sysfs=eight))[TUNING].running.standing is Standing.RIGHT


def test_another_namespace_than_asked_for_is_told_with_what_is_offered() -> None:
    other = UUID.replace("0a0b", "ffff")
    sysfs = BOTH + SUBSYSTEM + namespace(uuid=other)
    setting = found(ASKED, converged(ASKED, sysfs=sysfs, mounts=""))[NAMESPACE]
    assert setting.running.standing is Standing.DEGRADED
    said = f"the target offers another: {DEVICE} (uuid {other.replace('-', '')}, nsid 1)"
    assert setting.running.detail == said
    assert FORMAT not in done(ASKED, converged(ASKED, sysfs=sysfs, mounts=""))


def test_a_namespace_of_another_subsystem_is_not_the_one() -> None:
    sysfs = BOTH + SUBSYSTEM + namespace(nqn=f"{NQN}0")
    setting = found(ASKED, converged(ASKED, sysfs=sysfs, mounts=""))[NAMESPACE]
    assert setting.running.detail == "the target offers none"


def test_a_link_that_is_not_there_is_made_by_udev() -> None:
    snapshot = converged(ASKED, sysfs=CONNECTED.replace(LINK, ""))
    assert verdicts(ASKED, snapshot)[NAMESPACE] is Verdict.NOT_RUNNING
    assert done(ASKED, snapshot) == [
        "udevadm control --reload",
        "udevadm trigger --action=change --sysname-match=nvme* --subsystem-match=block "
        "--subsystem-match=nvme-subsystem",
        "udevadm settle --timeout=30",
    ]


def test_a_path_that_nobody_asks_for_goes_where_it_is_spare() -> None:
    stray = controller(3, 0, address="traddr=10.9.9.9,trsvcid=4420")
    snapshot = converged(ASKED, sysfs=connected(BOTH, stray))
    assert done(ASKED, snapshot) == ["/sys/class/nvme/nvme3/delete_controller=1"]
    single = converged(ASKED, sysfs=connected(BOTH, stray), multipath="N")
    assert done(ASKED, single) == []
    setting = found(ASKED, single)[f"path nvme3 of {WHERE}"]
    assert setting.remedy == "nvme disconnect -d nvme3, once nothing uses it"


def test_the_policy_of_several_paths_is_set_and_kept() -> None:
    asked = node(host={"iopolicy": "round-robin"})
    snapshot = converged(asked)
    assert verdicts(asked, snapshot)[f"iopolicy of {WHERE}"] is Verdict.NOT_RUNNING
    path = "/sys/class/nvme-subsystem/nvme-subsys1/iopolicy"
    assert done(asked, snapshot) == [f"{path}=round-robin"]
    right = CONNECTED.replace("\tnuma\n", "\tround-robin\n")
    assert done(asked, converged(asked, sysfs=right)) == []
    off = found(asked, converged(asked, multipath="N"))[f"iopolicy of {WHERE}"]
    assert off.running.standing is Standing.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("wanted", "shown", "verdict"),
    [
        (True, "Y", Verdict.OK),
        (False, "Y", Verdict.NOT_RUNNING),
        (True, "-", Verdict.PENDING),
    ],
)
def test_native_multipath_is_looked_at(wanted: bool, shown: str, verdict: Verdict) -> None:
    asked = node(host={"multipath": wanted}, portals=[{"address": TARGETS[0], "rail": 0}])
    assert verdicts(asked, host(multipath=shown))["native multipath"] is verdict


def test_a_rail_that_the_node_lacks_keeps_its_path_off_and_not_the_other() -> None:
    snapshot = host()
    ports = snapshot.sections["nic_ports"]
    left = ports.model_copy(update={"stdout": ports.stdout.splitlines()[0] + "\n"})
    snapshot = snapshot.model_copy(update={"sections": {**snapshot.sections, "nic_ports": left}})
    got = found(ASKED, snapshot)
    assert got[PATHS[0]].acts
    assert not got[PATHS[1]].acts
    assert got[PATHS[1]].running.detail == "there is no NIC at 0000:20:00.0"
    assert ONCE in done(ASKED, snapshot)


def test_nvme_rdma_of_another_stack_is_not_used() -> None:
    snapshot = host(module=modinfo(stack="updates/dkms"))
    setting = found(ASKED, snapshot)["module nvme_rdma"]
    assert setting.running.standing is Standing.WRONG
    assert "install mlnx-nvme-dkms" in (setting.remedy or "")
    got = found(ASKED, snapshot)
    assert not any(got[path].acts for path in PATHS)
    words = done(ASKED, snapshot)
    assert ONCE not in words
    assert FORMAT not in words
    assert f"systemctl start {MOUNT_UNIT}" not in words
    tcp = node(transport="tcp")
    assert ONCE in done(tcp, snapshot)
    assert "module nvme_rdma" not in found(tcp, snapshot)


def test_what_is_mounted_in_its_place_stays_while_the_volume_is_away() -> None:
    mounts = f"/dev/sdb1 {WHERE} ext4 rw,relatime 0 0\n"
    asked = node(allow=REMOUNT)
    snapshot = converged(asked, sysfs="", mounts=mounts)
    assert found(asked, snapshot)[MOUNT].running.value == "/dev/sdb1"
    assert done(asked, snapshot) == []


def test_a_file_system_whose_device_is_gone_is_degraded() -> None:
    asked = node(allow=REMOUNT)
    snapshot = converged(asked, sysfs="", mounts=PROC)
    running = found(asked, snapshot)[MOUNT].running
    assert (running.standing, running.value) == (Standing.DEGRADED, f"/dev/{DEVICE}")
    assert done(asked, snapshot) == []


def test_a_device_that_came_back_under_another_name_takes_a_remount() -> None:
    again = CONNECTED.replace(DEVICE, "nvme2n1")
    asked = node(allow=REMOUNT)
    snapshot = converged(asked, sysfs=again)
    assert verdicts(ASKED, converged(ASKED, sysfs=again))[MOUNT] is Verdict.PENDING
    assert done(asked, snapshot) == [
        f"systemctl stop {MOUNT_UNIT}",
        f"systemctl start {MOUNT_UNIT}",
    ]


def test_two_volumes_each_have_their_own() -> None:
    other = UUID.replace("0a0b", "ffff")
    mounts = {WHERE: volume(), "/mnt/a/b-c": volume(namespace={"uuid": other})}
    words = done(with_mounts(mounts), host())
    assert "install /etc/railwright/nvmeof/mnt:a:b-c.conf" in words
    assert "systemctl restart railwright-nvmeof-mnt:a:b-c.service" in words
    assert "systemctl start mnt-a-b\\x2dc.mount" in words


def test_sysfs_that_cannot_be_read_is_one_unreadable_setting() -> None:
    assert verdicts(ASKED, host(sysfs="what is this\n")) == {"probe": Verdict.UNREADABLE}


def test_what_is_made_is_asked_for_by_the_namespace_and_its_subsystem() -> None:
    (script,) = (a for a in actions(ASKED, host()) if isinstance(a, RunScript))
    assert script.arguments == (f"/dev/railwright/{NAME}", NQN, "ext4")
