"""Which RDMA stack the modules on disk are of, for storage that goes over it.

NVIDIA's stack brings mlx5_core and ib_core of its own. Modules of the kernel that are built upon
ib_core do not load beside them, or load and fail: NVIDIA has packages for each of those
(mlnx-nfsrdma-dkms, mlnx-nvme-dkms), which its driver containers leave out
(Mellanox/doca-driver-build#89).
"""

from typing import ClassVar

from facts.modinfo import ModuleFile, parse_modinfos
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

STACK = ("ib_core", "mlx5_core")
MODULES = (*STACK, "rpcrdma", "nvme_rdma")

SECTION = Section(
    name="rdma_modules",
    for_storage=True,
    script=f"""
command -v modinfo >/dev/null || return 127
modinfo {" ".join(MODULES)} 2>/dev/null | sed -nE '/^(filename|name|version|srcversion|vermagic):/p'
true
""",
)


class RdmaModules(Model):
    """Modules on disk for the running kernel, by name; None where there is no modinfo to ask."""

    files: dict[str, ModuleFile] | None


def read_rdma_modules(snapshot: Snapshot) -> RdmaModules:
    """Raises ValueError where modinfo's answer cannot be read."""
    if snapshot.section(SECTION.name).rc == 127:
        return RdmaModules(files=None)
    return RdmaModules(files=parse_modinfos(snapshot.text(SECTION.name)))


class RdmaModulesFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.rdma_modules.RdmaModulesFact``."""

    sections: ClassVar[tuple[Section, ...]] = (SECTION,)

    def read(self, snapshot: Snapshot) -> RdmaModules:
        return read_rdma_modules(snapshot)
