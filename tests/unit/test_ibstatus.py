"""ibstatus: what sysfs has of a port, and what it has not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.ibstatus import parse_ibstatus

HEAD = "Infiniband device 'mlx5_0' port 1 status:\n"


@pytest.mark.parametrize(
    ("text", "rate", "width", "gen"),
    [
        ("400 Gb/sec (4X NDR)", 400, "4X", "NDR"),
        ("10 Gb/sec (4X)", 10, "4X", None),
        ("2.5 Gb/sec (1X SDR)", 2.5, "1X", "SDR"),
        ("40 Gb/sec (4X FDR10)", 40, "4X", "FDR10"),
        ("unknown", None, None, None),
    ],
)
def test_rate(text: str, rate: float | None, width: str | None, gen: str | None) -> None:
    port = parse_ibstatus(f"{HEAD}\trate:\t\t {text}\n").ports["mlx5_0/1"]
    assert (port.rate_gbps, port.width, port.gen) == (rate, width, gen)


def test_lids_are_hexadecimal_and_one_stands_for_none() -> None:
    port = parse_ibstatus(HEAD + "\tbase lid:\t 0xffff\n\tsm lid:\t\t 0x10\n").ports["mlx5_0/1"]
    assert (port.lid, port.sm_lid) == (None, 16)


def test_states_lose_their_number() -> None:
    port = parse_ibstatus(HEAD + "\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n")
    assert (port.ports["mlx5_0/1"].state, port.ports["mlx5_0/1"].phys) == ("ACTIVE", "LinkUp")


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("No devices", "no_devices"),
        ("device '*': sys files not found (/sys/class/infiniband/*/ports)", "no_devices"),
        ("device 'x': sys files not found (/sys/class/infiniband/x/ports)", "no_such_device"),
        ("else", "failed"),
    ],
)
def test_giving_up_is_told(said: str, error: str) -> None:
    found = parse_ibstatus(f"Fatal error:  {said}\n")
    assert (found.error, found.message, found.ports) == (error, said, {})


@pytest.mark.parametrize(
    "text",
    ["", "ibstatus: not found", HEAD + "\trate: fast\n", HEAD + "\tbase lid: x\n", HEAD + "cut"],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_ibstatus(text)


@given(st.lists(st.sampled_from([HEAD, "\tstate:\t 4: ACTIVE\n", "Fatal error:"]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_ibstatus("".join(pieces))
    except ValueError:
        return
    assert found.ports or found.error
