"""What a converged node costs, and what a node that is down does to the others."""

from collections import Counter
from pathlib import Path

import pytest

from .commands import Commands
from .lab import Lab
from .layout import Distro


@pytest.fixture
def counting(
    lab: Lab, distro: Distro, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Commands, Path]:
    """Commands on an inventory that notes each remote command in a file."""
    notes = tmp_path / "commands"
    monkeypatch.setenv("RAILWRIGHT_LAB_COMMANDS", str(notes))
    return Commands(distro, "tests/lab/inventories/counting.py"), notes


def test_run_on_converged_nodes_takes_at_most_two_commands(
    counting: tuple[Commands, Path],
) -> None:
    commands, notes = counting
    commands.converge()
    counts = Counter(notes.read_text().split())
    assert set(counts) == {"gpu001", "gpu002"}
    assert max(counts.values()) <= 2


def test_drift_takes_one_command(counting: tuple[Commands, Path]) -> None:
    commands, notes = counting
    report = commands.drift()
    assert report["exit_code"] == 0
    assert Counter(notes.read_text().split()) == {"gpu001": 1, "gpu002": 1}


def test_drift_names_the_node_that_is_down_and_reports_the_others(lab: Lab, distro: Distro) -> None:
    report = Commands(distro, "tests/lab/inventories/down.py").drift()
    assert report["exit_code"] == 1
    assert report["summary"]["unread"] == ["gpu003"]
    hosts = {host["host"]: host for host in report["hosts"]}
    assert hosts["gpu003"]["error"]
    for name in ("gpu001", "gpu002"):
        assert hosts[name]["error"] is None
        assert hosts[name]["settings"] >= 60
        assert hosts[name]["ok"] == hosts["gpu001"]["ok"] > 0
