"""RDMA ports and their interfaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.ibdev2netdev import PortDetails, PortNetdev, parse_ibdev2netdev

VERBOSE = (
    "0000:3b:00.0 mlx5_0 (MT4121 - 7359059    ) CX556A - ConnectX-5 QSFP28 -Aux[1] "
    "fw 16.35.4506 port 1 (ACTIVE) ==> ens2f0np0 (Up)"
)


@pytest.mark.parametrize(
    ("line", "netdev", "up"),
    [
        ("mlx5_0 port 1 ==> ens1 (Up)", "ens1", True),
        ("mlx5_0 port 1 ==> ens1 (Down)", "ens1", False),
        ("mlx5_0 port 1 ==> ens1 (NA)", "ens1", None),
        # The script takes the name from ``ip link`` with the blank before it.
        ("mlx5_0 port 1 ==>  ib0 ()", "ib0", None),
        ("mlx5_0 port 1 <===> eth0", "eth0", None),
    ],
)
def test_plain(line: str, netdev: str, up: bool | None) -> None:
    assert parse_ibdev2netdev(line).ports == (
        PortNetdev(device="mlx5_0", port=1, netdev=netdev, up=up),
    )


def details(line: str) -> PortDetails:
    (port,) = parse_ibdev2netdev(line).ports
    assert isinstance(port, PortDetails)
    return port


def test_verbose() -> None:
    port = details(VERBOSE)
    assert (port.pci, port.device, port.port) == ("0000:3b:00.0", "mlx5_0", 1)
    assert (port.pci_id, port.part, port.fw) == (4121, "7359059", "16.35.4506")
    assert port.description == "CX556A - ConnectX-5 QSFP28 -Aux[1]"
    assert port.vendor_mlx


def test_a_virtual_function_has_neither_vpd_nor_all_the_rest() -> None:
    port = details(" mlx5_2 (NA - NA)  fw NA port 1 (DOWN  ) ==> ens1v0 (Down)")
    assert (port.device, port.pci, port.pci_id, port.part) == ("mlx5_2", None, None, None)
    assert (port.description, port.fw, port.state) == (None, None, "DOWN")
    assert not port.vendor_mlx


def test_another_vendor_is_labelled_mt_too() -> None:
    assert not details(VERBOSE.replace("MT4121", "MT5847")).vendor_mlx


def test_a_bluefield_is_of_mellanox() -> None:
    assert details(VERBOSE.replace("MT4121", "MT41692")).vendor_mlx


def test_nothing_is_no_port_or_no_driver() -> None:
    assert parse_ibdev2netdev("").error is None
    assert parse_ibdev2netdev("", rc=255).error == "driver_stopped"


@pytest.mark.parametrize(
    "text",
    [
        "bash: ibdev2netdev: command not found",
        "mlx5_0 port 1 ==>",
        "two words port 1 ==> ens1 (Up)",
        "mlx5_0 port 1 (ACTIVE) ==> ens1 (Up)",
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_ibdev2netdev(text)


@given(st.lists(st.sampled_from([*VERBOSE.split(" "), "(", ")", " ", "\n"]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_ibdev2netdev(" ".join(pieces))
    except ValueError:
        return
    assert all(port.device and port.netdev for port in found.ports)
