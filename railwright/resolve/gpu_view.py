"""The GPU driver of a node as one snapshot shows it."""

from dataclasses import dataclass

from facts.drivers import Drivers, read_drivers
from facts.gpu_driver import (
    FAILURES,
    FILES,
    UNIT,
    UNITS,
    DmaBuf,
    GpuState,
    read_bus,
    read_dma_buf,
    read_state,
)
from facts.modules import images_of
from facts.nvidia_firmware import read_firmware
from facts.nvidia_smi import Gpu
from facts.unit_failures import read_failures
from facts.units import Unit, read_units
from railwright.drivers import dkms_order, staging
from railwright.drivers.arriving import dkms_modules
from railwright.drivers.dkms_order import Build
from railwright.drivers.finding import Finding
from railwright.drivers.holders import Reload
from railwright.drivers.kernels import checks_of, kernels_of
from railwright.drivers.options import has_ofed
from railwright.drivers.peer_memory import MODULE, NVIDIA_FS
from railwright.drivers.versions import NVIDIA, gpu_findings, gpu_versions, loaded_findings
from railwright.files import FileRecord
from railwright.resolve.gpu_unit import Plan, lacking, plan_of, plan_on_node
from railwright.schema import Node
from railwright.schema.drivers import GpuDriverSpec
from railwright.settings import Effect
from railwright.snapshot import Snapshot

BUILT_BY = {
    "ib_core": dkms_order.names_of("ofed"),
    "nvidia": dkms_order.names_of("gpu"),
    MODULE: dkms_order.names_of("peer_memory"),
    NVIDIA_FS: dkms_order.names_of("gds"),
}
"""The names that dkms has for what builds each of them."""


@dataclass(frozen=True)
class Seen:
    """What a node of its own kernel shows of its GPUs and their driver.

    ``effects`` is what it takes to load nvidia-peermem and nvidia-fs as they are on disk.
    """

    drivers: Drivers
    findings: tuple[Finding, ...]
    kernels: tuple[str, ...]
    builds: tuple[Build, ...]
    images: dict[str, FileRecord]
    reload: Reload
    effects: dict[str, Effect]
    bus: dict[str, str | None]
    state: GpuState
    dma_buf: DmaBuf

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return self.drivers.gpus.gpus if self.drivers.gpus else ()

    @property
    def unread(self) -> str | None:
        """Why nvidia-smi says nothing of the GPUs; None where it does."""
        report = self.drivers.gpus
        if report is None:
            return "the module nvidia is not loaded"
        return report.problem.cause if report.problem else None


@dataclass(frozen=True)
class GpuView:
    """What is asked of a node's GPU driver and what is there; ``seen`` is None in a container.

    ``units`` is None where systemd did not answer. ``arriving`` are packages of the driver and of
    GDS that the same run installs first.
    """

    driver: GpuDriverSpec
    files: list[FileRecord]
    units: dict[str, Unit] | None
    failures: dict[str, str]
    plan: Plan
    there: Plan
    seen: Seen | None
    arriving: frozenset[str]

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot, arriving: frozenset[str]) -> "GpuView":
        """``arriving`` are packages that the same run installs first.

        Raises ValueError where a section cannot be read.
        """
        files = snapshot.files(FILES.name)
        try:
            units: dict[str, Unit] | None = read_units(snapshot, UNITS.name)
        except ValueError:
            units = None
        return cls(
            driver=node.gpu_driver,
            files=files,
            units=units,
            failures=read_failures(snapshot, FAILURES.name),
            plan=plan_of(node.drivers),
            there=plan_on_node(files),
            seen=None if snapshot.is_container else _seen(node, snapshot, arriving),
            arriving=arriving & {*node.gpu_driver.packages, *node.gds.packages},
        )

    @property
    def lack(self) -> str | None:
        """What keeps our unit from working at boot."""
        return lacking(self.plan, self.files)

    @property
    def unit_ran(self) -> bool:
        """Whether our unit has done its work since the boot, without a failure."""
        found = self.unit(UNIT.name)
        return found is not None and found.active == "active"

    def unit(self, name: str) -> Unit | None:
        """A unit that is there; None also where systemd did not answer."""
        found = (self.units or {}).get(name)
        return found if found is not None and found.loaded else None


def _seen(node: Node, snapshot: Snapshot, arriving: frozenset[str]) -> Seen:
    drivers = read_drivers(snapshot)
    kernels = tuple(sorted(kernels_of(drivers), key=lambda k: k == drivers.next_boot.version))
    # Where there is OFED, its component makes all builds and images, in their order.
    builds = () if has_ofed(node) else _builds(node, drivers, kernels, dkms_modules(arriving))
    return Seen(
        drivers=drivers,
        findings=gpu_findings(gpu_versions(drivers, read_firmware(snapshot))),
        kernels=kernels,
        builds=builds,
        images={} if has_ofed(node) else images_of(snapshot.files("modules_initramfs")),
        reload=staging.reload_of(NVIDIA, drivers, snapshot),
        effects={
            name: _effect(snapshot, drivers, dkms_modules(arriving), (name, *below))
            for name, below in _below(node).items()
        },
        bus=read_bus(snapshot),
        state=read_state(snapshot),
        dma_buf=read_dma_buf(snapshot),
    )


def _below(node: Node) -> dict[str, tuple[str, ...]]:
    """Modules that our unit loads, and those that they go over."""
    rdma = ("ib_core",) if has_ofed(node) else ()
    return {MODULE: (*rdma, "nvidia"), NVIDIA_FS: ("nvidia",)}


def _effect(
    snapshot: Snapshot,
    drivers: Drivers,
    arriving: frozenset[str],
    modules: tuple[str, ...],
) -> Effect:
    """What it takes to have ``modules`` loaded as they are on disk, of which some may be now.

    One that goes over a loaded module of another build is refused by the kernel until that one is
    loaded anew: "disagrees about version of symbol".
    """
    files = drivers.running.disk.files if drivers.running else {}
    kernel = drivers.next_boot.running
    there = [name for name in modules if name in drivers.loaded]
    outdated = {f.subject for f in loaded_findings(there, kernel, files, drivers.loaded)}
    outdated |= {name for name in there if arriving & BUILT_BY[name]}
    if not outdated:
        return Effect.LIVE
    reload = staging.reload_of(sorted(outdated), drivers, snapshot)
    return staging.effect_of(reload)


def _builds(
    node: Node, drivers: Drivers, kernels: tuple[str, ...], arriving: frozenset[str]
) -> tuple[Build, ...]:
    disks = {kernel: drivers.kernels[kernel].disk for kernel in kernels}
    return dkms_order.builds(drivers.dkms, kernels, checks_of(node, drivers), disks, arriving)
