"""Options of modules: which file decides, what is in force, and what an initramfs has of them."""

import pytest

from railwright.actions import RemoveFile, Run
from railwright.modprobe import MODPROBE_PATH
from railwright.settings import Effect, Standing, Verdict, changes, verdict
from railwright.snapshot import Section
from tests.unit.modules_host import (
    ASKED,
    DRIVER,
    IMAGE,
    KERNEL,
    LIVE,
    commands,
    converged,
    done,
    found,
    host,
    node,
    ours,
)


def test_a_value_with_blanks_is_quoted() -> None:
    asked = node(options={"rds": {"hidden": "a b"}})
    assert 'options rds hidden="a b"\n' in ours(asked)[MODPROBE_PATH]


@pytest.mark.parametrize("shown", ["Y", "1"])
def test_a_switch_is_written_as_a_number_which_an_int_takes_too(shown: str) -> None:
    asked = node(options={"nf_conntrack": {"acct": True}, "rds": {"hidden": False}})
    written = ours(asked)
    assert "options nf_conntrack acct=1\noptions rds hidden=0\n" in written[MODPROBE_PATH]
    snapshot = host(written, {"nf_conntrack": "0 -"}, {"nf_conntrack/acct": shown})
    setting = found(asked, snapshot)["option nf_conntrack.acct"]
    assert verdict(setting, LIVE) is Verdict.OK
    assert (setting.desired, setting.persisted.value, setting.running.value) == ("1", "1", "1")


@pytest.mark.parametrize("shown", ["N", "0"])
def test_a_switch_that_is_off_is_wrong_however_the_kernel_shows_it(shown: str) -> None:
    asked = node(options={"nf_conntrack": {"acct": True}})
    snapshot = host(ours(asked), {"nf_conntrack": "0 -"}, {"nf_conntrack/acct": shown})
    setting = found(asked, snapshot)["option nf_conntrack.acct"]
    assert (setting.persisted.standing, setting.running.standing) == (
        Standing.RIGHT,
        Standing.WRONG,
    )


def test_no_image_is_made_for_modules_that_none_loads() -> None:
    asked = node(load=["nf_conntrack"], options={"nf_conntrack": {"acct": True}})
    assert commands(asked, host()) == [("modprobe", "nf_conntrack")]


def test_an_option_that_a_later_file_sets_is_overridden() -> None:
    asked = node(options={"nf_conntrack": {"acct": True}})
    zz = {"/usr/lib/modprobe.d/zzz.conf": "options nf_conntrack acct=N\n"}
    for files in ({**zz, **ours(asked)}, zz):
        setting = found(asked, host(files))["option nf_conntrack.acct"]
        assert verdict(setting, LIVE) is Verdict.OVERRIDDEN
        assert setting.persisted.decider == "/usr/lib/modprobe.d/zzz.conf:1"
        assert changes(setting, LIVE) == []


def test_an_option_of_an_earlier_file_is_beaten() -> None:
    asked = node(options={"nf_conntrack": {"acct": True}})
    earlier = {"/etc/modprobe.d/nvidia.conf": "options nf_conntrack acct=0\n"}
    setting = found(asked, host(earlier))["option nf_conntrack.acct"]
    assert setting.persisted.standing is Standing.WRONG
    (change,) = changes(setting, LIVE)
    assert (change.before, change.after) == ("0", "1")
    setting = found(asked, host({**earlier, **ours(asked)}))["option nf_conntrack.acct"]
    assert verdict(setting, LIVE) is Verdict.OK


def test_the_kernel_command_line_overrides_an_option() -> None:
    asked = node(options={"nf_conntrack": {"acct": True}})
    snapshot = host(ours(asked), cmdline="nf_conntrack.acct=0")
    setting = found(asked, snapshot)["option nf_conntrack.acct"]
    assert (verdict(setting, LIVE), setting.persisted.decider) == (
        Verdict.OVERRIDDEN,
        "/proc/cmdline",
    )


def test_an_option_in_force_otherwise_waits_for_the_driver_to_be_reloaded() -> None:
    snapshot = converged(values={"nf_conntrack/hashsize": "65536", "nf_conntrack/acct": "N"})
    setting = found(ASKED, snapshot)["option nf_conntrack.acct"]
    assert verdict(setting, LIVE) is Verdict.PENDING
    assert done(ASKED, snapshot) == []
    allowed = node(DRIVER, **ASKED.modules.model_dump())
    assert commands(allowed, snapshot) == [
        ("modprobe", "-r", "nf_conntrack"),
        ("modprobe", "nf_conntrack"),
    ]


@pytest.mark.parametrize(
    ("loaded", "drives", "reason"),
    [
        ({"dummy": "1 other,"}, "", "it is used by other"),
        ({"dummy": "3 -"}, "", "it is in use (3 references)"),
        ({"dummy": "0 -"}, "drives eth0 dummy", "it drives eth0"),
    ],
)
def test_a_driver_that_is_held_waits_for_a_reboot(
    loaded: dict[str, str], drives: str, reason: str
) -> None:
    asked = node(DRIVER, options={"dummy": {"numdummies": 2}})
    snapshot = host(ours(asked), loaded, {"dummy/numdummies": "1"}, drives=drives)
    setting = found(asked, snapshot)["option dummy.numdummies"]
    assert (verdict(setting, DRIVER), setting.effect) == (Verdict.PENDING, Effect.REBOOT)
    assert setting.running.detail == reason
    assert setting.remedy == f"cannot be reloaded: {reason}"
    assert done(asked, snapshot) == []


def test_bonding_is_never_reloaded() -> None:
    asked = node(DRIVER, options={"bonding": {"max_bonds": 0}})
    snapshot = host(ours(asked), {"bonding": "0 -"}, {"bonding/max_bonds": "1"})
    assert found(asked, snapshot)["option bonding.max_bonds"].effect is Effect.REBOOT


def test_a_parameter_that_the_kernel_does_not_show_has_no_running_state() -> None:
    asked = node(options={"rds": {"hidden": 1}})
    snapshot = host(ours(asked), {"rds": "0 -"})
    setting = found(asked, snapshot)["option rds.hidden"]
    assert verdict(setting, LIVE) is Verdict.OK
    assert setting.running.detail == "the kernel does not show this parameter"


def test_a_parameter_that_the_module_does_not_have_is_not_ok() -> None:
    asked = node(options={"nf_conntrack": {"hashsise": 1}})
    snapshot = host(ours(asked), {"nf_conntrack": "0 -"})
    setting = found(asked, snapshot)["option nf_conntrack.hashsise"]
    assert verdict(setting, LIVE) is Verdict.UNREADABLE
    assert setting.running.detail == "nf_conntrack shows no such parameter; it has: acct"


def test_an_option_of_a_module_built_in_belongs_on_the_kernel_command_line() -> None:
    asked = node(options={"loop": {"max_loop": 8}})
    snapshot = host(values={"loop/max_loop": "0"}, builtin="loop")
    setting = found(asked, snapshot)["option loop.max_loop"]
    assert verdict(setting, LIVE) is Verdict.WRONG
    assert setting.remedy == "loop is built into the kernel: set kernel.arguments loop.max_loop"
    assert done(asked, snapshot) == []
    right = host(values={"loop/max_loop": "8"}, builtin="loop", cmdline="loop.max_loop=8")
    assert verdict(found(asked, right)["option loop.max_loop"], LIVE) is Verdict.OK


def test_an_initramfs_older_than_the_file_that_decides_is_not_generated() -> None:
    snapshot = converged(image_mtime=99)
    setting = found(ASKED, snapshot)["option dummy.numdummies"]
    assert verdict(setting, LIVE) is Verdict.NOT_GENERATED
    assert setting.persisted.decider == f"{MODPROBE_PATH}:2"
    assert setting.persisted.detail == f"{IMAGE} is older than the file that decides"
    # Modules that no initramfs loads are not concerned.
    assert verdict(found(ASKED, snapshot)["option nf_conntrack.acct"], LIVE) is Verdict.OK
    assert done(ASKED, snapshot) == [Run(command=("update-initramfs", "-u", "-k", KERNEL))]
    (change,) = changes(setting, LIVE)
    assert (change.before, change.after) == ("not in the initramfs", "2")


def test_an_initramfs_of_dracut() -> None:
    image = f"/boot/initramfs-{KERNEL}.img"
    snapshot = converged(image_mtime=99)
    text = snapshot.text("modules_initramfs").replace(IMAGE, image)
    sections = {**snapshot.sections, "modules_initramfs": Section(stdout=text, rc=0)}
    snapshot = snapshot.model_copy(update={"sections": sections})
    assert commands(ASKED, snapshot) == [("dracut", "--force", image, KERNEL)]


def test_the_initramfs_is_made_anew_when_our_file_goes() -> None:
    asked = node(options={"mlx5_core": {"prof_sel": 3}})
    assert done(node(), host(ours(asked))) == [
        RemoveFile(path=MODPROBE_PATH),
        Run(command=("update-initramfs", "-u", "-k", KERNEL)),
    ]
