"""Links, affinity, IOMMU and ordering: what the PCIe component looks at and leaves alone."""

from railwright.schema import PcieSpec, Rail
from railwright.settings import Standing, Verdict, verdict
from tests.unit.pcie_host import GPUS, ISOLATING, NICS, changed, hgx
from tests.unit.pcie_node import LIVE, RIGHT, converged, found, host, node


def test_bug_9_ordering_that_is_not_relaxed_is_told_and_never_set() -> None:
    asked = node(PcieSpec(relaxed_ordering=True))
    setting = found(asked, host(changed(RIGHT, NICS[3], control=0x5920)))["rail3 relaxed ordering"]
    assert (setting.running.value, setting.acts) == ("RlxdOrd-", False)
    assert verdict(setting, LIVE) is Verdict.NOT_RUNNING
    assert "PCI_WR_ORDERING" in (setting.remedy or "")


def test_bug_7_a_down_trained_link_is_degraded() -> None:
    devices = changed(RIGHT, GPUS[6], link=("8.0", "8", "32.0", "16"))
    setting = found(node(), converged(node(), devices))["gpu6 link"]
    assert verdict(setting, LIVE) is Verdict.DEGRADED
    assert (setting.desired, setting.running.value) == ("x16", "x8")
    assert GPUS[6] in (setting.remedy or "")


def test_bug_7_twin_a_gpu_that_is_idle_is_ok_and_told() -> None:
    devices = changed(RIGHT, GPUS[6], link=("2.5", "16", "32.0", "16"))
    setting = found(node(), converged(node(), devices))["gpu6 link"]
    assert verdict(setting, LIVE) is Verdict.OK
    assert setting.running.detail == "2.5 of 32 GT/s: an idle GPU lowers it"


def test_a_link_that_is_not_told_is_not_ok() -> None:
    devices = changed(RIGHT, NICS[0], link=("Unknown", "0", "32.0", "16"))
    assert verdict(found(node(), host(devices))["rail0 link"], LIVE) is Verdict.UNREADABLE
    devices = changed(RIGHT, NICS[0], link=("-", "-", "-", "-"))
    assert verdict(found(node(), host(devices))["rail0 link"], LIVE) is Verdict.NOT_APPLICABLE


def test_bug_3_an_iommu_that_translates_is_pending_until_a_reboot() -> None:
    devices = changed(RIGHT, GPUS[0], iommu="DMA-FQ")
    setting = found(node(), converged(node(), devices))["gpu0 iommu"]
    assert (verdict(setting, LIVE), setting.running.value) == (Verdict.PENDING, "DMA-FQ")
    assert setting.remedy == "kernel.arguments iommu=pt, and a reboot"
    assert not setting.acts


def test_bug_3_twin_passthrough_and_no_iommu_are_ok() -> None:
    devices = changed(RIGHT, GPUS[0], iommu=None)
    every = found(node(), converged(node(), devices))
    assert {verdict(every[f"gpu{n} iommu"], LIVE) for n in (0, 1)} == {Verdict.OK}


def test_bug_28_a_rail_that_is_not_nearest_to_its_gpu_is_wrong() -> None:
    swapped = {n: Rail(pci=address, gpu=7 - n) for n, address in enumerate(NICS)}
    asked = node(PcieSpec(affinity="nearest"), nics=swapped)
    setting = found(asked, host())["rail0 affinity"]
    assert (setting.running.standing, setting.running.value) == (Standing.WRONG, "SYS")
    assert setting.running.detail == "nearer: rail6 PIX, rail7 PIX"
    assert setting.desired == f"nearest to {GPUS[7]}"
    assert not setting.acts


def test_bug_28_a_gpu_whose_only_nics_are_across_sockets_is_degraded() -> None:
    asked = node(PcieSpec(affinity="nearest"), nics={0: Rail(pci=NICS[0], gpu=7)}, gpus=None)
    setting = found(asked, host())["rail0 affinity"]
    assert (setting.running.standing, setting.running.value) == (Standing.DEGRADED, "SYS")
    assert setting.running.detail == "NUMA node 0, and the GPU's is 1"


def test_bug_28_twin_the_gpu_may_be_named_by_its_address() -> None:
    rails = {n: Rail(pci=address, gpu=GPUS[n]) for n, address in enumerate(NICS)}
    every = found(node(nics=rails), converged(node(nics=rails)))
    assert {verdict(every[f"rail{n} affinity"], LIVE) for n in range(8)} == {Verdict.OK}
    assert every["rail0 affinity"].running.detail == "PIX"


def test_numa_nodes_that_are_not_known_make_affinity_unreadable() -> None:
    devices = changed(RIGHT, NICS[0], numa=-1)
    asked = node(PcieSpec(affinity="nearest"), nics={0: Rail(pci=NICS[0], gpu=7)}, gpus=None)
    assert verdict(found(asked, host(devices))["rail0 affinity"], LIVE) is Verdict.UNREADABLE


def test_bug_43_a_gpu_that_fell_off_the_bus_is_counted_and_named() -> None:
    devices = {address: one for address, one in RIGHT.items() if address != GPUS[4]}
    rails = {n: Rail(pci=address, gpu=GPUS[n]) for n, address in enumerate(NICS)}
    every = found(node(nics=rails), host(devices))
    assert (every["gpus"].running.value, every["gpus"].desired) == ("7", "8")
    assert verdict(every["gpus"], LIVE) is Verdict.DEGRADED
    assert every["gpus"].running.detail == f"not on the bus: {GPUS[4]}"
    assert every["rail4 affinity"].running.standing is Standing.ABSENT


def test_bug_43_twin_all_gpus_are_there() -> None:
    assert verdict(found(node(), host())["gpus"], LIVE) is Verdict.OK


def test_a_node_that_has_no_gpus_has_no_affinity_and_its_rails_acs() -> None:
    devices = {a: one for a, one in hgx(acs=ISOLATING).items() if one.kind != "gpu"}
    every = found(node(gpus=None), host(devices))
    assert verdict(every["rail0 affinity"], LIVE) is Verdict.NOT_APPLICABLE
    assert verdict(every["acs 0000:17:02.0"], LIVE) is Verdict.WRONG
    assert "acs 0000:17:00.0" not in every
