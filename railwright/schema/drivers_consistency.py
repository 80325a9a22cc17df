"""What RDMA stack, GPU driver and GPUDirect Storage say of each other and of the rest of a node.

Each finding names both fields. What is known of versions is data (``railwright.compat``, held
against in ``drivers_compat``); here is what holds whatever the version.
"""

import re
from collections.abc import Iterator
from typing import Any

from railwright.schema.base import Finding, module_name
from railwright.schema.drivers import DriverSet, GpuDriverSpec
from railwright.schema.drivers_compat import compat_findings
from railwright.schema.drivers_packages import package_findings, repository_findings
from railwright.schema.fabric import InfinibandFabric, RoceFabric
from railwright.schema.firmware import FirmwareSpec
from railwright.schema.holds import HoldsSpec
from railwright.schema.modules import ModulesSpec

_MIG_SLICES = {"a30": 4, "a100": 7, "h20": 7, "h100": 7, "h200": 7, "gh200": 7}
_MIG_SLICES |= {"b200": 7, "b300": 7, "gb200": 7, "gb300": 7}
"""Compute slices of the GPUs that MIG divides. Source: NVIDIA MIG User Guide, supported GPUs."""

_WITHOUT_NVSWITCH = frozenset({"p100", "t4", "a30", "a40", "l4", "l40s"})
"""PCIe cards, on no NVSwitch in any system."""

P2PDMA_DWORDS = {"RMForceStaticBar1": 1, "RmForceDisableIomapWC": 1}
"""Registry keys that P2PDMA takes. Source: NVIDIA GDS troubleshooting guide, NVMe P2PDMA, driver
registries."""


def driver_findings(drivers: DriverSet, modules: ModulesSpec, holds: HoldsSpec) -> list[Finding]:
    """All that does not fit together in a node's drivers, modules and holds."""
    return [
        *_ofed_findings(drivers),
        *repository_findings(drivers),
        *_driver_findings(drivers.gpu_driver),
        *_mig_findings(drivers.gpu_driver),
        *_gds_findings(drivers, modules),
        *_module_findings(drivers, modules),
        *package_findings(drivers, holds),
        *compat_findings(drivers),
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
