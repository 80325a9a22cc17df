"""The set of drivers that an inventory asks for, held against what is known of sets."""

from collections.abc import Iterable, Iterator

from railwright.compat import Facts, Row, judge
from railwright.compat.facts import Part
from railwright.schema.base import Finding
from railwright.schema.drivers import DriverSet

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
    "lustre": ("lustre", "version"),
    "beegfs": ("beegfs", "version"),
}
"""Where an inventory says what a part is to be."""


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
        lustre=drivers.lustre.version,
        beegfs=drivers.beegfs.version,
    )


def compat_findings(drivers: DriverSet) -> Iterator[Finding]:
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
