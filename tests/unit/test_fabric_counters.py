"""Counters of a node's ports: what is read, and how they grew."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.counters import Counters, growth, parse_counters, read_counters, section
from facts.probe import Focus, script
from facts.qos import read_port_qos
from railwright.fabric.ends import SECTIONS
from railwright.fabric.meaning import Kind, fails, meaning_of
from railwright.snapshot import Section, parse_probe
from tests.unit.fabric_host import MARKER, counters, snapshot, windows

VALUES = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2**64 - 1))


def test_counters_of_both_kinds_are_read() -> None:
    found = parse_counters(counters({0: {"tx_prio3_bytes": 5}}), MARKER)
    assert found.uptime_s == 100.0
    assert found.ports["rail0"].values["tx_prio3_bytes"] == 1005
    assert found.rdma["mlx5_0/1"].values["np_cnp_sent"] == 7


def test_the_refresh_time_of_hw_counters_is_no_counter() -> None:
    assert "lifespan" not in parse_counters(counters({}), MARKER).rdma["mlx5_0/1"].values


def test_a_counter_without_a_number_is_not_zero() -> None:
    text = counters({}) + "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors:N/A (no)\n"
    assert "port_rcv_errors" not in parse_counters(text, MARKER).rdma["mlx5_0/1"].values


@pytest.mark.parametrize(
    ("said", "rc", "error"),
    [
        ("no stats available", 94, "no_stats: no stats available"),
        ("sh: 9: ethtool: not found", 127, "not_installed: sh: 9: ethtool: not found"),
        ("NIC statistics:\n     rx_bytes: 5\nrubbish", 0, "rubbish"),
    ],
)
def test_one_port_that_tells_nothing_says_why_and_the_others_are_read(
    said: str, rc: int, error: str
) -> None:
    text = counters({})
    first, second = f"\n{MARKER} port rail0 statistics\n", f"\n{MARKER} port rail1 statistics\n"
    head, _, rest = text.partition(first)
    _, _, tail = rest.partition(second)
    found = parse_counters(f"{head}{first}{said}\n\n{MARKER} exit {rc}\n{second}{tail}", MARKER)
    assert found.ports["rail0"].values == {}
    assert error in (found.ports["rail0"].error or "")
    assert found.ports["rail1"].error is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "break off"),
        (counters({}).partition(f"\n{MARKER} rdma")[0], "break off"),
        (counters({}).replace("uptime", "downtime"), "expected the uptime"),
        (
            counters({}).replace(f"{MARKER} exit 0", ""),
            "what is said of rail0 statistics breaks off",
        ),
        (counters({}) + "rubbish\n", "expected a counter of an RDMA port, got 'rubbish'"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_counters(text, MARKER)


@given(st.text())
def test_any_text_is_counters_or_a_value_error(text: str) -> None:
    try:
        found = parse_counters(text, MARKER)
    except ValueError:
        return
    assert isinstance(found, Counters)


def test_a_missing_counter_is_not_one_that_stood_still() -> None:
    found = growth({"a": 1, "b": 1}, {"a": 1, "c": 1})
    assert found.of("a") == 0
    assert found.of("b") is None
    assert found.missing == {"b", "c"}


def test_a_counter_that_wrapped_has_grown() -> None:
    found = growth({"a": 2**64 - 10}, {"a": 5})
    assert (found.of("a"), found.wrapped, found.reset) == (15, {"a"}, frozenset())


def test_a_counter_that_was_reset_has_grown_by_nobody_knows_what() -> None:
    found = growth({"a": 10**12}, {"a": 5})
    assert (found.of("a"), found.wrapped, found.reset) == (None, frozenset(), {"a"})


@given(VALUES, VALUES)
def test_every_counter_is_known_reset_or_missing(
    before: dict[str, int], after: dict[str, int]
) -> None:
    found = growth(before, after)
    assert found.values.keys() | found.reset | found.missing == before.keys() | after.keys()
    assert not found.values.keys() & (found.reset | found.missing)
    for name, value in found.values.items():
        assert (before[name] + value) % 2**64 == after[name]
        assert value >= 0


@pytest.mark.parametrize(
    ("counter", "kind"),
    [
        ("rx_prio3_bytes", Kind.TRAFFIC),
        ("tx_prio3_pause_duration", Kind.PAUSE),
        ("rx_prio3_discards", Kind.DISCARDS),
        ("np_ecn_marked_roce_packets", Kind.CONGESTION),
        ("local_ack_timeout_err", Kind.RETRANSMISSION),
        ("link_downed", Kind.LINK),
        ("out_of_seq_request", Kind.RETRANSMISSION),
    ],
)
def test_a_counter_has_its_kind(counter: str, kind: Kind) -> None:
    meaning = meaning_of(counter)
    assert meaning is not None
    assert meaning.kind is kind


def test_what_a_counter_says_names_its_priority() -> None:
    meaning = meaning_of("rx_prio5_pause")
    assert meaning is not None
    assert "priority 5" in meaning.says
    assert meaning_of("rx_vport_unicast_bytes") is None


def test_a_lossy_priority_may_drop_and_the_lossless_one_may_not() -> None:
    assert fails("rx_prio3_discards", 3)
    assert not fails("rx_prio0_discards", 3)
    assert fails("rx_prio0_discards", None)
    assert fails("rx_discards_phy", 3)
    assert not fails("np_cnp_sent", 3)


def test_a_window_has_rates() -> None:
    found = windows("gpu001", {0: {"tx_prio3_bytes": 12_500_000_000}})
    assert found[0].bits_per_second("tx") == 10**10
    assert found[0].bits_per_second("rx") == 0
    assert found[1].moved() == {}


def test_a_section_that_ran_out_of_time_is_no_answer() -> None:
    late = Section(stdout=counters({}), rc=None, ended="deadline")
    with pytest.raises(ValueError, match="ended by deadline"):
        read_counters(snapshot(counters_before=late), "counters_before")


def test_the_sections_run_on_this_machine() -> None:
    sections = (*SECTIONS, section("one"), section("two"))
    done = subprocess.run(
        ["sh", "-c", script(sections, Focus(rails=True))],
        capture_output=True,
        text=True,
        check=True,
    )
    found = parse_probe(done.stdout, host="here")
    one, two = read_counters(found, "one"), read_counters(found, "two")
    assert 0 < one.uptime_s <= two.uptime_s
    assert one.ports.keys() == read_port_qos(found).keys()
