"""What a site may say about its nodes."""

from railwright.schema.base import Spec
from railwright.schema.drivers import DriverSet, GpuDriverSpec, OfedSpec, PlatformSpec
from railwright.schema.fabric import InfinibandFabric, Opensm, RoceFabric, RoceQos
from railwright.schema.firmware import FirmwareSpec
from railwright.schema.gds import GdsSpec
from railwright.schema.holds import HoldsSpec
from railwright.schema.hugepages import HugepagePool, HugepagesSpec
from railwright.schema.kernel import KernelSpec, ThpSpec
from railwright.schema.limits import LimitsSpec
from railwright.schema.modules import ModulesSpec
from railwright.schema.node import EffectsSpec, Node, Overlay, SshSpec
from railwright.schema.pcie import PcieSpec
from railwright.schema.rails import Rail, RailPlan, RailsSpec
from railwright.schema.repositories import AptRepository, DnfRepository
from railwright.schema.sysctl import SysctlSpec
from railwright.schema.time import TimeSource, TimeSpec
from railwright.settings import Effect

__all__ = [
    "AptRepository",
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
    "ModulesSpec",
    "Node",
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
    "Spec",
    "SshSpec",
    "SysctlSpec",
    "ThpSpec",
    "TimeSource",
    "TimeSpec",
]
