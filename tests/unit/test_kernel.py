"""The kernel component's decisions and actions, on nodes built by hand."""

import pytest

from railwright.actions import InstallFile, RemoveFile, Run, WriteValue
from railwright.resolve.grub import DROPIN
from railwright.resolve.tmpfiles import DROPIN as TMPFILES
from railwright.settings import Standing, Verdict, changes, verdict
from tests.unit import kernel_host as host

PT = host.node({"iommu": "pt"})
PAGES = host.node(pages={"2M": {1: 64, 0: 32}, "1G": {0: 1}})
GROUP = "hugepagesz=1G hugepages=0:1 hugepagesz=2M hugepages=0:32,1:64"
THP = host.node(thp={"enabled": "madvise", "defrag": "defer+madvise"})
UPDATE = Run(command=("/usr/sbin/update-grub",))


def test_nothing_asked_for_is_nothing_done() -> None:
    assert host.verdicts(host.node(), host.snapshot()) == {}
    assert host.done(host.node(), host.snapshot()) == []


def test_what_is_no_longer_asked_for_goes() -> None:
    seen = host.converged(PT, "quiet iommu=pt")
    assert host.done(host.node(), seen) == [RemoveFile(path=DROPIN), UPDATE]
    thp = host.converged(THP, "quiet")
    assert host.done(host.node(), thp) == [RemoveFile(path=TMPFILES)]


def test_arguments_of_each_kind() -> None:
    asked = host.node({"iommu": "pt", "nowatchdog": True, "nmi_watchdog": 0}, max_cstate=1)
    seen = host.snapshot()
    install, update = host.done(asked, seen)
    assert isinstance(install, InstallFile)
    assert (install.path, install.mode, install.check) == (DROPIN, "644", ("sh", "-n"))
    assert update == UPDATE
    words = "intel_idle.max_cstate=1 iommu=pt nmi_watchdog=0 nowatchdog processor.max_cstate=1"
    assert f"railwright_arguments='{words}'" in install.content
    assert sorted(host.verdicts(asked, seen)) == sorted(
        [DROPIN, *(f"argument {word.partition('=')[0]}" for word in words.split())]
    )


def test_a_converged_node_is_left_alone() -> None:
    seen = host.converged(PT, "quiet iommu=pt")
    assert host.done(PT, seen) == []
    assert set(host.verdicts(PT, seen).values()) == {Verdict.OK}


def test_persisted_and_not_booted_is_pending_until_a_reboot_is_allowed() -> None:
    seen = host.converged(PT, "quiet iommu=pt", booted="quiet")
    assert host.done(PT, seen) == []
    assert host.verdicts(PT, seen)["argument iommu"] is Verdict.PENDING
    may = host.node({"iommu": "pt"}, allow=host.REBOOT)
    assert host.verdicts(may, seen)["argument iommu"] is Verdict.NOT_RUNNING
    assert host.done(may, seen) == []


def test_a_stale_grub_cfg_is_made_anew() -> None:
    seen = host.snapshot("quiet", host.ours(PT, host.snapshot()))
    found = host.of("argument iommu", PT, seen)
    assert (found.persisted.standing, found.persisted.value) == (Standing.STALE, None)
    assert host.done(PT, seen) == [UPDATE]
    (change,) = changes(found, host.LIVE)
    assert (change.before, change.after) == (None, "iommu=pt")


def test_grub_mkconfig_stands_in_for_update_grub() -> None:
    *_, update = host.done(PT, host.snapshot(tools=()))
    assert update == Run(command=("/usr/sbin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"))


@pytest.mark.parametrize(
    ("before", "standing", "value"),
    [("quiet", Standing.ABSENT, None), ("iommu=off", Standing.WRONG, "iommu=off")],
)
def test_what_is_announced_is_what_is_there(
    before: str, standing: Standing, value: str | None
) -> None:
    found = host.of("argument iommu", PT, host.snapshot(before))
    assert (found.persisted.standing, found.persisted.value) == (standing, value)
    assert (found.running.standing, found.running.value) == (standing, value)


def test_only_in_grub_cfg_is_not_persisted() -> None:
    found = host.of("argument iommu", PT, host.snapshot("iommu=pt"))
    assert found.persisted.standing is Standing.ABSENT
    assert host.verdicts(PT, host.snapshot("iommu=pt"))["argument iommu"] is Verdict.NOT_PERSISTED


def test_what_sh_alone_can_know_before_ours_does_not_matter_with_ours_in_place() -> None:
    conditional = {"/etc/default/grub.d/60.cfg": "if x; then GRUB_CMDLINE_LINUX=iommu=off; fi\n"}
    found = host.of("argument iommu", PT, host.snapshot("quiet", conditional))
    assert found.persisted.standing is Standing.ABSENT
    assert found.persisted.detail is not None
    assert "/etc/default/grub.d/60.cfg:1: assigned under a condition" in found.persisted.detail
    after = {**conditional, **host.ours(PT, host.snapshot())}
    seen = host.snapshot("iommu=pt", after)
    assert host.verdicts(PT, seen)["argument iommu"] is Verdict.OK


def test_what_sh_alone_can_know_after_ours_is_unreadable() -> None:
    late = {"/etc/default/grub.d/zz.cfg": ". /etc/other\n", **host.ours(PT, host.snapshot())}
    found = host.of("argument iommu", PT, host.snapshot("iommu=pt", late))
    assert found.persisted.standing is Standing.UNREADABLE
    assert found.persisted.detail == "/etc/default/grub.d/zz.cfg:1: runs ."


def test_a_line_added_to_our_file_by_hand_is_read_and_put_back() -> None:
    edited = {
        k: f"{v}GRUB_CMDLINE_LINUX_DEFAULT=quiet\n"
        for k, v in host.ours(PT, host.snapshot()).items()
    }
    seen = host.snapshot("quiet", edited)
    assert host.of("argument iommu", PT, seen).persisted.standing is Standing.ABSENT
    assert [action.action for action in host.done(PT, seen)] == ["install", "run"]


def test_huge_pages_are_one_setting_in_pairs() -> None:
    seen = host.snapshot()
    found = host.of("argument hugepages", PAGES, seen)
    assert (found.desired, found.persisted.standing) == (GROUP, Standing.ABSENT)
    assert f"railwright_arguments='{GROUP}'" in host.ours(PAGES, seen)[DROPIN]
    booted = host.converged(PAGES, f"quiet {GROUP}")
    assert set(host.verdicts(PAGES, booted).values()) == {Verdict.OK}
    # In another order they mean the same; with the pairs broken they do not.
    turned = "hugepagesz=2M hugepages=1:64,0:32 quiet hugepagesz=1024M hugepages=0:1"
    seen = host.converged(PAGES, f"quiet {GROUP}", booted=turned)
    assert host.of("argument hugepages", PAGES, seen).running.standing is Standing.RIGHT
    broken = "hugepagesz=1G hugepagesz=2M hugepages=0:1 hugepages=0:32,1:64"
    seen = host.converged(PAGES, f"quiet {GROUP}", booted=broken)
    running = host.of("argument hugepages", PAGES, seen).running
    assert (running.standing, running.value) == (Standing.WRONG, broken)


def test_huge_pages_of_another_file_are_taken_out() -> None:
    # The kernel takes the first count of a size and ignores a second one.
    foreign = {"/etc/default/grub.d/50.cfg": 'GRUB_CMDLINE_LINUX="hugepagesz=2M hugepages=9"\n'}
    seen = host.snapshot("quiet", {**foreign, **host.ours(PAGES, host.snapshot())}, generated=GROUP)
    assert host.of("argument hugepages", PAGES, seen).persisted.standing is Standing.RIGHT


@pytest.mark.parametrize("kernel", ["5.15.0-101-generic", "4.18.0-553.el8_10.x86_64"])
def test_an_older_kernel_has_no_huge_pages_per_node_at_boot(kernel: str) -> None:
    seen = host.snapshot(kernel=kernel)
    found = host.of("argument hugepages", PAGES, seen)
    assert not found.acts
    assert found.remedy is not None
    assert "allocate='runtime'" in found.remedy
    assert host.done(PAGES, seen) == []
    both = host.node({"iommu": "pt"}, pages={"2M": {0: 1}})
    assert "railwright_arguments='iommu=pt'" in host.ours(both, seen)[DROPIN]


def test_pools_at_run_time_need_no_argument() -> None:
    assert host.verdicts(host.node(pages={"2M": {0: 0}}), host.snapshot()) == {}


def test_a_host_whose_boot_loader_is_elsewhere() -> None:
    seen = host.snapshot("quiet")
    section = seen.section("kernel_boot").model_copy(update={"stdout": ""})
    seen = seen.model_copy(update={"sections": {**seen.sections, "kernel_boot": section}})
    found = host.of("argument iommu", host.node({"iommu": "pt"}, allow=host.REBOOT), seen)
    assert found.persisted.standing is Standing.NOT_APPLICABLE
    assert found.running.standing is Standing.ABSENT
    # It is never rebooted for what a reboot would not bring.
    assert not found.acts
    assert host.done(PT, seen) == []


def test_an_unreadable_grub_cfg() -> None:
    seen = host.snapshot("quiet")
    text = seen.section("kernel_boot").stdout
    cut = text.index(f"\n{host.MARKER} file", 1)
    text = f"\n{host.MARKER} file unreadable 600 root 1 9 /boot/grub/grub.cfg\n{text[cut:]}"
    section = seen.section("kernel_boot").model_copy(update={"stdout": text})
    seen = seen.model_copy(update={"sections": {**seen.sections, "kernel_boot": section}})
    found = host.of("argument iommu", PT, seen)
    assert verdict(found, host.LIVE) is Verdict.UNREADABLE
    assert host.done(PT, seen) == []


def test_a_container_has_no_arguments_of_its_own_but_persists_thp() -> None:
    asked = host.node({"iommu": "pt"}, thp={"enabled": "madvise"}, governor="performance")
    seen = host.container(governors=("powersave",))
    assert host.verdicts(asked, seen) == {
        "argument iommu": Verdict.NOT_APPLICABLE,
        "governor": Verdict.NOT_APPLICABLE,
        "thp enabled": Verdict.WRONG,
        TMPFILES: Verdict.WRONG,
    }
    (install,) = host.done(asked, seen)
    assert isinstance(install, InstallFile)
    assert install.path == TMPFILES
    assert "scaling_governor" not in install.content


def test_thp_is_written_and_persisted() -> None:
    seen = host.snapshot()
    enabled, defrag = f"{host.THP}/enabled", f"{host.THP}/defrag"
    write1, write2, install = host.done(THP, seen)
    assert write1 == WriteValue(path=enabled, value="madvise", line=f"w {enabled} - - - - madvise")
    assert isinstance(write2, WriteValue)
    assert isinstance(install, InstallFile)
    assert install.content.splitlines()[1:] == [
        f"w {enabled} - - - - madvise",
        f"w {defrag} - - - - defer+madvise",
    ]
    found = host.of("thp enabled", THP, seen)
    assert (found.persisted.standing, found.running.value) == (Standing.ABSENT, "always")


def test_thp_changed_by_hand_is_put_back() -> None:
    asked = host.node(thp={"enabled": "madvise"})
    after = host.snapshot(thp="always [madvise] never", tmpfiles=host.ours(asked, host.snapshot()))
    assert set(host.verdicts(asked, after).values()) == {Verdict.OK}
    assert host.done(asked, after) == []
    changed = host.snapshot(tmpfiles=host.ours(asked, host.snapshot()))
    assert host.verdicts(asked, changed)["thp enabled"] is Verdict.NOT_RUNNING
    (write,) = host.done(asked, changed)
    assert isinstance(write, WriteValue)


def test_thp_that_another_line_writes_later() -> None:
    # The same path once more would not count; another pattern for it does.
    asked = host.node(thp={"enabled": "madvise"})
    theirs = f"w {host.THP}/enable? - - - - never\n"
    seen = host.snapshot(tmpfiles={"/usr/lib/tmpfiles.d/thp.conf": theirs})
    found = host.of("thp enabled", asked, seen)
    assert verdict(found, host.LIVE) is Verdict.OVERRIDDEN
    assert found.persisted.decider == "/usr/lib/tmpfiles.d/thp.conf:1"
    assert [action.action for action in host.done(asked, seen)] == ["write", "install"]


@pytest.mark.parametrize(
    ("value", "expected"), [("never", Verdict.OVERRIDDEN), ("madvise", Verdict.OK)]
)
def test_tuned_has_the_last_word_on_thp(value: str, expected: Verdict) -> None:
    asked = host.node(thp={"enabled": "madvise"})
    profile = {
        "/etc/tuned/gpu/tuned.conf": "[main]\ninclude=latency-performance\n",
        "/usr/lib/tuned/latency-performance/tuned.conf": f"[vm]\ntransparent_hugepages = {value}\n",
    }
    files = host.ours(asked, host.snapshot())
    seen = host.snapshot(thp="always [madvise] never", tmpfiles=files, tuned=profile)
    found = host.of("thp enabled", asked, seen)
    assert verdict(found, host.LIVE) is expected
    assert found.persisted.decider == "/usr/lib/tuned/latency-performance/tuned.conf:2"


def test_a_kernel_without_the_knob() -> None:
    asked = host.node(thp={"shmem_enabled": "advise"})
    found = host.of("thp shmem_enabled", asked, host.snapshot())
    assert found.running.standing is Standing.NOT_APPLICABLE


def test_a_knob_that_cannot_be_made_sense_of() -> None:
    with pytest.raises(ValueError, match=r"enabled: expected one choice in brackets, got 'always'"):
        host.verdicts(THP, host.snapshot(thp="always"))


GOVERNED = host.node(governor="performance")


def test_governor_of_the_cpus_that_differ() -> None:
    seen = host.snapshot(governors=("performance", "powersave"))
    found = host.of("governor", GOVERNED, seen)
    assert (found.running.standing, found.running.value) == (
        Standing.WRONG,
        "performance,powersave",
    )
    write, install = host.done(GOVERNED, seen)
    assert isinstance(write, WriteValue)
    assert (write.path, write.value) == (host.GOVERNOR.format(1), "performance")
    assert isinstance(install, InstallFile)
    after = host.snapshot(
        governors=("performance", "performance"), tmpfiles={install.path: install.content}
    )
    assert set(host.verdicts(GOVERNED, after).values()) == {Verdict.OK}
    assert host.done(GOVERNED, after) == []


def test_governor_that_one_file_sets_for_one_cpu() -> None:
    theirs = {"/etc/tmpfiles.d/cpu1.conf": f"w {host.GOVERNOR.format(1)} - - - - powersave\n"}
    seen = host.snapshot(governors=("performance", "performance"), tmpfiles=theirs)
    found = host.of("governor", GOVERNED, seen)
    assert found.persisted.decider == "/etc/tmpfiles.d/cpu1.conf:1"
    assert found.persisted.standing is Standing.OVERRIDDEN


def test_governor_without_cpufreq_is_the_firmwares() -> None:
    assert host.verdicts(GOVERNED, host.snapshot()) == {"governor": Verdict.NOT_APPLICABLE}
    assert host.done(GOVERNED, host.snapshot()) == []
