"""Is a kernel complete for this node: would every driver that it needs be there after a reboot?

A kernel upgrade brings a kernel without the drivers that were built for the one before. A node
that boots into it comes up without its NICs or GPUs, and often without the way in. So before a
reboot each needed module is held against the kernel that comes: there, built for it (vermagic and
symbol versions), of one stack with the others, in the initramfs as on disk.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field

from facts.dkms import Dkms
from facts.driver_kernels import DriversOnDisk
from facts.drivers import Drivers
from facts.initramfs import Initramfs
from facts.modinfo import ModuleFile
from facts.next_boot import NextKernel
from railwright.drivers.finding import Finding, Kind
from railwright.drivers.symbols import OnDisk, symbol_findings
from railwright.model import Model

Stack = Literal["ofed", "gpu", "peer_memory", "gds", "lustre", "beegfs"]

BUILD_ORDER: tuple[Stack, ...] = ("ofed", "gpu", "peer_memory", "gds", "lustre", "beegfs")
"""What is built upon comes first: dkms itself orders only by BUILD_DEPENDS, which few declare."""

OFED_CORE = (
    "mlx_compat",
    "ib_core",
    "ib_cm",
    "iw_cm",
    "ib_uverbs",
    "ib_umad",
    "rdma_cm",
    "rdma_ucm",
    "mlx5_core",
    "mlx5_ib",
    "ib_ipoib",
)
"""Modules that OFED builds and replaces together (its DKMS module mlnx-ofed-kernel)."""

OFED_CONSUMERS = {
    "nvme_rdma": "mlnx-nvme-dkms",
    "nvmet_rdma": "mlnx-nvme-dkms",
    "rpcrdma": "mlnx-nfsrdma-dkms",
    "ib_iser": "iser-dkms",
    "ib_isert": "isert-dkms",
    "ib_srp": "srp-dkms",
}
"""The kernel's modules over ib_core, and the package that has them for OFED's ib_core."""


class NeededModule(Model):
    """A module that the node needs, and what brings it.

    ``package`` is named in remedies; ``dkms`` is the DKMS module that builds it. ``early`` is one
    that the initramfs loads. ``hooks`` are symbols that the module looks up when it runs, each
    with the module that must export it (nvidia-fs in nvme): no version list has these.
    """

    name: str
    package: str
    stack: Stack | None = None
    dkms: str | None = None
    early: bool = False
    hooks: dict[str, str] = Field(default={})


class KernelOnDisk(DriversOnDisk):
    """What there is for one kernel. What is None was not read.

    ``ofa_sources`` is the kernel that the link /usr/src/ofa_kernel/default is for, and "" where
    there is none.
    """

    dkms: Dkms | None = None
    image: Initramfs | None = None
    ofa_sources: str = ""

    @property
    def version(self) -> str:
        return self.kernel


class ModuleCheck(Model):
    """What was found of one needed module; no findings: it fits."""

    name: str
    path: str | None
    findings: tuple[Finding, ...] = ()


class KernelCheck(Model):
    """Whether ``kernel`` is complete, module by module; ``whole`` are findings on the kernel."""

    kernel: str
    modules: tuple[ModuleCheck, ...]
    whole: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*self.whole, *(f for module in self.modules for f in module.findings))

    @property
    def complete(self) -> bool:
        return not self.findings


def check_kernel(needed: Iterable[NeededModule], kernel: KernelOnDisk) -> KernelCheck:
    """Hold each needed module against ``kernel``, in the order in which they are built."""
    ordered = sorted(needed, key=_build_place)
    return KernelCheck(
        kernel=kernel.version,
        modules=tuple(_check(module, kernel) for module in ordered),
        whole=tuple(_whole(ordered, kernel)),
    )


def kernels_to_prove(upcoming: NextKernel) -> tuple[str, ...]:
    """Kernels that may boot next: the default, and those that a new boot menu would bring in."""
    chosen = (upcoming.version,) if upcoming.version else ()
    return (*chosen, *(v for v in upcoming.unlisted if v not in chosen))


def kernel_on_disk(version: str, drivers: Drivers, images: Mapping[str, Initramfs]) -> KernelOnDisk:
    """What the node's facts tell of one kernel; nothing on disk where they have none of it."""
    found = drivers.kernels.get(version) or DriversOnDisk(kernel=version, disk=OnDisk(files={}))
    return KernelOnDisk(
        **dict(found),
        dkms=drivers.dkms,
        image=images.get(version),
        ofa_sources=drivers.ofa_sources,
    )


def reboot_refusal(upcoming: NextKernel, checks: Iterable[KernelCheck]) -> str | None:
    """Why a reboot is refused; None where each kernel that may boot next is proven complete."""
    if upcoming.version is None:
        return f"it is not known which kernel boots next: {upcoming.problem or 'no word why'}"
    by_kernel = {check.kernel: check for check in checks}
    for version in kernels_to_prove(upcoming):
        check = by_kernel.get(version)
        if check is None:
            return f"kernel {version} may boot next and was not looked at"
        if not check.complete:
            said = "; ".join(finding.words for finding in check.findings)
            return f"kernel {version} is not complete: {said}"
    return None


def _build_place(module: NeededModule) -> int:
    return len(BUILD_ORDER) if module.stack is None else BUILD_ORDER.index(module.stack)


def _check(module: NeededModule, kernel: KernelOnDisk) -> ModuleCheck:
    if module.name in kernel.builtin:
        return ModuleCheck(name=module.name, path="(builtin)")
    file = kernel.disk.files.get(module.name)
    if file is not None and file.is_builtin:
        return ModuleCheck(name=module.name, path=file.filename)
    findings = list(_dkms(module, kernel))
    if file is None:
        said = ": ".join(["is not there", *(finding.found for finding in findings)])
        absent = _of(module, kernel, "absent", said, _rebuild(module, kernel))
        return ModuleCheck(name=module.name, path=None, findings=(absent,))
    findings += _vermagic(module, file, kernel)
    findings += _symbols(module, file, kernel)
    findings += _hooks(module, kernel)
    findings += _initramfs(module, file, kernel)
    return ModuleCheck(name=module.name, path=file.path, findings=tuple(findings))


def _of(module: NeededModule, kernel: KernelOnDisk, kind: Kind, found: str, do: str) -> Finding:
    return Finding(kind=kind, subject=module.name, kernel=kernel.version, found=found, remedy=do)


def _rebuild(module: NeededModule, kernel: KernelOnDisk) -> str:
    if module.dkms is None:
        return f"install {module.package} for kernel {kernel.version}"
    entries = kernel.dkms.modules if kernel.dkms else ()
    version = next((entry.version for entry in entries if entry.module == module.dkms), None)
    if version is None:
        return f"install {module.package}"
    return (
        f"install the headers of kernel {kernel.version}, then run dkms install --force "
        f"-m {module.dkms} -v {version} -k {kernel.version}"
    )


def _dkms(module: NeededModule, kernel: KernelOnDisk) -> Iterator[Finding]:
    if module.dkms is None:
        return
    if kernel.dkms is None:
        said, do = "what dkms built is not known", "look at dkms status"
        yield _of(module, kernel, "unreadable", said, do)
        return
    entry = kernel.dkms.of(module.dkms, kernel.version)
    if entry is None:
        known = [e for e in kernel.dkms.modules if e.module == module.dkms]
        others = ", ".join(sorted({e.kernel for e in known if e.kernel}))
        said = f"dkms has not built {module.dkms} for it"
        said += f" (but for {others})" if others else ""
    elif entry.in_place:
        return
    elif entry.differs or entry.missing:
        what = "differs from what it built" if entry.differs else "is missing"
        said = f"dkms says that the module of {module.dkms}/{entry.version} in place {what}"
    else:
        said = f"dkms has {module.dkms}/{entry.version} {entry.state} and not installed"
    yield _of(module, kernel, "dkms", said, _rebuild(module, kernel))


def _vermagic(module: NeededModule, file: ModuleFile, kernel: KernelOnDisk) -> Iterator[Finding]:
    """The kernel compares the whole text; with symbol versions, all but the release.

    Source: same_magic() in kernel/module/version.c. A release that differs is let pass only of
    modules that weak-modules linked from another kernel of RHEL, whose symbols are checked.
    """
    if file.vermagic is None or kernel.vermagic is None:
        whose = "its own" if file.vermagic is None else "the kernel's"
        do = f"run modinfo -k {kernel.version} {module.name}"
        yield _of(module, kernel, "unreadable", f"{whose} vermagic could not be read", do)
        return
    release, _, flags = file.vermagic.strip().partition(" ")
    theirs, _, wanted = kernel.vermagic.strip().partition(" ")
    linked = file.path.startswith("weak-updates/") and "modversions" in flags.split()
    if flags.split() != wanted.split() or (release != theirs and not linked):
        said = f"{file.path} has vermagic {file.vermagic.strip()!r}, the kernel"
        said += f" {kernel.vermagic.strip()!r}"
        yield _of(module, kernel, "vermagic", said, _rebuild(module, kernel))


def _symbols(module: NeededModule, file: ModuleFile, kernel: KernelOnDisk) -> Iterator[Finding]:
    if "modversions" not in (kernel.vermagic or "").split():
        # Such a kernel compares no versions (CONFIG_MODVERSIONS is off).
        return
    if kernel.symbols is None or module.name not in kernel.symbols.needed:
        said, do = "its symbol versions were not read", "look at modprobe --dump-modversions"
        yield _of(module, kernel, "unreadable", said, f"{do} {file.filename}")
    elif not kernel.symbols.needed[module.name]:
        said = f"{file.path} has no symbol versions, without which this kernel refuses it"
        yield _of(module, kernel, "symbols", said, _rebuild(module, kernel))
    else:
        yield from symbol_findings(module.name, kernel.version, kernel.symbols, kernel.disk)


def _hooks(module: NeededModule, kernel: KernelOnDisk) -> Iterator[Finding]:
    for symbol, exporter in module.hooks.items():
        if kernel.symbols is None:
            said, do = (
                f"whether {exporter} exports {symbol} is not known",
                "look at modules.symbols",
            )
            yield _of(module, kernel, "unreadable", said, do)
        elif kernel.symbols.exporters.get(symbol) != exporter:
            said = f"looks for {symbol}, which {kernel.disk.place(exporter)} does not export"
            do = f"install {module.package} and {exporter} of releases that belong together"
            yield _of(module, kernel, "symbols", said, f"{do}, then build {module.name} anew")


def _initramfs(module: NeededModule, file: ModuleFile, kernel: KernelOnDisk) -> Iterator[Finding]:
    image, make = kernel.image, f"make the initramfs of kernel {kernel.version} anew"
    if image is None:
        if module.early:
            yield _of(module, kernel, "initramfs", "there is no initramfs that loads it", make)
        return
    if image.modules is None:
        if module.early:
            said = f"it is not known whether {image.path} has it"
            yield _of(module, kernel, "unreadable", said, f"list {image.path}")
        return
    inside = image.modules.get(module.name)
    written = kernel.disk.written.get(module.name)
    if inside is None:
        if module.early:
            yield _of(module, kernel, "initramfs", f"{image.path} lacks it", make)
    elif _plain(inside) != _plain(file.path):
        said = f"{image.path} would load {inside}, and {file.path} is on disk"
        yield _of(module, kernel, "initramfs", said, make)
    elif written is not None and image.mtime < written:
        said = f"{image.path} has a copy that is older than {file.path}"
        yield _of(module, kernel, "initramfs", said, make)


def _plain(path: str) -> str:
    """A module's path without its compression, which an initramfs may take off."""
    return re.sub(r"\.(xz|gz|zst)$", "", path)


def _whole(needed: list[NeededModule], kernel: KernelOnDisk) -> Iterator[Finding]:
    if not kernel.disk.files:
        yield Finding(
            kind="absent",
            subject="modules",
            kernel=kernel.version,
            found=f"/lib/modules/{kernel.version} has none",
            remedy=f"install the modules of kernel {kernel.version}, and run depmod",
        )
    yield from _mix(needed, kernel)
    yield from _sources(needed, kernel)


def _mix(needed: list[NeededModule], kernel: KernelOnDisk) -> Iterator[Finding]:
    """OFED and the kernel's own stack do not mix: each has an ib_core of its own."""
    files = kernel.disk.files
    there = [files[name] for name in OFED_CORE if name in files and not files[name].is_builtin]
    theirs = [file for file in there if not file.is_inbox]
    inbox = [file for file in there if file.is_inbox]
    ofed_wanted = any(module.stack == "ofed" for module in needed)
    if theirs and inbox:
        for file in inbox:
            yield _mixed(kernel, file, theirs[0], "build OFED's modules anew, all of them")
    elif inbox and ofed_wanted:
        for file in inbox:
            yield Finding(
                kind="mixed",
                subject=file.name,
                kernel=kernel.version,
                found=f"is the kernel's own ({file.path}), where OFED's is wanted",
                remedy=f"build OFED for kernel {kernel.version}",
            )
    core = files.get("ib_core")
    if core is None or core.is_inbox:
        return
    for name in sorted({module.name for module in needed} & OFED_CONSUMERS.keys()):
        consumer = files.get(name)
        if consumer is not None and consumer.is_inbox and not consumer.is_builtin:
            yield _mixed(kernel, consumer, core, f"install {OFED_CONSUMERS[name]}")


def _mixed(kernel: KernelOnDisk, file: ModuleFile, other: ModuleFile, remedy: str) -> Finding:
    return Finding(
        kind="mixed",
        subject=file.name,
        kernel=kernel.version,
        found=f"is the kernel's own ({file.path}), and {other.name} is OFED's ({other.path})",
        remedy=f"{remedy} for kernel {kernel.version}",
    )


def _sources(needed: list[NeededModule], kernel: KernelOnDisk) -> Iterator[Finding]:
    """What builds on OFED takes its symbols from the folder that ``default`` leads to."""
    builders = [m.name for m in needed if m.dkms and m.stack not in (None, "ofed", "gpu")]
    if kernel.ofa_sources and builders and kernel.ofa_sources != kernel.version:
        yield Finding(
            kind="headers",
            subject="/usr/src/ofa_kernel/default",
            kernel=kernel.version,
            found=f"leads to {kernel.ofa_sources}, for which {', '.join(builders)} would be built",
            remedy=f"build OFED for kernel {kernel.version} first, then {', '.join(builders)}",
        )
