"""The default entry of grub.cfg and of the Boot Loader Specification's files."""

import pytest

from railwright.actions import Run
from railwright.files import FileRecord
from railwright.resolve.bls import default_entry as bls_entry
from railwright.resolve.boot import next_boot
from railwright.resolve.grub_cfg import default_entry, parse_grubenv
from railwright.settings import Standing, Verdict
from railwright.snapshot import Section, Snapshot
from tests.unit import kernel_host as host

CFG = "/boot/grub/grub.cfg"
ADVANCED = "Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.1.0-57-amd64"


def chosen(default: str, grubenv: str = "") -> str:
    content = host.grub_cfg("quiet").replace('set default="0"', f'set default="{default}"')
    return default_entry(content, CFG, parse_grubenv(grubenv)).origin


@pytest.mark.parametrize(
    ("default", "grubenv", "line"),
    [
        ("0", "", 94),
        ("1", "", 107),
        ("1>1", "", 119),
        ("1>9", "", 107),
        ("9", "", 94),
        ("Debian GNU/Linux", "", 94),
        ("gnulinux-simple-1-2", "", 94),
        (ADVANCED, "", 107),
        ("gnulinux-advanced-1-2>rec", "", 119),
        ("Debian GNU/Linux, with Linux 6.1.0-57-amd64 (recovery mode)", "", 119),
        ("no such title", "", 94),
        ("${saved_entry}", "saved_entry=1>1\n", 119),
        ("${saved_entry}", "# GRUB Environment Block\n", 94),
        ("0", "next_entry=gnulinux-advanced-1-2>rec\nsaved_entry=0\n", 119),
        ("0", "next_entry=\n", 94),
    ],
)
def test_default_entry(default: str, grubenv: str, line: int) -> None:
    assert chosen(default, grubenv) == f"{CFG}:{line}"


def test_arguments_of_the_linux_line() -> None:
    content = """\
set tuned_params="skew_tick=1 tsc=reliable"
menuentry 'It'\\''s Linux' --id one {
\tlinuxefi\t/vmlinuz root=UUID=1 dyndbg="file a.c +p" $tuned_params $vt_handoff ${nothing}
}
"""
    entry = default_entry(content, CFG, {})
    assert entry.title == "It's Linux"
    assert entry.origin == f"{CFG}:3"
    assert entry.arguments == (
        "root=UUID=1", "dyndbg=file a.c +p", "skew_tick=1", "tsc=reliable",
    )  # fmt: skip


@pytest.mark.parametrize("content", ["", "menuentry 'Windows' {\n\tchainloader +1\n}\n", "}\n}\n"])
def test_a_default_entry_without_linux(content: str) -> None:
    with pytest.raises(ValueError, match=r"grub\.cfg: expected a default entry that boots Linux"):
        default_entry(content, CFG, {})


# Trees made after RHEL 8 and 9; no RHEL host was run.
ENTRIES = "/boot/loader/entries"
MACHINE = "0123456789abcdef0123456789abcdef"
RHEL_CFG = """\
12:   set default="${next_entry}"
17:   set default="${saved_entry}"
40:  set kernelopts="root=/dev/mapper/rhel-root ro fallback "
80:blscfg
"""
RHEL_MKCONFIG = {"/usr/sbin/grub2-mkconfig": "150:if test -f ${sysconfdir}/default/grub ; then"}


def entry(version: str, options: str) -> str:
    return f"title Red Hat Enterprise Linux ({version})\nversion {version}\noptions {options}\n"


RHEL_8 = {
    f"{ENTRIES}/{MACHINE}-0-rescue.conf": entry("0-rescue", "$kernelopts"),
    f"{ENTRIES}/{MACHINE}-4.18.0-80.el8.x86_64.conf": entry("4.18.0-80", "$kernelopts"),
    f"{ENTRIES}/{MACHINE}-4.18.0-553.el8_10.x86_64.conf": entry(
        "4.18.0-553", "$kernelopts $tuned_params"
    ),
    "/boot/grub2/grubenv": f"saved_entry={MACHINE}-4.18.0-553.el8_10.x86_64\n"
    "kernelopts=root=/dev/mapper/rhel-root ro crashkernel=auto iommu=pt \n",
}
RHEL_9 = {
    f"{ENTRIES}/{MACHINE}-5.14.0-362.el9.x86_64.conf": entry("5.14.0-362", "root=x ro iommu=pt"),
    f"{ENTRIES}/{MACHINE}-5.14.0-503.el9.x86_64.conf": entry("5.14.0-503", "root=x ro"),
    "/boot/grub2/grubenv": "",
    "/etc/kernel/cmdline": "root=x ro",
}
PT = host.node({"iommu": "pt"})


def rhel(
    files: dict[str, str], *, cmdline: str = "ro", tools: tuple[str, ...] = ("/usr/sbin/grubby",)
) -> Snapshot:
    boot = {
        "/boot/grub2/grub.cfg": RHEL_CFG,
        **RHEL_MKCONFIG,
        "/etc/default/grub": 'GRUB_CMDLINE_LINUX="ro"\nGRUB_ENABLE_BLSCFG=true\n',
        **files,
    }
    seen = host.snapshot(cmdline)
    text = host.records(boot) + "".join(map(host.metadata, tools))
    sections = {**seen.sections, "kernel_boot": Section(stdout=text, rc=0)}
    return seen.model_copy(update={"sections": sections})


def test_rhel_8_has_its_arguments_in_the_environment_block() -> None:
    seen = rhel(RHEL_8, cmdline="ro iommu=pt")
    assert host.verdicts(PT, seen) == {"argument iommu": Verdict.OK}
    decider = host.of("argument iommu", PT, seen).persisted.decider
    assert decider == f"{ENTRIES}/{MACHINE}-4.18.0-553.el8_10.x86_64.conf:3"
    assert host.done(PT, seen) == []


def test_rhel_8_without_saved_entry_boots_the_newest_version() -> None:
    files = {**RHEL_8, "/boot/grub2/grubenv": ""}
    boot = next_boot(rhel(files).files("kernel_boot"))
    assert boot is not None
    assert boot.entry is not None
    # 553 is newer than 80; without kernelopts in the block the fallback of grub.cfg counts.
    assert "4.18.0-553" in boot.entry.origin
    assert "fallback" in boot.entry.arguments


def test_rhel_9_has_them_in_each_entry_and_grubby_writes_them() -> None:
    seen = rhel(RHEL_9)
    asked = host.node({"iommu": "pt"}, max_cstate=1)
    assert host.of("argument iommu", asked, seen).persisted.standing is Standing.ABSENT
    (run,) = host.done(asked, seen)
    names = "intel_idle.max_cstate iommu processor.max_cstate"
    assert run == Run(
        command=(
            "/usr/sbin/grubby",
            "--update-kernel=ALL",
            f"--remove-args={names}",
            "--args=intel_idle.max_cstate=1 iommu=pt processor.max_cstate=1",
        )
    )


def test_rhel_without_grubby_or_bls_is_not_acted_on() -> None:
    for seen in (
        rhel(RHEL_9, tools=()),
        rhel({"/boot/grub2/grub.cfg": host.grub_cfg("ro")}),
    ):
        found = host.of("argument iommu", PT, seen)
        assert found.persisted.standing is Standing.ABSENT
        assert not found.acts
        assert found.remedy
        assert host.done(PT, seen) == []


def test_systemd_boot_is_read_and_not_acted_on() -> None:
    conf = {"/efi/loader/entries/debian-6.1.0-57-amd64.conf": entry("6.1", "root=x iommu=pt")}
    text = host.records(conf)
    seen = host.snapshot("iommu=pt")
    sections = {**seen.sections, "kernel_boot": Section(stdout=text, rc=0)}
    seen = seen.model_copy(update={"sections": sections})
    found = host.of("argument iommu", PT, seen)
    assert found.persisted.standing is Standing.RIGHT
    assert not found.acts


def test_an_entry_that_cannot_be_read() -> None:
    record = FileRecord(path=f"{ENTRIES}/a.conf", kind="unreadable")
    with pytest.raises(ValueError, match=r"a\.conf cannot be read"):
        bls_entry([record], "", {})
    with pytest.raises(ValueError, match="there is no boot loader entry"):
        bls_entry([], "", {})
