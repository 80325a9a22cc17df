"""A reboot that the inventory allows: one run asks for an argument, boots it and proves it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import ssh
from .commands import Changes, Commands, announced
from .demo import changes
from .lab import Lab
from .layout import Distro

pytestmark = pytest.mark.slow
INVENTORY = "tests/lab/inventories/reboot.py"
ARGUMENT = "split_lock_detect=off"


@dataclass(frozen=True)
class Rebooted:
    """The nodes before and after a run that asks for one more argument, and after another."""

    dry: Changes
    announced: Changes
    changed: Changes
    boots_before: dict[str, str]
    boots_after: dict[str, str]
    report: dict[str, Any]
    second: dict[str, int]


def _boots(lab: Lab) -> dict[str, str]:
    return {node.name: lab.boot_id(node.name) for node in lab.nodes}


@pytest.fixture(scope="module")
def rebooted(lab: Lab, distro: Distro, tmp_path_factory: pytest.TempPathFactory) -> Rebooted:
    folder: Path = tmp_path_factory.mktemp("reboot")
    site = Commands(distro, INVENTORY)
    before = site.snapshot(folder / "before")
    boots_before = _boots(lab)
    dry = site.dry()
    first = site.converge()
    # The run rebooted it behind the back of the lab's own connection.
    ssh.hang_up(lab.layout, lab.node("gpu002"))
    after = site.snapshot(folder / "after")
    return Rebooted(
        dry=dry,
        announced=announced(first),
        changed=site.differences(before, after),
        boots_before=boots_before,
        boots_after=_boots(lab),
        report=site.replay(after),
        second=dict(changes(site.converge())),
    )


def test_run_announces_the_argument_persisted_and_running(rebooted: Rebooted) -> None:
    lines = {text for host, text in rebooted.dry if host == "gpu002"}
    assert {
        f"kernel argument split_lock_detect: persisted absent → {ARGUMENT}",
        f"kernel argument split_lock_detect: running absent → {ARGUMENT}",
    } <= lines
    assert not [text for host, text in rebooted.dry if host != "gpu002"]
    assert rebooted.announced == rebooted.dry


def test_run_does_what_was_announced_and_nothing_else(rebooted: Rebooted) -> None:
    assert not sorted(rebooted.changed ^ rebooted.dry)


def test_run_reboots_only_where_that_is_allowed(rebooted: Rebooted) -> None:
    assert rebooted.boots_after["gpu002"] != rebooted.boots_before["gpu002"]
    assert rebooted.boots_after["gpu001"] == rebooted.boots_before["gpu001"]


def test_the_node_remembers_what_it_was_rebooted_for(rebooted: Rebooted, lab: Lab) -> None:
    last = json.loads(lab.run("gpu002", "cat /var/lib/railwright/reboot.json").stdout)
    assert last["boot_id"] == rebooted.boots_before["gpu002"]
    assert last["wanted"]["kernel argument split_lock_detect"] == ARGUMENT


def test_no_drift_after_the_reboot_of_the_run(rebooted: Rebooted) -> None:
    assert rebooted.report["exit_code"] == 0, rebooted.report


def test_second_run_changes_nothing_and_reboots_nothing(rebooted: Rebooted, lab: Lab) -> None:
    assert rebooted.second == {"gpu001": 0, "gpu002": 0}
    assert _boots(lab) == rebooted.boots_after


def test_argument_that_is_no_longer_asked_for_leaves_the_boot_loader(
    rebooted: Rebooted, lab: Lab, distro: Distro
) -> None:
    read = "cat /boot/grub/grub.cfg"
    assert ARGUMENT in lab.run("gpu002", read).stdout
    Commands(distro).converge()
    assert ARGUMENT not in lab.run("gpu002", read).stdout
