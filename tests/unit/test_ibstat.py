"""ibstat in its forms, and where it gives up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.ibstat import parse_ibstat

PORT = """\
State: Active
Physical state: LinkUp
Rate: 400
Base lid: 37
LMC: 0
SM lid: 1
Capability mask: 0xa651e848
Port GUID: 0x00aabbcc00112200
Link layer: InfiniBand
"""
HEAD = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.2048\n"


def port(**changed: str) -> str:
    lines = dict(line.split(": ") for line in PORT.splitlines()) | {
        key.replace("_", " "): value for key, value in changed.items()
    }
    return "\tPort 1:\n" + "".join(f"\t\t{key}: {value}\n" for key, value in lines.items())


def test_an_active_port_is_usable() -> None:
    found = parse_ibstat(HEAD + port()).adapters["mlx5_0"]
    assert (found.kind, found.type, found.firmware) == ("CA", "MT4129", "28.39.2048")
    assert (found.ports[1].rate, found.ports[1].lid, found.ports[1].usable) == (400, 37, True)


@pytest.mark.parametrize("state", ["Down", "Initializing", "Armed", "???"])
def test_no_other_state_is_usable(state: str) -> None:
    assert not parse_ibstat(HEAD + port(State=state)).adapters["mlx5_0"].ports[1].usable


def test_the_lid_that_stands_for_none() -> None:
    assert parse_ibstat(HEAD + port(Base_lid="65535")).adapters["mlx5_0"].ports[1].lid is None


def test_one_lane_at_single_data_rate() -> None:
    assert parse_ibstat(HEAD + port(Rate="2.5")).adapters["mlx5_0"].ports[1].rate == 2.5


def test_short_form_has_no_ports() -> None:
    assert parse_ibstat(HEAD).adapters["mlx5_0"].ports == {}


def test_one_port_of_one_adapter_is_not_indented() -> None:
    found = parse_ibstat("CA: 'mlx5_0'\nPort 2:\n" + PORT)
    assert found.adapters["mlx5_0"].ports[2].link == "InfiniBand"


def test_an_iwarp_adapter_has_another_kind() -> None:
    found = parse_ibstat("iWARP RNIC 'cxgb4_0'\n\tiWARP RNIC type: T62100\n")
    assert (found.adapters["cxgb4_0"].kind, found.adapters["cxgb4_0"].type) == (
        "iWARP RNIC",
        "T62100",
    )


def test_nothing_is_no_device() -> None:
    assert parse_ibstat("\n").error == "no_devices"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("main: can't list IB device names: No such file or directory", "no_devices"),
        ("main: 'mlx5_9' IB device can't be found", "no_such_device"),
        ("main: stat of IB device 'mlx5_0' failed: Invalid argument", "failed"),
    ],
)
def test_giving_up_is_told(said: str, error: str) -> None:
    found = parse_ibstat(f"ibwarn: [7] umad_init: x\nibpanic: [7] {said}\n")
    assert (found.error, found.adapters) == (error, {})
    assert found.message is not None
    assert found.message in said


@pytest.mark.parametrize(
    "text",
    [
        "bash: ibstat: command not found",
        HEAD + "\tPort 1:\n\t\tState: Active\n",
        HEAD + port(Rate="fast"),
        HEAD + port(LMC="x"),
        HEAD + "cut",
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_ibstat(text)


@given(
    st.lists(st.sampled_from([HEAD, port(), "\t\tRate: 9\n", "ibpanic: [1] a: b\n"]) | st.text())
)
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_ibstat("".join(pieces))
    except ValueError:
        return
    assert found.adapters or found.error
