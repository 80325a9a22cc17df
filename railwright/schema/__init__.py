"""What a site may say about its nodes."""

from railwright.schema.base import Spec
from railwright.schema.beegfs import BeegfsMount, BeegfsSpec
from railwright.schema.drivers import DriverSet, GpuDriverSpec, OfedSpec, PlatformSpec
from railwright.schema.fabric import InfinibandFabric, Opensm, RoceFabric, RoceQos
from railwright.schema.firmware import FirmwareSpec
from railwright.schema.gds import GdsSpec
from railwright.schema.holds import HoldsSpec
from railwright.schema.hugepages import HugepagePool, HugepagesSpec
from railwright.schema.kernel import KernelSpec, ThpSpec
from railwright.schema.limits import LimitsSpec
from railwright.schema.lustre import LustreMount, LustreSpec
from railwright.schema.modules import ModulesSpec
from railwright.schema.mounted import Secret
from railwright.schema.nfs import NfsRdmaMount
from railwright.schema.node import EffectsSpec, Node, Overlay, SshSpec
from railwright.schema.nvmeof import NvmeofSpec, NvmeofVolume
from railwright.schema.pcie import PcieSpec
from railwright.schema.rails import Rail, RailPlan, RailsSpec
from railwright.schema.repositories import AptRepository, DnfRepository
from railwright.schema.scratch import LocalScratch, ScratchSpec
from railwright.schema.storage import StorageSpec
from railwright.schema.sysctl import SysctlSpec
from railwright.schema.time import TimeSource, TimeSpec
from railwright.settings import Effect

__all__ = [
    "AptRepository",
    "BeegfsMount",
    "BeegfsSpec",
    "DnfRepository",
    "DriverSet",
    "Effect",
    "EffectsSpec",
    "FirmwareSpec",
    "GdsSpec",
    "GpuDriverSpec",
    "HoldsSpec",
    "HugepagePool",
    "HugepagesSpec",
    "InfinibandFabric",
    "KernelSpec",
    "LimitsSpec",
    "LocalScratch",
    "LustreMount",
    "LustreSpec",
    "ModulesSpec",
    "NfsRdmaMount",
    "Node",
    "NvmeofSpec",
    "NvmeofVolume",
    "OfedSpec",
    "Opensm",
    "Overlay",
    "PcieSpec",
    "PlatformSpec",
    "Rail",
    "RailPlan",
    "RailsSpec",
    "RoceFabric",
    "RoceQos",
    "ScratchSpec",
    "Secret",
    "Spec",
    "SshSpec",
    "StorageSpec",
    "SysctlSpec",
    "ThpSpec",
    "TimeSource",
    "TimeSpec",
]
