"""What is said of each port, as it is told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.answers import parse_answers


def test_each_answer_is_told_from_the_next() -> None:
    text = "\nm-0 port rail0 pfc\n{}\n\nm-0 exit 0\n\nm-0 port rail1 pfc\nno\nway\n\nm-0 exit 1\n"
    first, second = parse_answers(text, "m-0")
    assert (first.port, first.what, first.text.strip(), first.rc) == ("rail0", "pfc", "{}", 0)
    assert (second.port, second.text, second.rc) == ("rail1", "no\nway\n", 1)


def test_no_port_is_no_answer() -> None:
    assert parse_answers("", "m-0") == []


@pytest.mark.parametrize("text", ["m-0 port rail0 pfc\n{", "m-0 port rail0 pfc\n{}\nm-0 exit \n"])
def test_an_answer_that_breaks_off_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="what is said of rail0 pfc breaks off"):
        parse_answers(text, "m-0")


@given(st.text(alphabet="m-0 portexi\n1{"), st.integers(0, 255))
def test_whatever_a_tool_says_it_is_its_answer(said: str, rc: int) -> None:
    text = f"\nn-1 port rail0 ets\n{said}\nn-1 exit {rc}\n\nn-1 port rail1 ets\n\nn-1 exit 0\n"
    first, second = parse_answers(text, "n-1")
    assert (first.text, first.rc) == (said, rc)
    assert (second.port, second.text) == ("rail1", "")
