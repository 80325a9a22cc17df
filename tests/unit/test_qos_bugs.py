"""Faults of QoS that people reported in public, each beside a host without it.

Numbers are the rows of the list of faults.
"""

from typing import Any

import pytest

from railwright.qos import landing
from railwright.schema import Node, RoceQos
from railwright.schema.qos_consistency import qos_findings
from railwright.settings import Standing, Verdict
from railwright.snapshot import Section
from tests.unit.qos_cases import converged, found, wrong
from tests.unit.qos_host import (
    MARKER,
    PCI,
    cc_files,
    cm_files,
    ecn_files,
    node,
    right_port,
)

FIFTH = RoceQos(
    roce_dscp=59,
    dscp_to_priority={59: 5},
    lossless=frozenset({5}),
    ecn=frozenset({5}),
    ets_percent={0: 50, 5: 50},
    traffic_class=238,
)
FIFTH_PORT: dict[str, Any] = {
    "app": [[dscp, 5 if dscp == 59 else dscp // 8] for dscp in range(64)],
    "prio-pfc": [False, False, False, False, False, True, False, False],
    "prio-tc": [0, 0, 0, 0, 0, 5, 6, 0],
    "tc-tsa": ["ets", *["strict"] * 4, "ets", "strict", "strict"],
    "tc-bw": [50, 0, 0, 0, 0, 50, 0, 0],
}
OFED = RoceQos(backend="nvidia")
EVERY = set(range(8))


def report(*lines: str) -> Section:
    """What mlnx_qos prints of rail0, as the row has it, and a port without global pause."""
    text = "\n".join(
        [
            "DCBX mode: OS controlled",
            *lines,
            *(f"tc: {tc} ratelimit: unlimited, tsa: vendor\n\t priority:  {tc}" for tc in range(8)),
        ]
    )
    pause = "Pause parameters for rail0:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff"
    return Section(
        stdout="".join(
            f"\n{MARKER} port rail0 {what}\n{said}\n\n{MARKER} exit 0\n"
            for what, said in (("mlnx_qos", text), ("pause", pause))
        ),
        rc=0,
    )


def test_bug_17_a_traffic_class_that_does_not_land_on_the_lossless_priority() -> None:
    asked = node(FIFTH, rails=1)
    ports = {"rail0": right_port(**FIFTH_PORT)}
    unset = {**cm_files("mlx5_0", tos=0), **cc_files(PCI)}
    snapshot = converged(asked, ports=ports, files=unset)
    assert wrong(asked, snapshot) == {"rail0 rdma_cm tos": Verdict.NOT_RUNNING}
    told = found(asked, snapshot)
    assert told["rail0 rdma_cm tos"].running.detail == (
        "DSCP 0 has priority 0, which is not lossless (PFC: 5)"
    )
    # What opens its queue pairs by hand is the application's, which is told what to ask for.
    assert "NCCL_IB_TC=238" in str(told["rail0 traffic class"].running.detail)
    right = {**cm_files("mlx5_0", tos=238), **cc_files(PCI)}
    healthy = converged(asked, ports=ports, files=right)
    assert wrong(asked, healthy) == {}


def test_bug_17_by_what_mlnx_qos_prints() -> None:
    asked = node(FIFTH, rails=1)
    row = report(
        "Priority trust state: dscp",
        "dscp2prio mapping:",
        "\tprio:5 dscp:59,",
        "PFC configuration:",
        "\tpriority    0   1   2   3   4   5   6   7",
        "\tenabled     0   0   0   0   0   1   0   0   ",
    )
    states = {}
    for tos in (0, 238):
        files = {**cm_files("mlx5_0", tos=tos), **cc_files(PCI)}
        ports = {"rail0": right_port(**FIFTH_PORT)}
        told = found(asked, converged(asked, ports=ports, files=files, qos_ports=row))
        assert told["rail0 pfc"].running.standing is Standing.RIGHT
        state = told["rail0 rdma_cm tos"].running
        states[tos] = state.standing, state.detail
    assert states == {
        0: (Standing.WRONG, "DSCP 0 has priority 0, which is not lossless (PFC: 5)"),
        238: (Standing.RIGHT, None),
    }


def test_bug_17_the_three_are_held_against_each_other() -> None:
    entries = {dscp: 5 if dscp == 59 else 0 for dscp in range(64)}
    assert landing(0, entries, (5,)) is not None
    assert landing(106, entries, (5,)) == "DSCP 26 has priority 0, which is not lossless (PFC: 5)"
    assert landing(236, entries, (5,)) is None
    assert landing(238, entries, ()) is not None


def test_bug_18_a_traffic_class_that_one_host_of_two_has() -> None:
    asked = node(OFED, rails=1)
    ecn = ecn_files("rail0", EVERY, EVERY)
    verdicts = {}
    for host, tclass in (("a", "Global tclass=106"), ("b", "Global tclass=0")):
        files = {
            **cm_files("mlx5_0"),
            **ecn,
            "/sys/class/infiniband/mlx5_0/tc/1/traffic_class": tclass,
        }
        ports = {"rail0": right_port()}
        snapshot = converged(asked, ports=ports, files=files)
        verdicts[host] = wrong(asked, snapshot)
    assert verdicts == {"a": {}, "b": {"rail0 traffic class": Verdict.NOT_RUNNING}}
    state = found(asked, snapshot)["rail0 traffic class"].running
    assert (state.value, state.detail) == (
        "0",
        "DSCP 0 has priority 0, which is not lossless (PFC: 3)",
    )


def test_bug_18_a_dscp_in_place_of_the_traffic_class_is_refused() -> None:
    (refused,) = qos_findings(RoceQos(traffic_class=26))
    assert (refused.path, refused.value) == (("traffic_class",), 26)
    assert "roce_dscp 26" in refused.expected
    assert "carries DSCP 6" in refused.expected
    for right in (104, 106):
        assert qos_findings(RoceQos(traffic_class=right)) == []


def test_bug_19_a_host_without_flow_control_at_all() -> None:
    asked = node(rails=1)
    lossy = report(
        "Priority trust state: pcp",
        "PFC configuration:",
        "\tpriority    0   1   2   3   4   5   6   7",
        "\tenabled     0   0   0   0   0   0   0   0   ",
    )
    ports = {"rail0": right_port()}
    snapshot = converged(asked, ports=ports, qos_ports=lossy)
    told = found(asked, snapshot)
    assert {told[f"rail0 {name}"].running.value for name in ("trust", "pfc")} == {"pcp", "none"}
    assert wrong(asked, snapshot).keys() == {
        "rail0 trust",
        "rail0 dscp map",
        "rail0 pfc",
        "rail0 ets",
    }
    # A host cannot see what the switch has, and does not claim to.
    assert "The switch must have the same" in str(told["rail0 pfc"].why)
    assert wrong(asked, converged(asked, ports=ports)) == {}


def test_bug_21_one_of_the_two_points_alone_is_no_congestion_control() -> None:
    asked = node(OFED, rails=1)
    tclass = {"/sys/class/infiniband/mlx5_0/tc/1/traffic_class": "Global tclass=106"}
    half = {**cm_files("mlx5_0"), **tclass, **ecn_files("rail0", set(), {3}, dscp=0)}
    snapshot = converged(asked, ports={"rail0": right_port()}, files=half)
    assert wrong(asked, snapshot) == {
        "rail0 ecn": Verdict.NOT_RUNNING,
        "rail0 cnp dscp": Verdict.NOT_RUNNING,
    }
    state = found(asked, snapshot)["rail0 ecn"].running
    assert state.value == "np none rp 3"
    assert state.detail == "with one of the two points there is no congestion control"
    both = {**cm_files("mlx5_0"), **tclass, **ecn_files("rail0", {3}, {3})}
    healthy = converged(asked, ports={"rail0": right_port()}, files=both)
    assert wrong(asked, healthy) == {}


@pytest.mark.parametrize("asked", [node(OFED, rails=1), node(rails=1)], ids=["nvidia", "inbox"])
@pytest.mark.parametrize(
    ("np", "rp", "value"), [(set(), {3}, "np none rp 3"), ({3}, set(), "np 3 rp none")]
)
def test_bug_21_either_point_alone_is_wrong_whichever_backend_has_the_tree(
    asked: Node, np: set[int], rp: set[int], value: str
) -> None:
    """The live value decides where there is one, and no mask of the firmware's next boot."""
    ports = {"rail0": right_port()}
    half = {**cm_files("mlx5_0"), **ecn_files("rail0", np, rp)}
    setting = found(asked, converged(asked, ports=ports, files=half))["rail0 ecn"]
    assert (setting.running.standing, setting.running.value) == (Standing.WRONG, value)
    both = {**cm_files("mlx5_0"), **ecn_files("rail0", {3}, {3})}
    healthy = found(asked, converged(asked, ports=ports, files=both))["rail0 ecn"]
    assert (healthy.running.standing, healthy.running.value) == (Standing.RIGHT, "np 3 rp 3")
