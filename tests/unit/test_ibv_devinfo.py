"""ibv_devinfo, its list, and its complaints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.ibv_devinfo import VerbsPort, parse_ibv_devinfo

HEAD = "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.2048\n"
PORT = "\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"


def port(*lines: str) -> VerbsPort:
    text = HEAD + PORT + "".join(f"\t\t\t{line}\n" for line in lines)
    return parse_ibv_devinfo(text).devices["mlx5_0"].ports[1]


def test_speed_is_that_of_all_lanes() -> None:
    found = port("active_width:\t\t4X (2)", "active_speed:\t\t100.0 Gbps (128)")
    assert (found.lane_gbps, found.width, found.speed_gbps) == (100.0, 4, 400.0)


def test_what_is_invalid_is_not_known() -> None:
    found = port(
        "max_mtu:\t\tinvalid MTU (0)",
        "active_width:\t\tinvalid widthX (0)",
        "active_speed:\t\tinvalid speed (0)",
        "phys_state:\t\tinvalid physical state (0)",
    )
    assert (found.max_mtu, found.width, found.speed_gbps, found.phys) == (None, None, None, None)
    assert (found.state, found.active_mtu) == ("ACTIVE", None)


@pytest.mark.parametrize(
    ("line", "gid"),
    [
        ("GID[  3]:\t\t::ffff:10.77.1.5, RoCE v2", ("::ffff:10.77.1.5", "v2")),
        ("GID[  3]:\t\tfe80::1, IB/RoCE v1", ("fe80::1", "v1")),
        # Older rdma-core tells no version, and there is none for InfiniBand.
        ("GID[  3]:\t\tfe80:0000:0000:0001", ("fe80:0000:0000:0001",)),
    ],
)
def test_gids(line: str, gid: tuple[str, ...]) -> None:
    assert port(line).gids == {3: gid}


def test_two_ports_of_one_device() -> None:
    found = parse_ibv_devinfo(HEAD + PORT + PORT.replace("\t1", "\t2").replace("ACTIVE", "DOWN"))
    assert [entry.state for entry in found.devices["mlx5_0"].ports.values()] == ["ACTIVE", "DOWN"]


def test_verbose_values_of_the_device_are_not_those_of_the_port() -> None:
    found = parse_ibv_devinfo(
        HEAD + "\tdevice_cap_flags:\t0x1\n\t\t\t\t\tXRC\n\n\tcq moderation caps:\n"
        "\t\tmax_cq_count:\t65535\n\n" + PORT
    )
    assert found.devices["mlx5_0"].ports == {1: VerbsPort(state="ACTIVE")}


def test_the_list_has_names() -> None:
    found = parse_ibv_devinfo("2 HCAs found:\n\tmlx5_0\n\tmlx5_1\n\n")
    assert list(found.devices) == ["mlx5_0", "mlx5_1"]
    assert parse_ibv_devinfo("0 HCAs found:\n\n").devices == {}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("No IB devices found", "no_devices"),
        ("Failed to get IB devices list: Function not implemented", "no_devices"),
        ("IB device 'mlx5_9' wasn't found", "no_such_device"),
        ("Failed to open device", "open_failed"),
        ("Failed to query port 1 props", "query_failed"),
    ],
)
def test_complaints(said: str, error: str) -> None:
    found = parse_ibv_devinfo(f"libibverbs: Warning: no userspace driver\n{said}\n")
    assert (found.error, found.message, found.devices) == (error, said, {})


def test_a_device_that_does_not_open_leaves_the_others() -> None:
    found = parse_ibv_devinfo("Failed to open device\n" + HEAD + PORT)
    assert (found.error, list(found.devices)) == ("open_failed", ["mlx5_0"])


@pytest.mark.parametrize(
    "text", ["", "bash: ibv_devinfo: command not found", HEAD + "\t\tport:\t1\n"]
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_ibv_devinfo(text)


PIECES = [HEAD, PORT, "\t\t\tGID[  3]:\t\tfe80::1\n", "2 HCAs found:\n", "No IB devices found\n",
          "\t\t\tport_lid:\t\t65535\n"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_ibv_devinfo("".join(pieces))
    except ValueError:
        return
    ports = [port for device in found.devices.values() for port in device.ports.values()]
    assert all(port.lid != 65535 for port in ports)
