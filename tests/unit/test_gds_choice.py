"""nvidia-fs or P2PDMA: what speaks against each, on which evidence."""

from typing import Any

import pytest

from facts.nvidia_proc import NvidiaModule
from railwright.gds.choice import MODES, Mode, Platform, Storage, choose, reasons_against, unknown

PLATFORM = Platform(
    machine="x86_64",
    distribution="ubuntu",
    release="24.04",
    kernel=(6, 8),
    kernel_has_p2pdma=True,
    driver=NvidiaModule(version="580.95.05", flavour="open"),
    libcufile=(1, 14),
    gpus=("NVIDIA H100 80GB HBM3",) * 8,
    virtual="",
)
STORAGE = Storage(nvme_multipath=False, iommu="passthrough", acs_redirects=False)


def _with(**changed: Any) -> tuple[Platform, Storage]:
    on_platform = {k: v for k, v in changed.items() if k in Platform.model_fields}
    on_storage = {k: v for k, v in changed.items() if k in Storage.model_fields}
    assert on_platform.keys() | on_storage.keys() == changed.keys()
    return PLATFORM.model_copy(update=on_platform), STORAGE.model_copy(update=on_storage)


def _against(mode: Mode, **changed: Any) -> str:
    return "; ".join(reason.text for reason in reasons_against(mode, *_with(**changed)))


def test_a_host_that_has_all_of_it_takes_p2pdma() -> None:
    assert choose(PLATFORM, STORAGE).mode == "p2pdma"
    assert all(not reasons_against(mode, PLATFORM, STORAGE) for mode in MODES)
    assert all(not unknown(mode, PLATFORM, STORAGE) for mode in MODES)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"machine": "aarch64"}, "aarch64: Grace Hopper"),
        ({"kernel": (5, 15)}, "kernel 5.15"),
        ({"kernel_has_p2pdma": False}, "no PCI_P2PDMA"),
        ({"distribution": "rhel", "release": "9.5"}, "RHEL 9.5"),
        ({"distribution": "rocky", "release": "9.5"}, "RHEL 9.5"),
        ({"driver": NvidiaModule(version="560.35.03", flavour="open")}, "driver 560.35.03"),
        ({"driver": NvidiaModule(version="565.46", flavour="open")}, "565.47 or later"),
        ({"libcufile": (1, 12)}, "libcufile 1.12"),
        ({"virtual": "kvm"}, "a virtual machine (kvm)"),
        ({"raid0": ("md0",)}, "RAID0 over NVMe drives: md0"),
        ({"fabrics": ("nvme4",)}, "NVMe over fabrics: nvme4"),
        ({"nvme_multipath": True}, "native NVMe multipath"),
    ],
)
def test_what_keeps_p2pdma_off_leaves_nvidia_fs(changed: dict[str, Any], said: str) -> None:
    assert said in _against("p2pdma", **changed)
    assert _against("nvidia-fs", **changed) == ""
    assert choose(*_with(**changed)).mode == "nvidia-fs"


def test_beegfs_that_registers_each_buffer_keeps_nvidia_fs_off_alone() -> None:
    assert "connRDMAKeyType = register" in _against("nvidia-fs", beegfs_keys="register")
    assert _against("nvidia-fs", beegfs_keys="global") == ""
    assert choose(*_with(beegfs_keys="register")).mode == "p2pdma"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"iommu": "translated"}, "the IOMMU translates DMA"),
        ({"acs_redirects": True}, "ACS redirects peer traffic"),
        ({"driver": NvidiaModule(version="580.95.05", flavour="proprietary")}, "proprietary"),
    ],
)
def test_what_keeps_both_off_leaves_no_way(changed: dict[str, Any], said: str) -> None:
    chosen = choose(*_with(**changed))
    assert chosen.mode is None
    assert all(said in chosen.against[mode][0].text for mode in MODES)


@pytest.mark.parametrize(
    ("kernel", "distribution"), [((6, 2), "ubuntu"), ((5, 14), "rhel"), ((6, 1), "debian")]
)
def test_outside_ubuntu_the_kernels_symbol_decides(
    kernel: tuple[int, int], distribution: str
) -> None:
    assert _against("p2pdma", kernel=kernel, distribution=distribution, release="9.4") == ""


def test_each_reason_has_a_source() -> None:
    bad = _with(
        machine="aarch64",
        kernel=(5, 4),
        kernel_has_p2pdma=False,
        driver=NvidiaModule(version="470.1", flavour="proprietary"),
        libcufile=(1, 0),
        virtual="kvm",
        raid0=("md0",),
        fabrics=("nvme1",),
        nvme_multipath=True,
        iommu="translated",
        acs_redirects=True,
        beegfs_keys="register",
    )
    assert [len(reasons_against(mode, *bad)) for mode in MODES] == [12, 4]
    assert all(reason.source for mode in MODES for reason in reasons_against(mode, *bad))


def test_what_is_not_known_is_no_reason_and_is_told() -> None:
    nothing = (Platform(), Storage())
    assert choose(*nothing).against == {"p2pdma": (), "nvidia-fs": ()}
    assert unknown("nvidia-fs", *nothing) == (
        "the GPU driver",
        "the IOMMU",
        "whether it is a virtual machine",
    )
    assert "nvme_core's multipath" in unknown("p2pdma", *nothing)
    assert len(unknown("p2pdma", *nothing)) == 7


def test_a_gpu_that_is_not_in_the_list_is_told() -> None:
    told = unknown("p2pdma", *_with(gpus=("NVIDIA A100-SXM4-80GB", "NVIDIA RTX A6000")))
    assert told == ("whether NVIDIA RTX A6000 can do it: not in NVIDIA's list",)
