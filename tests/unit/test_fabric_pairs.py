"""Who meets whom in a test of the fabric."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.fabric.pairs import rounds


@given(st.integers(0, 24))
def test_each_pair_meets_once_and_no_node_is_in_two_pairs_at_once(count: int) -> None:
    nodes = [f"gpu{number:03}" for number in range(count)]
    found = rounds(nodes)
    met = [frozenset(pair) for turn in found for pair in turn]
    assert sorted(met, key=sorted) == sorted(map(frozenset, combinations(nodes, 2)), key=sorted)
    for turn in found:
        busy = [name for pair in turn for name in pair]
        assert len(busy) == len(set(busy)) == count - count % 2


@pytest.mark.parametrize(("nodes", "turns"), [(0, 0), (1, 0), (2, 1), (3, 3), (8, 7), (9, 9)])
def test_rounds_are_as_few_as_can_be(nodes: int, turns: int) -> None:
    found = rounds([str(number) for number in range(nodes)])
    assert len(found) == turns


def test_the_first_round_tests_every_node() -> None:
    assert rounds(["a", "b", "c", "d"])[0] == (("a", "d"), ("b", "c"))


def test_each_node_sends_in_some_of_its_pairs_and_receives_in_others() -> None:
    nodes = [str(number) for number in range(8)]
    senders = [first for turn in rounds(nodes) for first, _ in turn]
    for name in nodes:
        assert 2 <= senders.count(name) <= 5, name


def test_a_node_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="each node once"):
        rounds(["a", "b", "a"])
