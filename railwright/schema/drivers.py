"""The RDMA stack and the GPU driver, each at one exact version, and what they are chosen for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, field_validator

from railwright.compat.facts import (
    Architecture,
    Distribution,
    DriverModules,
    Gpu,
    Nic,
    PeerMemory,
    RdmaKind,
)
from railwright.model import Model
from railwright.schema.base import Finding, Spec, reject, word
from railwright.schema.beegfs import BeegfsSpec
from railwright.schema.gds import GdsSpec
from railwright.schema.lustre import LustreSpec
from railwright.schema.modules import Parameter, ParameterText
from railwright.schema.repositories import Packaged, Repository, RepositoryName
from railwright.schema.scratch import ScratchSpec

if TYPE_CHECKING:
    Release = str
    KernelRelease = str
    OfedVersion = str
    DriverVersion = str
    RegistryDword = str
    MigProfile = str
else:
    Release = word(r"[0-9]+(\.[0-9]+)?", "a release in quotes, such as '24.04' or '9.6'")
    KernelRelease = word(
        r"[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9._+~-]*", "a kernel as uname -r has it: 6.8.0-60-generic"
    )
    OfedVersion = word(
        r"[0-9]+\.[0-9]+(\.[0-9]+|-[0-9]+(\.[0-9]+)+)",
        "an exact version, such as 3.2.1 (DOCA-Host) or 24.10-1.1.4.0 (MLNX_OFED)",
    )
    DriverVersion = word(
        r"[0-9]{3}\.[0-9]{2,3}(\.[0-9]{2})?", "an exact version, such as 580.95.05"
    )
    RegistryDword = word(r"[A-Za-z][A-Za-z0-9]*", "a registry key, such as RMForceStaticBar1")
    MigProfile = word(
        r"[1-7]g\.[0-9]+gb(\+me(\.all)?|\+gfx|-me)?", "a MIG profile, such as 1g.10gb"
    )

ClockMhz = Annotated[StrictInt, Field(ge=100, le=5000)]


class PlatformSpec(Spec):
    """What a node runs, so that a set can be judged before the node is reached.

    Nothing of it is set on the node; where a node has another, it is told when it is read.
    """

    distribution: Distribution | None = Field(
        default=None, description="Rocky, Alma and Oracle (its compatible kernel) are rhel."
    )
    release: Release | None = Field(default=None, description="Its release, such as 24.04 or 9.6.")
    kernel: KernelRelease | None = Field(
        default=None, description="The kernel that modules are built for, as uname -r has it."
    )
    architecture: Architecture | None = Field(default=None, description="The processor's.")
    nic: Nic | None = Field(default=None, description="Model of the rails' NICs.")


class OfedSpec(Packaged):
    """The RDMA stack; ``kind`` null leaves it alone."""

    kind: RdmaKind | None = Field(
        default=None,
        description="NVIDIA's DOCA-OFED, its forerunner MLNX_OFED (ended with 24.10), or what "
        "kernel and distribution bring.",
    )
    version: OfedVersion | None = Field(
        default=None, description="DOCA-Host's version (3.2.1), or MLNX_OFED's (24.10-1.1.4.0)."
    )
    profile: Literal["doca-ofed", "doca-networking", "doca-all"] | None = Field(
        default=None,
        description="Profile of DOCA-Host; null is doca-ofed, which has drivers and tools alone.",
    )


class GpuDriverSpec(Packaged):
    """The GPU driver; ``version`` null leaves it alone.

    Fabric manager, persistence daemon and user libraries have the driver's version and no other
    (NVIDIA/gpu-operator#544), so theirs is never told.
    """

    version: DriverVersion | None = Field(default=None, description="The driver's exact version.")
    branch: Annotated[StrictInt, Field(ge=450, le=999)] | None = Field(
        default=None,
        description="The branch that version must be of, so that a node is not moved to another "
        "by a changed digit.",
    )
    modules: DriverModules = Field(
        default="open",
        description="Flavour of the kernel modules. Open is NVIDIA's default from 560 on, and all "
        "that Blackwell has (NVIDIA driver installation guide, kernel modules).",
    )
    gpu: Gpu | None = Field(default=None, description="Model of the GPUs.")
    fabric_manager: StrictBool | None = Field(
        default=None,
        description="Fabric manager, for GPUs on NVSwitch: without it CUDA fails with error 802.",
    )
    persistence: StrictBool | None = Field(
        default=None,
        description="nvidia-persistenced in persistence mode; nvidia-smi -pm is lost at reboot.",
    )
    peer_memory: PeerMemory | None = Field(
        default=None,
        description="How NICs reach GPU memory: the kernel's DMA-BUF, or the module "
        "nvidia-peermem, which needs OFED.",
    )
    options: dict[Parameter, StrictBool | StrictInt | ParameterText] = Field(
        default={},
        description="Parameters of the module nvidia, such as NVreg_EnableStreamMemOPs.",
    )
    registry_dwords: dict[RegistryDword, Annotated[StrictInt, Field(ge=0, le=2**32 - 1)]] = Field(
        default={},
        description="Keys of NVreg_RegistryDwords, which is one text: of two files that give it, "
        "the later one takes the former's keys away.",
    )
    graphics_clock_mhz: tuple[ClockMhz, ClockMhz] | None = Field(
        default=None, description="Least and highest graphics clock; null lets the GPU boost."
    )
    power_limit_w: Annotated[StrictInt, Field(ge=50, le=2000)] | None = Field(
        default=None, description="Power limit of each GPU; null is the board's own."
    )
    mig: Literal["on", "off"] | None = Field(default=None, description="MIG mode of each GPU.")
    mig_profiles: tuple[MigProfile, ...] = Field(
        default=(), description="Instances made on each GPU, such as 7 times 1g.10gb."
    )

    @field_validator("graphics_clock_mhz", mode="after")
    @classmethod
    def _low_before_high(cls, clocks: tuple[int, int] | None) -> tuple[int, int] | None:
        if clocks is not None and clocks[0] > clocks[1]:
            reject([Finding((), clocks, "the lower clock first")])
        return clocks

    @field_validator("options", mode="after")
    @classmethod
    def _one_place_for_dwords(
        cls, options: dict[str, bool | int | str]
    ) -> dict[str, bool | int | str]:
        name = "NVreg_RegistryDwords"
        if name in options:
            expected = "it to be set by gpu_driver.registry_dwords"
            reject([Finding((name,), options[name], expected)])
        return options


class DriverSet(Model):
    """What is chosen together, as a merged node has it."""

    platform: PlatformSpec = PlatformSpec()
    repositories: dict[RepositoryName, Repository] = Field(default={})
    ofed: OfedSpec = OfedSpec()
    gpu_driver: GpuDriverSpec = GpuDriverSpec()
    gds: GdsSpec = GdsSpec()
    lustre: LustreSpec = LustreSpec()
    beegfs: BeegfsSpec = BeegfsSpec()
    scratch: ScratchSpec = ScratchSpec()

    @property
    def is_asked_for(self) -> bool:
        """Whether anything of it is to be brought to a node, or looked at there."""
        asked = (spec != type(spec)() for _, spec in self.packaged())
        return bool(self.repositories) or any(asked)

    @property
    def removes(self) -> frozenset[str]:
        """Packages that must not be there, whichever names them."""
        return frozenset(name for _, spec in self.packaged() for name in spec.removes)

    def packaged(self) -> Iterator[tuple[str, Packaged]]:
        """Each that is installed from packages, with its name."""
        yield "ofed", self.ofed
        yield "gpu_driver", self.gpu_driver
        yield "gds", self.gds
        yield "lustre", self.lustre
        yield "beegfs", self.beegfs
        yield "scratch", self.scratch
