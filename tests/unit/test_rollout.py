"""A rollout by pyinfra's own options: canaries first, then host by host until one fails."""

import json
from pathlib import Path

import pytest

from tests.unit.test_recorded import ROOT, fleet, run

DEPLOY = str(ROOT / "deploys" / "gpu_node.py")


def counts(tmp_path: Path) -> dict[str, int]:
    """Commands by host: one is the look, more is that something was done."""
    found: dict[str, int] = json.loads((tmp_path / "counts.json").read_text())
    return found


@pytest.mark.parametrize(
    ("options", "touched"), [(("--serial", "--fail-percent", "0"), 1), (("--serial",), 3)]
)
def test_peers_5_10_a_host_that_fails_stops_a_serial_rollout_where_that_is_asked_for(
    options: tuple[str, ...], touched: int, tmp_path: Path
) -> None:
    # A recorded host answers as before whatever is done to it, and so is failed.
    hosts = dict.fromkeys((f"@fake/gpu00{number}" for number in (1, 2, 3)), "thp_live")
    done = run(tmp_path, "pyinfra", "-y", *options, str(fleet(tmp_path, hosts)), DEPLOY)
    assert done.returncode == 1
    # Which one is the first is not said: pyinfra keeps hosts in a set.
    assert [count > 1 for count in counts(tmp_path).values()].count(True) == touched


def test_peers_5_10_healthy_twin_hosts_that_do_not_fail_are_all_reached(tmp_path: Path) -> None:
    hosts = dict.fromkeys((f"@fake/gpu00{number}" for number in (1, 2, 3)), "converged")
    options = ("--serial", "--fail-percent", "0")
    done = run(tmp_path, "pyinfra", "-y", *options, str(fleet(tmp_path, hosts)), DEPLOY)
    assert done.returncode == 0, done.stderr
    assert set(counts(tmp_path).values()) == {1}


def test_peers_5_10_canaries_alone_are_touched_where_their_group_is_named(tmp_path: Path) -> None:
    hosts = dict.fromkeys((f"@fake/gpu00{number}" for number in (1, 2)), "thp_live")
    inventory = fleet(tmp_path, hosts)
    groups = '{"roce": list(HOSTS), "canary": ["@fake/gpu001"]}'
    inventory.write_text(inventory.read_text().replace('{"roce": list(HOSTS)}', groups))
    done = run(tmp_path, "pyinfra", "-y", "--limit", "canary", str(inventory), DEPLOY)
    assert done.returncode == 1
    found = counts(tmp_path)
    assert found["@fake/gpu001"] > 1
    assert found["@fake/gpu002"] == 0
