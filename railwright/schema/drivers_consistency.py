"""What RDMA stack, GPU driver and GPUDirect Storage say of each other and of the rest of a node.

Each finding names both fields. What is known of versions is data (``railwright.compat``); here is
what holds whatever the version.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from railwright.compat import Facts, Row, judge
from railwright.compat.facts import Part
from railwright.schema.base import Finding, module_name
from railwright.schema.drivers import DriverSet, GpuDriverSpec
from railwright.schema.fabric import InfinibandFabric, RoceFabric
from railwright.schema.firmware import FirmwareSpec
from railwright.schema.holds import HoldsSpec
from railwright.schema.modules import ModulesSpec

FIELDS: dict[Part, tuple[str, str]] = {
    "distribution": ("platform", "distribution"),
    "release": ("platform", "release"),
    "architecture": ("platform", "architecture"),
    "kernel": ("platform", "kernel"),
    "nic": ("platform", "nic"),
    "rdma": ("ofed", "kind"),
    "doca": ("ofed", "version"),
    "mlnx_ofed": ("ofed", "version"),
    "driver": ("gpu_driver", "version"),
    "driver_modules": ("gpu_driver", "modules"),
    "gpu": ("gpu_driver", "gpu"),
    "gpu_architecture": ("gpu_driver", "gpu"),
    "peer_memory": ("gpu_driver", "peer_memory"),
    "gds": ("gds", "mode"),
    "nvidia_fs": ("gds", "version"),
}
"""Where an inventory says what a part is to be."""

_MIG_SLICES = {"a30": 4, "a100": 7, "h20": 7, "h100": 7, "h200": 7, "gh200": 7}
_MIG_SLICES |= {"b200": 7, "b300": 7, "gb200": 7, "gb300": 7}
"""Compute slices of the GPUs that MIG divides. Source: NVIDIA MIG User Guide, supported GPUs."""

_WITHOUT_NVSWITCH = frozenset({"p100", "t4", "a30", "a40", "l4", "l40s"})
"""PCIe cards, on no NVSwitch in any system."""

P2PDMA_DWORDS = {"RMForceStaticBar1": 1, "RmForceDisableIomapWC": 1}
"""Registry keys that P2PDMA takes. Source: NVIDIA GDS troubleshooting guide, NVMe P2PDMA, driver
registries."""

_DRIVER_PACKAGE = re.compile(
    r"(nvidia-(driver(-libs|-cuda|-cuda-libs)?|open|dkms|utils|compute-utils|persistenced|imex"
    r"|fabric-?manager|headless(-no-dkms)?|kernel-(open|source|common|support))"
    r"|libnvidia-(compute|cfg1|common|decode|encode|extra|fbc1|gl|ml|nscq)"
    r"|kmod-nvidia-(open|latest)-dkms|cuda-drivers(-fabricmanager)?)"
    r"(-[0-9]{3})?(-server)?(-open)?"
)
"""Packages of Ubuntu, Debian and NVIDIA that have the driver's own version."""


def facts_of(drivers: DriverSet) -> Facts:
    """The set that the inventory asks for, as far as it says."""
    driver, ofed, platform = drivers.gpu_driver, drivers.ofed, drivers.platform
    return Facts(
        distribution=platform.distribution,
        release=platform.release,
        architecture=platform.architecture,
        kernel=platform.kernel,
        nic=platform.nic,
        rdma=ofed.kind,
        doca=ofed.version if ofed.kind == "doca_ofed" else None,
        mlnx_ofed=ofed.version if ofed.kind == "mlnx_ofed" else None,
        driver=driver.version,
        driver_modules=driver.modules if driver.version else None,
        gpu=driver.gpu,
        peer_memory=driver.peer_memory,
        gds=None if drivers.gds.mode == "auto" else drivers.gds.mode,
        nvidia_fs=drivers.gds.version,
    )


def driver_findings(drivers: DriverSet, modules: ModulesSpec, holds: HoldsSpec) -> list[Finding]:
    """All that does not fit together in a node's drivers, modules and holds."""
    return [
        *_ofed_findings(drivers),
        *_repository_findings(drivers),
        *_driver_findings(drivers.gpu_driver),
        *_mig_findings(drivers.gpu_driver),
        *_gds_findings(drivers, modules),
        *_module_findings(drivers, modules),
        *_package_findings(drivers, holds),
        *_compat_findings(drivers),
    ]


def nic_findings(
    drivers: DriverSet, fabric: RoceFabric | InfinibandFabric | None, firmware: FirmwareSpec
) -> Iterator[Finding]:
    """What only NVIDIA's stack has, asked for with the inbox one."""
    if drivers.ofed.kind != "inbox":
        return
    if isinstance(fabric, RoceFabric) and fabric.qos.backend == "nvidia":
        yield Finding(
            ("fabric", "qos", "backend"),
            "nvidia",
            "inbox: ofed.kind is inbox, whose driver has none of NVIDIA's interfaces",
        )
    if firmware.tool == "mlxconfig":
        yield Finding(
            ("firmware", "tool"),
            "mlxconfig",
            "mstconfig or auto: ofed.kind is inbox, and mlxconfig comes with NVIDIA's stack",
        )


def _ofed_findings(drivers: DriverSet) -> Iterator[Finding]:
    ofed = drivers.ofed
    given = {
        "version": ofed.version,
        "profile": ofed.profile,
        "packages": ofed.packages or None,
        "removes": ofed.removes or None,
    }
    if ofed.kind in (None, "inbox"):
        expected = (
            "ofed.kind beside it: doca_ofed or mlnx_ofed"
            if ofed.kind is None
            else "none: ofed.kind is inbox, which comes with the distribution"
        )
        wanted = given if ofed.kind is None else {**given, "packages": None, "removes": None}
        yield from (
            Finding(("ofed", name), value, expected)
            for name, value in wanted.items()
            if value is not None
        )
        return
    form, example = {
        "doca_ofed": (r"[0-9]+\.[0-9]+\.[0-9]+", "DOCA-Host's version, such as 3.2.1"),
        "mlnx_ofed": (r"[0-9]+\.[0-9]+-[0-9.]+", "MLNX_OFED's version, such as 24.10-1.1.4.0"),
    }[ofed.kind]
    if ofed.version is None or not re.fullmatch(form, ofed.version):
        yield Finding(("ofed", "version"), ofed.version, f"{example}: ofed.kind is {ofed.kind}")
    if ofed.kind == "mlnx_ofed" and ofed.profile is not None:
        yield Finding(
            ("ofed", "profile"), ofed.profile, "none: ofed.kind is mlnx_ofed, which has no profiles"
        )


def _repository_findings(drivers: DriverSet) -> Iterator[Finding]:
    known = ", ".join(sorted(drivers.repositories)) or "none"
    for name, spec in drivers.packaged():
        if spec.repository is not None and spec.repository not in drivers.repositories:
            yield Finding(
                (name, "repository"), spec.repository, f"one of repositories, which has {known}"
            )
    distribution = drivers.platform.distribution
    manager = {"ubuntu": "apt", "debian": "apt", "rhel": "dnf"}.get(distribution or "")
    for name, repository in sorted(drivers.repositories.items()):
        path = ("repositories", name)
        if manager is not None and repository.kind != manager:
            yield Finding(
                (*path, "kind"),
                repository.kind,
                f"{manager}: platform.distribution is {distribution}",
            )
        release = re.search(r"/doca/([^/]+)/", repository.url)
        ofed = drivers.ofed
        used = ofed.kind == "doca_ofed" and ofed.repository == name and ofed.version is not None
        if used and release is not None and release[1] != ofed.version:
            yield Finding(
                (*path, "url"), repository.url, f"/doca/{ofed.version}/ in it, as ofed.version says"
            )


def _driver_findings(driver: GpuDriverSpec) -> Iterator[Finding]:
    """What needs the driver without it, and what its version or GPU rules out."""
    if driver.version is None:
        for name in _NEEDS_DRIVER:
            value = getattr(driver, name)
            if value not in (None, {}, (), frozenset()):
                yield Finding(
                    ("gpu_driver", name), value, "gpu_driver.version beside it: there is no driver"
                )
        return
    if driver.branch is not None and not driver.version.startswith(f"{driver.branch}."):
        yield Finding(
            ("gpu_driver", "version"),
            driver.version,
            f"a version of branch {driver.branch}, as gpu_driver.branch says",
        )
    if driver.fabric_manager and driver.gpu in _WITHOUT_NVSWITCH:
        yield Finding(
            ("gpu_driver", "fabric_manager"),
            True,
            f"false or null: gpu_driver.gpu {driver.gpu} is on no NVSwitch",
        )


_NEEDS_DRIVER = (
    "branch",
    "fabric_manager",
    "persistence",
    "peer_memory",
    "options",
    "registry_dwords",
    "graphics_clock_mhz",
    "power_limit_w",
    "mig",
    "packages",
    "removes",
)


def _mig_findings(driver: GpuDriverSpec) -> Iterator[Finding]:
    profiles = driver.mig_profiles
    if driver.mig == "on" and not profiles:
        yield Finding(
            ("gpu_driver", "mig_profiles"),
            (),
            "a profile at least: gpu_driver.mig is on, and a GPU without instances is of no use",
        )
    if driver.mig != "on" and profiles:
        said = "not told" if driver.mig is None else driver.mig
        yield Finding(
            ("gpu_driver", "mig_profiles"), profiles, f"none: gpu_driver.mig is {said}, not on"
        )
    if driver.mig != "on" or driver.gpu is None:
        return
    slices = _MIG_SLICES.get(driver.gpu)
    if slices is None:
        yield Finding(
            ("gpu_driver", "mig"), "on", f"off or null: gpu_driver.gpu {driver.gpu} has no MIG"
        )
        return
    asked = sum(int(profile[0]) for profile in profiles)
    if asked > slices:
        yield Finding(
            ("gpu_driver", "mig_profiles"),
            profiles,
            f"at most {slices} slices in all, as gpu_driver.gpu {driver.gpu} has, not {asked}",
        )


def _gds_findings(drivers: DriverSet, modules: ModulesSpec) -> Iterator[Finding]:
    gds, driver = drivers.gds, drivers.gpu_driver
    if gds.mode is None:
        if gds.version is not None:
            yield Finding(("gds", "version"), gds.version, "gds.mode beside it: nvidia-fs, or auto")
        return
    if driver.version is None:
        yield Finding(
            ("gds", "mode"), gds.mode, "gpu_driver.version beside it: it is built on the driver"
        )
    if gds.mode == "nvidia-fs" and gds.version is None:
        yield Finding(
            ("gds", "version"), None, "an exact version such as 2.29.4: gds.mode is nvidia-fs"
        )
    p2pdma = gds.mode == "p2pdma"
    if gds.cufile.properties.use_pci_p2pdma not in (None, p2pdma) and gds.mode != "auto":
        yield Finding(
            ("gds", "cufile", "properties", "use_pci_p2pdma"),
            not p2pdma,
            f"{str(p2pdma).lower()}, as gds.mode {gds.mode} has it",
        )
    if p2pdma:
        yield from _p2pdma_findings(drivers, modules)


def _p2pdma_findings(drivers: DriverSet, modules: ModulesSpec) -> Iterator[Finding]:
    if drivers.gds.version is not None:
        yield Finding(
            ("gds", "version"), drivers.gds.version, "none: gds.mode p2pdma does without nvidia-fs"
        )
    for key, needed in P2PDMA_DWORDS.items():
        value = drivers.gpu_driver.registry_dwords.get(key, needed)
        if value != needed:
            yield Finding(
                ("gpu_driver", "registry_dwords", key),
                value,
                f"{needed}, as gds.mode p2pdma needs (it is set without being named)",
            )
    multipath = _options(modules, "nvme_core").get("multipath")
    if multipath is not None and multipath not in (False, 0, "N", "n", "0"):
        yield Finding(
            ("modules", "options", "nvme_core", "multipath"),
            multipath,
            "false: gds.mode p2pdma does not go with NVMe multipath",
        )


def _module_findings(drivers: DriverSet, modules: ModulesSpec) -> Iterator[Finding]:
    """What modules say of the modules that the driver has."""
    driver = drivers.gpu_driver
    if driver.version is None:
        return
    for name, options in sorted(modules.options.items()):
        if module_name(name) == "nvidia":
            yield Finding(
                ("modules", "options", name),
                options,
                "them in gpu_driver.options: gpu_driver.version is set, and one file gives them",
            )
    wanted = {"nvidia": "gpu_driver.version is set"}
    if driver.peer_memory == "nvidia_peermem":
        wanted["nvidia_peermem"] = "gpu_driver.peer_memory is nvidia_peermem"
    if drivers.gds.mode == "nvidia-fs":
        wanted["nvidia_fs"] = "gds.mode is nvidia-fs"
    for name in sorted(modules.blacklist):
        if module_name(name) in wanted:
            yield Finding(
                ("modules", "blacklist", name), name, f"not there: {wanted[module_name(name)]}"
            )
    for name in sorted(modules.load):
        if module_name(name) == "nouveau":
            yield Finding(
                ("modules", "load", name), name, "not there: gpu_driver.version takes the GPUs"
            )


def _options(modules: ModulesSpec, module: str) -> dict[str, Any]:
    return {
        option: value
        for name, options in modules.options.items()
        if module_name(name) == module
        for option, value in options.items()
    }


def _package_findings(drivers: DriverSet, holds: HoldsSpec) -> Iterator[Finding]:
    """Packages that are given several versions, or another than the driver's."""
    said: dict[str, tuple[str, str]] = {}
    for name, spec in drivers.packaged():
        for package, pinned in sorted(spec.packages.items()):
            where, other = said.setdefault(package, (name, pinned))
            if other != pinned:
                yield Finding(
                    (name, "packages", package), pinned, f"{other}, as {where}.packages says"
                )
    for name, spec in drivers.packaged():
        for package in sorted(spec.removes):
            where = said[package][0] if package in said else "holds"
            if package in said or package in holds.packages:
                yield Finding(
                    (name, "removes", package), package, f"not there: {where}.packages has it"
                )
    for package, held in sorted(holds.packages.items()):
        where, pinned = said.get(package, ("", held or ""))
        if held is not None and held != pinned:
            yield Finding(
                ("holds", "packages", package), held, f"{pinned}, as {where}.packages says"
            )
        elif held is not None and package not in said:
            yield from _of_another(("holds", "packages", package), held, drivers.gpu_driver)
    for package, pinned in sorted(drivers.gpu_driver.packages.items()):
        yield from _of_another(("gpu_driver", "packages", package), pinned, drivers.gpu_driver)


def _of_another(
    path: tuple[str, str, str], version: str, driver: GpuDriverSpec
) -> Iterator[Finding]:
    """A package of the driver that has not the driver's version."""
    ours = driver.version is not None and _DRIVER_PACKAGE.fullmatch(path[-1]) is not None
    if ours and _upstream(version) != driver.version:
        yield Finding(
            path,
            version,
            f"{driver.version}, as gpu_driver.version says: these are of one version or do not run",
        )


def _upstream(version: str) -> str:
    """``580.95.05`` of ``1:580.95.05-0ubuntu1``."""
    return re.split(r"[-+~]", version.rpartition(":")[2], maxsplit=1)[0]


def _compat_findings(drivers: DriverSet) -> Iterator[Finding]:
    """Rows of railwright.compat that the set is known to be bad by."""
    facts = facts_of(drivers)
    # Most sites say nothing of drivers: the tables need not be read for them.
    for found in judge(facts) if facts != Facts() else ():
        if found.row is not None:
            yield refusal(drivers, found.row, found.parts)


def refusal(drivers: DriverSet, row: Row, parts: Iterable[Part]) -> Finding:
    """The first field that a row speaks of, and the others beside it."""
    fields = dict.fromkeys(FIELDS[part] for part in parts)
    said = {path: getattr(getattr(drivers, path[0]), path[1]) for path in fields}
    (path, value), *others = said.items()
    beside = " and ".join(f"{'.'.join(other)} {text}" for other, text in others)
    another = f"another beside {beside}" if beside else "another"
    return Finding(path, value, f"{another}: {row.why} (compat {row.name}, {row.source})")
