"""Every row of the table: broken, told apart, put right or left, and seen by verify too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from .breaks import BREAKS, Break, Says
from .commands import Changes, Commands, announced
from .lab import Lab
from .layout import Distro

INVENTORY = "tests/lab/inventories/breaks.py"

Entries = Mapping[tuple[str, str, str], dict[str, Any]]
"""What a report says of settings that are not ok, by host, component and key."""


@dataclass(frozen=True)
class Broken:
    """The nodes with all rows of the table broken, after one run, and with the rest undone."""

    healthy: Entries
    found: Entries
    planned: Changes
    dry: Changes
    failures: frozenset[str]
    output: str
    changed: Changes
    left: Entries
    mended: Entries


def _drifting(report: Mapping[str, Any]) -> Entries:
    assert not report["summary"]["unread"]
    return {
        (host["host"], entry["component"], entry["key"]): entry
        for host in report["hosts"]
        for entry in host["findings"]
        if entry["outcome"] != "fine"
    }


def _on_node(lab: Lab, row: Break, script: str) -> None:
    if not script:
        return
    done = lab.run(row.node, f"set -e\nexport DEBIAN_FRONTEND=noninteractive\n{script}")
    assert done.returncode == 0, f"{row.name}: {done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def site(distro: Distro) -> Commands:
    return Commands(distro, INVENTORY)


@pytest.fixture(scope="module")
def broken(lab: Lab, site: Commands, tmp_path_factory: pytest.TempPathFactory) -> Broken:
    """One look, one verify, one run and another look for all rows; then what is left is undone."""
    folder = tmp_path_factory.mktemp("breaks")
    healthy = _drifting(site.replay(site.snapshot(folder / "healthy")))
    try:
        for row in BREAKS:
            _on_node(lab, row, row.script)
        before = site.snapshot(folder / "broken")
        failures = site.failures()
        dry = site.dry()
        output = site.converge()
        after = site.snapshot(folder / "after")
    finally:
        for row in BREAKS:
            _on_node(lab, row, row.undo)
    return Broken(
        healthy=healthy,
        found=_drifting(site.replay(before)),
        planned=site.plan(before),
        dry=dry,
        failures=failures,
        output=output,
        changed=site.differences(before, after),
        left=_drifting(site.replay(after)),
        mended=_drifting(site.replay(site.snapshot(folder / "mended"))),
    )


def _told(entry: Mapping[str, Any]) -> str:
    """All that is said of a setting, on one line."""
    parts = [
        f"{name} {state['value']} by {state['decider']} ({state['detail']})"
        for name in ("persisted", "running")
        for state in (entry[name],)
    ]
    return "; ".join([*parts, entry["reason"]])


def _says(row: Break, says: Says, entries: Entries) -> dict[str, Any]:
    place = (row.node, says.component, says.key)
    assert place in entries, f"nothing is said of {place}"
    return entries[place]


rows = pytest.mark.parametrize("row", BREAKS, ids=[row.name for row in BREAKS])


def test_healthy_nodes_give_no_verdict(broken: Broken) -> None:
    assert not broken.healthy


@rows
def test_drift_says_what_is_broken_and_what_decides(row: Break, broken: Broken) -> None:
    for says in row.says:
        entry = _says(row, says, broken.found)
        assert (entry["verdict"], entry["effect"]) == (says.verdict, says.effect), _told(entry)
        assert all(words in _told(entry) for words in says.names), (says.names, _told(entry))


def test_nothing_else_is_reported(broken: Broken) -> None:
    told = {(row.node, says.component, says.key) for row in BREAKS for says in row.says}
    assert not {place: _told(broken.found[place]) for place in broken.found if place not in told}


@rows
def test_verify_fails(row: Break, broken: Broken) -> None:
    assert row.fails
    assert set(row.fails) <= broken.failures, sorted(broken.failures)


def test_dry_run_announces_what_the_run_does(broken: Broken) -> None:
    assert broken.planned
    assert not sorted(broken.dry ^ broken.planned)
    assert not sorted(announced(broken.output) ^ broken.dry)
    assert not sorted(broken.dry ^ broken.changed)


@rows
def test_run_puts_right_what_it_may(row: Break, broken: Broken) -> None:
    for says in row.says:
        if says.after == "ok":
            assert (row.node, says.component, says.key) not in broken.left
            continue
        entry = _says(row, says, broken.left)
        assert entry["verdict"] == says.after, _told(entry)
        assert all(words in _told(entry) for words in says.still), (says.still, _told(entry))


def test_nothing_is_left_but_what_the_table_says(broken: Broken) -> None:
    left = {
        (row.node, says.component, says.key)
        for row in BREAKS
        for says in row.says
        if says.after != "ok"
    }
    assert set(broken.left) == left


def test_run_says_at_its_end_what_is_pending(broken: Broken) -> None:
    assert "pending: modules blacklist rds → not loaded waits for: driver" in broken.output


def test_no_drift_once_the_rest_is_undone(broken: Broken) -> None:
    assert not {place: _told(entry) for place, entry in broken.mended.items()}
