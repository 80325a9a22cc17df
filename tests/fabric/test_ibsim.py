"""A fabric of 128 nodes with 8 rails, simulated: OpenSM brings it up, bad links are named."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from facts.iblinkinfo import FabricLink, parse_iblinkinfo
from facts.ibstat import parse_ibstat
from facts.probe import script
from railwright.cli import main
from railwright.fabric.link_report import load_cables
from railwright.fabric.links import Cable, cables_of, link_problems
from railwright.fleet import Question
from railwright.focus import focus_of
from railwright.reading import Reading
from railwright.resolve.opensm import opensm_options
from railwright.schema import Opensm
from railwright.snapshot import Section, Snapshot, parse_probe
from tests.fabric.simulator import Simulator, Topology, simulated, wait_for

RATE = 200
SLOW = "gpu037 mlx5_2"
TOPOLOGY = Topology(
    nodes=128, rails=8, nodes_per_leaf=32, spines=8, speed="HDR", slow={SLOW: "FDR"}
)
ONE = "gpu001 mlx5_0"


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    with simulated(TOPOLOGY, tmp_path_factory.mktemp("ibsim")) as fabric:
        wait_for(lambda: "ready" in (fabric.folder / "ibsim.log").read_text("utf-8"), "ibsim")
        yield fabric


def links(fabric: Simulator) -> tuple[FabricLink, ...]:
    return parse_iblinkinfo(fabric.run(ONE, "iblinkinfo", "-l"))


def states(found: tuple[FabricLink, ...]) -> set[str]:
    """The states of the ports that are cabled."""
    return {link.state for link in found if link.far}


def planned() -> frozenset[Cable]:
    """The cables between HCAs and leaves, from the plan of the fabric."""
    return frozenset(
        Cable(one=one, other=other)
        for hca, leaf, port in TOPOLOGY.hcas()
        for one, other in [sorted((f"{hca}/1", f"{leaf}/{port}"))]
    )


# ibsim has no kernel's view of a NIC; that of one host, by hand.
NICS = {
    "nic_ports": "rdma ibsim0 0000:0000:0000:0000 /sys/devices/pci0000:00/0000:10:00.0",
    "nic_rdma": json.dumps(
        [{"ifname": "ibsim0", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP"}]
    ),
    "nic_addresses": "[]",
    "way_in": "",
}


def answer(fabric: Simulator, question: Question) -> Reading:
    host, focus = question.node.name, focus_of(question.node)
    if question.sections[0].name in NICS:
        sections = {name: Section(stdout=text, rc=0) for name, text in NICS.items()}
        return Snapshot(host=host, marker="m", sections=sections)
    return parse_probe(fabric.run(ONE, "sh", "-c", script(question.sections, focus)), host=host)


@pytest.fixture
def site(fabric: Simulator, monkeypatch: pytest.MonkeyPatch) -> str:
    """An inventory whose hosts are those of the fabric: a probe of any runs on the first HCA."""

    def ask(questions: Sequence[Question]) -> dict[str, Reading]:
        return {question.node.name: answer(fabric, question) for question in questions}

    monkeypatch.setattr("railwright.cli.fabric_links.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", ask)
    rails = {"nics": {"0": {"rdma_device": "ibsim0"}}, "rate_gbps": RATE}
    group = {"hosts": "gpu[001-128]", "fabric": "infiniband", "rails": rails}
    path = fabric.folder / "site.yaml"
    path.write_text(json.dumps({"groups": {"gpu": group}}), encoding="utf-8")
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, set[tuple[str, str]]]:
    """How ``railwright fabric links`` ends, and each problem's kind and cable."""
    capsys.readouterr()
    code = main(["fabric", "links", *arguments, "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert (report["host"], report["unread"], report["warnings"]) == ("gpu001", {}, [])
    ends = [(one["kind"], one["cable"]["one"], one["cable"]["other"]) for one in report["problems"]]
    return code, {(kind, f"{one} - {other}") for kind, one, other in ends}


def test_a_fabric_comes_up_and_its_bad_links_are_named(
    fabric: Simulator, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without a subnet manager every cable is in place and no port is configured.
    bare = links(fabric)
    assert cables_of(bare) >= planned()
    assert len(planned()) == 1024
    idle = parse_ibstat(fabric.run(ONE, "ibstat")).adapters["ibsim0"].ports[1]
    assert (idle.state, idle.usable) == ("Initializing", False)

    # A site's own file, over which the options of the command line have the last word.
    conf = fabric.folder / "opensm.conf"
    conf.write_text("routing_engine updn\n", encoding="utf-8")
    with fabric.subnet_manager(ONE, "--config", str(conf), *opensm_options(Opensm())) as log:
        wait_for(lambda: states(links(fabric)) == {"Active"}, "the first sweep")
        swept = links(fabric)
        assert cables_of(swept) == cables_of(bare)
        slow = [str(problem) for problem in link_problems(swept, RATE, planned())]
        assert slow == ["gpu037 mlx5_2/1 - leaf2-1/5: 56 of 200 Gb/s"]

        cables = str(fabric.folder / "cables.json")
        slow_only = {("slow", "gpu037 mlx5_2/1 - leaf2-1/5")}
        assert told(capsys, site, "--save", cables) == (2, slow_only)
        assert load_cables(Path(cables)) == cables_of(bare)

        fabric.order('Unlink "leaf3-1"[21]')
        down = Cable(one="gpu053 mlx5_3/1", other="leaf3-1/21")
        wait_for(lambda: down not in cables_of(links(fabric)), "the link going down")
        problems = link_problems(links(fabric), RATE, planned())
        assert {problem.cable for problem in problems if problem.kind == "down"} == {down}
        assert {problem.kind for problem in problems} == {"slow", "down"}
        (said,) = [str(problem) for problem in problems if problem.kind == "down"]
        assert said == f"{down}: gpu053 mlx5_3/1 does not answer, leaf3-1/21 is Down/Polling"
        missed = slow_only | {("down", str(down))}
        assert told(capsys, site, "--expect", cables) == (2, missed)
        seen = parse_ibstat(fabric.run("gpu053 mlx5_3", "ibstat")).adapters["ibsim0"].ports[1]
        assert (seen.state, seen.physical_state) == ("Down", "Polling")

        # The rest of the fabric goes on.
        others = links(fabric)
        assert states(others) == {"Active"}
        assert len(cables_of(others)) == len(cables_of(bare)) - 1

    # It took the options that railwright gives it; its log is written out when it ends.
    assert "ftree tables configured on all switches" in log.read_text(encoding="utf-8")
