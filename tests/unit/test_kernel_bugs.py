"""Faults that people reported in public, each with a healthy twin."""

from railwright.settings import Standing, Verdict
from tests.unit import kernel_host as host

PT = host.node({"iommu": "pt"})
KEY = "argument iommu"


def test_row_3_booted_without_iommu_pt() -> None:
    # /etc/default/grub asks for it, the running kernel does not have it: who is to blame is told.
    defaults = {"/etc/default/grub": host.DEBIAN_DEFAULTS.replace("quiet", "quiet iommu=pt")}
    stale = host.snapshot("quiet", defaults)
    found = host.of(KEY, PT, stale)
    assert found.running.standing is Standing.ABSENT
    assert found.running.decider == "/proc/cmdline"
    assert found.persisted.standing is Standing.STALE
    assert found.persisted.decider == "/boot/grub/grub.cfg:94"
    assert host.verdicts(PT, stale)[KEY] is Verdict.NOT_GENERATED

    unbooted = host.snapshot("quiet", defaults, generated="quiet iommu=pt")
    assert host.verdicts(PT, unbooted)[KEY] is Verdict.PENDING
    assert host.of(KEY, PT, unbooted).persisted.decider == "/etc/default/grub:4"


def test_row_3_twin_booted_with_iommu_pt() -> None:
    assert host.verdicts(PT, host.converged(PT, "quiet iommu=pt"))[KEY] is Verdict.OK


def test_row_3_an_earlier_iommu_off_stays_in_force() -> None:
    found = host.of(KEY, PT, host.converged(PT, "quiet iommu=pt", "quiet iommu=off iommu=pt"))
    assert found.running.standing is Standing.WRONG
    assert found.running.value == "iommu=off iommu=pt"


ROW_31 = {
    "/etc/default/grub": host.DEBIAN_DEFAULTS.replace("quiet", "quiet iommu=pt"),
    host.CLOUDIMG: '# cloud\nGRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0"\n',
}


def test_row_31_a_drop_in_resets_the_arguments() -> None:
    seen = host.snapshot("console=tty1 console=ttyS0", ROW_31)
    found = host.of(KEY, PT, seen)
    assert found.persisted.standing is Standing.ABSENT
    assert found.persisted.detail == f"/etc/default/grub:4 has it, {host.CLOUDIMG}:2 drops it"
    assert host.verdicts(PT, seen)[KEY] is Verdict.WRONG
    # Ours sorts after it and keeps what it says.
    after = host.snapshot(
        "console=tty1 console=ttyS0",
        {**ROW_31, **host.ours(PT, seen)},
        generated="console=tty1 console=ttyS0 iommu=pt",
    )
    assert host.verdicts(PT, after)[KEY] is Verdict.PENDING


def test_row_31_a_drop_in_after_ours_is_named() -> None:
    late = {"/etc/default/grub.d/zz.cfg": '\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'}
    for boot in (late, {**late, **host.ours(PT, host.snapshot())}):
        found = host.of(KEY, PT, host.snapshot("quiet", boot))
        assert found.persisted.standing is Standing.OVERRIDDEN
        assert found.persisted.decider == "/etc/default/grub.d/zz.cfg:2"
        assert found.remedy is not None
        assert "/etc/default/grub.d/zz.cfg:2" in found.remedy


def test_row_31_twin_a_drop_in_that_appends() -> None:
    kept = {
        "/etc/default/grub": ROW_31["/etc/default/grub"],
        host.CLOUDIMG: 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT console=ttyS0"\n',
    }
    seen = host.snapshot("quiet iommu=pt console=ttyS0", kept)
    assert host.verdicts(PT, seen)[KEY] is Verdict.OK
    assert host.of(KEY, PT, seen).persisted.decider == "/etc/default/grub:4"
