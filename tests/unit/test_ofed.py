"""Which OFED ``ofed_info`` tells of. The recorded corpus is read in test_parse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.ofed import INBOX, Ofed, parse_ofed_info

FULL = """\
MLNX_OFED_LINUX-5.4-1.0.3.0 (OFED-5.4-1.0.3):

mlnx-ofa_kernel:
mlnx_ofed/mlnx-ofa-4.0.git mlnx_ofed_5_4
commit 0000000000000000000000000000000000000000

Installed Packages:
-------------------
"""
DPKG = """\
ii  ibverbs-providers:amd64   54mlnx1-1.54103   amd64   User space provider drivers
hi  mlnx-ofed-kernel-dkms     5.4-OFED.5.4.1.0.3.1   all   DKMS support
rc  mlnx-tools                5.2.0-0.54103   amd64   Userspace tools
"""
RPM = "mlnx-ofa_kernel-24.10-OFED.24.10.1.1.4.1.rhel9u4.x86_64\nkmod-iser-24.10-1.el9.x86_64\n"
LINES = [*FULL.splitlines(), *DPKG.splitlines(), "OFED-internal-25.10-1.2.8:", "25.10-1.2.8"]


@pytest.mark.parametrize(
    ("text", "product", "version", "kind"),
    [
        ("MLNX_OFED_LINUX-23.10-0.5.5.0:\n", "MLNX_OFED_LINUX", "23.10-0.5.5.0", "mlnx_ofed"),
        ("MLNX_OFED_LINUX-4.9-2.2.4.0:\n", "MLNX_OFED_LINUX", "4.9-2.2.4.0", "mlnx_ofed"),
        ("OFED-internal-25.10-1.2.8:\n", "OFED-internal", "25.10-1.2.8", "doca_ofed"),
        ("DOCA-OFED-3.2-1.0:\n", "DOCA-OFED", "3.2-1.0", "doca_ofed"),
        ("24.10-1.1.4.0\n", None, "24.10-1.1.4.0", None),
    ],
)
def test_the_short_forms(text: str, product: str | None, version: str, kind: str | None) -> None:
    found = parse_ofed_info(text)
    assert (found.installed, found.product, found.version) == (True, product, version)
    assert found.kind == kind


@pytest.mark.parametrize(
    ("text", "rc"), [("", 127), ("-bash: ofed_info: command not found\n", 127)]
)
def test_without_the_tool_the_drivers_are_the_kernels_own(text: str, rc: int) -> None:
    assert parse_ofed_info(text, rc) == INBOX == Ofed(installed=False)
    assert INBOX.kind == "inbox"


def test_packages_that_were_removed_are_no_part_of_it() -> None:
    found = parse_ofed_info(FULL + DPKG)
    assert found.packages_installed == ("ibverbs-providers", "mlnx-ofed-kernel-dkms")
    assert parse_ofed_info(FULL + RPM).packages_installed == ("mlnx-ofa_kernel", "kmod-iser")
    assert parse_ofed_info(FULL).version == "5.4-1.0.3.0"


@pytest.mark.parametrize(
    ("text", "rc"),
    [
        ("", 0),
        ("MLNX_OFED_LINUX-:\n", 0),
        ("Segmentation fault\n", 139),
        ("OFED-internal-25.10-1.2.8:\n", 1),
        ("25.10-1.2.8\n", 1),
    ],
)
def test_a_tool_that_fails_is_not_an_inbox_driver(text: str, rc: int) -> None:
    with pytest.raises(ValueError, match=rf"expected ofed_info's .*exit {rc}"):
        parse_ofed_info(text, rc)


@given(st.lists(st.sampled_from(LINES) | st.text()), st.sampled_from([0, 1, 127]))
def test_nothing_but_a_value_error_is_raised(lines: list[str], rc: int) -> None:
    try:
        found = parse_ofed_info("\n".join(lines), rc)
    except ValueError:
        return
    assert found.installed == (found.version is not None)
