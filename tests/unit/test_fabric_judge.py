"""What a test between two nodes says, and the faults of the field that counters show."""

from collections.abc import Mapping

import pytest

from railwright.fabric.ends import End, lossless_priority
from railwright.fabric.judge import Check, Observation, Trial, Verdict, judge
from railwright.fabric.perftest import Bandwidth, Failure
from railwright.fabric.window import busy
from railwright.schema.fabric import RoceQos
from tests.unit.fabric_host import GB, receives, sends, windows


def end(host: str, **given: object) -> End:
    fields = {
        "host": host,
        "rail": 0,
        "interface": "rail0",
        "device": "mlx5_0",
        "port": 1,
        "address": "10.64.0.2",
        "rate_gbps": 100,
        "gid_index": 3,
        "qos": RoceQos(),
        "pfc": {3},
    }
    return End.model_validate(fields | given)


MEASURED = Bandwidth(
    size=65536, iterations=GB // 65536, peak_gbps=None, average_gbps=95.0, mpps=0.1
)
Moved = Mapping[int, Mapping[str, int]]


def trial(
    sent: Moved | None = None,
    received: Moved | None = None,
    result: Bandwidth | Failure = MEASURED,
    client: Mapping[str, object] | None = None,
    server: Mapping[str, object] | None = None,
) -> Trial:
    """A test of 1 GB over rail 0 of which nothing is wrong but what is given."""
    seen = {
        "a": Observation(result=result, windows=windows("a", sent or {0: sends()})),
        "b": Observation(result=None, windows=windows("b", received or {0: receives()})),
    }
    return judge(1, end("a", **(client or {})), end("b", **(server or {})), seen)


def told(found: Trial, verdict: Verdict) -> list[str]:
    return [f"{check.name}: {check.detail}" for check in found.checks if check.verdict is verdict]


def only(found: Trial) -> str:
    """The one thing that is wrong."""
    assert found.verdict is Verdict.FAILED, found.checks
    (line,) = told(found, Verdict.FAILED)
    assert not told(found, Verdict.UNKNOWN)
    return line


def test_a_healthy_pair_is_fine_and_says_what_it_ran_on() -> None:
    found = trial()
    assert found.verdict is Verdict.FINE
    assert not told(found, Verdict.FAILED)
    fine = told(found, Verdict.FINE)
    assert any(
        line.startswith("priority: a rail0 tx bytes: 100.00 % on priority 3") for line in fine
    )
    assert any(line.startswith("priority: b rail0 rx bytes:") for line in fine)
    assert any(line.startswith("priority: b rail0 tx packets:") for line in fine)
    assert "PFC: a rail0: on for priority 3" in fine
    assert found.moved["a"]["tx_prio3_bytes"] == GB


def test_pfc_on_another_priority_fails_though_the_traffic_is_right() -> None:
    assert only(trial(server={"pfc": {4}})) == (
        "PFC: b rail0: on for priority 4, but traffic class 106 has 3"
    )
    assert "on for priority none" in only(trial(client={"pfc": set()}))


def test_pfc_that_cannot_be_read_is_not_fine() -> None:
    found = trial(server={"pfc": None, "pfc_error": "not_installed: dcb: not found"})
    assert found.verdict is Verdict.UNKNOWN
    assert told(found, Verdict.UNKNOWN) == ["PFC: b rail0: not_installed: dcb: not found"]


@pytest.mark.parametrize(("gbps", "verdict"), [(90.0, Verdict.FINE), (89.9, Verdict.FAILED)])
def test_bandwidth_is_held_against_the_rate(gbps: float, verdict: Verdict) -> None:
    found = trial(result=MEASURED.model_copy(update={"average_gbps": gbps}))
    assert found.verdict is verdict
    assert f"bandwidth: {gbps:.2f} Gb/s of 100, at least 90.0 (90 %) is asked for" in told(
        found, verdict
    )


def test_bug_24_a_cable_of_half_the_rate_fails() -> None:
    rates = {"rate_gbps": 200}
    assert "95.00 Gb/s of 200" in only(trial(client=rates, server=rates))


def test_a_rate_that_the_inventory_does_not_give_is_no_finding() -> None:
    found = trial(client={"rate_gbps": None}, server={"rate_gbps": None})
    assert found.verdict is Verdict.FINE
    assert any("rails.rate_gbps says nothing" in line for line in told(found, Verdict.NOTED))


UNMARKED = RoceQos(
    roce_dscp=59,
    traffic_class=59 * 4 + 2,
    dscp_to_priority={59: 5},
    lossless=frozenset({5}),
    ecn=frozenset({5}),
    ets_percent={0: 50, 5: 50},
)


def test_bug_17_traffic_beside_the_priority_that_pfc_is_on_for() -> None:
    """Only DSCP 59 on priority 5 is lossless; the traffic has DSCP 0, so it is on priority 0."""
    ends = {"qos": UNMARKED, "pfc": {5}}
    assert lossless_priority(UNMARKED) == 5
    found = trial({0: sends(priority=0)}, {0: receives(priority=0)}, client=ends, server=ends)
    assert found.verdict is Verdict.FAILED
    lines = told(found, Verdict.FAILED)
    assert len(lines) == 4
    assert lines[0] == (
        "priority: a rail0 tx bytes: 0.00 % on priority 5, at least 99 % is asked for; "
        "100.00 % on 0"
    )
    healthy = trial({0: sends(priority=5)}, {0: receives(priority=5)}, client=ends, server=ends)
    assert healthy.verdict is Verdict.FINE


def test_bug_18_one_direction_is_not_marked() -> None:
    """Host b's driver forces traffic class 0: what it answers with is on priority 0."""
    found = trial({0: sends(answers_on=0)}, {0: receives(answers_on=0)}, server={"forced_class": 0})
    lines = told(found, Verdict.FAILED)
    assert lines[0] == (
        "traffic class: b: the driver forces 0 (DSCP 0) on mlx5_0/1, "
        "fabric.qos.traffic_class is 106 (DSCP 26)"
    )
    assert [line.partition(":")[2][:20] for line in lines[1:]] == [
        " a rail0 rx packets:",
        " b rail0 tx packets:",
    ]
    assert trial(server={"forced_class": 106}).verdict is Verdict.FINE


def test_bug_18_by_its_counters_alone() -> None:
    assert trial({0: sends(priority=0)}, {0: receives(priority=0)}).verdict is Verdict.FAILED


def test_bug_18_different_traffic_classes_in_the_inventory() -> None:
    found = trial(client={"qos": RoceQos(traffic_class=104)})
    assert only(found) == ("traffic class: fabric.qos.traffic_class is not the same: a 104, b 106")


def test_bug_18_rdma_cm_marks_on_one_host_only() -> None:
    """The test itself has no connection of rdma_cm: only the settings show it."""
    found = trial(client={"cma_tos": 106}, server={"cma_tos": 0})
    assert "the ToS of rdma_cm connections is not the same: a 106, b 0" in only(found)
    assert trial(client={"cma_tos": 106}, server={"cma_tos": 106}).verdict is Verdict.FINE
    assert trial(client={"cma_tos": 106}).verdict is Verdict.FINE


def test_bug_19_a_lossy_fabric_drops() -> None:
    """Nothing is lossless, and the port drops what it has no room for."""
    found = trial(
        received={0: receives() | {"rx_discards_phy": 48213}},
        client={"pfc": set()},
        server={"pfc": set()},
    )
    lines = told(found, Verdict.FAILED)
    assert [line.partition(":")[0] for line in lines] == ["PFC", "PFC", "discards"]
    assert lines[2] == (
        "discards: b rail0: rx_discards_phy +48213: packets were dropped: the fabric is lossy"
    )


def test_bug_19_old_drops_are_no_finding() -> None:
    """The counter stands at 1000 in both readings: only growth counts."""
    assert trial().verdict is Verdict.FINE


@pytest.mark.parametrize(
    "counter",
    [
        "rx_prio3_discards",
        "tx_discards_phy",
        "out_of_sequence",
        "local_ack_timeout_err",
        "link_down_events_phy",
    ],
)
def test_a_counter_that_may_not_grow_fails(counter: str) -> None:
    assert f"{counter} +1: " in only(trial(received={0: receives() | {counter: 1}}))


@pytest.mark.parametrize(
    "counter", ["rx_prio3_pause", "tx_prio3_pause", "np_cnp_sent", "rx_prio0_discards"]
)
def test_a_counter_that_may_grow_is_told(counter: str) -> None:
    found = trial(received={0: receives() | {counter: 12}})
    assert found.verdict is Verdict.FINE
    assert any(f"{counter} +12: " in line for line in told(found, Verdict.NOTED))


def test_a_packet_on_another_rail_fails() -> None:
    found = trial({0: sends(), 1: {"tx_prio3_packets": 1}})
    assert only(found) == "other rails: a rail1: 1 packets on priority 3 while rail0 ran"


def test_arp_on_another_rail_is_fine() -> None:
    assert trial({0: sends(), 1: {"tx_prio0_packets": 30}}).verdict is Verdict.FINE


@pytest.mark.parametrize(
    ("stray", "verdict"), [(GB // 100 - 6000, Verdict.FINE), (GB // 50, Verdict.FAILED)]
)
def test_one_percent_beside_the_lossless_priority_is_too_much(stray: int, verdict: Verdict) -> None:
    moved = sends() | {"tx_prio2_bytes": stray}
    assert trial({0: moved}).verdict is verdict


def test_congestion_notifications_are_answers_on_a_priority_of_their_own() -> None:
    notified = receives() | {"tx_prio6_packets": 10**6, "np_cnp_sent": 10**6}
    assert trial(received={0: notified}).verdict is Verdict.FINE
    elsewhere = receives() | {"tx_prio4_packets": 10**6}
    assert trial(received={0: elsewhere}).verdict is Verdict.FAILED


def test_counters_that_stand_still_prove_nothing() -> None:
    found = trial({0: {}})
    assert found.verdict is Verdict.UNKNOWN
    assert "counters stand still" in told(found, Verdict.UNKNOWN)[0]


def test_counters_that_fell_prove_nothing() -> None:
    found = trial({0: sends() | {"tx_prio3_bytes": -1000, "np_cnp_sent": -7}})
    lines = told(found, Verdict.UNKNOWN)
    assert lines[0] == "priority: a rail0 tx bytes: tx_prio3_bytes is not counted, or was reset"
    assert lines[1].endswith("reset or gone during the test: np_cnp_sent, tx_prio3_bytes")


def test_a_node_without_counters_of_the_rail_is_not_fine() -> None:
    seen = {
        "a": Observation(result=MEASURED, windows={}),
        "b": Observation(result=None, windows=windows("b", {0: receives()})),
    }
    found = judge(1, end("a"), end("b"), seen)
    assert found.verdict is Verdict.UNKNOWN


def test_a_test_that_failed_says_why_and_what_the_settings_are() -> None:
    found = trial(result=Failure(reason="client: Failed status 12"), server={"pfc": {4}})
    assert told(found, Verdict.FAILED) == [
        "PFC: b rail0: on for priority 4, but traffic class 106 has 3",
        "test: a: client: Failed status 12",
    ]
    assert found.gbps is None


def test_a_node_that_cannot_test_is_no_finding_of_the_fabric() -> None:
    broken = Failure(reason="client: ib_write_bw is not installed", kind="broken")
    assert trial(result=broken).verdict is Verdict.UNKNOWN


def test_infiniband_has_no_priorities_and_still_counts_losses() -> None:
    plain = {"qos": None, "gid_index": None, "pfc": None}
    found = trial({0: sends(priority=0)}, client=plain, server=plain)
    assert found.verdict is Verdict.FINE
    lossy = trial({0: {"out_of_sequence": 3}}, client=plain, server=plain)
    assert "out_of_sequence +3" in only(lossy)


def test_what_could_not_be_judged_outranks_what_failed() -> None:
    checks = tuple(
        Check(name="x", verdict=verdict, detail="") for verdict in (Verdict.FAILED, Verdict.UNKNOWN)
    )
    found = trial().model_copy(update={"checks": checks})
    assert found.verdict is Verdict.UNKNOWN


def test_a_rail_in_use_is_told_from_one_with_a_little_on_it() -> None:
    assert busy(windows("a", {0: {"tx_prio0_bytes": 1_000_000}})[0]) is None
    assert busy(windows("a", {0: {"rx_prio3_bytes": 125 * 10**8}})[0]) == 10**10
