"""The set that is judged: what a node runs, or is to run, as far as it is known."""

from typing import Literal, cast, get_args

from railwright.compat.versions import VersionText
from railwright.model import Model

Part = Literal[
    "distribution",
    "release",
    "architecture",
    "kernel",
    "nic",
    "rdma",
    "doca",
    "mlnx_ofed",
    "driver",
    "driver_modules",
    "gpu",
    "gpu_architecture",
    "peer_memory",
    "gds",
    "nvidia_fs",
    "lustre",
    "beegfs",
]

Distribution = Literal["rhel", "ubuntu", "debian", "sles"]
"""Rocky, Alma and Oracle's compatible kernel count as rhel, with its release."""

BY_OS_RELEASE: dict[str, Distribution] = {
    "ubuntu": "ubuntu",
    "debian": "debian",
    "sles": "sles",
    "rhel": "rhel",
    "rocky": "rhel",
    "almalinux": "rhel",
    "ol": "rhel",
    "centos": "rhel",
}
"""ID of os-release to the distribution."""

Architecture = Literal["x86_64", "aarch64"]
Nic = Literal[
    "connectx4", "connectx5", "connectx6", "connectx7", "connectx8", "bluefield2", "bluefield3"
]
RdmaKind = Literal["doca_ofed", "mlnx_ofed", "inbox"]
DriverModules = Literal["open", "proprietary"]
PeerMemory = Literal["dma_buf", "nvidia_peermem"]
GdsMode = Literal["nvidia-fs", "p2pdma"]
GpuArchitecture = Literal[
    "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"
]
Gpu = Literal[
    "p100", "v100", "t4", "a30", "a40", "a100", "l4", "l40s",
    "h20", "h100", "h200", "gh200", "b200", "b300", "gb200", "gb300",
]  # fmt: skip

ARCHITECTURES: dict[Gpu, GpuArchitecture] = {
    "p100": "pascal",
    "v100": "volta",
    "t4": "turing",
    "a30": "ampere",
    "a40": "ampere",
    "a100": "ampere",
    "l4": "ada",
    "l40s": "ada",
    "h20": "hopper",
    "h100": "hopper",
    "h200": "hopper",
    "gh200": "hopper",
    "b200": "blackwell",
    "b300": "blackwell",
    "gb200": "blackwell",
    "gb300": "blackwell",
}
"""Source: NVIDIA Multi-Instance GPU User Guide, supported GPUs; CUDA architecture matrix."""

WORDS: dict[str, frozenset[str]] = {
    "distribution": frozenset(get_args(Distribution)),
    "architecture": frozenset(get_args(Architecture)),
    "nic": frozenset(get_args(Nic)),
    "rdma": frozenset(get_args(RdmaKind)),
    "driver_modules": frozenset(get_args(DriverModules)),
    "gpu": frozenset(get_args(Gpu)),
    "gpu_architecture": frozenset(get_args(GpuArchitecture)),
    "peer_memory": frozenset(get_args(PeerMemory)),
    "gds": frozenset(get_args(GdsMode)),
}
"""Parts that are a word, and the words."""

VERSIONED = frozenset(get_args(Part)) - WORDS.keys()
"""Parts that are a version."""


class Facts(Model):
    """What of a node is known; None is not there, or not known, and is not judged.

    From an inventory it is what the node is to have, from a node what it has. ``doca`` is
    DOCA-Host's version (3.2.1), not that of the drivers in it (25.10).
    """

    distribution: Distribution | None = None
    release: VersionText | None = None
    architecture: Architecture | None = None
    kernel: VersionText | None = None
    nic: Nic | None = None
    rdma: RdmaKind | None = None
    doca: VersionText | None = None
    mlnx_ofed: VersionText | None = None
    driver: VersionText | None = None
    driver_modules: DriverModules | None = None
    gpu: Gpu | None = None
    peer_memory: PeerMemory | None = None
    gds: GdsMode | None = None
    nvidia_fs: VersionText | None = None
    lustre: VersionText | None = None
    beegfs: VersionText | None = None

    @property
    def gpu_architecture(self) -> GpuArchitecture | None:
        return None if self.gpu is None else ARCHITECTURES[self.gpu]

    def value(self, part: Part) -> str | None:
        """The word or version of ``part``, None where it is not known."""
        return cast("str | None", getattr(self, part))
