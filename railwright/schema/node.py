"""A node: who it is, how it is reached, and what it must be."""

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from railwright.schema.base import Finding, Spec, reject, word
from railwright.schema.beegfs import BeegfsMount, BeegfsSpec
from railwright.schema.beegfs_consistency import beegfs_findings
from railwright.schema.consistency import fabric_findings, firmware_findings
from railwright.schema.drivers import DriverSet, GpuDriverSpec, OfedSpec, PlatformSpec
from railwright.schema.drivers_consistency import driver_findings, nic_findings
from railwright.schema.fabric import Fabric
from railwright.schema.firmware import FirmwareSpec
from railwright.schema.gds import GdsSpec
from railwright.schema.holds import HoldsSpec
from railwright.schema.hugepages import HugepagesSpec
from railwright.schema.kernel import KernelSpec
from railwright.schema.limits import LimitsSpec
from railwright.schema.lustre import LustreMount, LustreSpec
from railwright.schema.lustre_consistency import lustre_findings
from railwright.schema.modules import ModulesSpec
from railwright.schema.nfs import NfsRdmaMount, nfs_findings
from railwright.schema.nvmeof import NvmeofSpec, NvmeofVolume
from railwright.schema.nvmeof_consistency import nvmeof_findings
from railwright.schema.pcie import PcieSpec
from railwright.schema.rails import RailsSpec
from railwright.schema.repositories import Repository, RepositoryName
from railwright.schema.scratch import LocalScratch, ScratchSpec, scratch_findings
from railwright.schema.storage import StorageSpec, storage_findings
from railwright.schema.sysctl import SysctlSpec
from railwright.schema.time import TimeSpec
from railwright.settings import Effect

if TYPE_CHECKING:
    HostName = str
else:
    HostName = word(
        r"@?[A-Za-z0-9]([A-Za-z0-9._/-]{0,250}[A-Za-z0-9])?",
        "a host name of letters, digits, - and .",
    )


class SshSpec(Spec):
    """How a node is reached; what is not set comes from ssh's own configuration."""

    address: str | None = Field(default=None, description="Name or address; default: the name.")
    port: int | None = Field(default=None, ge=1, le=65535, description="TCP port.")
    user: str | None = Field(default=None, description="Login user.")
    key_file: str | None = Field(default=None, description="Path of the private key.")
    known_hosts_file: str | None = Field(
        default=None, description="Host keys; a host that is not in there is not connected to."
    )
    config_file: str | None = Field(default=None, description="OpenSSH client configuration.")
    sudo: bool = Field(default=False, description="Become root by sudo (without a password).")


class EffectsSpec(Spec):
    """What a run may do to a node in production to bring a setting into force."""

    allow: frozenset[Effect] = Field(
        default=frozenset({Effect.LIVE, Effect.NEW_PROCESSES}),
        description="Allowed effects; what needs another is persisted and reported as pending.",
    )


class Overlay(Spec):
    """What a group or a host says about its nodes; what it does not say is left to others."""

    fabric: Fabric | None = Field(
        default=None,
        description="What the rails form, and with it the recommended defaults; null has none.",
    )
    rails: RailsSpec = Field(default=RailsSpec(), description="The NICs of the fabric.")
    firmware: FirmwareSpec = Field(default=FirmwareSpec(), description="Firmware of those NICs.")
    pcie: PcieSpec = Field(default=PcieSpec(), description="The PCIe path to GPUs and drives.")
    ssh: SshSpec = Field(default=SshSpec(), description="How a node is reached.")
    effects: EffectsSpec = Field(default=EffectsSpec(), description="What a run may do.")
    sysctl: SysctlSpec = Field(default=SysctlSpec(), description="Kernel parameters.")
    limits: LimitsSpec = Field(default=LimitsSpec(), description="Resource limits.")
    hugepages: HugepagesSpec = Field(default=HugepagesSpec(), description="Huge pages.")
    kernel: KernelSpec = Field(default=KernelSpec(), description="Kernel arguments and knobs.")
    modules: ModulesSpec = Field(default=ModulesSpec(), description="Kernel modules.")
    time: TimeSpec = Field(default=TimeSpec(), description="Time.")
    holds: HoldsSpec = Field(default=HoldsSpec(), description="Held packages.")
    platform: PlatformSpec = Field(
        default=PlatformSpec(), description="What a node runs, to judge a set before it is reached."
    )
    repositories: dict[RepositoryName, Repository] = Field(
        default={}, description="Name to a package repository, with its key's fingerprint."
    )
    ofed: OfedSpec = Field(default=OfedSpec(), description="The RDMA stack.")
    gpu_driver: GpuDriverSpec = Field(default=GpuDriverSpec(), description="The GPU driver.")
    gds: GdsSpec = Field(default=GdsSpec(), description="GPUDirect Storage.")
    lustre: LustreSpec = Field(default=LustreSpec(), description="Lustre's client.")
    beegfs: BeegfsSpec = Field(default=BeegfsSpec(), description="BeeGFS's client.")
    nvmeof: NvmeofSpec = Field(default=NvmeofSpec(), description="The host of NVMe over Fabrics.")
    scratch: ScratchSpec = Field(
        default=ScratchSpec(), description="Packages that local scratch needs."
    )
    storage: StorageSpec = Field(default=StorageSpec(), description="What is mounted.")


class Node(Overlay):
    """One node, merged from its groups."""

    name: HostName = Field(description="Name, unique in the site.")
    groups: tuple[str, ...] = Field(default=(), description="Groups it is in, lowest first.")

    @property
    def drivers(self) -> DriverSet:
        """What is chosen together of RDMA stack, GPU driver and GPUDirect Storage."""
        return DriverSet(
            platform=self.platform,
            repositories=self.repositories,
            ofed=self.ofed,
            gpu_driver=self.gpu_driver,
            gds=self.gds,
            lustre=self.lustre,
            beegfs=self.beegfs,
            scratch=self.scratch,
        )

    @property
    def held(self) -> dict[str, str | None]:
        """Packages that are held: those that holds names, and all that drivers are packaged as."""
        found = dict(self.holds.packages)
        for _, spec in self.drivers.packaged():
            found |= spec.packages
        return found

    @model_validator(mode="after")
    def _fits_together(self) -> "Node":
        reject(
            [
                *fabric_findings(self.fabric, self.rails, self.sysctl),
                *firmware_findings(self.fabric, self.firmware),
                *nic_findings(self.drivers, self.fabric, self.firmware),
                *driver_findings(self.drivers, self.modules, self.holds),
                *self._storage_findings(),
            ]
        )
        return self

    @property
    def wants_storage(self) -> bool:
        """Whether anything of storage is to be brought to it, or looked at there."""
        asked = (self.lustre, self.beegfs, self.nvmeof, self.scratch, self.storage)
        return any(spec != type(spec)() for spec in asked)

    def _storage_findings(self) -> list[Finding]:
        of, rails, modules = self.storage.of, self.rails, self.modules
        return [
            *storage_findings(self.storage),
            *lustre_findings(
                self.lustre, of(LustreMount), rails, self.ofed, modules, self.platform
            ),
            *beegfs_findings(self.beegfs, of(BeegfsMount), rails, self.drivers),
            *nvmeof_findings(
                self.nvmeof, of(NvmeofVolume), rails, self.fabric, self.drivers, modules
            ),
            *nfs_findings(of(NfsRdmaMount), rails, self.fabric, modules),
            *scratch_findings(of(LocalScratch), self.gds.mode),
        ]
