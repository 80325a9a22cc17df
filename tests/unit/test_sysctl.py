"""Kernel parameters from what a node shows to what is done."""

import subprocess
from pathlib import Path

import pytest

from deploys.sysctl import COMPONENT, settings, wanted
from facts.sysctl import DROP_IN, Sysctl
from railwright.actions import InstallFile, RemoveFile, WriteValue, render
from railwright.owned import HEADER
from railwright.schema import EffectsSpec
from railwright.settings import Effect, Standing, Verdict, changes, verdict
from railwright.snapshot import Section
from tests.unit.sysctl_host import LIVE, MARKER, RMEM_MAX, done, node, of, ours, snapshot, verdicts
from tests.unit.units import unit


def test_where_nothing_is_asked_for_there_is_nothing() -> None:
    seen = snapshot({"/etc/sysctl.d/x.conf": "junk\n"})
    assert settings(node(), seen) == []
    assert done(node(), seen) == []


def test_a_drop_in_that_is_not_asked_for_any_more_is_removed() -> None:
    seen = snapshot(ours(RMEM_MAX))
    assert [s.key for s in settings(node(), seen)] == [DROP_IN]
    assert done(node(), seen) == [RemoveFile(path=DROP_IN)]


def test_a_bare_node_is_brought_to_what_is_asked() -> None:
    asked = node(vm__swappiness=10, net__ipv4__tcp_rmem=(4096, 131072, 67108864))
    seen = snapshot()
    assert [str(c) for s in settings(asked, seen) for c in changes(s, LIVE)][:4] == [
        "sysctl net.ipv4.tcp_rmem: persisted absent → 4096 131072 67108864",
        "sysctl net.ipv4.tcp_rmem: running 4096 131072 6291456 → 4096 131072 67108864",
        "sysctl vm.swappiness: persisted absent → 10",
        "sysctl vm.swappiness: running 60 → 10",
    ]
    lines = ("net.ipv4.tcp_rmem = 4096 131072 67108864", "vm.swappiness = 10")
    assert done(asked, seen) == [
        WriteValue(path="/proc/sys/net/ipv4/tcp_rmem", value="4096 131072 67108864", line=lines[0]),
        WriteValue(path="/proc/sys/vm/swappiness", value="10", line=lines[1]),
        InstallFile(path=DROP_IN, content=ours(*lines)[DROP_IN]),
    ]


def test_a_converged_node_is_left_alone() -> None:
    asked = node(net__core__rmem_max=212992, numa=False, net__ipv4__tcp_rmem="4096  131072 6291456")
    seen = snapshot(
        ours(
            "kernel.numa_balancing = 0",
            RMEM_MAX,
            "net.ipv4.tcp_rmem = 4096 131072 6291456",
        )
    )
    assert set(verdicts(asked, seen).values()) == {Verdict.OK}
    assert len(verdicts(asked, seen)) == 4
    assert done(asked, seen) == []


@pytest.mark.parametrize(
    ("files", "running", "expected", "does"),
    [
        (ours(RMEM_MAX), "4096", Verdict.NOT_RUNNING, ["write"]),
        ({}, "212992", Verdict.NOT_PERSISTED, ["install"]),
        ({}, "4096", Verdict.WRONG, ["write", "install"]),
        (ours("net.core.rmem_max = 1"), "212992", Verdict.NOT_PERSISTED, ["install"]),
    ],
)
def test_only_the_state_that_is_wrong_is_acted_on(
    files: dict[str, str], running: str, expected: Verdict, does: list[str]
) -> None:
    asked = node(net__core__rmem_max=212992)
    seen = snapshot(files, {"net.core.rmem_max": running})
    assert verdicts(asked, seen)["net.core.rmem_max"] is expected
    assert [action.action for action in done(asked, seen)] == does


def test_stock_defect_a_changed_value_leaves_no_stale_line() -> None:
    seen = snapshot(ours("vm.swappiness = 10"))
    installed = [a for a in done(node(vm__swappiness=60), seen) if isinstance(a, InstallFile)]
    assert [file.content for file in installed] == [ours("vm.swappiness = 60")[DROP_IN]]


def test_stock_defect_b_a_key_is_no_regular_expression() -> None:
    asked = node(vm__swappiness=60)
    other = {"/etc/sysctl.d/x.conf": "vm_swappiness = 60\nxvm.swappiness = 60\n"}
    assert verdicts(asked, snapshot(other))["vm.swappiness"] is Verdict.NOT_PERSISTED


def test_a_value_of_a_foreign_file_counts() -> None:
    seen = snapshot({"/usr/lib/sysctl.d/50-x.conf": f"{RMEM_MAX}\n"})
    found = of("net.core.rmem_max", node(net__core__rmem_max=212992), seen)
    assert found.persisted.standing is Standing.RIGHT
    assert found.persisted.decider == "/usr/lib/sysctl.d/50-x.conf:1"


@pytest.mark.parametrize(
    "directory", ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"]
)
@pytest.mark.parametrize("files", [ours(RMEM_MAX), {}])
def test_a_later_file_overrides_and_is_named(directory: str, files: dict[str, str]) -> None:
    asked = node(net__core__rmem_max=212992)
    later = {f"{directory}/99-zzz.conf": "# x\nnet.core.rmem_max = 1\n"}
    seen = snapshot({**files, **later}, {"net.core.rmem_max": "1"})
    found = of("net.core.rmem_max", asked, seen)
    assert verdict(found, LIVE) is Verdict.OVERRIDDEN
    assert found.persisted.decider == f"{directory}/99-zzz.conf:2"
    assert found.remedy is not None
    assert found.persisted.decider in found.remedy
    # What is right until the next boot is better than nothing; what no run changes is not told.
    assert [(c.state, c.before) for c in changes(found, LIVE)] == [("running", "1")]
    assert any(isinstance(action, WriteValue) for action in done(asked, seen))


def test_sysctl_conf_overrides_by_a_reload_though_ours_wins_at_boot() -> None:
    asked = node(net__core__rmem_max=212992)
    conf = "net.core.rmem_max = 1\n"
    files = {
        **ours(RMEM_MAX),
        "/etc/sysctl.d/99-sysctl.conf": f"-> /etc/sysctl.conf\n{conf}",
        "/etc/sysctl.conf": conf,
    }
    found = of("net.core.rmem_max", asked, snapshot(files))
    assert verdict(found, LIVE) is Verdict.OVERRIDDEN
    assert (found.persisted.value, found.persisted.decider) == ("212992", "/etc/sysctl.conf:1")
    assert "sysctl --system" in (found.persisted.detail or "")
    same = {**files, "/etc/sysctl.conf": "net/core/rmem_max=0x34000\n"}
    assert set(verdicts(asked, snapshot(same)).values()) == {Verdict.OK}


def test_the_other_of_an_exclusive_pair_overrides() -> None:
    asked = node(vm__dirty_bytes=1 << 30)
    files = {**ours("vm.dirty_bytes = 1073741824"), "/etc/sysctl.d/zz.conf": "vm.dirty_ratio = 9\n"}
    seen = snapshot(files, {"vm.dirty_bytes": "0"})
    found = of("vm.dirty_bytes", asked, seen)
    assert verdict(found, LIVE) is Verdict.OVERRIDDEN
    assert found.persisted.decider == "/etc/sysctl.d/zz.conf:1"


def test_tuned_is_named_where_it_holds_another_value() -> None:
    asked = node(vm__swappiness=10)
    units = Section(stdout=unit("tuned.service"), rc=0)
    files = {**ours("vm.swappiness = 10"), "/etc/tuned/active_profile": "hpc-compute\n"}
    found = of("vm.swappiness", asked, snapshot(files, sysctl_units=units))
    assert verdict(found, LIVE) is Verdict.NOT_RUNNING
    assert found.running.decider == "tuned.service (hpc-compute)"
    assert of("vm.swappiness", asked, snapshot(files)).running.decider is None
    right = snapshot(files, {"vm.swappiness": "10"}, sysctl_units=units)
    assert of("vm.swappiness", asked, right).running.decider is None


def test_a_key_that_this_kernel_does_not_have_is_neither_wrong_nor_written() -> None:
    asked = node(kernel__sched_nope_ns=1, net__core__rmem_max=212992)
    seen = snapshot(ours("kernel.sched_nope_ns = 1", RMEM_MAX))
    found = of("kernel.sched_nope_ns", asked, seen)
    assert verdict(found, LIVE) is Verdict.NOT_APPLICABLE
    assert found.running.detail == "this kernel has no such key"
    assert done(asked, seen) == [InstallFile(path=DROP_IN, content=ours(RMEM_MAX)[DROP_IN])]


def test_a_key_of_an_interface_that_is_not_there_is_late() -> None:
    asked = node(net__ipv4__conf__rail7__rp_filter=2)
    seen = snapshot(ours("net.ipv4.conf.rail7.rp_filter = 2"))
    assert verdicts(asked, seen)["net.ipv4.conf.rail7.rp_filter"] is Verdict.PENDING
    assert done(asked, seen) == []


def test_a_container_is_converged_on_disk_alone() -> None:
    identity = Section(stdout="container=podman\n", rc=0)
    asked = node(net__core__rmem_max=4096, kernel__nope__x=1)
    # Under some hosts a container sees no /proc/modules.
    none = Section(stdout="", stderr="cut: /proc/modules: No such file or directory", rc=1)
    seen = snapshot(identity=identity, sysctl_modules=none)
    assert {verdicts(asked, seen)[key] for key in wanted(asked)} == {Verdict.WRONG}
    assert [action.action for action in done(asked, seen)] == ["install"]
    after = snapshot(ours("kernel.nope.x = 1", "net.core.rmem_max = 4096"), identity=identity)
    assert set(verdicts(asked, after).values()) == {Verdict.OK}
    assert done(asked, after) == []


@pytest.mark.parametrize(
    "section",
    [
        Section(stdout="", stderr="sh: 1: sysctl: not found", rc=127),
        Section(stdout=f"{RMEM_MAX}\n", rc=None, ended="deadline"),
    ],
)
def test_without_values_nothing_is_done_and_nothing_is_ok(section: Section) -> None:
    asked = node(net__core__rmem_max=212992)
    seen = snapshot(sysctl_values=section)
    found = of("net.core.rmem_max", asked, seen)
    assert verdict(found, LIVE) is Verdict.UNREADABLE
    assert done(asked, seen) == []
    assert [c for s in settings(asked, seen) for c in changes(s, LIVE)] == []


def test_a_file_that_cannot_be_read_leaves_the_decider_unknown() -> None:
    seen = snapshot()
    dark = f"\n{MARKER} file unreadable 600 root 1 5 /etc/sysctl.d/zz.conf\n"
    broken = seen.sections["sysctl_files"].model_copy(update={"stdout": dark})
    seen = seen.model_copy(update={"sections": {**seen.sections, "sysctl_files": broken}})
    found = of("net.core.rmem_max", node(net__core__rmem_max=4096), seen)
    assert verdict(found, LIVE) is Verdict.UNREADABLE
    assert "/etc/sysctl.d/zz.conf" in (found.persisted.detail or "")
    assert done(node(net__core__rmem_max=4096), seen) == []


def test_a_value_that_the_kernel_gives_up_only_at_boot_waits_for_it() -> None:
    asked = node(kernel__yama__ptrace_scope=0)
    seen = snapshot(ours("kernel.yama.ptrace_scope = 0"), {"kernel.yama.ptrace_scope": "3"})
    assert verdicts(asked, seen)["kernel.yama.ptrace_scope"] is Verdict.PENDING
    boots = asked.model_copy(update={"effects": EffectsSpec(allow=LIVE | {Effect.REBOOT})})
    assert done(boots, seen) == []
    free = snapshot(ours("kernel.yama.ptrace_scope = 0"), {"kernel.yama.ptrace_scope": "1"})
    assert [action.action for action in done(asked, free)] == ["write"]


def test_what_resets_others_is_written_first() -> None:
    asked = node(net__ipv4__conf__all__accept_redirects=1, net__ipv4__ip_forward=1)
    assert list(wanted(asked)) == ["net.ipv4.ip_forward", "net.ipv4.conf.all.accept_redirects"]


def test_live_not_allowed_is_written_down_alone() -> None:
    asked = node(net__core__rmem_max=4096).model_copy(
        update={"effects": EffectsSpec(allow=frozenset())}
    )
    assert [action.action for action in done(asked, snapshot())] == ["install"]


def test_a_refused_value_never_lands_on_disk_and_the_rest_does(tmp_path: Path) -> None:
    # /dev/full refuses every write, as the kernel does one that is out of range.
    target, knob = tmp_path / "x.conf", tmp_path / "knob"
    knob.touch()
    script = render(
        [
            WriteValue(path="/dev/full", value="1024", line="vm.mmap_rnd_bits = 1024"),
            WriteValue(path=str(knob), value="1", line="vm.knob = 1"),
            WriteValue(path=f"{tmp_path}/none/late", value="2", line="vm.late = 2"),
            InstallFile(
                path=str(target),
                content=f"{HEADER}vm.knob = 1\nvm.late = 2\nvm.mmap_rnd_bits = 1024\n",
            ),
        ]
    )
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert result.returncode == 1
    assert "/dev/full: the kernel refuses 1024" in result.stderr
    assert target.read_text() == f"{HEADER}vm.knob = 1\nvm.late = 2\n"
    assert knob.read_text() == "1\n"


def test_the_fact_names_values_and_winners() -> None:
    found = Sysctl().read(snapshot({"/etc/sysctl.d/x.conf": "vm.swappiness = 1\n"}))
    shown = found.to_json()
    assert shown["values"]["net.ipv4.tcp_rmem"] == [4096, 131072, 6291456]
    assert shown["winners"]["vm.swappiness"]["winner"]["path"] == "/etc/sysctl.d/x.conf"


def test_every_section_of_the_component_is_read() -> None:
    assert {s.name for s in COMPONENT.sections} == set(snapshot().sections) - {"identity"}
