"""Recorded states of a real node: alone, and as a fleet of 500 behind pyinfra's fake connector."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploys.components import COMPONENTS
from railwright.drift import judge, reason
from railwright.reading import load
from railwright.report.document import Outcome, outcome
from railwright.schema import Node
from railwright.settings import changes
from railwright.site import load_inventory
from railwright.snapshot import Snapshot
from tests.unit.replay import probe_output

ROOT = Path(__file__).parents[2]
SNAPSHOTS = ROOT / "tests" / "snapshots"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load(
    (SNAPSHOTS / "verdicts.yaml").read_text(encoding="utf-8")
)
BIN = Path(sys.executable).parent


def snapshot(scene: str) -> Snapshot:
    found = load("gpu001", SNAPSHOTS / scene)
    assert isinstance(found, Snapshot)
    return found


@pytest.fixture(scope="module")
def node() -> Node:
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        return load_inventory(Path("inventories/lab.py")).nodes["gpu001"]
    finally:
        os.chdir(before)


def test_at_least_twelve_distinct_states_are_recorded_and_each_has_a_verdict() -> None:
    recorded = {path.name for path in SNAPSHOTS.iterdir() if path.is_dir()}
    assert recorded == EXPECTED.keys()
    contents = {
        json.dumps({k: v.stdout for k, v in snapshot(scene).sections.items()}) for scene in recorded
    }
    assert len(contents) == len(recorded) >= 12


@pytest.mark.parametrize("scene", EXPECTED)
def test_each_state_is_judged_as_written_by_hand(scene: str, node: Node) -> None:
    (report,) = judge({"gpu001": node}.values(), {"gpu001": snapshot(scene)}, COMPONENTS)
    found = {
        f"{finding.setting.component} {finding.setting.key}": finding
        for finding in report.findings
        if outcome(finding.verdict) is not Outcome.FINE
    }
    expected = EXPECTED[scene]
    if "unreadable" in expected:
        assert found
        for finding in found.values():
            assert finding.setting.component == expected["unreadable"]
            assert finding.verdict.value == "unreadable"
        return
    assert {key: finding.verdict.value for key, finding in found.items()} == {
        key: said[0] for key, said in expected.get("settings", {}).items()
    }
    for key, (_, *named) in expected.get("settings", {}).items():
        for words in named:
            assert words in reason(found[key].setting, found[key].verdict), key


def test_a_converged_node_has_nothing_to_do_and_all_components_that_it_asks_for_look(
    node: Node,
) -> None:
    (report,) = judge([node], {"gpu001": snapshot("converged")}, COMPONENTS)
    settings = [finding.setting for finding in report.findings]
    idle = {"firmware", "packages", "ofed", "gpu_driver", "gds"}
    idle |= {"scratch", "nvmeof", "nfs", "lustre", "beegfs"}
    asked = {component.name for component in COMPONENTS} - idle
    assert len(asked) == 11
    assert {setting.component for setting in settings} == asked
    assert len(settings) >= 300
    assert [c for s in settings for c in changes(s, node.effects.allow)] == []
    for component in COMPONENTS:
        own = [setting for setting in settings if setting.component == component.name]
        assert list(component.actions(node, snapshot("converged"), own)) == []


FLEET = '''
"""A fleet of fake hosts that answer with recorded snapshots; counts the commands they are given."""

import atexit
import json
import re
from pathlib import Path

from pyinfra.connectors.fake import FakeConnector
from pyinfra.connectors.util import CommandOutput, OutputLine
from railwright.site import inventory

ANSWERS = json.loads(Path("answers.json").read_text())
HOSTS = json.loads(Path("hosts.json").read_text())
COUNTS = {name: 0 for name in HOSTS}


def own_addresses(text, name):
    """What gpu001 answered, with the addresses that the rails of this host have; GIDs too."""
    last = int(name[-3:]) + 1

    def own(match):
        third = (int(match[1]) if match[1] else int(match[2], 16)) + last // 256
        if match[1]:
            return f"10.64.{third}.{last % 256}"
        return f"0a40:{third:02x}{last % 256:02x}"

    return re.sub(r"\\b10[.]64[.](\\d+)[.]2\\b|0a40:(..)02\\b", own, text)


def answer(self, command):
    COUNTS[self.host.name] += 1
    scene = HOSTS[self.host.name]
    if scene is None:
        return False, CommandOutput([OutputLine("stderr", "sudo: a password is required")])
    text = own_addresses(ANSWERS[scene], self.host.name)
    return True, CommandOutput([OutputLine("stdout", x) for x in text.split(chr(10))])


FakeConnector._lookup_response = answer
FakeConnector._sleep = lambda self: None
atexit.register(lambda: Path("counts.json").write_text(json.dumps(COUNTS)))

globals().update(inventory(__file__, {"roce": list(HOSTS)}))
'''


def fleet(
    tmp_path: Path,
    hosts: Mapping[str, str | None],
    others: Mapping[str, Snapshot] | None = None,
) -> Path:
    """An inventory of fake hosts, each in the state that it is given; None fails.

    A state is a recorded one, or one of ``others``.
    """
    scenes = {scene for scene in hosts.values() if scene is not None}
    made = others or {}
    answers = {
        scene: probe_output(made[scene] if scene in made else snapshot(scene)) for scene in scenes
    }
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    (tmp_path / "hosts.json").write_text(json.dumps(hosts))
    (tmp_path / "lab.py").write_text(FLEET)
    (tmp_path / "group_data").symlink_to(ROOT / "group_data")
    return tmp_path / "lab.py"


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYINFRA_PROGRESS": "off",
            "DISTRO": "bookworm",
        },
        capture_output=True,
        text=True,
    )


def test_500_hosts_get_the_right_verdicts_and_the_failed_ones_are_named(tmp_path: Path) -> None:
    names = [f"@fake/gpu{number:03}" for number in range(1, 501)]
    hosts: dict[str, str | None] = dict(zip(names, islice(cycle(EXPECTED), 500), strict=True))
    dead = {"@fake/gpu007", "@fake/gpu400"}
    hosts.update(dict.fromkeys(dead))
    done = run(tmp_path, "railwright", "drift", str(fleet(tmp_path, hosts)), "--format", "json")
    report = json.loads(done.stdout)
    # An error outranks drift.
    assert done.returncode == report["exit_code"] == 1
    assert {entry["host"] for entry in report["hosts"] if entry["error"]} == dead
    assert set(report["summary"]["unread"]) == dead
    for entry in report["hosts"]:
        scene = hosts[entry["host"]]
        if scene is None:
            assert "sudo: a password is required" in entry["error"]
            continue
        expected = EXPECTED[scene]
        found = {
            f"{finding['component']} {finding['key']}": finding["verdict"]
            for finding in entry["findings"]
            if finding["outcome"] != "fine"
        }
        if "unreadable" in expected:
            assert set(found.values()) == {"unreadable"}
        else:
            assert found == {key: said[0] for key, said in expected.get("settings", {}).items()}
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert set(counts.values()) == {1}


@pytest.mark.parametrize("scene", [scene for scene in EXPECTED if EXPECTED[scene]["exit"] != 1])
def test_the_exit_code_of_drift(scene: str, tmp_path: Path) -> None:
    inventory = fleet(tmp_path, {"@fake/gpu001": scene, "@fake/gpu002": "converged"})
    done = run(tmp_path, "railwright", "drift", str(inventory))
    assert done.returncode == EXPECTED[scene]["exit"], done.stdout + done.stderr


@pytest.mark.parametrize(("scene", "code"), [("blacklisted_loaded", 0), ("thp_live", 2)])
def test_accepting_what_is_pending_accepts_nothing_else(
    scene: str, code: int, tmp_path: Path
) -> None:
    inventory = fleet(tmp_path, {"@fake/gpu001": scene})
    done = run(tmp_path, "railwright", "drift", str(inventory), "--accept-pending")
    assert done.returncode == code
    assert scene != "blacklisted_loaded" or "blacklist rds" in done.stdout


def test_a_converged_host_costs_one_command_by_pyinfra_and_one_by_drift(tmp_path: Path) -> None:
    inventory = fleet(tmp_path, {"@fake/gpu001": "converged", "@fake/gpu002": "converged"})
    deploy = str(ROOT / "deploys" / "gpu_node.py")
    done = run(tmp_path, "pyinfra", "-y", "--json", str(inventory), deploy)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"]["totals"]["success"] == 0
    assert json.loads((tmp_path / "counts.json").read_text()) == {
        "@fake/gpu001": 1,
        "@fake/gpu002": 1,
    }


def test_prod_plans_from_snapshots_recorded_in_the_lab() -> None:
    done = run(
        ROOT,
        *("railwright", "plan", "inventories/prod.py", "--limit", "gpu001"),
        *("--from", str(SNAPSHOTS / "converged"), "--format", "json"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (entry,) = json.loads(done.stdout)["hosts"]
    planned = {
        f"{finding['component']} {finding['key']}": finding["changes"]
        for finding in entry["findings"]
        if finding["changes"]
    }
    assert "modules blacklist nouveau" in planned
    assert entry["error"] is None
