"""A fabric of 128 nodes with 8 rails, simulated: OpenSM brings it up, bad links are named."""

from collections.abc import Iterator

import pytest

from facts.iblinkinfo import FabricLink, parse_iblinkinfo
from facts.ibstat import parse_ibstat
from railwright.fabric.links import Cable, cables_of, link_problems
from railwright.resolve.opensm import opensm_options
from railwright.schema import Opensm
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


def test_a_fabric_comes_up_and_its_bad_links_are_named(fabric: Simulator) -> None:
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

        fabric.order('Unlink "leaf3-1"[21]')
        down = Cable(one="gpu053 mlx5_3/1", other="leaf3-1/21")
        wait_for(lambda: down not in cables_of(links(fabric)), "the link going down")
        problems = link_problems(links(fabric), RATE, planned())
        assert {problem.cable for problem in problems if problem.kind == "down"} == {down}
        assert {problem.kind for problem in problems} == {"slow", "down"}
        (told,) = [str(problem) for problem in problems if problem.kind == "down"]
        assert told == f"{down}: gpu053 mlx5_3/1 does not answer, leaf3-1/21 is Down/Polling"
        seen = parse_ibstat(fabric.run("gpu053 mlx5_3", "ibstat")).adapters["ibsim0"].ports[1]
        assert (seen.state, seen.physical_state) == ("Down", "Polling")

        # The rest of the fabric goes on.
        others = links(fabric)
        assert states(others) == {"Active"}
        assert len(cables_of(others)) == len(cables_of(bare)) - 1

    # It took the options that railwright gives it; its log is written out when it ends.
    assert "ftree tables configured on all switches" in log.read_text(encoding="utf-8")
