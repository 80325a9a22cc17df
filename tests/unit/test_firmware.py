"""What the firmware component decides and does, and that it never reboots twice for a key."""

import pytest

from deploys.firmware import COMPONENT, settings
from railwright.actions import InstallFile, RunScript
from railwright.component import settings_of, unread
from railwright.ledger import FIRMWARE_PATH, FirmwareLedger, FirmwareNote
from railwright.schema import Node
from railwright.settings import Effect, Standing, Verdict, changes, verdict
from railwright.snapshot import Section
from tests.unit.firmware_cases import (
    ASKED_VFS,
    HEAD,
    OLD_BOOT,
    REBOOT,
    RESET,
    VFS,
    answer,
    asking,
    config,
    done,
    found,
    nic,
    note,
    noted,
    reboots,
    scripts,
    told,
    vfs,
)
from tests.unit.ports_host import BOOT, EVERY, LIVE, pci


def test_no_key_and_no_rail_are_no_setting() -> None:
    assert settings(asking({}), nic("")) == []
    assert settings(Node(name="n1"), nic("")) == []


def test_a_converged_nic_is_ok_and_left_alone() -> None:
    seen = nic(vfs(16, 12, 12), notes=note(OLD_BOOT))
    assert {verdict(s, REBOOT) for s in settings(ASKED_VFS, seen)} == {Verdict.OK}
    assert done(ASKED_VFS, seen) == []


def test_a_key_is_set_noted_first_and_brought_into_force_by_one_reboot() -> None:
    seen = nic(vfs(16, 16, 16))
    ledger, run = done(ASKED_VFS, seen)
    assert isinstance(ledger, InstallFile)
    assert ledger.path == FIRMWARE_PATH
    assert noted(ASKED_VFS, seen) == note(BOOT)
    assert isinstance(run, RunScript)
    assert run.arguments == (BOOT, pci(0), "mstconfig", "", "NUM_OF_VFS=12")
    assert reboots(ASKED_VFS, seen)


def test_a_key_that_waits_for_a_reboot_that_is_not_allowed_is_pending() -> None:
    asked = asking(VFS)
    setting = found(asked, nic(vfs(16, 16, 12), notes=note(BOOT)))["rail0 NUM_OF_VFS"]
    assert verdict(setting, LIVE) is Verdict.PENDING
    assert setting.effect is Effect.REBOOT
    assert done(asked, nic(vfs(16, 16, 12), notes=note(BOOT))) == []


def test_bug_25_a_reboot_that_did_not_help_is_never_done_again() -> None:
    # The row: default 16, current 16, next boot 12, and the node has booted since it was set.
    asked = asking(VFS, EVERY - {Effect.COLD_CYCLE})
    seen = nic(vfs(16, 16, 12), notes=note(OLD_BOOT))
    setting = found(asked, seen)["rail0 NUM_OF_VFS"]
    assert setting.effect is Effect.COLD_CYCLE
    assert "power" in (setting.remedy or "")
    assert "before the last boot" in (setting.running.detail or "")
    assert verdict(setting, asked.effects.allow) is Verdict.PENDING
    assert not reboots(asked, seen)
    assert done(asked, seen) == []
    # Nor where the inventory allows what railwright cannot do.
    every = asking(VFS, EVERY)
    assert not reboots(every, seen)
    assert changes(found(every, seen)["rail0 NUM_OF_VFS"], EVERY) == []
    assert done(every, seen) == []


def test_bug_25_twin_set_in_this_boot_the_reboot_is_still_to_come() -> None:
    seen = nic(vfs(16, 16, 12), notes=note(BOOT))
    setting = found(ASKED_VFS, seen)["rail0 NUM_OF_VFS"]
    assert setting.effect is Effect.REBOOT
    assert reboots(ASKED_VFS, seen)


def test_bug_25_a_value_that_another_one_set_is_noted_before_the_reboot_for_it() -> None:
    seen = nic(vfs(16, 16, 12))
    assert reboots(ASKED_VFS, seen)
    assert noted(ASKED_VFS, seen) == note(BOOT)
    assert scripts(ASKED_VFS, seen) == []


def test_bug_25_a_value_that_is_lost_at_each_boot_is_set_and_not_rebooted_for() -> None:
    seen = nic(vfs(16, 16, 16), notes=note(OLD_BOOT))
    assert not reboots(ASKED_VFS, seen)
    setting = found(ASKED_VFS, seen)["rail0 NUM_OF_VFS"]
    assert [c.state for c in changes(setting, REBOOT)] == ["persisted"]
    assert scripts(ASKED_VFS, seen) == [("", pci(0), "mstconfig", "", "NUM_OF_VFS=12")]
    # The first time stays noted, or it would go on every second run.
    assert noted(ASKED_VFS, seen) == {}


def test_bug_25_a_node_that_forgets_is_not_rebooted() -> None:
    for text in (vfs(16, 16, 16), vfs(16, 16, 12)):
        for var in ("tmpfs", "overlayfs", ""):
            assert not reboots(ASKED_VFS, nic(text, var=var))
    setting = found(ASKED_VFS, nic(vfs(16, 16, 12), var="tmpfs"))["rail0 NUM_OF_VFS"]
    assert "once by hand" in (setting.remedy or "")


def test_bug_25_a_ledger_that_cannot_be_read_stops_the_reboot_and_is_told() -> None:
    seen = nic(vfs(16, 16, 16), ledger="{")
    assert not reboots(ASKED_VFS, seen)
    assert verdict(found(ASKED_VFS, seen)[FIRMWARE_PATH], REBOOT) is Verdict.UNREADABLE
    assert noted(ASKED_VFS, seen) == {}


@pytest.mark.parametrize("allow", [REBOOT, RESET, RESET | REBOOT, EVERY])
def test_bug_25_whatever_is_allowed_a_nic_that_never_takes_a_value_comes_to_rest(
    allow: frozenset[Effect],
) -> None:
    """A NIC that stores the next boot's value and never takes it, over ten runs."""
    asked = asking({"LINK_TYPE_P1": "ETH"}, allow)
    boots, resets, following, notes = 0, 0, "IB(1)", {}
    for _ in range(10):
        boot = f"boot-{boots}"
        text = told(answer(0, config(LINK_TYPE_P1=f"IB(1) IB(1) {following}")))
        seen = nic(text, notes=notes)
        identity = Section(stdout=f"boot_id={boot}\n", rc=0)
        seen = seen.model_copy(update={"sections": seen.sections | {"identity": identity}})
        going = reboots(asked, seen)
        acted = done(asked, seen)
        for action in acted:
            if isinstance(action, InstallFile):
                notes = FirmwareLedger.model_validate_json(action.content).notes
            elif isinstance(action, RunScript):
                following = "ETH(2)" if len(action.arguments) > 4 else following
                resets += bool(action.arguments[3])
        boots += going
    assert boots <= 1
    assert resets <= 1
    assert (boots, resets) != (0, 0)
    assert acted == []
    assert following == "ETH(2)"


def test_a_firmware_reset_is_done_where_it_is_allowed_and_enough() -> None:
    asked = asking({"CNP_DSCP_P1": 48}, RESET | REBOOT)
    seen = nic(told(answer(0, config(CNP_DSCP_P1="0 0 0"))))
    assert scripts(asked, seen) == [(BOOT, pci(0), "mstconfig", "mstfwreset", "CNP_DSCP_P1=48")]
    assert noted(asked, seen)[f"{pci(0)} CNP_DSCP_P1"].reset
    assert not reboots(asked, seen)


def test_a_reboot_does_what_a_firmware_reset_does_where_that_is_not_allowed() -> None:
    asked = asking({"CNP_DSCP_P1": 48}, REBOOT)
    seen = nic(told(answer(0, config(CNP_DSCP_P1="0 0 48"))))
    assert found(asked, seen)["rail0 CNP_DSCP_P1"].effect is Effect.REBOOT
    assert reboots(asked, seen)


def test_a_bluefield_mode_is_set_and_needs_the_power_from_the_start() -> None:
    asked = asking({"INTERNAL_CPU_OFFLOAD_ENGINE": 1}, EVERY)
    text = "ENABLED(0) ENABLED(0) {}"
    key = "INTERNAL_CPU_OFFLOAD_ENGINE"
    bare = nic(told(answer(0, config(**{key: text.format("ENABLED(0)")}))))
    assert [c.state for c in changes(found(asked, bare)[f"rail0 {key}"], EVERY)] == ["persisted"]
    assert not reboots(asked, bare)
    there = nic(told(answer(0, config(**{key: text.format("DISABLED(1)")}))))
    setting = found(asked, there)[f"rail0 {key}"]
    assert setting.effect is Effect.COLD_CYCLE
    assert not reboots(asked, there)
    assert done(asked, there) == []


def test_what_is_in_force_by_now_is_forgotten_when_something_is_noted() -> None:
    asked = asking(VFS, REBOOT)
    text = told(answer(0, config(SRIOV_EN="True(1) True(1) True(1)", NUM_OF_VFS="16 16 16")))
    notes = {f"{pci(0)} SRIOV_EN": FirmwareNote(value="True(1)", boot_id=OLD_BOOT)}
    assert noted(asked, nic(text, notes=notes)) == note(BOOT)


def test_another_value_than_the_noted_one_has_its_own_reboot() -> None:
    seen = nic(vfs(16, 16, 16), notes=note(OLD_BOOT, value="8"))
    assert reboots(ASKED_VFS, seen)
    assert noted(ASKED_VFS, seen) == note(BOOT)


def test_a_name_is_compared_with_what_the_tool_calls_it() -> None:
    text = told(answer(0, config(LINK_TYPE_P1="IB(1) ETH(2) ETH(2)", SOME_KEY="A(0) B(1) B(1)")))
    for keys in ({"LINK_TYPE_P1": "eth"}, {"LINK_TYPE_P1": 2}, {"SOME_KEY": "b"}, {"SOME_KEY": 1}):
        asked = asking(keys)
        assert {verdict(s, LIVE) for s in settings(asked, nic(text))} == {Verdict.OK}
    other = found(asking({"SOME_KEY": "C"}), nic(text))["rail0 SOME_KEY"]
    assert (other.persisted.value, other.running.value) == ("B(1)", "B(1)")


def test_a_key_that_the_nic_does_not_have_is_not_applicable() -> None:
    absent = "-E- The Device doesn't support SRIOV_EN parameter"
    text = told(answer(0, absent, 3), answer(0, config(NUM_OF_VFS="0 12 12")))
    states = found(ASKED_VFS, nic(text))
    assert verdict(states["rail0 SRIOV_EN"], REBOOT) is Verdict.NOT_APPLICABLE
    assert verdict(states["rail0 NUM_OF_VFS"], REBOOT) is Verdict.OK


def test_a_firmware_that_does_not_tell_what_is_in_force_is_unreadable() -> None:
    text = config(SRIOV_EN="True(1)", NUM_OF_VFS="12").replace(
        HEAD, "Configurations:                        Next Boot\n"
    )
    states = found(ASKED_VFS, nic(told(answer(0, text))))
    assert states["rail0 NUM_OF_VFS"].persisted.standing is Standing.RIGHT
    assert verdict(states["rail0 NUM_OF_VFS"], REBOOT) is Verdict.UNREADABLE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (told(tool="none"), "install mstflint"),
        (told(answer(0, "-E- Failed to open the device", 3)), "Failed to open the device"),
        (
            told(answer(0, "-E- Failed to identify the device", 3), lockdown="integrity"),
            "locked down (integrity)",
        ),
        (told(answer(0, "Segmentation fault", 139)), "Segmentation fault"),
        (told(), "mstconfig did not answer"),
    ],
)
def test_what_could_not_be_asked_is_unreadable_and_left_alone(text: str, words: str) -> None:
    asked = asking(VFS, EVERY)
    setting = found(asked, nic(text))["rail0 NUM_OF_VFS"]
    assert verdict(setting, EVERY) is Verdict.UNREADABLE
    assert words in (setting.running.detail or "")
    assert done(asked, nic(text)) == []


def test_a_probe_that_did_not_ask_is_unreadable() -> None:
    assert unread(settings_of(COMPONENT, ASKED_VFS, nic("")))


def test_a_nic_of_another_vendor_is_not_applicable() -> None:
    setting = found(ASKED_VFS, nic(told(cards=0)))["rail0 NUM_OF_VFS"]
    assert verdict(setting, REBOOT) is Verdict.NOT_APPLICABLE


def test_a_missing_nic_is_one_setting_and_the_others_are_looked_at() -> None:
    asked = asking(VFS, REBOOT, rails=2)
    states = found(asked, nic(vfs(16, 12, 12)))
    assert states["rail1 firmware"].running.standing is Standing.ABSENT
    assert verdict(states["rail0 NUM_OF_VFS"], REBOOT) is Verdict.OK


@pytest.mark.parametrize(
    ("addresses", "images"),
    [
        (("0000:10:00.0", "0000:10:00.1"), {}),
        # Socket direct: one card in two slots, told by its GUID.
        (
            ("0000:10:00.0", "0000:90:00.0"),
            {0: "b83f:d203:0000:00aa", 1: "b83f:d203:0000:00aa"},
        ),
    ],
)
def test_rails_on_one_card_have_its_keys_once(
    addresses: tuple[str, str], images: dict[int, str]
) -> None:
    keys = {"LINK_TYPE_P1": "ETH", "LINK_TYPE_P2": "ETH"}
    rows = dict.fromkeys(keys, "IB(1) IB(1) IB(1)")
    text = told(answer(0, config(**rows)))
    asked = asking(keys, REBOOT, addresses=addresses)
    seen = nic(text, rails=2, addresses=addresses, images=images)
    states = found(asked, seen)
    assert sorted(states) == ["rail0 LINK_TYPE_P1", "rail0 LINK_TYPE_P2"]
    assert states["rail0 LINK_TYPE_P1"].persisted.detail == "the card is also that of rail1"
    assert scripts(asked, seen) == [
        (BOOT, pci(0), "mstconfig", "", "LINK_TYPE_P1=ETH", "LINK_TYPE_P2=ETH")
    ]


@pytest.mark.parametrize("way_in", ["eth0", None])
def test_the_card_that_ssh_came_in_by_is_left_alone(way_in: str | None) -> None:
    asked = asking(VFS, EVERY)
    seen = nic(vfs(16, 16, 16), way_in=way_in)
    assert done(asked, seen) == []
    assert not reboots(asked, seen)
    assert "ssh came in by" in (found(asked, seen)["rail0 NUM_OF_VFS"].remedy or "")


def test_in_a_container_nothing_applies() -> None:
    seen = nic("", container=True)
    assert {verdict(s, EVERY) for s in settings(ASKED_VFS, seen)} == {Verdict.NOT_APPLICABLE}
    assert done(ASKED_VFS, seen) == []
