"""What is made of ``mlnx_qos -i PORT``. The recorded corpus is read in test_parse.py."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.mlnx_qos import Refusal, Report, parse_mlnx_qos

CORPUS = Path(__file__).parents[1] / "corpus" / "mlnx-qos"
LINES = sorted({line for file in CORPUS.glob("*.txt") for line in file.read_text().splitlines()})

DSCP_TRUST = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:63,62,61,60,58,57,56,55,
\tprio:0 dscp:54,53,52,51,50,49,47,46,
\tprio:0 dscp:45,
\tprio:3 dscp:26,
\tprio:5 dscp:59,
\tprio:6 dscp:48,
default priority:
\tprio:2
Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,total_size=4151808
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   0   0   1   0   0   \n\
\tbuffer      0   0   0   1   0   0   0   0   \n\
tc: 0 ratelimit: unlimited, tsa: unknown
\t priority:  1
\t priority:  0
tc: 3 ratelimit: 0.5 Gbps, tsa: ets, bw: 100%
\t priority:  3
tc: 4 ratelimit: unlimited, tsa: vendor
"""


def report(text: str) -> Report:
    found = parse_mlnx_qos(text)
    assert isinstance(found, Report)
    return found


def test_a_list_of_dscps_goes_on_in_lines_of_its_own() -> None:
    found = report(DSCP_TRUST)
    assert found.dscp2prio == {
        **dict.fromkeys((63, 62, 61, 60, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 47, 46, 45), 0),
        26: 3,
        59: 5,
        48: 6,
    }
    assert found.default_prio == (2,)


def test_buffers_and_the_older_label_of_their_total() -> None:
    found = report(DSCP_TRUST)
    assert found.buffers == (20016, 156096, 0, 0, 0, 0, 0, 0)
    assert found.max_buffer == 4151808
    assert found.prio2buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    newer = DSCP_TRUST.replace("total_size", "max_buffer_size")
    assert report(newer) == found


def test_traffic_classes_with_and_without_priorities() -> None:
    found = report(DSCP_TRUST)
    assert found.tc == {0: (1, 0), 3: (3,), 4: ()}
    assert found.tc_tsa == {0: None, 3: "ets", 4: "vendor"}
    assert found.tc_bw == {3: 100}
    assert found.tc_rate_gbps == {3: 0.5}


def test_without_rate_limits_the_classes_have_no_numbers() -> None:
    text = (
        "Buffers commands are not supported on your system\n"
        "Rate limit is not supported on your system!\n"
        "DCBX mode: Firmware controlled\nPriority trust state: none\nCable len: 0\n"
        "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n"
        "\tenabled     1   0   0   0   0   0   0   1   \n"
        "ets, bw: 50%\n\t priority:  0\nstrict\n\t priority:  1\n"
    )
    found = report(text)
    assert found.unsupported == ("buffers", "rate_limit")
    assert (found.tc, found.tc_bw, found.tc_tsa, found.tc_rate_gbps) == (None, None, None, None)
    assert (found.trust, found.dcbx, found.pfc_enabled) == ("none", "fw", (0, 7))


def test_a_port_without_dcb_and_a_host_without_the_tool_are_told_apart() -> None:
    text = "ETS features are not supported on your system\n"
    assert parse_mlnx_qos(text, 1) == Refusal(error="unsupported_interface")
    assert parse_mlnx_qos("", 127) == Refusal(error="not_installed")


BROKEN = [
    ("", 0, "PFC row"),
    (DSCP_TRUST.replace("0   0   0   0   0   1   0   0", "0   0   1"), 0, "expected 8 numbers"),
    (DSCP_TRUST.replace("enabled     0", "enabled     2"), 0, "PFC row"),
    (DSCP_TRUST.replace("prio:5 dscp:59", "prio:9 dscp:59"), 0, "priority from 0 to 7, got 9"),
    (DSCP_TRUST.replace("dscp:59", "dscp:64"), 0, "DSCP from 0 to 63, got 64"),
    (DSCP_TRUST.replace("tc: 0", "tc: 8"), 0, "traffic class from 0 to 7, got 8"),
    (DSCP_TRUST.replace("state: dscp", "state: both"), 0, "dscp, pcp or none, got 'both'"),
    (DSCP_TRUST.replace("156096,", ","), 0, "expected 8 numbers"),
    (DSCP_TRUST.partition("tc: 0")[0], 0, "cut off"),
    (DSCP_TRUST.replace("tc: 0 ratelimit: unlimited, tsa: unknown\n", ""), 0, "before 'priority"),
    (DSCP_TRUST, 1, "exited 1"),
    ("Traceback (most recent call last):\nOSError: Netlink error\n", 1, "OSError: Netlink error"),
]


@pytest.mark.parametrize(("text", "rc", "words"), BROKEN)
def test_what_cannot_be_read_is_a_value_error(text: str, rc: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_mlnx_qos(text, rc)


def test_bug_17_only_dscp_59_and_priority_5_are_lossless() -> None:
    found = report(DSCP_TRUST)
    assert found.pfc_enabled == (5,)
    assert found.dscp2prio[59] in found.pfc_enabled
    assert found.dscp2prio[26] not in found.pfc_enabled
    # DSCP 0 is of no list: it is not told where its traffic goes, least of all to priority 5.
    assert 0 not in found.dscp2prio
    healthy = report(DSCP_TRUST.replace("0   0   0   0   0   1   0", "0   0   0   1   0   0   0"))
    assert healthy.dscp2prio[26] in healthy.pfc_enabled


def test_bug_19_a_lossy_port_trusts_the_pcp_and_has_no_pfc() -> None:
    lossy = report(
        "Priority trust state: pcp\nPFC configuration:\n"
        "\tpriority    0   1   2   3   4   5   6   7\n"
        "\tenabled     0   0   0   0   0   0   0   0   \n"
        "tc: 0 ratelimit: unlimited, tsa: vendor\n\t priority:  0\n"
    )
    assert (lossy.trust, lossy.pfc_enabled, lossy.dscp2prio) == ("pcp", (), {})
    healthy = report(DSCP_TRUST)
    assert (healthy.trust, healthy.pfc_enabled) == ("dscp", (5,))


def render(found: Report) -> str:
    """As mlnx_qos prints it."""
    enabled = "".join(f"{int(p in found.pfc_enabled)}   " for p in range(8))
    lines = ["DCBX mode: OS controlled", "Priority trust state: dscp", "dscp2prio mapping:"]
    for priority in range(8):
        dscps = [dscp for dscp, to in found.dscp2prio.items() if to == priority]
        for start in range(0, len(dscps), 8):
            listed = "".join(f"{dscp:02d}," for dscp in dscps[start : start + 8])
            lines.append(f"\tprio:{priority} dscp:{listed}")
    lines += ["default priority:", f"Cable len: {found.cable_len}", "PFC configuration:"]
    lines += ["\tpriority    0   1   2   3   4   5   6   7", f"\tenabled     {enabled}"]
    for number, priorities in (found.tc or {}).items():
        lines.append(f"tc: {number} ratelimit: unlimited, tsa: strict")
        lines += [f"\t priority:  {priority}" for priority in priorities]
    return "\n".join(lines) + "\n"


@given(
    st.dictionaries(st.integers(0, 63), st.integers(0, 7)),
    st.sets(st.integers(0, 7)),
    st.integers(0, 0xFFFF),
    st.dictionaries(
        st.integers(0, 7), st.lists(st.integers(0, 7), unique=True).map(tuple), min_size=1
    ),
)
def test_what_mlnx_qos_prints_is_read_back(
    dscp2prio: dict[int, int], pfc: set[int], cable_len: int, tc: dict[int, tuple[int, ...]]
) -> None:
    expected = Report(
        dcbx="os",
        trust="dscp",
        dscp2prio=dscp2prio,
        cable_len=cable_len,
        pfc_enabled=tuple(sorted(pfc)),
        tc=tc,
        tc_bw={},
        tc_tsa=dict.fromkeys(tc, "strict"),
        tc_rate_gbps={},
    )
    assert parse_mlnx_qos(render(expected)) == expected


@given(st.lists(st.sampled_from(LINES) | st.text()), st.sampled_from([0, 1]))
def test_nothing_but_a_value_error_is_raised(lines: list[str], rc: int) -> None:
    try:
        found = parse_mlnx_qos("\n".join(lines), rc)
    except ValueError:
        return
    assert json.loads(json.dumps(found.to_json()))
