"""The client's modules: on disk for the kernel that boots next, against the RDMA stack in use, and
as they are loaded.

ko2iblnd is built against one RDMA stack. Where another one is in use the kernel refuses it
("disagrees about version of symbol"), LNet has no o2ib, and a mount fails with words that say
nothing of it (Azure/az-hop#130, Seagate/cortx-motr#17).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from facts.dkms import DkmsModule
from facts.driver_kernels import DriversOnDisk
from facts.drivers import LOADED, Drivers, read_drivers
from facts.lustre import KERNEL, LoadedModules, parse_kernel
from facts.modinfo import ModuleFile
from railwright.drivers import dkms_order
from railwright.drivers.arriving import dkms_modules
from railwright.drivers.dkms_order import Build
from railwright.drivers.kernels import checks_of, kernels_of
from railwright.drivers.next_kernel import Stack
from railwright.drivers.options import has_ofed
from railwright.drivers.symbols import symbol_findings
from railwright.drivers.versions import loaded_findings
from railwright.schema import Node
from railwright.schema.lustre import is_o2ib
from railwright.settings import Effect, Setting, Standing, State
from railwright.snapshot import Snapshot

O2IB = "ko2iblnd"
_CLIENT: Stack = "lustre"
_THERE = "there"


@dataclass(frozen=True)
class Modules:
    """What is on disk and what is loaded; ``builds`` are those that are due to this component:
    where there is an OFED, what is built over it is built by the component ofed, in its order."""

    node: Node
    drivers: Drivers | None
    unread: str | None
    loaded: LoadedModules
    builds: tuple[Build, ...]

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot, arriving: frozenset[str]) -> "Modules":
        """``arriving`` are packages of the client that the same run installs first.

        Raises ValueError where the loaded modules cannot be read.
        """
        loaded = parse_kernel(snapshot.text(KERNEL.name))
        drivers, unread = None, None
        try:
            drivers = read_drivers(snapshot) if LOADED.name in snapshot.sections else None
        except ValueError as error:
            unread = str(error)
        builds: tuple[Build, ...] = ()
        if drivers is not None and not has_ofed(node):
            kernels = kernels_of(drivers)
            disks = {kernel: drivers.kernels[kernel].disk for kernel in kernels}
            every = dkms_order.builds(
                drivers.dkms, kernels, checks_of(node, drivers), disks, dkms_modules(arriving)
            )
            ours = dkms_order.names_of(_CLIENT)
            builds = tuple(build for build in every if build.module in ours)
        return cls(node, drivers, unread, loaded, builds)

    @property
    def names(self) -> tuple[str, ...]:
        """The modules that the node needs."""
        o2ib = any(map(is_o2ib, self.node.lustre.networks))
        return ("lnet", *((O2IB,) if o2ib else ()), _CLIENT)

    def lacks(self) -> dict[str, str]:
        """Why the kernel that runs cannot load a module, by its name.

        What is about to be built, and what was not read, does not lack.
        """
        running = self.drivers.running if self.drivers else None
        if running is None or dkms_order.due(self.builds):
            return {}
        found = {}
        for name in self.names:
            file = running.disk.files.get(name)
            fault = _fault(running, name, file) if file is not None else None
            if name in self.loaded.versions:
                continue
            if file is None:
                found[name] = f"kernel {running.kernel} has no module {name}"
            elif fault is not None and fault[0].standing is Standing.WRONG:
                found[name] = f"{name} {fault[0].detail}"
        return found


def module_settings(component: str, modules: Modules, again: Effect) -> Iterator[Setting]:
    """The modules that the node needs. What brings them are packages, and builds by dkms.

    ``again`` is what it takes to bring up LNet anew, which loads what is on disk.
    """
    for name in modules.names:
        version = modules.node.lustre.version if name == _CLIENT else None
        persisted, remedy = _persisted(modules, name, version)
        running, reload = _running(modules, name, version)
        stale = running.standing is Standing.WRONG
        yield Setting(
            component=component,
            key=f"module {name}",
            desired=version or _THERE,
            persisted=persisted,
            running=running,
            effect=again if stale else Effect.LIVE,
            acts=stale and persisted.standing is Standing.RIGHT,
            remedy=remedy or reload,
        )


def _persisted(modules: Modules, name: str, version: str | None) -> tuple[State, str | None]:
    drivers = modules.drivers
    if modules.unread is not None:
        return State(standing=Standing.UNREADABLE, detail=modules.unread), None
    if drivers is None:
        detail = "modules on disk are read of nodes that are asked for drivers alone"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail), None
    coming, upcoming = drivers.coming, drivers.next_boot
    if coming is None:
        detail = upcoming.problem or f"kernel {upcoming.version} has no modules"
        return State(standing=Standing.UNREADABLE, detail=detail), None
    file = coming.disk.files.get(name)
    if file is None:
        detail = f"kernel {coming.kernel} has none{_only_added(drivers, coming.kernel)}"
        do = f"install the client's modules for kernel {coming.kernel}"
        return State(standing=Standing.ABSENT, detail=detail), do
    fault = _fault(coming, name, file)
    if fault is not None:
        return fault
    if version is not None and not _is_of(file.version, version):
        state = State(standing=Standing.WRONG, value=file.version, decider=file.filename)
        return state, f"install version {version} for kernel {coming.kernel}"
    return State(standing=Standing.RIGHT, value=version or _THERE, decider=file.filename), None


def _fault(coming: DriversOnDisk, name: str, file: ModuleFile) -> tuple[State, str | None] | None:
    """What keeps the module on disk from being loaded by the kernel that boots next."""
    if coming.symbols is None:
        return None
    findings = symbol_findings(name, coming.kernel, coming.symbols, coming.disk)
    worst = min(findings, key=lambda finding: finding.kind == "unreadable", default=None)
    if worst is None:
        return None
    unreadable = worst.kind == "unreadable"
    state = State(
        standing=Standing.UNREADABLE if unreadable else Standing.WRONG,
        value=None if unreadable else "of another build",
        decider=file.filename,
        detail=worst.found,
    )
    return state, worst.remedy


def _only_added(drivers: Drivers, kernel: str) -> str:
    """What dkms has of the client without having built it for ``kernel``."""
    ours = dkms_order.names_of(_CLIENT)
    entries: list[DkmsModule] = [e for e in drivers.dkms.modules if e.module in ours]
    if not entries or any(e.kernel == kernel and e.in_place for e in entries):
        return ""
    last = entries[-1]
    return f"; dkms has {last.module}/{last.version} {last.state}, and not built for it"


def _running(modules: Modules, name: str, version: str | None) -> tuple[State, str | None]:
    if name in modules.loaded.versions:
        loaded = modules.loaded.versions[name]
        running = modules.drivers.running if modules.drivers else None
        if running is not None and modules.drivers is not None:
            for finding in loaded_findings(
                (name,), running.kernel, running.disk.files, modules.drivers.loaded
            ):
                unreadable = finding.kind == "unreadable"
                standing = Standing.UNREADABLE if unreadable else Standing.WRONG
                return State(standing=standing, value=loaded, detail=finding.found), finding.remedy
        if version is not None and loaded is not None and not _is_of(loaded, version):
            return State(standing=Standing.WRONG, value=loaded), "reboot, or unload the client"
        return State(standing=Standing.RIGHT, value=version or _THERE), None
    refused = modules.loaded.refused.get(name)
    if refused:
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        stack = "OFED" if has_ofed(modules.node) else "the kernel's own RDMA stack"
        return (
            State(
                standing=Standing.DEGRADED,
                value="refused",
                detail=f"the kernel refuses it: {refused[0]}{more}",
            ),
            f"build the client's modules anew, against {stack}, which is in use",
        )
    return State(standing=Standing.NOT_APPLICABLE, detail="not loaded: LNet brings it in"), None


def _is_of(found: str | None, version: str) -> bool:
    """Whether a module's version is of the release: 2.16.1-1 and 2.16.1_ddn are of 2.16.1."""
    if found is None:
        return False
    rest = found.removeprefix(version)
    return rest != found and not rest[:1].isdigit()
