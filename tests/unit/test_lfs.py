"""What is made of ``lfs df``. test_parse.py reads the corpus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.lfs import LustreDf, Target, parse_df
from tests.unit.lustre_host import DF


def test_targets_are_told_by_their_index() -> None:
    assert parse_df(DF) == LustreDf(
        fsname="scr",
        mount="/mnt/scr",
        mdts={"0": Target(use_pct=1)},
        osts={"0": Target(use_pct=66)},
        summary_use_pct=66,
    )


def test_targets_that_do_not_answer_are_told_with_their_reason() -> None:
    text = DF + "scr-OST00ff_UUID    : Resource temporarily unavailable\n"
    assert parse_df(text).silent == {"OST00ff": "Resource temporarily unavailable"}
    assert parse_df(DF).silent == {}


@pytest.mark.parametrize(
    "text", ["", "UUID  1K-blocks  Used  Available Use% Mounted on\n", "lfs df: no such mount\n"]
)
def test_without_a_target_nothing_is_known(text: str) -> None:
    with pytest.raises(ValueError, match="lfs df"):
        parse_df(text)


@given(st.lists(st.sampled_from(DF.splitlines()) | st.text()))
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    try:
        found = parse_df("\n".join(lines))
    except ValueError:
        return
    assert found.mdts or found.osts
