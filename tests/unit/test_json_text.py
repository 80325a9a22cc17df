"""What is read as JSON, and what is refused in words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.json_text import as_object, as_objects, load_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_json_writes_is_read_back(value: object) -> None:
    assert load_json(json.dumps(value), "tool") == value


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": -Infinity}', "[" * 100_000, "9" * 5000])
def test_what_is_no_json_is_a_value_error_with_the_tool_in_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"^tool: expected JSON: .*, got '"):
        load_json(text, "tool")


@given(st.text())
def test_nothing_but_a_value_error_is_raised(text: str) -> None:
    try:
        found = load_json(text, "tool")
    except ValueError:
        return
    assert json.loads(text) == found


def test_the_members_of_objects_are_handed_on() -> None:
    assert load_json('{"a": 1, "a": 2}', "tool", pairs=lambda pairs: pairs) == [("a", 1), ("a", 2)]


def test_an_object_is_asked_for() -> None:
    assert as_object({"a": 1}, "tool") == {"a": 1}
    with pytest.raises(ValueError, match=r"^tool: expected an object, got list$"):
        as_object([], "tool")


def test_a_list_is_one_of_objects() -> None:
    assert as_objects([{"a": 1}, {}], "tool") == [{"a": 1}, {}]
    with pytest.raises(ValueError, match="tool: expected a list, got dict"):
        as_objects({}, "tool")
    with pytest.raises(ValueError, match="tool: expected an object, got int"):
        as_objects([{}, 1], "tool")
