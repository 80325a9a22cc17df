"""What keeps the QoS of a port: its files and units, and what stands against them."""

import pytest

from deploys.qos import COMPONENT
from facts.qos import (
    RULES_PATH,
    SCRIPT_PATH,
    UNIT_PATH,
    WATCH,
    WATCH_SCRIPT_PATH,
)
from railwright.actions import InstallFile, RemoveFile
from railwright.component import settings_of
from railwright.owned import HEADER
from railwright.schema import InfinibandFabric, Node, Rail, RailsSpec
from railwright.settings import Standing, Verdict, verdict
from railwright.snapshot import Section
from tests.unit import qos_tools
from tests.unit.qos_cases import (
    BARE,
    FILES,
    UNITS,
    bare,
    commands,
    converged,
    done,
    found,
    installed,
    verdicts,
    wrong,
)
from tests.unit.qos_host import (
    LIVE,
    PCI,
    PCIS,
    UNITS_UP,
    WITH_LINK,
    data_path,
    host,
    node,
    right_port,
)


def test_a_rail_whose_nic_is_gone_is_one_setting_and_the_others_are_as_they_were() -> None:
    asked = node()
    snapshot = converged(asked, ports={"rail0": right_port(0)})
    assert wrong(asked, snapshot) == {"rail1 port": Verdict.NOT_RUNNING}
    setting = found(asked, snapshot)["rail1 port"]
    assert (setting.acts, setting.running.detail) == (False, f"there is no NIC at {PCIS[1]}")
    assert done(asked, snapshot) == []


def test_a_rail_that_is_not_told_by_its_address_keeps_its_data_while_it_is_gone() -> None:
    by_mac = node(rails=1).model_copy(
        update={"rails": RailsSpec(nics={0: Rail(mac="b8:3f:d2:00:00:00")})}
    )
    ours = installed(by_mac, bare(ports={"rail0": qos_tools.mlx5()}))
    assert data_path(PCI) in ours
    gone = host({}, ours=ours, units={WATCH.name: "active"}, files=FILES)
    assert wrong(by_mac, gone).keys() == {"rail0 port"}
    assert done(by_mac, gone) == []


def test_the_port_that_ssh_came_in_by_is_looked_at_and_never_touched() -> None:
    asked = node(allow=WITH_LINK)
    told = found(asked, bare(way_in="rail0"))
    for name in ("pfc", "trust", "rdma_cm tos"):
        assert (told[f"rail0 {name}"].acts, told[f"rail1 {name}"].acts) == (False, True)
        assert "ssh came in by" in str(told[f"rail0 {name}"].remedy)
    assert data_path(PCI) not in installed(asked, bare(way_in="rail0"))
    assert commands(asked, bare(way_in="rail0"))[-1] == ("systemctl", "start", UNITS[1])


def test_where_the_way_in_is_not_known_no_port_is_touched() -> None:
    asked = node(allow=WITH_LINK)
    snapshot = bare()
    sections = {**snapshot.sections, "way_in": Section(stdout="", rc=0)}
    unknown = snapshot.model_copy(update={"sections": sections})
    assert not any(
        "railwright-qos@" in word for command in commands(asked, unknown) for word in command
    )


def test_in_a_container_the_files_alone_are_put_there() -> None:
    asked = node()
    empty = host({}, container=True)
    assert wrong(asked, empty)["rail0 pfc"] is Verdict.WRONG
    ours = installed(asked, empty)
    assert {data_path(pci) for pci in PCIS} < ours.keys()
    assert commands(asked, empty) == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", WATCH.name),
    ]
    after = host({}, container=True, ours=ours)
    assert wrong(asked, after) == {}
    assert done(asked, after) == []


def test_what_no_longer_is_asked_for_is_taken_away() -> None:
    snapshot = converged(node())
    for asked in (Node(name="gpu001"), node(fabric=InfinibandFabric())):
        removed = [a.path for a in done(asked, snapshot) if isinstance(a, RemoveFile)]
        assert set(removed) == installed(node()).keys()
        assert commands(asked, snapshot) == [
            ("systemctl", "disable", "--now", WATCH.name),
            ("systemctl", "daemon-reload"),
        ]
        assert wrong(asked, host(BARE)) == {}
    fewer = node(rails=1)
    removed = [a.path for a in done(fewer, snapshot) if isinstance(a, RemoveFile)]
    assert removed == [data_path(PCIS[1])]


def test_data_of_somebody_elses_is_left_alone() -> None:
    asked = node(rails=1)
    ours = {**installed(asked, bare()), "/etc/railwright/qos/mine.conf": "RAIL=rail9\n"}
    snapshot = converged(asked, ports={"rail0": right_port(0)}, ours=ours, files=FILES)
    assert done(asked, snapshot) == []


@pytest.mark.parametrize(
    "path", [SCRIPT_PATH, WATCH_SCRIPT_PATH, UNIT_PATH, WATCH.path, RULES_PATH]
)
def test_without_one_of_our_files_nothing_persists_and_it_is_put_back(path: str) -> None:
    asked = node()
    ours = installed(asked)
    for changed in ({k: v for k, v in ours.items() if k != path}, {**ours, path: "x\n"}):
        snapshot = converged(asked, ours=changed)
        assert verdicts(asked, snapshot)["rail0 pfc"] is Verdict.NOT_PERSISTED
        assert [a.path for a in done(asked, snapshot) if isinstance(a, InstallFile)] == [path]


def test_data_with_another_value_does_not_persist_what_runs() -> None:
    asked = node()
    ours = installed(asked)
    ours[data_path(PCI)] = ours[data_path(PCI)].replace("PFC=3", "PFC=3 4")
    told = found(asked, converged(asked, ours=ours))
    assert told["rail0 pfc"].persisted.value == "3 4"
    assert verdict(told["rail0 pfc"], LIVE) is Verdict.NOT_PERSISTED
    assert verdict(told["rail0 ets"], LIVE) is Verdict.OK


def test_a_masked_unit_overrides_us() -> None:
    asked = node()
    units = {**UNITS_UP, UNITS[0]: "masked"}
    told = found(asked, converged(asked, units=units))
    assert verdict(told["rail0 pfc"], LIVE) is Verdict.OVERRIDDEN
    assert told["rail0 pfc"].persisted.decider == UNITS[0]


def test_a_unit_that_failed_is_degraded_while_something_is_wrong() -> None:
    asked = node(allow=WITH_LINK)
    units = {**UNITS_UP, UNITS[0]: "failed"}
    ports = {"rail0": right_port(0, pause=[True, True]), "rail1": right_port(1)}
    snapshot = converged(asked, units=units, ports=ports)
    assert wrong(asked, snapshot) == {
        "rail0 pause": Verdict.NOT_RUNNING,
        "rail0 unit": Verdict.DEGRADED,
    }
    assert commands(asked, snapshot) == [
        ("systemctl", "reset-failed", UNITS[0]),
        ("systemctl", "start", UNITS[0]),
    ]
    put_right = converged(asked, units=units)
    assert wrong(asked, put_right) == {"rail0 unit": Verdict.NOT_RUNNING}


def test_the_watch_is_enabled_and_started() -> None:
    asked = node()
    ours = {k: v for k, v in installed(asked).items() if k != WATCH.link}
    key = f"unit {WATCH.name}"
    units = {**UNITS_UP, WATCH.name: "failed"}
    assert verdicts(asked, converged(asked, ours=ours))[key] is Verdict.NOT_PERSISTED
    assert commands(asked, converged(asked, ours=ours)) == [("systemctl", "enable", WATCH.name)]
    assert verdicts(asked, converged(asked, units=units))[key] is Verdict.NOT_RUNNING
    assert commands(asked, converged(asked, units=units)) == [("systemctl", "restart", WATCH.name)]


def lldpad(**answers: str) -> Section:
    text = "".join(
        f"\nm-0 port {port} {tlv}\n{said}\n\nm-0 exit 0\n"
        for port, said in answers.items()
        for tlv in ("PFC", "ETS-CFG")
    )
    return Section(stdout=text, rc=0)


def test_a_willing_lldpad_overrides_us_and_is_told_off() -> None:
    asked = node()
    units = {**UNITS_UP, "lldpad.service": "active"}
    section = lldpad(rail0="willing=yes", rail1="willing=no")
    snapshot = converged(asked, units=units, qos_lldpad=section)
    assert wrong(asked, snapshot) == {"rail0 lldpad": Verdict.OVERRIDDEN}
    setting = found(asked, snapshot)["rail0 lldpad"]
    assert setting.persisted.decider == "lldpad.service"
    assert setting.running.value == "willing (PFC, ETS-CFG)"
    assert commands(asked, snapshot) == [
        ("lldptool", "-T", "-i", "rail0", "-V", tlv, "willing=no") for tlv in ("PFC", "ETS-CFG")
    ]


def test_an_lldpad_that_leaves_a_port_alone_is_fine_and_one_that_says_nothing_is_not() -> None:
    asked = node()
    units = {**UNITS_UP, "lldpad.service": "active"}
    alone = lldpad(
        rail0="Agent instance for device not found", rail1="Device not found or inactive"
    )
    assert wrong(asked, converged(asked, units=units, qos_lldpad=alone)) == {}
    silent = lldpad(rail0="connect: Connection refused", rail1="willing=no")
    assert wrong(asked, converged(asked, units=units, qos_lldpad=silent)) == {
        "rail0 lldpad": Verdict.UNREADABLE
    }


def test_an_lldpad_that_starts_at_the_next_boot_is_told_of() -> None:
    asked = node()
    units = {**UNITS_UP, "lldpad.service": "enabled"}
    assert wrong(asked, converged(asked, units=units)) == {"lldpad": Verdict.OVERRIDDEN}
    assert done(asked, converged(asked, units=units)) == []
    masked = {**UNITS_UP, "lldpad.service": "masked"}
    assert wrong(asked, converged(asked, units=masked)) == {}


def test_the_files_say_that_they_are_ours_and_the_data_is_as_it_is_asked_for() -> None:
    ours = installed(node())
    for path, content in ours.items():
        if path != WATCH.link:
            assert HEADER in content
    assert ours[data_path(PCI)] == (
        f"{HEADER}RAIL=rail0\nBACKEND=inbox\nDCBX=host\nPAUSE=off\nTRUST=dscp\n"
        "DSCP_MAP=0-7:0 8-15:1 16-23:2 24-31:3 32-39:4 40-47:5 48-55:6 56-63:7\n"
        "ETS=0-2:0 3:3 4-5:0 6:6 7:0 / 0:50% 1-2:strict 3:50% 4-7:strict\n"
        "PFC=3\nECN=np 3 rp 3\nCNP_DSCP=48\nCNP_PRIORITY=6\n"
        "RDMA_CM_TOS=106\nRDMA_CM_MODE=RoCE v2\n"
    )


def test_a_section_that_broke_off_is_unreadable_and_nothing_is_done() -> None:
    asked = node()
    broken = converged(asked, qos_ports=Section(stdout="\nm-0 port rail0 pfc\n{", rc=0))
    (setting,) = settings_of(COMPONENT, asked, broken)
    assert setting.persisted.standing is Standing.UNREADABLE
