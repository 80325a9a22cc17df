"""Which way IO between drives and GPUs takes: nvidia-fs, or P2PDMA of the kernel.

What is known of versions is data (``railwright.compat``); here is what only a node shows. Each
reason against one of them has its source, so that plan, drift and documentation say the same. What
is not known of a node is no reason: it is told as such.
"""

from collections.abc import Iterator
from typing import Literal

from facts.nvidia_proc import NvidiaModule
from railwright.compat import Facts, judge
from railwright.compat.facts import BY_OS_RELEASE, WORDS
from railwright.model import Model

Mode = Literal["nvidia-fs", "p2pdma"]
MODES: tuple[Mode, ...] = ("p2pdma", "nvidia-fs")
"""Best first: P2PDMA needs no module and no patched NVMe driver."""

LEAST_LIBCUFILE = (1, 13)
"""libcufile of CUDA 12.8. Source: GDS installation guide, P2PDMA mode."""
GPUS = ("A100", "A40", "L4", "L40S", "H100", "H200", "B100", "B200", "B300")
"""Source: GDS troubleshooting guide, 14.2."""

_P2PDMA = "GDS troubleshooting guide, NVMe P2PDMA"
_NOTES = "GDS release notes, known limitations and known issues"
_NVME = "NVIDIA, GDS support for NVMe drives using Linux PCI P2PDMA"


class Platform(Model):
    """What a node is made of; None where it is not known.

    ``kernel`` and ``libcufile`` are the first two numbers of their versions, ``machine`` is that
    of ``uname -m``, ``distribution`` and ``release`` are ID and VERSION_ID of os-release.
    ``virtual`` names the hypervisor, "" on bare metal. ``nvidia_fs_users`` are the storage drivers
    that have registered with nvidia-fs.
    """

    machine: str | None = None
    distribution: str | None = None
    release: str | None = None
    kernel: tuple[int, int] | None = None
    kernel_has_p2pdma: bool | None = None
    driver: NvidiaModule | None = None
    libcufile: tuple[int, int] | None = None
    gpus: tuple[str, ...] = ()
    virtual: str | None = None
    nvidia_fs_is_loaded: bool | None = None
    nvidia_fs_users: frozenset[str] | None = None


class Storage(Model):
    """What lies between drives and GPUs; None where it is not known.

    ``local``, ``fabrics`` and ``raid0`` name NVMe controllers on PCIe, those over a fabric, and
    arrays of NVMe drives; ``beegfs_keys`` is connRDMAKeyType of the BeeGFS client.
    """

    nvme_multipath: bool | None = None
    local: tuple[str, ...] = ()
    fabrics: tuple[str, ...] = ()
    raid0: tuple[str, ...] = ()
    iommu: Literal["off", "passthrough", "translated"] | None = None
    acs_redirects: bool | None = None
    beegfs_keys: str | None = None


class Reason(Model):
    """Why a way cannot be taken, where that is written, and what would help."""

    text: str
    source: str
    remedy: str | None = None


class Choice(Model):
    """The way to take, None where there is none; and what stands against each."""

    mode: Mode | None
    against: dict[Mode, tuple[Reason, ...]]


def choose(platform: Platform, storage: Storage) -> Choice:
    """The best way that nothing stands against."""
    against = {mode: reasons_against(mode, platform, storage) for mode in MODES}
    free = [mode for mode in MODES if not against[mode]]
    return Choice(mode=free[0] if free else None, against=against)


def reasons_against(mode: Mode, platform: Platform, storage: Storage) -> tuple[Reason, ...]:
    """All that is known to keep ``mode`` from working on such a node."""
    found = list(_on_the_bus(storage))
    if mode == "nvidia-fs":
        return (*found, *_nvidia_fs(platform, storage))
    return (*found, *_p2pdma_platform(platform), *_p2pdma_storage(storage))


def unknown(mode: Mode, platform: Platform, storage: Storage) -> tuple[str, ...]:
    """What would have to be known to be sure of ``mode``."""
    asked: dict[str, object] = {
        "the GPU driver": platform.driver,
        "the IOMMU": storage.iommu,
        "whether it is a virtual machine": platform.virtual,
    }
    if mode == "p2pdma":
        asked |= {
            "whether the kernel has PCI_P2PDMA": platform.kernel_has_p2pdma,
            "the version of libcufile": platform.libcufile,
            "nvme_core's multipath": storage.nvme_multipath,
            "the GPUs": platform.gpus or None,
        }
    found = [what for what, value in asked.items() if value is None]
    users = platform.nvidia_fs_users
    if mode == "nvidia-fs" and users and storage.local and "nvme" not in users:
        found.append(
            "whether drives of the node take it: of storage drivers only "
            f"{', '.join(sorted(users))} has registered with nvidia-fs"
        )
    if platform.virtual:
        found.append(f"whether {platform.virtual} lets devices reach each other: see gdscheck -p")
    if mode == "p2pdma":
        found += [
            f"whether {name} can do it: not in NVIDIA's list"
            for name in sorted(set(platform.gpus))
            if not any(word in GPUS for word in name.replace("-", " ").split())
        ]
    return tuple(found)


def _on_the_bus(storage: Storage) -> Iterator[Reason]:
    if storage.iommu == "translated":
        yield Reason(
            text="the IOMMU translates DMA",
            source="GDS troubleshooting guide, before you install GDS",
            remedy="kernel.arguments iommu: pt, or the IOMMU off (intel_iommu=off, amd_iommu=off)",
        )
    if storage.acs_redirects:
        yield Reason(
            text="ACS redirects peer traffic to the root complex",
            source="GDS troubleshooting guide, disabling PCIe access control services",
            remedy="pcie.acs: clear",
        )


def _nvidia_fs(platform: Platform, storage: Storage) -> Iterator[Reason]:
    if platform.nvidia_fs_is_loaded and platform.nvidia_fs_users == frozenset():
        yield Reason(
            text="no storage driver has registered with nvidia-fs: all IO goes through the host",
            source="NVIDIA/gds-nvidia-fs#87: it looks for nvme's hook of another generation",
            remedy="nvidia-fs, and nvme or the file system's client, of releases that belong "
            "together",
        )
    if storage.beegfs_keys == "register":
        yield Reason(
            text="BeeGFS registers each buffer (connRDMAKeyType = register)",
            source="comments of beegfs-client.conf on connRDMAKeyType",
            remedy="connRDMAKeyType = global in /etc/beegfs/beegfs-client.conf",
        )
    if platform.driver is not None and platform.driver.flavour != "open":
        yield Reason(
            text="the GPU driver's modules are the proprietary ones",
            source="GDS installation guide: nvidia-fs 2.17.5 and later need the open modules",
            remedy="install the open modules",
        )


def _p2pdma_platform(platform: Platform) -> Iterator[Reason]:
    yield from _p2pdma_versions(platform)
    if platform.virtual:
        yield Reason(
            text=f"a virtual machine ({platform.virtual}): its devices do not reach each other",
            source="GDS release notes 1.7.2: compatibility mode on cloud instances",
            remedy="bare metal, or a file system over RDMA",
        )
    if platform.kernel_has_p2pdma is False:
        yield Reason(
            text="the kernel has no PCI_P2PDMA",
            source=f"{_P2PDMA}: p2pdma_pgmap_ops in /proc/kallsyms",
            remedy="a kernel with CONFIG_PCI_P2PDMA",
        )
    if platform.libcufile is not None and platform.libcufile < LEAST_LIBCUFILE:
        shown = ".".join(map(str, platform.libcufile))
        yield Reason(text=f"libcufile {shown}: 1.13 (CUDA 12.8) is the least", source=_NVME)


def _p2pdma_versions(platform: Platform) -> Iterator[Reason]:
    driver, kernel, release = platform.driver, platform.kernel, platform.release
    facts = Facts.model_validate(
        {
            "gds": "p2pdma",
            "distribution": BY_OS_RELEASE.get(platform.distribution or ""),
            # A rolling distribution has none, or a word.
            "release": release if release and release[0].isdigit() else None,
            "architecture": platform.machine if platform.machine in WORDS["architecture"] else None,
            "kernel": ".".join(map(str, kernel)) if kernel else None,
            "driver": driver.version if driver else None,
            "driver_modules": driver.flavour if driver else None,
        }
    )
    for found in judge(facts):
        if found.row is not None and "gds" in found.parts:
            parts = ", ".join(f"{part} {v}" for part, v in found.parts.items() if part != "gds")
            source = f"compat {found.row.name}, {found.row.source}"
            yield Reason(text=f"{parts}: {found.row.why}", source=source)


def _p2pdma_storage(storage: Storage) -> Iterator[Reason]:
    if storage.raid0:
        yield Reason(
            text=f"RAID0 over NVMe drives: {', '.join(storage.raid0)}",
            source=f"{_NOTES}; {_NVME}",
            remedy="nvidia-fs, or a file system on each drive",
        )
    if storage.fabrics:
        yield Reason(
            text=f"NVMe over fabrics: {', '.join(storage.fabrics)}",
            source=_NVME,
            remedy="nvidia-fs",
        )
    if storage.nvme_multipath:
        yield Reason(
            text="native NVMe multipath is on (nvme_core.multipath=Y)",
            source=f"{_P2PDMA}; {_NOTES}",
            remedy="modules.options nvme_core: multipath=N; NVMe-oF then has no native multipath",
        )
