"""mst status, short and verbose, with and without its modules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.mst import parse_mst_status

MODULES = """\
MST modules:
------------
    MST PCI module is not loaded
    MST PCI configuration module loaded
"""
HEAD = MODULES + (
    "PCI devices:\n------------\n"
    "DEVICE_TYPE             MST                           PCI       RDMA            NET     NUMA\n"
)


def test_verbose_row_with_several_interfaces_and_no_numa_node() -> None:
    found = parse_mst_status(
        HEAD + "BlueField3(rev:1)       /dev/mst/mt41692_pciconf0.1   03:00.1   mlx5_1          "
        "net-p1,net-pf1hpf,net-en3f1pf1sf0       -1\n\n"
    )
    (device,) = found.devices
    assert (device.mst, device.pci) == ("/dev/mst/mt41692_pciconf0.1", "03:00.1")
    assert (device.rdma, device.nets, device.numa) == (
        ("mlx5_1",),
        ("p1", "pf1hpf", "en3f1pf1sf0"),
        None,
    )


def test_a_connectx3_has_two_rows() -> None:
    found = parse_mst_status(
        HEAD + "ConnectX3Pro(rev:0)     /dev/mst/mt4103_pciconf0     \n"
        "ConnectX3Pro(rev:0)     /dev/mst/mt4103_pci_cr0       01:00.0            net-enp1s0  0\n"
    )
    (device,) = found.devices
    assert (device.mst, device.pci, device.nets) == (
        "/dev/mst/mt4103_pciconf0",
        "01:00.0",
        ("enp1s0",),
    )


def test_a_device_without_an_rdma_name_or_a_path() -> None:
    found = parse_mst_status(HEAD + "ConnectX5(rev:0)   NA   0000:3b:00.0   net-ens1   0\n")
    (device,) = found.devices
    assert (device.mst, device.pci, device.rdma, device.numa) == (None, "0000:3b:00.0", (), 0)


def test_short_form() -> None:
    found = parse_mst_status(
        MODULES + "\nMST devices:\n------------\n"
        "/dev/mst/mt4123_pciconf0         - PCI configuration cycles access.\n"
        "                                   domain:bus:dev.fn=0000:0f:00.0 addr.reg=88\n"
        "                                   Chip revision is: 00\n"
    )
    (device,) = found.devices
    assert (device.mst, device.pci) == ("/dev/mst/mt4123_pciconf0", "0000:0f:00.0")
    assert (found.modules.pci, found.modules.pciconf) == (False, True)


def test_without_modules_there_are_addresses_or_nothing() -> None:
    stopped = MODULES.replace("module loaded", "module is not loaded")
    assert not parse_mst_status(stopped).modules.pciconf
    found = parse_mst_status(stopped + "\nPCI Devices:\n------------\n\n05:00.0\n")
    assert [device.pci for device in found.devices] == ["05:00.0"]


@pytest.mark.parametrize(
    "text", ["", "bash: mst: command not found", "MST modules:\n", HEAD + "cut", HEAD + "a b c\n"]
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_mst_status(text)


@given(st.lists(st.sampled_from([HEAD, "A(rev:0) /dev/mst/a 05:00.0 m net-a 1\n"]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_mst_status("".join(pieces))
    except ValueError:
        return
    assert all(device.mst or device.pci or device.type for device in found.devices)
