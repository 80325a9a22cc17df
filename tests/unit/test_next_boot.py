"""Which kernel boots next: by grub.cfg and its environment block, and by BLS entries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.next_boot import (
    BOOT,
    INSTALLED,
    NextKernel,
    next_kernel,
    parse_installed,
    read_next_kernel,
    version_of,
)
from railwright.files import FileRecord
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, records

OLD, NEW = "6.8.0-60-generic", "6.8.0-79-generic"
GRUB_CFG = f"""\
12:   set default="${{saved_entry}}"
88:menuentry 'Ubuntu' --class os $menuentry_id_option 'gnulinux-simple-1' {{
94:\tlinux\t/boot/vmlinuz-{NEW} root=UUID=1 ro quiet
96:}}
98:submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-1' {{
99:\tmenuentry 'Ubuntu, with Linux {NEW}' $menuentry_id_option 'gnulinux-{NEW}-1' {{
104:\t\tlinux\t/boot/vmlinuz-{NEW} root=UUID=1 ro quiet
106:\t}}
107:\tmenuentry 'Ubuntu, with Linux {OLD}' $menuentry_id_option 'gnulinux-{OLD}-1' {{
112:\t\tlinux\t/boot/vmlinuz-{OLD} root=UUID=1 ro quiet
114:\t}}
115:}}
"""
MKCONFIG = {"/usr/sbin/grub-mkconfig": "270:for x in ${sysconfdir}/default/grub.d/*.cfg ; do"}
ENTRIES = "/boot/loader/entries"
RHEL_CFG = '17:   set default="${saved_entry}"\n80:blscfg\n'
EL_OLD, EL_NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-503.11.1.el9_5.x86_64"


def bls(version: str) -> str:
    return (
        f"title RHEL ({version})\nversion {version}\nlinux /vmlinuz-{version}\noptions root=x ro\n"
    )


def files(content: dict[str, str]) -> list[FileRecord]:
    return [
        FileRecord(path=path, kind="file", content=text, size=len(text))
        for path, text in content.items()
    ]


def found(content: dict[str, str], *images: str) -> NextKernel:
    return next_kernel(files(content), OLD, images or (OLD, NEW), frozenset({OLD, NEW}))


@pytest.mark.parametrize(
    ("grubenv", "version"),
    [
        ("", NEW),
        (f"saved_entry=gnulinux-advanced-1>gnulinux-{OLD}-1\n", OLD),
        ("saved_entry=1>1\n", OLD),
        ("saved_entry=0\nnext_entry=1>1\n", OLD),
    ],
)
def test_grub_s_default_saved_and_next_entry(grubenv: str, version: str) -> None:
    kernel = found({"/boot/grub/grub.cfg": GRUB_CFG, "/boot/grub/grubenv": grubenv, **MKCONFIG})
    assert (kernel.version, kernel.problem) == (version, None)
    assert kernel.changes == (version != OLD)
    assert kernel.origin.startswith("/boot/grub/grub.cfg:")


def test_a_kernel_that_the_menu_does_not_have_yet_is_told() -> None:
    kernel = found(
        {"/boot/grub/grub.cfg": GRUB_CFG, **MKCONFIG}, OLD, NEW, "6.8.0-90-generic", "0-rescue-1"
    )
    assert kernel.unlisted == ("6.8.0-90-generic",)
    assert found({"/boot/grub/grub.cfg": GRUB_CFG, **MKCONFIG}).unlisted == ()


@pytest.mark.parametrize(
    ("grubenv", "version"),
    [
        ("", EL_NEW),
        (f"saved_entry=id-{EL_OLD}\n", EL_OLD),
        (f"saved_entry=id-{EL_NEW}\n", EL_NEW),
    ],
)
def test_entries_of_the_boot_loader_specification(grubenv: str, version: str) -> None:
    content = {
        "/boot/grub2/grub.cfg": RHEL_CFG,
        "/boot/grub2/grubenv": grubenv,
        f"{ENTRIES}/id-{EL_OLD}.conf": bls(EL_OLD),
        f"{ENTRIES}/id-{EL_NEW}.conf": bls(EL_NEW),
    }
    kernel = found(content, EL_OLD, EL_NEW)
    assert (kernel.version, kernel.unlisted) == (version, ())


MACHINE = "3b2c5d9a8f7e4c1d9e0f1a2b3c4d5e6f"
RESCUE = f"0-rescue-{MACHINE}"


def el9(grubenv: str, *kernels: str) -> dict[str, str]:
    """The files of EL 9 as its installer and kernel-install name them, the rescue entry too."""
    entries = {f"{ENTRIES}/{MACHINE}-{version}.conf": bls(version) for version in kernels}
    return {
        "/boot/grub2/grub.cfg": RHEL_CFG,
        "/boot/grub2/grubenv": f"# GRUB Environment Block\n{grubenv}boot_success=0\n#######",
        f"{ENTRIES}/{MACHINE}-0-rescue.conf": bls(RESCUE),
        **entries,
    }


@pytest.mark.parametrize(
    ("grubenv", "version"),
    [
        ("", EL_NEW),
        (f"saved_entry={MACHINE}-{EL_OLD}\n", EL_OLD),
        (f"saved_entry={MACHINE}-{EL_NEW}\n", EL_NEW),
        # As grub2-set-default 1 leaves it.
        ("saved_entry=1\n", EL_OLD),
        # Of a kernel that was removed: GRUB takes the first.
        (f"saved_entry={MACHINE}-5.14.0-70.13.1.el9_0.x86_64\n", EL_NEW),
        # As grub2-reboot leaves it.
        (f"saved_entry={MACHINE}-{EL_NEW}\nnext_entry={MACHINE}-{EL_OLD}\n", EL_OLD),
        (f"saved_entry={MACHINE}-0-rescue\n", RESCUE),
    ],
)
def test_the_entry_of_el_9_that_boots_next(grubenv: str, version: str) -> None:
    kernel = found(el9(grubenv, EL_OLD, EL_NEW), EL_OLD, EL_NEW, RESCUE)
    assert (kernel.version, kernel.problem, kernel.unlisted) == (version, None, ())
    assert kernel.origin.startswith(f"{ENTRIES}/{MACHINE}-")


def test_a_kernel_of_el_9_without_an_entry_is_told() -> None:
    kernel = found(el9(f"saved_entry={MACHINE}-{EL_OLD}\n", EL_OLD), EL_OLD, EL_NEW, RESCUE)
    assert (kernel.version, kernel.unlisted) == (EL_OLD, (EL_NEW,))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "no boot loader is known"),
        ({"/boot/grub/grub.cfg": "menuentry 'Windows' {\n}\n"}, "default entry that boots Linux"),
        (
            {"/boot/grub/grub.cfg": "menuentry 'x' {\n\tlinux /vmlinuz root=x\n}\n"},
            "its version in the name, got '/vmlinuz'",
        ),
        ({"/boot/grub2/grub.cfg": RHEL_CFG}, "there is no boot loader entry"),
    ],
)
def test_what_cannot_be_told_has_its_problem(content: dict[str, str], problem: str) -> None:
    kernel = found(content)
    assert kernel.version is None
    assert problem in (kernel.problem or "")
    assert not kernel.changes


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/boot/vmlinuz-6.1.0-57-amd64", "6.1.0-57-amd64"),
        ("/vmlinuz-5.14.0-427.el9.x86_64", "5.14.0-427.el9.x86_64"),
        ("($root)/vmlinuz-5.14.0", "5.14.0"),
        ("/0123456789abcdef/6.12.43+deb13-amd64/linux", "6.12.43+deb13-amd64"),
        ("/boot/vmlinux-6.1.0", "6.1.0"),
    ],
)
def test_the_version_in_a_kernel_s_name(path: str, version: str) -> None:
    assert version_of(path) == version


def test_a_snapshot_is_read_whole() -> None:
    boot = records({"/boot/grub/grub.cfg": GRUB_CFG, **MKCONFIG})
    installed = f"image {OLD}\nimage {NEW}\nmodules {OLD}\n"
    snapshot = Snapshot(
        host="n1",
        marker=MARKER,
        sections={
            "identity": Section(stdout=f"kernel={OLD}\n", rc=0),
            BOOT.name: Section(stdout=boot, rc=0),
            INSTALLED.name: Section(stdout=installed, rc=0),
        },
    )
    kernel = read_next_kernel(snapshot)
    assert (kernel.version, kernel.running) == (NEW, OLD)
    assert kernel.images == (OLD, NEW)
    assert kernel.with_modules == frozenset({OLD})


@given(st.text(alphabet="image modules 6.\n-x", max_size=60))
def test_lines_of_another_kind_are_refused(text: str) -> None:
    lines = [line for line in text.splitlines() if line]
    good = all(line.startswith(("image ", "modules ")) and line.split(" ", 1)[1] for line in lines)
    if good and "" not in text.splitlines():
        images, with_modules = parse_installed(text)
        assert len(images) + len(with_modules) <= len(lines)
    else:
        with pytest.raises(ValueError, match="expected an installed kernel"):
            parse_installed(text)
