"""The demo on bare nodes, step by step, and what must hold at each step."""

import re

from .commands import Changes, Commands
from .conftest import Bare, FirstRun, Waiting

COMPONENTS = (
    *("modules", "kernel", "hugepages", "rails", "sysctl", "limits", "time", "holds"),
    *("pcie", "qos", "ports"),
)


def _others(one: Changes, other: Changes) -> list[tuple[str, str]]:
    return sorted(one ^ other)


def test_dry_run_on_bare_nodes_announces_the_plan(bare: Bare) -> None:
    assert bare.planned
    assert not _others(bare.dry, bare.planned)


def test_first_run_brings_eight_rails(bare: Bare) -> None:
    for node in ("gpu001", "gpu002"):
        mine = {change for host, change in bare.planned if host == node}
        for rail in range(8):
            for setting in ("rails rail{} address: running absent", "qos rail{} pfc: running none"):
                assert any(change.startswith(setting.format(rail)) for change in mine), rail


def test_verify_fails_on_bare_nodes_for_every_component(bare: Bare) -> None:
    files = {test.partition("::")[0] for test in bare.failures}
    assert files == {f"test_{name}.py" for name in COMPONENTS}


def test_first_run_does_what_was_announced_and_nothing_else(
    bare: Bare, first_run: FirstRun, commands: Commands
) -> None:
    done = commands.differences(bare.snapshot, first_run.snapshot)
    assert not _others(bare.dry, done)


def test_first_run_changes_both_nodes(first_run: FirstRun) -> None:
    looked, _, made = first_run.said
    found = re.search(r"(\d+) settings a node looked at, wrong: (.*)", looked)
    assert found is not None, looked
    assert int(found[1]) >= 300
    wrong, changed = _by_node(found[2]), _by_node(made.removeprefix("first run: "))
    assert set(wrong) == set(changed) == {"gpu001", "gpu002"}
    assert all(wrong[name] > 0 and changed[name] > 0 for name in wrong)


def _by_node(text: str) -> dict[str, int]:
    """Counts as the demo says them: ``gpu001 61, gpu002 61 changes``."""
    return {name: int(count) for name, count in re.findall(r"(gpu\d+) (\d+)", text)}


def test_second_run_changes_nothing(second_run: list[str]) -> None:
    assert second_run == ["second run: gpu001 0, gpu002 0 changes"]


def test_only_kernel_arguments_wait_for_the_reboot(waiting: Waiting) -> None:
    (line,) = waiting.said
    assert line.startswith("drift before the reboot: kernel arguments pending: gpu001 ")
    for host in waiting.report["hosts"]:
        iommu = next(e for e in host["findings"] if e["key"] == "argument iommu")
        assert iommu["verdict"] == "pending"
        assert iommu["effect"] == "reboot"
        assert iommu["persisted"]["standing"] == "right"
        assert iommu["persisted"]["decider"].startswith("/etc/default/grub.d/99-zz-railwright.cfg:")
        assert "waits for reboot" in iommu["reason"]


def test_argument_persisted_but_not_booted_fails_verify(waiting: Waiting) -> None:
    assert "test_kernel.py::test_argument[gpu001-iommu]" in waiting.failures


def test_reboot_is_a_new_boot(rebooted: list[str]) -> None:
    assert rebooted == ["rebooted, boot ids changed: gpu001, gpu002"]


def test_no_drift_after_the_reboot(undrifted: list[str]) -> None:
    (line,) = undrifted
    assert line.startswith("drift after the reboot: 0 of ")


def test_verify_passes_after_the_reboot(verified: list[str]) -> None:
    (line,) = verified
    assert re.search(r"verify: \d+ passed", line)
    assert "failed" not in line
