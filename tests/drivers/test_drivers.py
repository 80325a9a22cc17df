"""Drivers on a virtual node: from bare through a kernel upgrade, and refused where they must be."""

import re

from tests.drivers.conftest import Converged, Refused, Upgraded
from tests.lab.lab import Lab
from tests.standins.releases import DRIVERS, NVIDIA_FS, OFED

OFED_MODULES = ("mlx_compat", "ib_core", "ib_uverbs", "rdma_cm", "mlx5_core", "mlx5_ib")
GPU_MODULES = ("nvidia", "nvidia_peermem")
MODULES = (*OFED_MODULES, *GPU_MODULES, "nvidia_fs")


def loaded(lab: Lab) -> dict[str, str]:
    """The version of each of our modules that is loaded on gpu001."""
    script = f"cd /sys/module; for m in {' '.join(MODULES)}; do echo $m $(cat $m/version); done"
    lines = lab.run("gpu001", script).stdout.splitlines()
    return {words[0]: words[1] for words in map(str.split, lines) if len(words) == 2}


def files(lab: Lab) -> set[str]:
    """The kernels whose files modprobe takes for our modules."""
    script = f"modinfo -F filename {' '.join(MODULES)}"
    return {line.split("/")[3] for line in lab.run("gpu001", script).stdout.splitlines()}


def follows(change: tuple[str, str], left: str | None) -> bool:
    """Whether a change follows from another: a module that is loaded has its options, and what is
    built for a kernel that was left is no setting any more."""
    text = change[1]
    return text.startswith("modules option nvidia.") or f" for {left}: " in text


def assert_converged(run: Converged) -> None:
    """What was announced was done and is so, a second run and drift find nothing."""
    assert run.announced == run.dry
    assert run.told == ""
    assert not sorted(one for one in run.changed ^ run.dry if not follows(one, run.left))
    assert run.boots[0] != run.boots[1]
    assert run.second == {"gpu001": 0}
    assert run.drift["drift"] == 0, run.drift
    assert run.failures == frozenset()


def test_a_repository_that_another_key_signed_is_refused(other_key: Refused) -> None:
    assert other_key.code != 0
    assert "railwright-doca.sources could not be fetched or is not signed by its key" in (
        other_key.said
    )
    assert "NO_PUBKEY" in other_key.said
    assert other_key.after == other_key.before


def test_a_version_that_vanished_is_told_before_anything_is_changed(vanished: Refused) -> None:
    assert vanished.code != 0
    offered = " ".join(release.tools for release in OFED)
    assert f"no repository offers mlnx-tools 25.07-0.2507097; offered: {offered}" in vanished.said
    assert "no package is changed" in vanished.said
    assert vanished.after == vanished.before


def test_a_bare_node_gets_all_drivers_in_one_run(first: Converged, lab: Lab) -> None:
    assert_converged(first)
    assert {text for _, text in first.dry} >= {
        f"gpu_driver driver: running absent → {DRIVERS[0]} open",
        "gpu_driver fabric manager: running absent → active",
        "gpu_driver nvidia-fs: running absent → nvidia_fs",
        "ofed mlx5_core: running absent → OFED's",
    }


def test_nothing_of_it_is_lost_at_a_reboot(rebooted: dict[str, object], lab: Lab) -> None:
    assert rebooted["drift"] == 0, rebooted


def test_a_reboot_into_a_kernel_that_lacks_a_module_is_refused(
    incomplete: Upgraded, lab: Lab
) -> None:
    other = incomplete.other
    assert incomplete.code != 0
    assert incomplete.boots[0] == incomplete.boots[1]
    refusal = rf"ofed refuses the reboot: kernel {re.escape(other)} is not complete: [^;]*nvidia_fs"
    assert re.search(refusal, incomplete.said), incomplete.said
    assert f"dkms nvidia-fs for {other}" in incomplete.findings


def test_with_a_release_that_builds_the_upgrade_goes_through(second: Converged, lab: Lab) -> None:
    assert_converged(second)


def test_all_modules_are_those_of_the_new_kernel(
    second: Converged, incomplete: Upgraded, lab: Lab
) -> None:
    assert lab.run("gpu001", "uname -r").stdout.strip() == incomplete.other
    assert files(lab) == {incomplete.other}
    versions = dict.fromkeys(OFED_MODULES, OFED[1].ofed)
    versions |= dict.fromkeys(GPU_MODULES, DRIVERS[1]) | {"nvidia_fs": NVIDIA_FS[1]}
    assert loaded(lab) == versions
