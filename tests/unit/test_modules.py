"""What the modules component decides and does."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploys.modules import COMPONENT, actions, settings
from railwright.actions import Action, InstallFile, RemoveFile, Run
from railwright.converge import settings_of, unmet
from railwright.modprobe import LOAD_PATH, MODPROBE_PATH
from railwright.owned import HEADER
from railwright.schema import EffectsSpec, ModulesSpec, Node
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, metadata, records

KERNEL = "6.1.0-57-amd64"
IMAGE = f"/boot/initrd.img-{KERNEL}"
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
DRIVER = LIVE | {Effect.DRIVER}

PATHS = {
    "dummy": "kernel/drivers/net/dummy.ko",
    "mlx5_core": "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.zst",
    "nf_conntrack": "kernel/net/netfilter/nf_conntrack.ko",
    "nouveau": "kernel/drivers/gpu/drm/nouveau/nouveau.ko",
    "rds": "kernel/net/rds/rds.ko",
}


def node(allow: frozenset[Effect] = LIVE, **spec: object) -> Node:
    return Node(
        name="n1", modules=ModulesSpec.model_validate(spec), effects=EffectsSpec(allow=allow)
    )


def host(
    files: Mapping[str, str] | None = None,
    loaded: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    *,
    drives: str = "",
    cmdline: str = "quiet",
    image_mtime: int = 200,
    builtin: str = "",
    mtime: int = 100,
    container: bool = False,
    others: str = "",
) -> Snapshot:
    """``loaded`` is module to ``REFERENCES USERS``, ``values`` ``MODULE/PARAMETER`` to text."""
    lines = [f"loaded {m} 16384 {v} Live 0x0" for m, v in (loaded or {}).items()]
    lines += [f"cmdline {cmdline}", *drives.splitlines(), *others.splitlines()]
    if not container:
        lines += [f"dep {KERNEL} {path}" for path in PATHS.values()]
    lines += [f"builtin {KERNEL} kernel/x/{name}.ko" for name in builtin.split()]
    shown = [f"/sys/module/{k.replace('/', '/parameters/')}:{v}" for k, v in (values or {}).items()]
    shown += [f"declared {module}" for module in PATHS]
    shown += ["declared nf_conntrack acct", "declared dummy numdummies", "declared rds hidden"]
    image = metadata(IMAGE, mtime=image_mtime)
    return Snapshot(
        host="n1",
        marker=MARKER,
        sections={
            "identity": Section(
                stdout=f"kernel={KERNEL}\n" + ("container=podman\n" if container else ""), rc=0
            ),
            "modules_config": Section(stdout=records(files or {}, mtime), rc=0),
            "modules_kernel": Section(stdout="\n".join(lines) + "\n", rc=0),
            "modules_parameters": Section(stdout="\n".join(shown) + "\n", rc=0),
            "modules_initramfs": Section(stdout="" if container else image, rc=0),
        },
    )


def found(node: Node, snapshot: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings(node, snapshot)}


def done(node: Node, snapshot: Snapshot) -> list[Action]:
    return list(actions(node, snapshot, settings(node, snapshot)))


def commands(node: Node, snapshot: Snapshot) -> list[tuple[str, ...]]:
    return [a.command for a in done(node, snapshot) if isinstance(a, Run)]


def ours(node: Node) -> dict[str, str]:
    """Our files as a run puts them on a bare host."""
    return {a.path: a.content for a in done(node, host()) if isinstance(a, InstallFile)}


def test_nothing_asked_for_and_nothing_of_ours_is_no_setting() -> None:
    foreign = host({"/etc/modprobe.d/a.conf": "options x y=1\n"})
    assert settings(node(), foreign) == []
    assert done(node(), foreign) == []


ASKED = node(
    load=["nf-conntrack"],
    options={"nf-conntrack": {"hashsize": 65536, "acct": True}, "dummy": {"numdummies": 2}},
    blacklist=["rds"],
)


def converged(asked: Node = ASKED, **more: Any) -> Snapshot:
    values: dict[str, object] = {
        "files": ours(asked),
        "loaded": {"nf_conntrack": "0 -"},
        "values": {"nf_conntrack/hashsize": "65536", "nf_conntrack/acct": "Y"},
    }
    return host(**{**values, **more})


def test_what_is_written() -> None:
    assert ours(ASKED) == {
        LOAD_PATH: HEADER + "nf_conntrack\n",
        MODPROBE_PATH: HEADER
        + "options dummy numdummies=2\n"
        + "options nf_conntrack acct=Y hashsize=65536\n"
        + "blacklist rds\ninstall rds /bin/false\n",
    }


def test_a_value_with_blanks_is_quoted() -> None:
    asked = node(options={"rds": {"hidden": "a b"}})
    assert 'options rds hidden="a b"\n' in ours(asked)[MODPROBE_PATH]


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


def test_no_image_is_made_for_modules_that_none_loads() -> None:
    asked = node(load=["nf_conntrack"], options={"nf_conntrack": {"acct": True}})
    assert commands(asked, host()) == [("modprobe", "nf_conntrack")]


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


def ours_of(asked: Node, snapshot: Snapshot) -> dict[str, str]:
    return {a.path: a.content for a in done(asked, snapshot) if isinstance(a, InstallFile)}


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
    assert (change.before, change.after) == ("0", "Y")
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
