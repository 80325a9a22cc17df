"""``railwright fabric links``: an InfiniBand fabric as one of its hosts sees it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from facts.iblinkinfo import FabricLink, parse_iblinkinfo
from railwright.cli import main
from railwright.fabric.links import Cable, cables_of, told_apart
from railwright.fleet import Question
from railwright.reading import Reading, Unread
from railwright.snapshot import Section
from tests.unit.fabric_host import PCI, snapshot


def line(near: str, far: str | None, lane: str = "53.125", state: str = "Active") -> str:
    """A line of ``iblinkinfo -l``; ends are GUID NAME/PORT, ``far`` None is a link that is down."""
    guid, name, port = end(near)
    head = f'0x{guid:0>16} "{name:>30}"      1 {port:>4}[  ] ==('
    if far is None:
        return f'{head}                Down/ Polling)==>             [  ] "" ( )\n'
    guid, name, port = end(far)
    tail = f'0x{guid:0>16}      2 {port:>4}[  ] "{name}" ( )'
    return f"{head} 4X {lane:>16} Gbps {state:>6}/  LinkUp)==>  {tail}\n"


def end(text: str) -> tuple[str, str, str]:
    guid, _, rest = text.partition(" ")
    name, _, port = rest.rpartition("/")
    return guid, name, port


HCA, OTHER, LEAF = "a1 gpu001 mlx5_0/1", "a2 gpu002 mlx5_0/1", "b1 leaf1"


def both(near: str, far: str, lane: str = "53.125", state: str = "Active") -> str:
    return line(near, far, lane, state) + line(far, near, lane, state)


FINE = both(HCA, f"{LEAF}/1") + both(OTHER, f"{LEAF}/2") + line(f"{LEAF}/3", None)
SLOW = both(HCA, f"{LEAF}/1", "14.0625") + both(OTHER, f"{LEAF}/2")
DOWN = both(HCA, f"{LEAF}/1") + line(f"{LEAF}/2", None)
INIT = both(HCA, f"{LEAF}/1", state="Init") + both(OTHER, f"{LEAF}/2")


class Hosts:
    """Hosts of which each sees the same fabric, but those in ``given``.

    Rail r is mlx5_r; ``states`` are those of its port. ``asked`` has the hosts that were asked,
    ``scripts`` what they were to run.
    """

    def __init__(self) -> None:
        self.fabric = Section(stdout=FINE, rc=0)
        self.given: dict[str, Section | str] = {}
        self.states = ("ACTIVE", "ACTIVE")
        self.asked: list[str] = []
        self.scripts: list[str] = []

    def __call__(self, questions: Sequence[Question]) -> dict[str, Reading]:
        (question,) = questions
        name = question.node.name
        found = self.given.get(name, self.fabric)
        if question.sections[0].name != "iblinkinfo":
            self.asked.append(name)
            if isinstance(found, str):
                return {name: Unread(host=name, error=found)}
            return {name: snapshot(name, nic_rdma=self._ports())}
        self.scripts.append(question.sections[0].script)
        assert isinstance(found, Section)
        return {name: snapshot(name, iblinkinfo=found)}

    def _ports(self) -> str:
        return json.dumps(
            [
                {"ifname": f"mlx5_{rail}", "port": 1, "state": state, "physical_state": "LINK_UP"}
                for rail, state in enumerate(self.states)
            ]
        )


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    found = Hosts()
    monkeypatch.setattr("railwright.cli.fabric_links.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", found)
    return found


@pytest.fixture
def site(tmp_path: Path) -> str:
    return write_site(tmp_path)


def write_site(folder: Path, fabric: str = "infiniband", rate_gbps: int | None = 200) -> str:
    nics = {str(rail): {"pci": pci} for rail, pci in enumerate(PCI)}
    rails = {"nics": nics, "rate_gbps": rate_gbps}
    groups = {
        "gpu": {"hosts": "gpu[001-009]", "fabric": fabric, "rails": rails},
        "subnet": {"hosts": "sm001", "fabric": fabric},
        "login": {"hosts": "login1"},
    }
    path = folder / "site.yaml"
    path.write_text(json.dumps({"groups": groups}))
    return str(path)


def test_a_fabric_of_which_nothing_is_wrong(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "links", site]) == 0
    assert capsys.readouterr().out == (
        "2 cables seen from gpu001 mlx5_0/1, 200 Gb/s asked for: 0 down, 0 slow, 0 not active\n"
    )
    assert hosts.asked == ["gpu001"]
    assert hosts.scripts[0].endswith("iblinkinfo -l -C mlx5_0 -P 1")


def test_it_looks_through_a_rail_and_not_through_any_port_of_the_host(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "links", site, "--rail", "1"]) == 0
    hosts.states = ("DOWN", "ACTIVE")
    assert main(["fabric", "links", site]) == 0
    assert [script.rpartition(" -l ")[2] for script in hosts.scripts] == ["-C mlx5_1 -P 1"] * 2
    # What is asked for by name is taken though it is down: iblinkinfo will say so.
    assert main(["fabric", "links", site, "--rail", "0"]) == 0
    assert hosts.scripts[-1].endswith("-C mlx5_0 -P 1")
    capsys.readouterr()
    assert main(["fabric", "links", site, "--rail", "7"]) == 1
    assert "--rail 7: no host has it; there are 0, 1" in capsys.readouterr().err


def test_a_host_of_the_fabric_that_has_no_rails_looks_through_its_first_port(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "links", site, "--from-host", "sm001"]) == 0
    assert hosts.scripts[0].endswith("iblinkinfo -l")
    assert "seen from sm001, 200 Gb/s asked for" in capsys.readouterr().out


def test_rails_without_an_rdma_device_show_no_fabric(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.states = ()
    assert main(["fabric", "links", site]) == 1
    assert "gpu001: not read: none of its rails has an RDMA device" in capsys.readouterr().out
    assert main(["fabric", "links", site, "--rail", "1"]) == 1
    assert "gpu001: not read: no NIC of its rail1 has an RDMA device" in capsys.readouterr().out
    assert hosts.scripts == []


def test_slow_links_and_links_that_are_not_configured_are_findings(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.fabric = Section(stdout=SLOW, rc=0)
    assert main(["fabric", "links", site]) == 2
    assert "slow  gpu001 mlx5_0/1 - leaf1/1: 56 of 200 Gb/s" in capsys.readouterr().out
    hosts.fabric = Section(stdout=INIT, rc=0)
    assert main(["fabric", "links", site, "--format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["host"], report["rate_gbps"], report["cables"]) == ("gpu001", 200, 2)
    assert [(one["kind"], one["cable"]) for one in report["problems"]] == [
        ("not_active", {"one": "gpu001 mlx5_0/1", "other": "leaf1/1"})
    ]


def test_a_cable_that_was_saved_is_missed_when_it_is_down(
    hosts: Hosts, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "cables.json")
    assert main(["fabric", "links", site, "--save", file]) == 0
    assert main(["fabric", "links", site, "--expect", file]) == 0
    assert "2 cables (2 expected)" in capsys.readouterr().out
    hosts.fabric = Section(stdout=DOWN, rc=0)
    # Nobody said that there should be one more.
    assert main(["fabric", "links", site]) == 0
    assert main(["fabric", "links", site, "--expect", file]) == 2
    out = capsys.readouterr().out
    assert (
        "down  gpu002 mlx5_0/1 - leaf1/2: gpu002 mlx5_0/1 does not answer, leaf1/2 is Down/Polling"
    ) in out


def test_a_plan_may_name_the_ends_of_a_cable_either_way_round(
    hosts: Hosts, site: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"cables": [{"one": "leaf1/1", "other": "gpu001 mlx5_0/1"}]}')
    assert main(["fabric", "links", site, "--expect", str(file)]) == 0


def test_without_a_rate_in_the_inventory_none_is_asked_for(
    hosts: Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.fabric = Section(stdout=SLOW, rc=0)
    assert main(["fabric", "links", write_site(tmp_path, rate_gbps=None)]) == 0
    assert "any rate asked for" in capsys.readouterr().out


def test_a_host_that_is_not_reached_is_passed_over_and_named(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.given["gpu001"] = "no route to host"
    assert main(["fabric", "links", site]) == 0
    out = capsys.readouterr().out
    assert "gpu001: not read: no route to host" in out
    assert "seen from gpu002" in out
    assert main(["fabric", "links", site, "--from-host", "gpu001"]) == 1
    assert main(["fabric", "links", site, "--limit", "gpu001"]) == 1


def test_not_all_hosts_are_tried_where_none_is_reached(hosts: Hosts, site: str) -> None:
    hosts.given = {f"gpu{n:03d}": "no route to host" for n in range(1, 10)}
    assert main(["fabric", "links", site]) == 1
    assert hosts.asked == [f"gpu{n:03d}" for n in range(1, 6)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Section(stdout="", rc=127), "there is no iblinkinfo (package infiniband-diags)"),
        (
            Section(stdout="", stderr="ibwarn: [7] can't open UMAD port ((null):0)", rc=1),
            "iblinkinfo failed with 1: ibwarn: [7] can't open UMAD port",
        ),
        (Section(stdout="rubbish\n", rc=0), "expected a link of iblinkinfo -l, got 'rubbish'"),
        (Section(stdout="", rc=0), "iblinkinfo lists no link"),
        (Section(stdout=FINE, rc=None, ended="deadline"), "ended by deadline"),
    ],
)
def test_a_host_that_cannot_read_the_fabric_says_why(
    hosts: Hosts,
    site: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    answer: Section,
    words: str,
) -> None:
    hosts.given["gpu002"] = answer
    file = tmp_path / "cables.json"
    asked = ["fabric", "links", site, "--from-host", "gpu002", "--save", str(file)]
    assert main(asked) == 1
    out, err = capsys.readouterr()
    assert "gpu002: not read: " in out
    assert words in out
    assert "no host told anything of the fabric" in out
    assert "not written, as the fabric was not read whole" in err
    assert hosts.asked == ["gpu002"]
    assert not file.exists()


def test_a_part_of_the_fabric_that_did_not_answer_is_not_fine(
    hosts: Hosts, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "ibwarn: [7] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1,4)"
    hosts.fabric = Section(stdout=SLOW, stderr=said, rc=0)
    file = tmp_path / "cables.json"
    assert main(["fabric", "links", site, "--save", str(file)]) == 1
    out = capsys.readouterr().out
    assert f"gpu001: iblinkinfo: {said}" in out
    assert "slow  gpu001" in out
    assert not file.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("[]", "is no list of cables"),
        ('{"cables": []}', "has no cable"),
        ('{"cables": [{"one": "a/1"}]}', "is no list of cables: cables.0.other: Field required"),
        ("\xe4", "is no list of cables"),
    ],
)
def test_expected_cables_that_cannot_be_read_are_an_error_before_a_host_is_asked(
    hosts: Hosts,
    site: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    words: str,
) -> None:
    file = tmp_path / "cables.json"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    assert main(["fabric", "links", site, "--expect", str(file)]) == 1
    assert words in capsys.readouterr().err
    assert hosts.asked == []


def test_an_inventory_without_infiniband_is_told_in_words(
    hosts: Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "links", write_site(tmp_path, "roce")]) == 1
    assert "none of these hosts is on InfiniBand (fabric.kind)" in capsys.readouterr().err


def test_a_host_that_is_none_of_the_fabric_is_refused(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "links", site, "--from-host", "login1"]) == 1
    assert "--from-host: no host on InfiniBand 'login1'" in capsys.readouterr().err
    assert hosts.asked == []


def parsed(text: str) -> tuple[FabricLink, ...]:
    return parse_iblinkinfo(text)


def test_switches_of_one_name_are_told_apart_by_their_guid() -> None:
    factory = "Quantum Mellanox Technologies"
    found = told_apart(parsed(both(HCA, f"b1 {factory}/1") + both(OTHER, f"b2 {factory}/1")))
    assert cables_of(found) == {
        Cable(one=f"{factory} 0x00000000000000b1/1", other="gpu001 mlx5_0/1"),
        Cable(one=f"{factory} 0x00000000000000b2/1", other="gpu002 mlx5_0/1"),
    }


def test_two_ports_of_one_hca_have_one_name() -> None:
    links = parsed(both("a1 gpu001 HCA-1/1", f"{LEAF}/1") + both("a2 gpu001 HCA-1/2", f"{LEAF}/2"))
    assert told_apart(links) == links
