"""Links of an InfiniBand fabric as iblinkinfo lists them, and what is wrong with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.iblinkinfo import FabricLink, LinkEnd, parse_iblinkinfo
from railwright.fabric.links import Cable, cables_of, link_problems

# Lines of iblinkinfo 44.0 on a fabric of ibsim; the last two are of the same form by hand.
UP = """\
0x0000000000100069 "                 gpu053 mlx5_0"     65    1[  ] ==( 4X        53.125 Gbps \
Active/  LinkUp)==>  0x0000000000200003      6    5[  ] "leaf3" (Could be 12X )
0x0000000000200003 "                         leaf3"      6    5[  ] ==( 4X        53.125 Gbps \
Active/  LinkUp)==>  0x0000000000100069     65    1[  ] "gpu053 mlx5_0" (Could be 12X )
"""
SLOW = """\
0x0000000000100049 "                 gpu037 mlx5_0"     49    1[  ] ==( 4X       14.0625 Gbps \
Active/  LinkUp)==>  0x0000000000200002      4    5[  ] "leaf2" (Could be 12X Could be 53.125 Gbps)
"""
DOWN = """\
0x0000000000200003 "                         leaf3"      6    5[  ] ==(                Down/ \
Polling)==>             [  ] "" ( )
"""
INIT = """\
0x0000000000100071 "                 gpu057 mlx5_0"      0    1[  ] ==( 4X       106.25 Gbps   \
Init/  LinkUp)==>  0x0000000000200003      6    9[ 12] "leaf3" ( )
"""


def test_a_link_is_read_from_both_ends() -> None:
    one, other = parse_iblinkinfo(UP)
    assert one == FabricLink(
        near=LinkEnd(guid="0x0000000000100069", name="gpu053 mlx5_0", lid=65, port=1),
        far=LinkEnd(guid="0x0000000000200003", name="leaf3", lid=6, port=5),
        state="Active",
        physical="LinkUp",
        lanes=4,
        lane_gbps=53.125,
        could_be="Could be 12X",
    )
    assert (other.near, other.far) == (one.far, one.near)
    assert one.rate_gbps == 200
    assert cables_of((one, other)) == {Cable(one="gpu053 mlx5_0/1", other="leaf3/5")}


@pytest.mark.parametrize(
    ("text", "state", "rate"),
    [(SLOW, "Active", 56), (DOWN, "Down", None), (INIT, "Init", 400)],
)
def test_states_and_rates(text: str, state: str, rate: float | None) -> None:
    (link,) = parse_iblinkinfo(text)
    assert (link.state, link.rate_gbps) == (state, rate)
    assert (link.far is None) == (state == "Down")


def test_a_healthy_link_and_a_port_without_a_cable_are_no_problem() -> None:
    links = parse_iblinkinfo(UP + DOWN.replace(" 5[", " 6["))
    assert link_problems(links, 200, cables_of(links)) == ()


def test_a_link_that_was_there_is_missed() -> None:
    before = cables_of(parse_iblinkinfo(UP))
    (problem,) = link_problems(parse_iblinkinfo(DOWN), 200, before)
    assert problem.kind == "down"
    assert str(problem) == (
        "gpu053 mlx5_0/1 - leaf3/5: gpu053 mlx5_0/1 does not answer, leaf3/5 is Down/Polling"
    )


def test_a_cable_in_another_port_is_named_with_it() -> None:
    planned = {Cable(one="gpu053 mlx5_0/1", other="leaf3/7")}
    (problem,) = link_problems(parse_iblinkinfo(UP), 200, planned)
    assert "gpu053 mlx5_0/1 is linked to leaf3/5" in problem.detail


def test_a_slow_link_and_one_that_is_not_configured_are_named() -> None:
    slow, waiting = link_problems(parse_iblinkinfo(SLOW + INIT), 200)
    assert (slow.kind, slow.detail) == ("slow", "56 of 200 Gb/s")
    assert (waiting.kind, str(waiting.cable)) == ("not_active", "gpu057 mlx5_0/1 - leaf3/9")


def test_a_faster_link_is_no_problem() -> None:
    assert link_problems(parse_iblinkinfo(INIT.replace("  Init", "Active")), 200) == ()


@pytest.mark.parametrize("text", ["nonsense", UP.replace("==(", "=("), "Switch: 0x1 leaf3:"])
def test_another_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected a link of iblinkinfo -l"):
        parse_iblinkinfo(text)


@given(st.text(alphabet='0x1 "a[]=()>4XGbps./\n', max_size=120))
def test_whatever_is_printed_is_links_or_a_value_error(text: str) -> None:
    try:
        found = parse_iblinkinfo(text)
    except ValueError:
        return
    assert len(found) <= len(text.splitlines())
