"""One version of a driver: module on disk and loaded, libraries, fabric manager, firmware.

The parts of NVIDIA's driver check each other for the very same version: a fabric manager of
another one does not start (CUDA error 802), libraries of another one fail ("Driver/library version
mismatch"). An upgrade that leaves the loaded module in place breaks a node that runs.
"""

from collections.abc import Iterable, Iterator, Mapping

from pydantic import Field

from facts.drivers import Drivers
from facts.modinfo import LoadedModule, ModuleFile
from facts.ofed import Ofed
from railwright.drivers.finding import Finding, Kind
from railwright.model import Model
from railwright.resolve.modules import ModprobeConfig

NVIDIA = ("nvidia", "nvidia_modeset", "nvidia_uvm", "nvidia_drm", "nvidia_peermem")
"""Modules that are built together, and so have one version. nvidia_fs has its own."""

OFED_LOADED = ("mlx_compat", "ib_core", "ib_uverbs", "rdma_cm", "mlx5_core", "mlx5_ib")
"""Modules of OFED that every RDMA node has loaded."""


class GpuVersions(Model):
    """Versions of what NVIDIA's driver is made of, for the kernel that runs.

    ``files`` are modules on disk, ``loaded`` those loaded; ``driver`` is what
    /proc/driver/nvidia/version says, None where nvidia is not loaded. ``libraries`` is a user
    library or its package to its version, ``fabric_manager`` that of its package, None where it is
    not installed. ``firmware`` are versions with a gsp_*.bin under /lib/firmware/nvidia, None
    where that was not read.
    """

    kernel: str
    files: dict[str, ModuleFile]
    loaded: dict[str, LoadedModule] = Field(default={})
    driver: str | None = None
    libraries: dict[str, str] = Field(default={})
    fabric_manager: str | None = None
    firmware: frozenset[str] | None = None


def gpu_versions(drivers: Drivers, firmware: frozenset[str] | None) -> GpuVersions:
    """The versions in a node's facts; ``firmware`` as facts.nvidia_firmware reads it."""
    running = drivers.running
    return GpuVersions(
        kernel=drivers.next_boot.running,
        files=running.disk.files if running else {},
        loaded=drivers.loaded,
        driver=drivers.nvidia.version if drivers.nvidia else None,
        libraries={f"libnvidia-ml.so.{version}": version for version in drivers.libraries},
        fabric_manager=drivers.fabric_manager,
        firmware=firmware,
    )


def upstream(version: str) -> str:
    """A package's version without epoch and revision: ``1:530.30.02-1`` is ``530.30.02``."""
    return version.partition(":")[2].partition("-")[0] or version.partition("-")[0]


def gpu_findings(versions: GpuVersions) -> tuple[Finding, ...]:
    """A finding for each part that is not of the driver's one version, that on disk.

    What runs now (libraries against the loaded module) is told apart from what is installed.
    """
    file = versions.files.get("nvidia")
    if file is None or file.version is None:
        kind: Kind = "absent" if file is None else "unreadable"
        said = "is not there" if file is None else f"{file.path} tells no version"
        do = f"install the driver for kernel {versions.kernel}"
        return (_finding(kind, "nvidia", versions.kernel, said, do),)
    return (
        *loaded_findings(NVIDIA, versions.kernel, versions.files, versions.loaded),
        *_modules(versions, file.version),
        *_libraries(versions, file.version),
        *_fabric_manager(versions, file.version),
        *_firmware(versions, file.version),
    )


def loaded_findings(
    names: Iterable[str],
    kernel: str,
    files: Mapping[str, ModuleFile],
    loaded: Mapping[str, LoadedModule],
) -> Iterator[Finding]:
    """Which of ``names`` are loaded from another source than what is on disk for ``kernel``.

    srcversion is a hash over a module's source. A module without one (the kernel's own mostly
    have none) is known by its version, if it has one.
    """
    for name in names:
        module, file = loaded.get(name), files.get(name)
        if module is None:
            continue
        if file is None:
            do = f"install {name} for kernel {kernel}, or it is gone after the next boot"
            yield _finding("loaded", name, kernel, "is loaded and not on disk", do)
        elif file.is_builtin:
            continue
        elif module.srcversion != file.srcversion or module.version != file.version:
            said = f"{_build(module)} is loaded, and {file.path} is {_build(file)}"
            yield _finding("loaded", name, kernel, said, f"reload {name}, or reboot")
        elif module.srcversion is None and module.version is None and not file.is_inbox:
            said = f"neither the loaded one nor {file.path} tells its srcversion or version"
            yield _finding("unreadable", name, kernel, said, "look at /sys/module and modinfo")


def ofed_findings(
    ofed: Ofed,
    kernel: str,
    files: Mapping[str, ModuleFile],
    loaded: Mapping[str, LoadedModule],
) -> tuple[Finding, ...]:
    """Whether mlx5_core is of the OFED that is installed, on disk and loaded."""
    return (
        *_ofed_on_disk(ofed, kernel, files.get("mlx5_core")),
        *loaded_findings(OFED_LOADED, kernel, files, loaded),
    )


def nouveau_findings(
    loaded: Mapping[str, LoadedModule], config: ModprobeConfig
) -> tuple[Finding, ...]:
    """nouveau takes the GPUs before nvidia can: it must not be loaded, now or at boot."""
    found = []
    if "nouveau" in loaded:
        do = "blacklist it, make the initramfs anew and reboot: it holds the GPUs"
        found.append(_finding("loaded", "nouveau", "", "is loaded", do))
    if config.blacklisting("nouveau") is None:
        said = "no line of modprobe.d nor the kernel command line keeps it from loading"
        do = "put blacklist nouveau into modprobe.d, and make the initramfs anew"
        found.append(_finding("config", "nouveau", "", said, do))
    return tuple(found)


def _finding(kind: Kind, subject: str, kernel: str, found: str, remedy: str) -> Finding:
    return Finding(kind=kind, subject=subject, kernel=kernel, found=found, remedy=remedy)


def _build(module: LoadedModule | ModuleFile) -> str:
    source = f"srcversion {module.srcversion}" if module.srcversion else "no srcversion"
    return f"version {module.version or 'none'} ({source})"


def _modules(versions: GpuVersions, wanted: str) -> Iterator[Finding]:
    for name in NVIDIA:
        file = versions.files.get(name)
        if file is not None and not file.is_builtin and file.version not in (None, wanted):
            said = f"{file.path} is {file.version}, and nvidia is {wanted}"
            do = f"install {name} in version {wanted}"
            yield _finding("version", name, versions.kernel, said, do)


def _libraries(versions: GpuVersions, wanted: str) -> Iterator[Finding]:
    running = versions.driver
    for name, version in sorted(versions.libraries.items()):
        found = upstream(version)
        if found != wanted:
            said = f"is {found}, and the module on disk is {wanted}"
            yield _finding("version", name, "", said, f"install {name} in version {wanted}")
        elif running not in (None, found):
            said = f"is {found}, and the module loaded is {running}: NVML refuses that"
            do = "drain the node, then reload the driver or reboot; hold the driver's packages"
            yield _finding("loaded", name, "", said, do)


def _fabric_manager(versions: GpuVersions, wanted: str) -> Iterator[Finding]:
    if versions.fabric_manager is None:
        return
    found = upstream(versions.fabric_manager)
    if found != wanted:
        said = f"is {found}, and the driver on disk is {wanted}: it will not start"
        do = f"install it in version {wanted}, and hold both together"
        yield _finding("version", "nvidia-fabricmanager", "", said, do)
    elif versions.driver not in (None, found):
        said = f"is {found}, and the module loaded is {versions.driver}: it will not start"
        do = "reload the driver, or reboot"
        yield _finding("loaded", "nvidia-fabricmanager", "", said, do)


def _firmware(versions: GpuVersions, wanted: str) -> Iterator[Finding]:
    if versions.firmware is None:
        do = "look at /lib/firmware/nvidia"
        yield _finding("unreadable", "GSP firmware", "", "its versions were not read", do)
        return
    needed = {wanted, versions.driver or wanted}
    for version in sorted(needed - versions.firmware):
        there = ", ".join(sorted(versions.firmware)) or "none"
        said = f"there is none of {version} under /lib/firmware/nvidia, but of: {there}"
        do = f"install the driver's firmware in version {version}"
        yield _finding("version", "GSP firmware", "", said, do)


def _ofed_on_disk(ofed: Ofed, kernel: str, file: ModuleFile | None) -> Iterator[Finding]:
    if file is None:
        do = f"build OFED for kernel {kernel}" if ofed.installed else f"install it for {kernel}"
        yield _finding("absent", "mlx5_core", kernel, "is not there", do)
    elif not ofed.installed:
        if not file.is_inbox:
            said = f"{file.path} is not the kernel's own, and no OFED is installed (no ofed_info)"
            do = "remove what is left of OFED's modules, or install OFED"
            yield _finding("mixed", "mlx5_core", kernel, said, do)
    elif file.is_inbox:
        said = f"{file.path} is the kernel's own, and OFED {ofed.version} is installed"
        yield _finding("mixed", "mlx5_core", kernel, said, f"build OFED for kernel {kernel}")
    elif ofed.version is None or file.version is None:
        whose = "ofed_info" if ofed.version is None else file.path
        do = "look at ofed_info -s and modinfo -F version mlx5_core"
        yield _finding("unreadable", "mlx5_core", kernel, f"{whose} tells no version", do)
    elif not _is_of(file.version, ofed.version):
        said = f"{file.path} is {file.version}, and ofed_info says {ofed.version}"
        yield _finding("version", "mlx5_core", kernel, said, f"build OFED anew for kernel {kernel}")


def _is_of(module: str, ofed: str) -> bool:
    """Whether a module's version (24.10-1.1.4) is of an OFED (24.10-1.1.4.0): the last number
    of a release, which counts its packaging, is not in the modules."""
    mine, theirs = module.replace("-", ".").split("."), ofed.replace("-", ".").split(".")
    return mine == theirs[: len(mine)] and len(theirs) - len(mine) in (0, 1)
