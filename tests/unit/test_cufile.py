"""cufile.json is changed in single values, and every other byte of it stays."""

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from railwright.gds.cufile import Cufile, Path, Value

# In the manner of the file that comes with GDS: deep indents, comments, keys that are commented
# out, a comma after the last section, tabs, a section on one line.
STOCK = """{
    // NOTE : a process takes another file by CUFILE_ENV_PATH_JSON=<filepath>
            "logging": {
                            // where cufile.log goes
                            //"dir": "/home/<xxxx>",

                            // ERROR|WARN|INFO
                            "level": "ERROR"
            },
            "properties": {
                            // fall back to POSIX
                            "allow_compat_mode": true, // "allow_compat_mode": false
                            /* bounce buffers
                               in KiB */
                            "posix_pool_slab_size_kb" : [ 4, 1024, 16384 ],
                            "rdma_dev_addr_list": [ ],
                            "url": "http://host//path /* no comment */"
            },
            "fs": {
                            "generic": { "posix_unaligned_writes" : false },
                            "lustre": {
                                    // "posix_gds_min_kb" : 0
                            }
            },
\t\t\t"vendor": { "unknown": [ { "a": 1 }, null ] },
}
"""
COMPAT = ("properties", "allow_compat_mode")
PLAIN = '{\n    "properties": {\n        "io_batchsize": 128\n    }\n}\n'


def test_what_is_read_is_what_stands_there() -> None:
    file = Cufile(STOCK)
    assert file.value(COMPAT) is True
    assert file.value(("properties", "posix_pool_slab_size_kb")) == [4, 1024, 16384]
    assert file.value(("properties", "url")) == "http://host//path /* no comment */"
    assert file.value(("fs", "lustre")) == {}
    found = file.find(COMPAT)
    assert found is not None
    assert STOCK.splitlines()[found.line - 1].lstrip().startswith('"allow_compat_mode"')


@pytest.mark.parametrize(
    "path", [("logging", "dir"), ("fs", "weka", "x"), ("logging", "level", "x"), ("nothing",), ()]
)
def test_what_is_commented_out_or_missing_is_not_there(path: Path) -> None:
    assert Cufile(STOCK).find(path) is None
    if path:
        with pytest.raises(KeyError, match=re.escape(path[-1])):
            Cufile(STOCK).value(path)


def test_a_value_is_changed_in_its_place_alone() -> None:
    changed = Cufile(STOCK).set(COMPAT, False).text
    assert changed == STOCK.replace('"allow_compat_mode": true', '"allow_compat_mode": false')


def test_a_key_is_added_to_its_section_in_the_indentation_of_the_file() -> None:
    changed = Cufile(STOCK).set(("logging", "dir"), "/var/log").text
    old = '                            "level": "ERROR"\n'
    new = '                            "level": "ERROR",\n' + " " * 28 + '"dir": "/var/log"\n'
    assert changed == STOCK.replace(old, new)


def test_a_key_is_added_after_a_comment_that_ends_its_line() -> None:
    text = '{\n  "a": 1 // why\n  // more\n}\n'
    assert Cufile(text).set(("b",), 2).text == '{\n  "a": 1, // why\n  "b": 2\n  // more\n}\n'


def test_a_key_is_added_to_a_section_on_one_line_on_that_line() -> None:
    changed = Cufile(STOCK).set(("fs", "generic", "x"), 1).text
    old = '{ "posix_unaligned_writes" : false }'
    assert changed == STOCK.replace(old, '{ "posix_unaligned_writes" : false, "x": 1 }')


def test_a_key_is_added_to_a_section_of_comments_alone() -> None:
    changed = Cufile(STOCK).set(("fs", "lustre", "posix_gds_min_kb"), 4).text
    old = ' // "posix_gds_min_kb" : 0\n'
    assert changed == STOCK.replace(old, f'{old}{" " * 44}"posix_gds_min_kb": 4\n')


def test_missing_sections_are_made_on_the_way() -> None:
    path = ("fs", "nfs", "mount_table", "/mnt/a.b", "rdma_dev_addr_list")
    assert Cufile(PLAIN).set(path, ("10.0.0.1",)).text == (
        '{\n    "properties": {\n        "io_batchsize": 128\n    },\n'
        '    "fs": {\n        "nfs": {\n            "mount_table": {\n'
        '                "/mnt/a.b": {\n'
        '                    "rdma_dev_addr_list": ["10.0.0.1"]\n'
        "                }\n            }\n        }\n    }\n}\n"
    )
    assert Cufile("{}").set(("a", "b"), 1).text == '{\n    "a": {\n        "b": 1\n    }\n}'


def test_comments_in_a_list_stay_when_its_values_change() -> None:
    text = '{\n  "a": [\n    "x", // first\n    /* none */\n  ],\n  "b": 1\n}\n'
    changed = Cufile(text).set(("a",), ("y", "z"))
    assert changed.text == (
        '{\n  "a": [\n    // first\n    /* none */\n    "y", "z"\n  ],\n  "b": 1\n}\n'
    )
    assert changed.set(("a",), ("y", "z")).text == changed.text


def test_line_ends_of_windows_stay() -> None:
    text = PLAIN.replace("\n", "\r\n")
    changed = Cufile(text).set(("properties", "x"), True).set(("logging", "level"), "INFO").text
    assert changed.count("\r\n") == changed.count("\n")
    assert (
        changed.replace("\r\n", "\n")
        == Cufile(PLAIN).set(("properties", "x"), True).set(("logging", "level"), "INFO").text
    )


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ('{\n  "a": 1,\n  "b": 2\n}\n', ("a",), '{\n  "b": 2\n}\n'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', ("b",), '{\n  "a": 1\n}\n'),
        ('{\n  "a": 1,\n  "b": 2,\n}\n', ("b",), '{\n  "a": 1,\n}\n'),
        ('{ "a": 1, "b": 2 }', ("b",), '{ "a": 1 }'),
        ('{ "a": 1, "b": 2 }', ("a",), '{  "b": 2 }'),
        ('{\n  "a": 1, // why\n  "b": 2\n}\n', ("a",), '{\n   // why\n  "b": 2\n}\n'),
        ('{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}\n', ("a", "b"), '{\n  "a": {\n  }\n}\n'),
        ('{"a": 1 /* x */ , "b": 2}', ("a",), '{ /* x */  "b": 2}'),
        ('{"a": [1 // x\n ], "b": 2}', ("a",), '{/* x */ "b": 2}'),
        ('{"a": 1}', ("b",), '{"a": 1}'),
        ('{"a": 1}', ("a", "b"), '{"a": 1}'),
    ],
)
def test_a_removed_member_takes_nothing_with_it(text: str, path: Path, left: str) -> None:
    assert Cufile(text).remove(path).text == left


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("", "line 1, column 1", "an object"),
        ("[]", "line 1, column 1", "an object"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3", "',' or '}'"),
        ('{\n  "a" 1\n}', "line 2, column 7", "':'"),
        ('{\n  "a": tru\n}', "line 2, column 8", "a value"),
        ('{\n  "a": 01\n}', "line 2, column 8", "a value"),
        ('{"a": 1e999}', "line 1, column 7", "a value"),
        ('{"a": NaN}', "line 1, column 7", "a value"),
        ("{'a': 1}", "line 1, column 2", "a key in quotes"),
        ('{"a": "x\ny"}', "line 1, column 7", "a value"),
        ('{"a": 1,, "b": 2}', "line 1, column 9", "a key in quotes"),
        ('{"a": [1 2]}', "line 1, column 10", "',' or ']'"),
        ('{"a": 1} x', "line 1, column 10", "nothing after"),
        ('{"a": 1, /* open', "line 1, column 10", "a key in quotes"),
        ('{"a": 1,\n "a": 2}', "line 2, column 2", "the key 'a' only once"),
        ('# text\n{"a": 1}', "line 1, column 1", "an object"),
        ('{"a": 1', "line 1, column 8", "got the end"),
        ('{"a":' * 99, "line 1, column", "levels"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    text: str, where: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(where)) as caught:
        Cufile(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("properties",), "no section at properties"),
        (("logging", "level", "x"), "a section at logging.level.x"),
    ],
)
def test_sections_and_values_do_not_take_each_others_place(path: Path, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Cufile(STOCK).set(path, 1)


_BLANKS = st.sampled_from(["", " ", "\n", "\n    ", "\t", " // c: 1, }\n", ' /* " */ ', "\r\n"])
_KEYS = st.sampled_from(["a", "b", "allow_compat_mode", "/mnt/x.y", "//", 'quo"te', "\u00e4"])
_SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.text(max_size=5)
_VALUES: st.SearchStrategy[Value] = (
    st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.lists(st.text(max_size=4) | st.integers(0, 9), max_size=3).map(tuple)
)


@st.composite
def _texts(draw: st.DrawFn, depth: int = 3) -> str:
    """An object as a person may have written it: any blanks, comments, a comma at the end."""
    members = []
    for key in draw(st.lists(_KEYS, max_size=4, unique=True)):
        kind = draw(st.integers(0, 2))
        if kind == 0 and depth:
            value = draw(_texts(depth=depth - 1))
        elif kind == 1:
            items = [json.dumps(item) for item in draw(st.lists(_SCALARS, max_size=3))]
            value = "[" + ",".join(draw(_BLANKS) + item + draw(_BLANKS) for item in items) + "]"
        else:
            value = json.dumps(draw(_SCALARS), ensure_ascii=draw(st.booleans()))
        parts = (draw(_BLANKS), json.dumps(key), draw(_BLANKS), ":", draw(_BLANKS), value)
        members.append("".join([*parts, draw(_BLANKS)]))
    comma = draw(st.sampled_from(["", ","])) if members else ""
    return "{" + ",".join(members) + comma + draw(_BLANKS) + "}"


def _comments(text: str) -> list[str]:
    """What each comment says, in order; strings are passed over."""
    found = re.findall(r'"(?:[^"\\]|\\.)*"|//([^\n]*)|/\*(.*?)\*/', text, re.DOTALL)
    return sorted(said for pair in found if (said := "".join(pair).strip()))


def _plain(text: str) -> object:
    """The value of ``text`` by Python's own reader."""
    without = re.sub(
        r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or " ", text, flags=re.DOTALL
    )
    commas = r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])'
    return json.loads(re.sub(commas, lambda m: m[1] or "", without))


def _set(text: str, path: Path, value: Value) -> Cufile:
    """The file with the value; a path that goes through a value is none of the test's cases."""
    try:
        return Cufile(text).set(path, value)
    except ValueError:
        assume(False)
        raise


_PATHS = st.lists(_KEYS, min_size=1, max_size=4).map(tuple)


@given(_texts())
def test_every_text_is_read_as_what_it_means(text: str) -> None:
    file = Cufile(text)
    assert file.text == text
    assert file.root.value == _plain(text)


@given(_texts(), _PATHS, _VALUES)
def test_what_is_set_is_there_and_all_else_is_as_it_was(
    text: str, path: Path, value: Value
) -> None:
    changed = _set(text, path, value)
    written = list(value) if isinstance(value, tuple) else value
    assert changed.value(path) == written
    expected: dict[str, object] = dict(_plain(text))  # type: ignore[call-overload]
    within = expected
    for key in path[:-1]:
        within = within.setdefault(key, {})  # type: ignore[assignment]
    within[path[-1]] = written
    assert _plain(changed.text) == expected
    assert _comments(changed.text) == _comments(text)


@given(_texts(), _PATHS, _VALUES)
def test_what_is_set_twice_is_set_once(text: str, path: Path, value: Value) -> None:
    changed = _set(text, path, value)
    assert changed.set(path, value).text == changed.text
    assert Cufile(changed.text).set(path, value).text == changed.text


@given(_texts(), _KEYS, _VALUES)
def test_what_is_added_and_removed_leaves_the_values_and_comments(
    text: str, key: str, value: Value
) -> None:
    file = Cufile(text)
    assume(file.find((key,)) is None)
    left = file.set((key,), value).remove((key,))
    assert _plain(left.text) == _plain(text)
    assert _comments(left.text) == _comments(text)


def _paths_of(value: object, above: Path = ()) -> list[Path]:
    members = value.items() if isinstance(value, dict) else ()
    return [p for key, below in members for p in ((*above, key), *_paths_of(below, (*above, key)))]


@given(_texts(), st.data())
def test_what_is_removed_is_gone_and_all_else_is_as_it_was(text: str, data: st.DataObject) -> None:
    file = Cufile(text)
    paths = _paths_of(file.root.value)
    assume(paths)
    path = data.draw(st.sampled_from(paths))
    left = file.remove(path)
    expected: dict[str, object] = dict(_plain(text))  # type: ignore[call-overload]
    within = expected
    for key in path[:-1]:
        within = within[key]  # type: ignore[assignment]
    del within[path[-1]]
    assert _plain(left.text) == expected
    assert _comments(left.text) == _comments(text)
    assert left.remove(path).text == left.text


def _refusal(text: str) -> str | None:
    try:
        Cufile(text)
    except ValueError as error:
        return str(error)
    return None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    said = _refusal(text)
    assert said is None or re.match(r"line \d+, column \d+: expected ", said)
