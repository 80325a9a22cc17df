"""What the PCIe component decides and does: ACS, MaxReadReq, and the unit that sets them."""

import pytest

from deploys.pcie import settings
from facts.pcie import PLAN_PATH, RULE_PATH, SCRIPT_PATH, UNIT
from railwright.actions import RemoveFile, Run
from railwright.converge import unmet
from railwright.resolve.pcie_plan import Plan, parse_plan
from railwright.schema import EffectsSpec, Node, PcieSpec
from railwright.settings import Standing, Verdict, changes, verdict
from railwright.snapshot import Section
from tests.unit.pcie_host import GPUS, ISOLATING, NICS, PORTS, changed, hgx
from tests.unit.pcie_node import (
    ALL,
    CLEAR,
    LIVE,
    RIGHT,
    commands,
    converged,
    done,
    found,
    host,
    installed,
    node,
)

START = UNIT.started_key
ENABLE = UNIT.key


def test_a_node_without_rails_or_wishes_has_no_setting() -> None:
    assert settings(node(PcieSpec()), host()) == []
    assert settings(Node(name="n1", pcie=ALL), host()) == []
    assert done(node(PcieSpec()), host()) == []


def test_a_converged_node_is_ok_and_left_alone() -> None:
    snapshot = converged(node())
    every = found(node(), snapshot)
    assert {verdict(s, LIVE) for s in every.values()} == {Verdict.OK}
    assert done(node(), snapshot) == []
    assert [key for key in every if key.startswith("acs ")] == [f"acs {port}" for port in PORTS]


def test_what_is_announced_of_a_bare_node_is_what_the_run_makes_of_it() -> None:
    bare = hgx(acs=ISOLATING)
    for address in NICS:
        bare = changed(bare, address, control=0x2930)
    after = found(node(), converged(node()))
    for key, setting in found(node(), host(bare)).items():
        expected = changes(setting, LIVE)
        assert unmet(after.values(), key, expected) == []
        for change in expected:
            assert getattr(setting, change.state).value == change.before
            assert getattr(after[key], change.state).value == change.after
    assert commands(node(), host(bare)) == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", UNIT.name),
        ("udevadm", "control", "--reload"),
        ("systemctl", "restart", UNIT.name),
    ]


def test_the_plan_has_what_is_asked_and_the_rule_each_nic() -> None:
    files = installed(node(), host())
    assert parse_plan(files[PLAN_PATH]) == Plan(acs="clear", nics=dict.fromkeys(NICS, 4096))
    assert all(f'KERNEL=="{address}"' in files[RULE_PATH] for address in NICS)
    assert f"ExecStart={SCRIPT_PATH} {PLAN_PATH}\n" in files[UNIT.path]
    assert "ConditionVirtualization=!container" in files[UNIT.path]


def test_bug_1_a_bridge_that_redirects_is_named_with_its_bits_and_cleared() -> None:
    devices = changed(RIGHT, PORTS[0], acs=ISOLATING)
    snapshot = converged(node(CLEAR), devices)
    setting = found(node(CLEAR), snapshot)[f"acs {PORTS[0]}"]
    assert verdict(setting, LIVE) is Verdict.NOT_RUNNING
    assert setting.desired == "no redirect"
    assert setting.running.value == "ReqRedir+ CmpltRedir+ UpstreamFwd+"
    assert setting.running.detail == f"between {GPUS[0]} and {NICS[0]}"
    assert done(node(CLEAR), snapshot) == [Run(command=("systemctl", "restart", UNIT.name))]


def test_bug_1_twin_source_validation_alone_and_ports_off_the_path_are_ok() -> None:
    # The root ports of the boot drive and of the management NIC redirect, which is no peer's way.
    every = found(node(CLEAR), converged(node(CLEAR)))
    assert {verdict(s, LIVE) for s in every.values()} == {Verdict.OK}
    assert "acs 0000:00:1c.0" not in every


def test_bug_1_bits_that_come_back_at_the_next_boot_are_not_persisted() -> None:
    setting = found(node(CLEAR), host())[f"acs {PORTS[0]}"]
    assert verdict(setting, LIVE) is Verdict.NOT_PERSISTED


@pytest.mark.parametrize("path", [SCRIPT_PATH, UNIT.path, RULE_PATH, UNIT.link])
def test_persisted_needs_script_unit_rule_and_enablement(path: str) -> None:
    files = installed(node(), host())
    if path != UNIT.link:
        files[path] += "# changed\n"
    snapshot = converged(node(), files=files, enabled=path != UNIT.link)
    for key in (f"acs {PORTS[0]}", "rail0 mrrs"):
        setting = found(node(), snapshot)[key]
        assert verdict(setting, LIVE) is Verdict.NOT_PERSISTED
    missing = UNIT.name if path == UNIT.link else path
    assert missing in (setting.persisted.detail or "")


def test_a_plan_that_says_otherwise_is_not_persisted() -> None:
    files = installed(node(), host())
    files[PLAN_PATH] = Plan(acs=None, nics={**dict.fromkeys(NICS, 4096), NICS[0]: 512}).content()
    every = found(node(), converged(node(), files=files))
    assert every["rail0 mrrs"].persisted.value == "512 bytes"
    assert every["rail0 mrrs"].persisted.standing is Standing.WRONG
    assert every["rail1 mrrs"].persisted.standing is Standing.RIGHT
    assert every[f"acs {PORTS[0]}"].persisted.standing is Standing.ABSENT


def test_a_plan_that_cannot_be_read_is_put_right() -> None:
    files = {**installed(node(), host()), PLAN_PATH: "nonsense\n"}
    snapshot = converged(node(), files=files)
    assert installed(node(), snapshot).keys() == {PLAN_PATH}


def test_a_bridge_without_acs_cannot_redirect_and_one_unread_is_not_ok() -> None:
    devices = changed(RIGHT, PORTS[0], acs=None)
    assert f"acs {PORTS[0]}" not in found(node(CLEAR), converged(node(CLEAR), devices))
    snapshot = converged(node(CLEAR))
    text = snapshot.text("pcie_devices").replace(
        f"bridge {PORTS[0]} 32.0 16 32.0 16 1", f"bridge {PORTS[0]} 32.0 16 32.0 16 unreadable"
    )
    sections = {**snapshot.sections, "pcie_devices": Section(stdout=text, rc=0)}
    setting = found(node(CLEAR), snapshot.model_copy(update={"sections": sections}))
    assert verdict(setting[f"acs {PORTS[0]}"], LIVE) is Verdict.UNREADABLE


def test_in_a_virtual_machine_acs_is_left_to_its_host() -> None:
    snapshot = host(hgx(acs=ISOLATING), virtual="kvm")
    every = found(node(CLEAR), snapshot)
    assert verdict(every["acs"], LIVE) is Verdict.NOT_APPLICABLE
    assert done(node(CLEAR), snapshot) == []
    own = PcieSpec(acs="clear", acs_in_vm=True)
    assert found(node(own), snapshot)[f"acs {PORTS[0]}"].running.standing is Standing.WRONG
    assert parse_plan(installed(node(own), snapshot)[PLAN_PATH]).acs == "clear-in-vm"


def test_whether_it_is_a_virtual_machine_has_to_be_known() -> None:
    setting = found(node(CLEAR), host(virtual=""))["acs"]
    assert verdict(setting, LIVE) is Verdict.UNREADABLE


def test_a_bridge_above_a_guests_function_is_left_and_named() -> None:
    devices = hgx(acs=ISOLATING)
    snapshot = converged(node(CLEAR), devices, assigned=[GPUS[0]])
    mine = found(node(CLEAR), snapshot)[f"acs {PORTS[0]}"]
    assert (mine.acts, changes(mine, LIVE)) == (False, [])
    assert f"{GPUS[0]} below it is given to a guest" in (mine.remedy or "")
    assert found(node(CLEAR), snapshot)[f"acs {PORTS[1]}"].acts


def test_a_kernel_that_refuses_writes_is_said_to() -> None:
    snapshot = converged(node(), hgx(acs=ISOLATING), lockdown="none [integrity] confidentiality")
    setting = found(node(), snapshot)[f"acs {PORTS[0]}"]
    assert not setting.acts
    assert f"pci=disable_acs_redir={PORTS[0]}" in (setting.remedy or "")
    assert done(node(), snapshot) == []


def test_acs_that_is_kept_is_shown_and_nothing_is_installed() -> None:
    kept = PcieSpec(acs="keep")
    snapshot = host(hgx(acs=ISOLATING))
    setting = found(node(kept), snapshot)[f"acs {PORTS[0]}"]
    assert verdict(setting, LIVE) is Verdict.NOT_APPLICABLE
    assert setting.running.detail == "kept: ReqRedir+ CmpltRedir+ UpstreamFwd+"
    assert done(node(kept), snapshot) == []


def test_our_files_go_when_nothing_needs_them() -> None:
    snapshot = converged(node(), hgx())
    for asked in (node(PcieSpec()), node(PcieSpec(acs="keep"))):
        assert done(asked, snapshot) == [
            Run(command=("systemctl", "disable", "--now", UNIT.name)),
            RemoveFile(path=UNIT.link),
            RemoveFile(path=PLAN_PATH),
            RemoveFile(path=RULE_PATH),
            RemoveFile(path=SCRIPT_PATH),
            RemoveFile(path=UNIT.path),
            Run(command=("systemctl", "daemon-reload")),
            Run(command=("udevadm", "control", "--reload")),
        ]


READ = PcieSpec(max_read_request_bytes=4096)


def test_bug_9_a_read_request_of_512_bytes_is_raised_now_and_at_boot() -> None:
    devices = changed(RIGHT, NICS[3], control=0x2930)
    snapshot = converged(node(READ), devices)
    setting = found(node(READ), snapshot)["rail3 mrrs"]
    assert (setting.desired, setting.running.value) == ("4096 bytes", "512 bytes")
    assert verdict(setting, LIVE) is Verdict.NOT_RUNNING
    assert done(node(READ), snapshot) == [Run(command=("systemctl", "restart", UNIT.name))]


def test_bug_9_twin_what_is_not_asked_for_is_not_set() -> None:
    devices = changed(RIGHT, NICS[3], control=0x2920)
    every = found(node(CLEAR), converged(node(CLEAR), devices))
    assert not [key for key in every if key.startswith("rail")]


def test_a_nic_that_is_no_pci_express_device_has_no_read_request() -> None:
    devices = changed(RIGHT, NICS[3], control=None)
    every = found(node(READ), converged(node(READ), devices))
    assert verdict(every["rail3 mrrs"], LIVE) is Verdict.NOT_APPLICABLE
    assert parse_plan(installed(node(READ), host(devices))[PLAN_PATH]).nics[NICS[3]] is None


def test_the_nic_that_ssh_came_in_by_is_left_alone() -> None:
    devices = changed(RIGHT, NICS[3], control=0x2930)
    snapshot = host(devices, ssh="rail3")
    setting = found(node(READ), snapshot)["rail3 mrrs"]
    assert (setting.acts, setting.remedy) == (False, "ssh came in by rail3")
    plan = parse_plan(installed(node(READ), snapshot)[PLAN_PATH])
    assert (plan.nics[NICS[3]], plan.nics[NICS[2]]) == (None, 4096)


def test_what_another_way_in_persisted_stays() -> None:
    snapshot = converged(node(READ), ssh="rail3")
    assert done(node(READ), snapshot) == []
    assert verdict(found(node(READ), snapshot)["rail3 mrrs"], LIVE) is Verdict.OK


def test_a_rail_whose_nic_is_missing_does_not_stop_the_others() -> None:
    devices = {address: one for address, one in RIGHT.items() if address != NICS[5]}
    snapshot = converged(node(), devices)
    every = found(node(), snapshot)
    missing = every["rail5 nic"]
    assert (missing.running.standing, missing.acts) == (Standing.ABSENT, False)
    assert missing.running.detail == f"there is no NIC at {NICS[5]}"
    assert [key for key in every if key.startswith("rail5")] == ["rail5 nic"]
    assert verdict(every["rail4 mrrs"], LIVE) is Verdict.OK
    assert done(node(), snapshot) == []


def test_a_unit_that_failed_is_degraded_while_something_is_wrong() -> None:
    snapshot = converged(node(), changed(RIGHT, PORTS[0], acs=ISOLATING), state="failed")
    setting = found(node(), snapshot)[START]
    assert verdict(setting, LIVE) is Verdict.DEGRADED
    assert setting.running.detail == f"it could not set acs {PORTS[0]}"
    again = converged(node(), state="failed")
    assert verdict(found(node(), again)[START], LIVE) is Verdict.NOT_RUNNING
    assert done(node(), again) == [Run(command=("systemctl", "restart", UNIT.name))]


def test_a_unit_whose_state_cannot_be_read_is_not_ok() -> None:
    mute = Section(stdout="", stderr="Failed to connect to bus", rc=1)
    snapshot = converged(node())
    sections = {**snapshot.sections, "pcie_unit": mute}
    setting = found(node(), snapshot.model_copy(update={"sections": sections}))[START]
    assert verdict(setting, LIVE) is Verdict.UNREADABLE


def test_a_unit_that_is_disabled_is_enabled() -> None:
    snapshot = converged(node(), enabled=False)
    assert verdict(found(node(), snapshot)[ENABLE], LIVE) is Verdict.WRONG
    assert commands(node(), snapshot) == [("systemctl", "enable", UNIT.name)]


def test_in_a_container_the_unit_is_persisted_and_nothing_runs() -> None:
    snapshot = host(hgx(acs=ISOLATING), container=True)
    every = found(node(), snapshot)
    assert not [c for s in every.values() for c in changes(s, LIVE) if c.state == "running"]
    assert every["acs"].persisted.standing is Standing.ABSENT
    assert commands(node(), snapshot) == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", UNIT.name),
    ]
    files = installed(node(), snapshot)
    assert parse_plan(files[PLAN_PATH]) == Plan(acs="clear", nics=dict.fromkeys(NICS, 4096))
    after = host(hgx(acs=ISOLATING), container=True, files=files, enabled=True)
    assert done(node(), after) == []
    assert {verdict(s, LIVE) for s in found(node(), after).values()} <= {
        Verdict.OK,
        Verdict.NOT_APPLICABLE,
    }


def test_a_probe_that_was_cut_is_unreadable() -> None:
    cut = Section(stdout="virtual none\nfunc", rc=None, ended="deadline")
    snapshot = host()
    sections = {**snapshot.sections, "pcie_devices": cut}
    (setting,) = found(node(), snapshot.model_copy(update={"sections": sections})).values()
    assert verdict(setting, LIVE) is Verdict.UNREADABLE


def test_nothing_is_started_where_that_is_not_allowed() -> None:
    asked = node().model_copy(update={"effects": EffectsSpec(allow=frozenset())})
    assert ("systemctl", "restart", UNIT.name) not in commands(asked, host(hgx(acs=ISOLATING)))
    assert ("systemctl", "enable", UNIT.name) in commands(asked, host(hgx(acs=ISOLATING)))


def test_a_read_request_that_no_register_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="max_read_request_bytes"):
        PcieSpec.model_validate({"max_read_request_bytes": 3000})
