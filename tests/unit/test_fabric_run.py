"""Looking at nodes, planning who meets whom, and running it over a stand-in for the nodes."""

from collections.abc import Mapping, Sequence

import pytest

from railwright.fabric.document import FabricReport, fabric_report
from railwright.fabric.ends import End, NoEnd, ends_of
from railwright.fabric.judge import Trial, Verdict
from railwright.fabric.perftest import Load
from railwright.fabric.run import Looked, Step, look, occupied, plan, run
from railwright.fleet import Question
from railwright.reading import Reading, Unread
from railwright.schema import Node
from railwright.snapshot import Section, Snapshot
from tests.unit.fabric_host import (
    GB,
    MARKER,
    counters,
    gids,
    links,
    node,
    pfc,
    receives,
    result,
    sends,
    snapshot,
)

NAMES = ("gpu001", "gpu002", "gpu003")


class Nodes:
    """Answers as nodes do whose rails work, but those in ``broken``, by host and rail.

    ``asked`` has each step's hosts, the sections of a test as scripts.
    """

    def __init__(self, first: Mapping[str, Reading] | None = None) -> None:
        self.first = dict(first or {})
        self.lost: set[str] = set()
        self.failing: dict[str, Section] = {}
        self.asked: list[dict[str, str]] = []

    def __call__(self, questions: Sequence[Question]) -> dict[str, Reading]:
        names = [question.node.name for question in questions]
        assert len(names) == len(set(names)), "a node is asked twice at once"
        return {question.node.name: self._answer(question) for question in questions}

    def _answer(self, question: Question) -> Reading:
        name = question.node.name
        sections = {section.name: section for section in question.sections}
        if name in self.lost:
            return Unread(host=name, error="gave no answer within 90 s")
        if "perftest" not in sections:
            return self.first.get(name, snapshot(name))
        script = sections["perftest"].script
        if not self.asked or name in self.asked[-1]:
            self.asked.append({})
        self.asked[-1][name] = script
        rail = int(script.partition(" -d mlx5_")[2][0])
        client = "tries=0\nwhile :" in script
        moved = {rail: sends() if client else receives()}
        test = Section(stdout=result(iterations=GB // 65536) if client else "", rc=0)
        return snapshot(
            name,
            perftest=self.failing.get(name, test),
            counters_after=counters(moved, uptime=110.0),
        )


def looked(ask: Nodes, nodes: Sequence[Node]) -> dict[str, Looked]:
    return {name: one for name, one in look(nodes, ask).items() if isinstance(one, Looked)}


def trials(ask: Nodes, names: Sequence[str] = NAMES) -> list[Trial]:
    found = looked(ask, [node(name) for name in names])
    steps, _ = plan(list(found.values()))
    return list(run(steps, found, Load(), ask))


def ends(**sections: str) -> tuple[End | NoEnd, ...]:
    return ends_of(node(), snapshot(**sections))


def test_an_end_is_found_with_its_gid_index_and_its_address() -> None:
    tos = "value /sys/kernel/config/rdma_cm/mlx5_1/ports/1/default_roce_tos 104\n"
    found = ends(port_tables=gids("gpu001", index=9), qos_kernel=tos)
    assert [end.model_dump(exclude={"qos"}) for end in found][1] == {
        "host": "gpu001",
        "rail": 1,
        "interface": "rail1",
        "device": "mlx5_1",
        "port": 1,
        "address": "10.64.1.2",
        "rate_gbps": 100,
        "gid_index": 9,
        "pfc": {3},
        "pfc_error": None,
        "forced_class": None,
        "cma_tos": 104,
    }


def test_a_class_that_the_driver_forces_is_told_and_a_rule_for_one_address_is_not() -> None:
    path = "value /sys/class/infiniband/mlx5_{}/tc/1/traffic_class {}\n"
    kernel = path.format(0, "Global tclass=106") + path.format(1, "tclass=32 src_ip=10.0.0.1/32")
    told = ends(qos_kernel=kernel)
    assert [end.forced_class for end in told if isinstance(end, End)] == [106, None]


def test_pfc_that_no_tool_tells_of_is_not_known() -> None:
    told = ends(
        qos_ports=f"\n{MARKER} port rail0 pfc\nAttribute read: Operation not supported\n\n"
        f"{MARKER} exit 1\n\n{MARKER} port rail1 pfc\nsh: 5: dcb: not found\n\n{MARKER} exit 127\n"
    )
    assert [(end.pfc, end.pfc_error) for end in told if isinstance(end, End)] == [
        (None, "Attribute read: Operation not supported"),
        (None, "there is no dcb (package iproute2)"),
    ]


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"nic_ports": ""}, "there is no NIC at 0000:10:00.0"),
        ({"nic_rdma": "[]"}, "rail0 has no RDMA device"),
        ({"nic_rdma": links("DOWN")}, "mlx5_0/1 is DOWN"),
        ({"port_tables": ""}, "mlx5_0/1 has no RoCE v2 GID of 10.64.0.2, but none of IPv4"),
        (
            {"port_tables": gids("gpu009")},
            "mlx5_0/1 has no RoCE v2 GID of 10.64.0.2, but 10.64.0.10",
        ),
    ],
)
def test_a_rail_that_cannot_be_tested_says_why(sections: dict[str, str], reason: str) -> None:
    first = ends(**sections)[0]
    assert isinstance(first, NoEnd)
    assert first.reason == reason


def test_infiniband_without_addresses_meets_over_the_management_network() -> None:
    ib = Node.model_validate(
        {
            "name": "gpu001",
            "fabric": "infiniband",
            "rails": {"nics": {0: {"pci": "0000:10:00.0"}}},
            "ssh": {"address": "192.0.2.7"},
        }
    )
    (found,) = ends_of(ib, snapshot())
    assert isinstance(found, End)
    assert (found.address, found.gid_index, found.qos) == ("192.0.2.7", None, None)


def test_a_container_has_no_rails() -> None:
    ask = Nodes({"gpu001": snapshot("gpu001", identity="container=podman\n")})
    found = look([node()], ask)["gpu001"]
    assert isinstance(found, Unread)
    assert "is a container" in found.error


def test_a_node_that_makes_no_sense_does_not_stop_the_others() -> None:
    ask = Nodes({"gpu002": snapshot("gpu002", nic_ports="port net rubbish")})
    found = look([node(name) for name in NAMES], ask)
    assert [name for name, one in found.items() if isinstance(one, Unread)] == ["gpu002"]


def test_a_rail_that_carries_traffic_is_in_use() -> None:
    after = counters({1: {"rx_prio3_bytes": 10**9}}, uptime=101.0)
    ask = Nodes({"gpu002": snapshot("gpu002", counters_after=after)})
    found = list(looked(ask, [node(name) for name in NAMES]).values())
    assert occupied(found, None) == ["gpu002 rail1 carries 8.00 Gb/s"]
    assert occupied(found, frozenset({0})) == []


def test_all_pairs_meet_on_each_rail_a_rail_at_a_time() -> None:
    steps, left = plan(list(looked(Nodes(), [node(name) for name in NAMES]).values()))
    assert left == []
    assert [(step.rail, step.round, len(step.pairs)) for step in steps] == [
        (rail, turn, 1) for rail in (0, 1) for turn in (1, 2, 3)
    ]
    met = {frozenset((a.host, b.host)) for step in steps for a, b in step.pairs if step.rail == 0}
    assert len(met) == 3


def test_rails_and_rounds_can_be_bounded() -> None:
    found = list(looked(Nodes(), [node(name) for name in NAMES]).values())
    steps, _ = plan(found, frozenset({1}), 2)
    assert [(step.rail, step.round) for step in steps] == [(1, 1), (1, 2)]


def test_a_node_without_the_rail_leaves_the_others_to_meet() -> None:
    ask = Nodes({"gpu002": snapshot("gpu002", nic_rdma=links("DOWN"))})
    steps, left = plan(list(looked(ask, [node(name) for name in NAMES]).values()))
    assert [(end.host, end.rail) for end in left] == [("gpu002", 0), ("gpu002", 1)]
    assert [[a.host, b.host] for step in steps for a, b in step.pairs] == [["gpu001", "gpu003"]] * 2


def test_a_node_alone_is_told() -> None:
    steps, left = plan(list(looked(Nodes(), [node()]).values()))
    assert steps == []
    assert {end.reason for end in left} == {"there is no other node to test it with"}


def test_a_healthy_fabric_is_fine() -> None:
    found = trials(Nodes())
    assert [trial.verdict for trial in found] == [Verdict.FINE] * 6
    assert fabric_report(3, {}, [], found).exit_code == 0


def test_each_node_is_asked_once_a_step_and_the_client_names_its_server() -> None:
    ask = Nodes()
    trials(ask, NAMES[:2])
    first = ask.asked[0]
    assert set(first) == {"gpu001", "gpu002"}
    assert "ib_write_bw -d mlx5_0 -i 1 -p 18515" in first["gpu002"]
    assert "--report_gbits 10.64.0.3 " in first["gpu001"]
    assert "-p 18516" in ask.asked[1]["gpu001"]


def test_a_node_that_is_lost_costs_its_own_tests_only() -> None:
    ask = Nodes()
    found = looked(ask, [node(name) for name in NAMES])
    steps, _ = plan(list(found.values()))
    ask.lost = {"gpu003"}
    outcome = {(t.client, t.server): t for t in run(steps, found, Load(), ask)}
    for pair, trial in outcome.items():
        expected = Verdict.UNKNOWN if "gpu003" in pair else Verdict.FINE
        assert trial.verdict is expected, pair
    lost = next(trial for pair, trial in outcome.items() if "gpu003" in pair)
    assert lost.checks[0].detail == "gpu003: gave no answer within 90 s"


def test_a_client_that_fails_is_told_with_its_words() -> None:
    ask = Nodes()
    ask.failing["gpu001"] = Section(stdout=" Failed status 12: wr_id 0", rc=1)
    (first, _) = trials(ask, NAMES[:2])
    assert first.verdict is Verdict.FAILED
    assert first.checks[-1].detail == "gpu001: client: Failed status 12: wr_id 0"
    assert first.gbps is None


def test_an_answer_without_the_test_is_not_judged() -> None:
    ask = Nodes()
    found = looked(ask, [node(name) for name in NAMES[:2]])
    steps, _ = plan(list(found.values()))

    def cut_off(questions: Sequence[Question]) -> dict[str, Reading]:
        answers = ask(questions)
        return {
            name: answer.model_copy(
                update={"sections": {k: v for k, v in answer.sections.items() if k != "perftest"}}
            )
            for name, answer in answers.items()
            if isinstance(answer, Snapshot)
        }

    verdicts = {trial.verdict for trial in run(steps, found, Load(), cut_off)}
    assert verdicts == {Verdict.UNKNOWN}


def test_pfc_on_the_wrong_priority_fails_the_test_and_says_why() -> None:
    ask = Nodes({"gpu002": snapshot("gpu002", qos_ports=pfc([4]))})
    found = trials(ask, NAMES[:2])
    report = fabric_report(2, {}, [], found)
    assert report.exit_code == 2
    assert [check.detail for check in found[0].checks if check.verdict is Verdict.FAILED] == [
        "gpu002 rail0: on for priority 4, but traffic class 106 has 3"
    ]


def test_steps_are_told_before_they_run() -> None:
    ask, told = Nodes(), []
    found = looked(ask, [node(name) for name in NAMES[:2]])
    steps, _ = plan(list(found.values()))

    def tell(step: Step) -> None:
        told.append((step.rail, len(ask.asked)))

    assert len(list(run(steps, found, Load(), ask, tell=tell))) == 2
    assert told == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("unread", "untested", "code"),
    [
        ({}, [], 0),
        ({}, [NoEnd(host="gpu003", rail=0, reason="x")], 2),
        ({"gpu004": "x"}, [NoEnd(host="gpu003", rail=0, reason="x")], 1),
    ],
)
def test_exit_code(unread: dict[str, str], untested: list[NoEnd], code: int) -> None:
    found: FabricReport = fabric_report(3, unread, untested, trials(Nodes(), NAMES[:2]))
    assert found.exit_code == code


def test_a_run_that_tested_nothing_proved_nothing() -> None:
    assert fabric_report(1, {}, [], []).exit_code == 1
