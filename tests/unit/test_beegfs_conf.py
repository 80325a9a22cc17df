"""The editor of ``key = value`` files that others own."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.beegfs_conf import (
    Conf,
    build_args,
    mount_lines,
    with_build_args,
    without_lines,
)

KEYS = ("connUseRDMA", "sysMgmtdHost", "quotaEnabled", "logLevel")
_blank = st.sampled_from(("", " ", "\t", "   "))
_value = st.from_regex(r"([!-<>-~]+( [!-~]+)*)?", fullmatch=True)
_line = st.one_of(
    st.builds(
        lambda a, key, b, c, value, d: f"{a}{key}{b}={c}{value}{d}",
        *(_blank, st.sampled_from(KEYS), _blank, _blank, _value, _blank),
    ),
    st.from_regex(r"[ \t]*#[ -~]*", fullmatch=True),
    st.sampled_from(("", "   ", "loner", "two words")),
)
_text = st.builds(
    lambda lines, end: "\n".join(lines) + end,
    st.lists(_line, max_size=12),
    st.sampled_from(("", "\n")),
)


def _foreign(text: str, key: str) -> list[str]:
    """Lines that have nothing to do with ``key``, as anybody would read them."""
    return [line for line in text.split("\n") if line and not re.match(rf"\s*{key}\s*(=|$)", line)]


@given(_text, st.sampled_from(KEYS), _value)
def test_a_key_that_is_set_is_found_and_nothing_else_changes(
    text: str, key: str, value: str
) -> None:
    after = Conf(text).set(key, value)
    found = after.find(key)
    assert found is not None
    assert (found.value, found.times) == (value, 1)
    assert _foreign(after.text, key) == _foreign(text, key)
    assert after.text.endswith("\n")
    assert after.set(key, value) == after
    for other in KEYS:
        if other != key:
            before, now = Conf(text).find(other), after.find(other)
            assert (before and before.value) == (now and now.value)


@given(_text, st.sampled_from(KEYS))
def test_a_key_that_is_removed_is_gone_and_nothing_else(text: str, key: str) -> None:
    after = Conf(text).remove(key)
    assert after.find(key) is None
    assert _foreign(after.text, key) == _foreign(text, key)


@given(_text, st.sampled_from(KEYS), _value)
def test_what_is_set_and_removed_again_leaves_the_rest(text: str, key: str, value: str) -> None:
    before = Conf(text).remove(key)
    assert _foreign(before.set(key, value).remove(key).text, key) == _foreign(text, key)


def test_the_last_line_of_a_key_counts_and_is_the_one_that_stays() -> None:
    conf = Conf("a = 1\n# note\na = 2\nb = 3\n")
    found = conf.find("a")
    assert found is not None
    assert (found.value, found.line, found.times) == ("2", 3, 2)
    assert conf.set("a", "4").text == "# note\na = 4\nb = 3\n"


def test_alignment_is_kept_and_an_empty_value_is_set_off_like_the_others() -> None:
    conf = Conf("sysMgmtdHost                  =\nconnMgmtdPort                 = 8008\nx=\n")
    assert conf.set("sysMgmtdHost", "mgmt01").text.startswith(
        "sysMgmtdHost                  = mgmt01\n"
    )
    assert "connMgmtdPort                 = 9008\n" in conf.set("connMgmtdPort", "9008").text
    assert conf.set("x", "1").text.endswith("\nx=1\n")
    assert conf.set("connMgmtdPort", "").text.split("\n")[1] == "connMgmtdPort                 ="


def test_a_new_key_follows_the_settings_and_not_the_documentation() -> None:
    conf = Conf("# top\na = 1\n\n# [b]\n# what b does\n")
    assert conf.set("b", "2").text == "# top\na = 1\nb = 2\n\n# [b]\n# what b does\n"
    assert Conf("").set("b", "2").text == "b = 2\n"
    assert Conf("# only\n", separator="=").set("B", "/x").text == "# only\nB=/x\n"


def test_a_key_without_a_value_is_empty_and_prose_is_no_key() -> None:
    bare = Conf("connAuthFile\nsome prose here\n")
    found = bare.find("connAuthFile")
    assert found is not None
    assert found.value == ""
    assert bare.find("some") is None
    assert bare.set("connAuthFile", "/x").text == "connAuthFile = /x\nsome prose here\n"


def test_assignments_of_make_are_keys_too() -> None:
    conf = Conf("NVFS_INCLUDE_PATH ?= /old\n", separator="=")
    assert conf.set("NVFS_INCLUDE_PATH", "/new").text == "NVFS_INCLUDE_PATH ?= /new\n"


def test_a_line_that_does_not_end_counts_for_nothing_to_the_kernel() -> None:
    text = "a = 1\nb = 2"
    assert Conf(text).find("b") is not None
    kernel = Conf(text, open_end_is_lost=True)
    assert kernel.find("b") is None
    assert kernel.set("b", "2").text == "a = 1\nb = 2\n"


@pytest.mark.parametrize("value", [" a", "a ", "a\nb = c", "a\r"])
def test_a_value_that_does_not_fit_in_a_line_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="expected one line"):
        Conf("").set("a", value)


def test_arguments_of_a_build_keep_their_places() -> None:
    before = "-j8 NVFS_INCLUDE_PATH=/old DEBUG=1"
    assert build_args(before) == {"NVFS_INCLUDE_PATH": "/old", "DEBUG": "1"}
    wanted = {"NVFS_INCLUDE_PATH": "/new", "OFED_INCLUDE_PATH": "/ofed"}
    after = with_build_args(before, wanted)
    assert after == "-j8 NVFS_INCLUDE_PATH=/new DEBUG=1 OFED_INCLUDE_PATH=/ofed"
    assert with_build_args(after, wanted) == after
    assert with_build_args(after, {"NVFS_INCLUDE_PATH": None}) == (
        "-j8 DEBUG=1 OFED_INCLUDE_PATH=/ofed"
    )
    assert with_build_args("A=1 A=2 -j", {"A": "3"}) == "A=3 -j"


def test_lines_of_beegfs_mounts_conf() -> None:
    text = "# note\n/mnt/a /etc/beegfs/a.conf\n\n/mnt/b /etc/beegfs/b.conf beegfs ro\nhalf\n"
    assert [(m.line, m.where, m.config) for m in mount_lines(text)] == [
        (2, "/mnt/a", "/etc/beegfs/a.conf"),
        (4, "/mnt/b", "/etc/beegfs/b.conf"),
    ]
    assert without_lines(text, {2}) == "# note\n\n/mnt/b /etc/beegfs/b.conf beegfs ro\nhalf\n"
