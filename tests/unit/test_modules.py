"""What the modules component loads and keeps out, and what it writes for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploys.modules import COMPONENT, settings
from railwright.actions import InstallFile, RemoveFile, Run
from railwright.component import settings_of
from railwright.converge import unmet
from railwright.modprobe import LOAD_PATH, MODPROBE_PATH
from railwright.owned import HEADER
from railwright.schema import Node
from railwright.settings import Effect, Standing, Verdict, changes, enforces, verdict
from railwright.snapshot import Section
from tests.unit.modules_host import (
    ASKED,
    DRIVER,
    KERNEL,
    LIVE,
    commands,
    converged,
    done,
    found,
    host,
    node,
    ours,
    ours_of,
)


def test_nothing_asked_for_and_nothing_of_ours_is_no_setting() -> None:
    foreign = host({"/etc/modprobe.d/a.conf": "options x y=1\n"})
    assert settings(node(), foreign) == []
    assert done(node(), foreign) == []


def test_what_is_written() -> None:
    assert ours(ASKED) == {
        LOAD_PATH: HEADER + "nf_conntrack\n",
        MODPROBE_PATH: HEADER
        + "options dummy numdummies=2\n"
        + "options nf_conntrack acct=1 hashsize=65536\n"
        + "blacklist rds\ninstall rds /bin/false\n",
    }


def test_a_converged_host_is_ok_and_left_alone() -> None:
    assert {verdict(s, LIVE) for s in settings(ASKED, converged())} == {Verdict.OK}
    assert done(ASKED, converged()) == []


def test_what_is_announced_of_a_bare_host_is_what_the_run_makes_of_it() -> None:
    before, after = found(ASKED, host()), found(ASKED, converged())
    for key, setting in before.items():
        expected = changes(setting, LIVE)
        assert expected or setting.running.standing is Standing.RIGHT
        assert unmet(after.values(), key, expected) == []
        announced = {change.state: change.after for change in expected}
        for state in ("persisted", "running"):
            value = announced.get(state, getattr(setting, state).value)
            assert getattr(after[key], state).value == value
    # The files first, then the image that may load dummy, then the module with its options.
    assert [type(action) for action in done(ASKED, host())[:2]] == [InstallFile, InstallFile]
    assert commands(ASKED, host()) == [
        ("update-initramfs", "-u", "-k", KERNEL),
        ("modprobe", "nf_conntrack"),
    ]


def test_bug_4_a_module_that_is_not_loaded_is_loaded_now_and_at_boot() -> None:
    asked = node(load=["nf-conntrack"])
    assert verdict(found(asked, host())["load nf_conntrack"], LIVE) is Verdict.WRONG
    healthy = converged(asked)
    assert verdict(found(asked, healthy)["load nf_conntrack"], LIVE) is Verdict.OK


def test_names_with_a_dash_settle() -> None:
    # The stock server.modprobe compares the name as it is given, for ever.
    asked = node(load=["nf-conntrack"], blacklist=["r-d-s"])
    assert done(asked, converged(asked)) == []


def test_a_module_built_in_is_loaded_and_listed_for_kernels_that_have_it_apart() -> None:
    asked = node(load=["loop"])
    setting = found(asked, host(builtin="loop"))["load loop"]
    assert verdict(setting, LIVE) is Verdict.OK
    assert ("modprobe", "loop") not in commands(asked, host(builtin="loop"))


def test_a_module_that_no_kernel_has_is_drift_that_no_run_acts_on() -> None:
    asked = node(load=["no_such", "nf_conntrack"])
    setting = found(asked, host())["load no_such"]
    assert verdict(setting, LIVE) is Verdict.WRONG
    assert setting.remedy == f"install no_such for kernel {KERNEL}"
    assert changes(setting, frozenset(Effect)) == []
    # It would fail systemd-modules-load.service at each boot.
    assert "no_such" not in ours(asked)[LOAD_PATH]
    assert ("modprobe", "no_such") not in commands(asked, host())


def test_a_module_that_comes_with_another_kernel_waits_for_a_reboot() -> None:
    asked = node(load=["late"])
    snapshot = host(others="dep 6.9 extra/late.ko")
    snapshot = host(ours_of(asked, snapshot), others="dep 6.9 extra/late.ko")
    setting = found(asked, snapshot)["load late"]
    assert verdict(setting, LIVE) is Verdict.PENDING
    assert setting.effect is Effect.REBOOT
    assert setting.running.detail == f"kernel {KERNEL} has no module late; it comes with 6.9"
    assert done(asked, snapshot) == []


def test_a_module_that_another_file_blacklists_is_overridden_and_loaded_all_the_same() -> None:
    asked = node(load=["nf_conntrack"])
    files = {"/etc/modprobe.d/a.conf": "# x\nblacklist nf-conntrack\n", **ours(asked)}
    setting = found(asked, host(files))["load nf_conntrack"]
    assert verdict(setting, LIVE) is Verdict.OVERRIDDEN
    assert setting.persisted.decider == "/etc/modprobe.d/a.conf:2"
    assert setting.remedy == "take nf_conntrack out of /etc/modprobe.d/a.conf:2"
    assert commands(asked, host(files)) == [("modprobe", "nf_conntrack")]


@pytest.mark.parametrize(
    ("files", "cmdline"),
    [
        ({"/etc/modprobe.d/a.conf": "install nf_conntrack /bin/false\n"}, ""),
        ({}, "module_blacklist=nf_conntrack"),
    ],
)
def test_a_module_that_is_refused_by_name_is_not_tried(files: dict[str, str], cmdline: str) -> None:
    asked = node(load=["nf_conntrack"], options={"nf_conntrack": {"acct": True}})
    snapshot = host({**files, **ours(asked)}, cmdline=cmdline)
    assert verdict(found(asked, snapshot)["load nf_conntrack"], LIVE) is Verdict.OVERRIDDEN
    assert commands(asked, snapshot) == []
    option = found(asked, snapshot)["option nf_conntrack.acct"]
    assert option.running.standing is Standing.NOT_APPLICABLE


def test_a_module_that_our_own_file_kept_out_until_now_is_loaded() -> None:
    before = ours(node(blacklist=["nf_conntrack"]))
    asked = node(load=["nf_conntrack"])
    setting = found(asked, host(before))["load nf_conntrack"]
    assert (setting.persisted.standing, setting.persisted.value) == (
        Standing.WRONG,
        "blacklisted",
    )
    assert setting.remedy is None
    assert [type(a) for a in done(asked, host(before))] == [InstallFile, RemoveFile, Run]


def test_a_blacklisted_module_that_is_loaded_needs_the_driver_to_go() -> None:
    asked = node(blacklist=["rds"])
    snapshot = host(ours(asked), {"rds": "0 -"})
    setting = found(asked, snapshot)["blacklist rds"]
    assert (verdict(setting, LIVE), setting.effect) == (Verdict.PENDING, Effect.DRIVER)
    assert setting.persisted.decider == f"{MODPROBE_PATH}:3"
    allowed = node(DRIVER, blacklist=["rds"])
    assert commands(allowed, snapshot) == [("modprobe", "-r", "rds")]
    gone = found(asked, host(ours(asked)))["blacklist rds"]
    assert verdict(gone, LIVE) is Verdict.OK


def test_a_blacklisted_module_that_is_held_names_who_holds_it() -> None:
    asked = node(DRIVER, blacklist=["nouveau"])
    snapshot = host(ours(asked), {"nouveau": "2 drm_helper,"})
    setting = found(asked, snapshot)["blacklist nouveau"]
    assert setting.running.detail == "it is used by drm_helper"
    assert setting.remedy == "cannot be unloaded: it is used by drm_helper"
    assert commands(asked, snapshot) == []


def test_a_blacklist_alone_does_not_keep_a_module_from_being_loaded_by_name() -> None:
    asked = node(blacklist=["rds"])
    snapshot = host({"/etc/modprobe.d/a.conf": "blacklist rds\n"})
    setting = found(asked, snapshot)["blacklist rds"]
    assert (setting.persisted.standing, setting.persisted.value) == (
        Standing.WRONG,
        "loaded when asked for by name",
    )


def test_an_earlier_install_command_overrides_ours() -> None:
    asked = node(blacklist=["rds"])
    files = {"/etc/modprobe.d/a.conf": "install rds modprobe -i rds\n", **ours(asked)}
    setting = found(asked, host(files))["blacklist rds"]
    assert verdict(setting, LIVE) is Verdict.OVERRIDDEN
    assert (setting.persisted.value, setting.persisted.decider) == (
        "install modprobe -i rds",
        "/etc/modprobe.d/a.conf:1",
    )


def test_a_module_built_in_cannot_be_kept_out() -> None:
    setting = found(node(blacklist=["loop"]), host(builtin="loop"))["blacklist loop"]
    assert verdict(setting, frozenset(Effect)) is Verdict.WRONG
    assert changes(setting, frozenset(Effect)) == []
    assert setting.remedy == "loop is built into the kernel: no blacklist keeps it out"


def test_in_a_container_files_are_written_and_nothing_is_loaded() -> None:
    bare = host(container=True)
    for setting in settings(ASKED, bare):
        assert setting.running.standing is Standing.NOT_APPLICABLE
        assert verdict(setting, LIVE) is Verdict.WRONG
    assert [type(action) for action in done(ASKED, bare)] == [InstallFile, InstallFile]
    right = host(ours_of(ASKED, bare), container=True)
    assert {verdict(s, LIVE) for s in settings(ASKED, right)} == {Verdict.OK}
    assert done(ASKED, right) == []


def test_a_probe_that_was_cut_is_unreadable() -> None:
    snapshot = host()
    cut = Section(stdout="loaded", rc=None, ended="deadline")
    sections = {**snapshot.sections, "modules_kernel": cut}
    (setting,) = settings_of(COMPONENT, ASKED, snapshot.model_copy(update={"sections": sections}))
    assert verdict(setting, LIVE) is Verdict.UNREADABLE


SPECS = st.builds(
    lambda load, options, blacklist: node(
        load=load, options=options, blacklist=blacklist - load - {"nf_conntrack"}
    ),
    st.frozensets(st.sampled_from(["nf-conntrack", "dummy"])),
    st.dictionaries(
        st.sampled_from(["nf-conntrack", "rds"]),
        st.dictionaries(
            st.sampled_from(["a", "b_c"]),
            st.booleans() | st.integers(-9, 9) | st.sampled_from(["x y", "0x10", "1,2"]),
        ),
    ),
    st.frozensets(st.sampled_from(["rds", "nouveau", "r8169"])),
)


@given(SPECS)
def test_what_is_written_is_what_is_read_back(asked: Node) -> None:
    for setting in settings(asked, host(ours(asked))):
        assert setting.persisted.standing is Standing.RIGHT
        assert setting.persisted.value == setting.desired


def test_a_blacklisted_module_that_is_held_is_left_to_a_reboot_that_is_allowed() -> None:
    asked = node(DRIVER | {Effect.REBOOT}, blacklist=["nouveau"])
    held = host(ours(asked), {"nouveau": "2 drm_helper,"})
    setting = found(asked, held)["blacklist nouveau"]
    assert enforces(setting, asked.effects.allow)
    assert commands(asked, held) == []
