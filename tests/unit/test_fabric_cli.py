"""``railwright fabric``: what it asks, what it prints, and how it ends."""

import json
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml

from railwright.cli import fabric_test, main
from railwright.fabric.judge import MIN_PERCENT
from railwright.fabric.perftest import Load
from railwright.reading import Unread
from tests.unit.fabric_host import counters, links, node, pfc, snapshot
from tests.unit.test_fabric_run import Nodes

NAMES = ("gpu001", "gpu002")


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    found = Nodes()
    for module in ("fabric_test", "fabric_look"):
        monkeypatch.setattr(f"railwright.cli.{module}.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", found)
    return found


@pytest.fixture
def site(tmp_path: Path) -> str:
    path = tmp_path / "site.yaml"
    spec = node().model_dump(mode="json", include={"fabric", "rails"}, exclude_unset=True)
    # JSON is YAML.
    path.write_text(json.dumps({"groups": {"rack": {"hosts": "gpu[001-002]", **spec}}}))
    return str(path)


def test_a_healthy_fabric(nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "test", site, "--yes"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "rail0  1 test, 1 fine, 95.00 to 95.00 Gb/s"
    assert lines[1].strip() == "↳ bytes by priority: 3: 100.00 %, 0: 0.00 %"
    assert lines[-1] == "2 hosts, 2 tests: 2 fine, 0 failed, 0 not judged"
    assert err.splitlines()[0].startswith("2 tests on 2 rails in 2 steps, about 0 min")


def test_it_does_not_load_the_rails_without_being_told_to(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "test", site]) == 1
    assert "it loads the rails of these hosts: say --yes" in capsys.readouterr().err
    assert nodes.asked == []


def test_it_does_not_load_rails_in_use(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    after = counters({1: {"rx_prio3_bytes": 10**9}}, uptime=101.0)
    nodes.first["gpu002"] = snapshot("gpu002", counters_after=after)
    assert main(["fabric", "test", site, "--yes"]) == 1
    assert "in use: gpu002 rail1 carries 8.00 Gb/s" in capsys.readouterr().err
    assert nodes.asked == []
    assert main(["fabric", "test", site, "--yes", "--busy"]) == 0
    assert main(["fabric", "test", site, "--yes", "--rail", "0"]) == 0


def test_pfc_on_the_wrong_priority_is_a_finding(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.first["gpu002"] = snapshot("gpu002", qos_ports=pfc([4]))
    assert main(["fabric", "test", site, "--yes", "--rail", "0"]) == 2
    out = capsys.readouterr().out
    assert "gpu001 → gpu002  failed" in out
    assert "PFC: gpu002 rail0: on for priority 4, but traffic class 106 has 3" in out


def test_an_error_outranks_findings_and_both_are_told(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.first["gpu001"] = Unread(host="gpu001", error="no route to host")
    nodes.first["gpu002"] = snapshot("gpu002", nic_rdma=links("DOWN"))
    assert main(["fabric", "test", site, "--yes"]) == 1
    out = capsys.readouterr().out
    assert "gpu001: not read: no route to host" in out
    assert "gpu002 rail0: not tested: mlx5_0/1 is DOWN" in out


def test_json_and_junit_say_the_same(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.first["gpu002"] = snapshot("gpu002", qos_ports=pfc([4]))
    assert main(["fabric", "test", site, "--yes", "--format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["command"], report["exit_code"]) == ("fabric test", 2)
    assert [rail["failed"] for rail in report["rails"]] == [1, 1]
    assert report["rails"][0]["share_percent"]["3"] > 99
    assert main(["fabric", "test", site, "--yes", "--format", "junit"]) == 2
    document = JUnitXml.fromstring(capsys.readouterr().out.encode())
    assert (document.tests, document.failures, document.errors) == (2, 2, 0)
    suite = next(iter(document))
    assert suite.name == "rail0"
    case = next(iter(suite))
    assert case.name == "gpu001 → gpu002"
    assert isinstance(case.result[0], Failure)
    assert "on for priority 4" in case.result[0].text


def test_junit_has_what_could_not_be_tested(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.first["gpu001"] = Unread(host="gpu001", error="no route to host")
    assert main(["fabric", "test", site, "--yes", "--format", "junit"]) == 1
    document = JUnitXml.fromstring(capsys.readouterr().out.encode())
    suites = {suite.name: list(suite) for suite in document}
    assert isinstance(suites["gpu001"][0].result[0], Error)
    assert isinstance(suites["rail0"][0].result[0], Failure)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rail", "7"], "--rail 7: no host has it; there are 0, 1"),
        (["--limit", "gpu007"], "--limit: no host or group 'gpu007'"),
        (["--rounds", "0"], "Invalid value for '--rounds'"),
    ],
)
def test_wrong_usage(
    nodes: Nodes,
    site: str,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    assert main(["fabric", "test", site, "--yes", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_defaults_are_those_of_the_library() -> None:
    options = {option.name: option.default for option in fabric_test.test.params}
    load = Load()
    assert (options["size"], options["seconds"]) == (load.size, load.seconds)
    assert options["min_percent"] == MIN_PERCENT


def test_a_site_without_rails_has_nothing_to_test(
    nodes: Nodes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text('groups:\n  rack:\n    hosts: "gpu[001-002]"\n')
    assert main(["fabric", "counters", str(path)]) == 1
    assert "none of these hosts has a rail" in capsys.readouterr().err


def test_counters_of_a_quiet_fabric(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    after = counters({0: {"tx_prio3_bytes": 10**9, "rx_prio3_pause": 20}}, uptime=110.0)
    nodes.first["gpu001"] = snapshot("gpu001", counters_after=after)
    assert main(["fabric", "counters", site]) == 0
    out = capsys.readouterr().out
    assert "gpu001  rail0     0.80     0.00  3: 100.00 %" in out
    assert "gpu001 rail0 rx_prio3_pause +20 (2.0 /s): the switch held back priority 3" in out
    assert out.splitlines()[-1] == "4 rails of 2 hosts looked at: 0 with losses"


def test_losses_are_findings(nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]) -> None:
    after = counters({1: {"out_of_sequence": 3, "rx_prio0_discards": 9}}, uptime=110.0)
    nodes.first["gpu002"] = snapshot("gpu002", counters_after=after)
    assert main(["fabric", "counters", site, "--format", "json"]) == 2
    rails = json.loads(capsys.readouterr().out)["rails"]
    assert [rail["failing"] for rail in rails if rail["failing"]] == [{"out_of_sequence": 3}]
    assert main(["fabric", "counters", site, "--rail", "0"]) == 0


def test_counters_that_were_reset_are_not_fine(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    after = counters({1: {"out_of_sequence": -7}}, uptime=110.0)
    nodes.first["gpu002"] = snapshot("gpu002", counters_after=after)
    assert main(["fabric", "counters", site]) == 1
    assert "gpu002 rail1 out_of_sequence is not known" in capsys.readouterr().out
