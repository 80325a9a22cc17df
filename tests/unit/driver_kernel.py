"""A kernel with OFED, the GPU driver and what builds on both, built by hand."""

from facts.dkms import Dkms, DkmsModule, State
from facts.initramfs import Initramfs
from facts.modinfo import ModuleFile
from facts.symvers import Export
from railwright.drivers.next_kernel import (
    KernelCheck,
    KernelOnDisk,
    NeededModule,
    check_kernel,
)
from railwright.drivers.symbols import KernelSymbols, OnDisk, Table

RUNNING, NEXT = "6.8.0-60-generic", "6.8.0-79-generic"
FLAGS = "SMP preempt mod_unload modversions"
IMAGE = f"/boot/initrd.img-{NEXT}"

BUILT = {
    "mlx_compat": "mlnx-ofed-kernel",
    "ib_core": "mlnx-ofed-kernel",
    "mlx5_core": "mlnx-ofed-kernel",
    "mlx5_ib": "mlnx-ofed-kernel",
    "nvidia": "nvidia",
    "nvidia_peermem": "nvidia",
    "nvidia_fs": "nvidia-fs",
    "lustre": "lustre-client-modules",
    "ko2iblnd": "lustre-client-modules",
    "beegfs": "beegfs",
}
VERSIONS = {
    "mlnx-ofed-kernel": "25.10",
    "nvidia": "580.95.05",
    "nvidia-fs": "2.27.3",
    "lustre-client-modules": "2.16.1",
    "beegfs": "8.1",
}
NEEDED = (
    NeededModule(name="beegfs", package="beegfs-client-dkms", stack="beegfs", dkms="beegfs"),
    NeededModule(
        name="ko2iblnd",
        package="lustre-client-modules-dkms",
        stack="lustre",
        dkms="lustre-client-modules",
    ),
    NeededModule(
        name="nvidia_fs",
        package="nvidia-fs-dkms",
        stack="gds",
        dkms="nvidia-fs",
        hooks={"nvme_v1_register_nvfs_dma_ops": "nvme"},
    ),
    NeededModule(
        name="nvidia_peermem", package="nvidia-open-dkms", stack="peer_memory", dkms="nvidia"
    ),
    NeededModule(name="nvidia", package="nvidia-open-dkms", stack="gpu", dkms="nvidia"),
    NeededModule(
        name="mlx5_core",
        package="mlnx-ofed-kernel-dkms",
        stack="ofed",
        dkms="mlnx-ofed-kernel",
        early=True,
    ),
    NeededModule(
        name="mlx5_ib", package="mlnx-ofed-kernel-dkms", stack="ofed", dkms="mlnx-ofed-kernel"
    ),
)
IMPORTS: dict[str, dict[str, int]] = {
    "mlx5_core": {"module_layout": 1, "mlx_backport": 20},
    "mlx5_ib": {"module_layout": 1, "ib_register_device": 30, "mlx5_cmd_exec": 31},
    "nvidia": {"module_layout": 1, "vmap": 2},
    "nvidia_peermem": {"ib_register_peer_memory_client": 32, "nvidia_p2p_get_pages": 40},
    "nvidia_fs": {"vmap": 2, "nvidia_p2p_get_pages": 40},
    "ko2iblnd": {"rdma_create_id": 33, "module_layout": 1},
    "beegfs": {"rdma_create_id": 33, "module_layout": 1},
}
TABLES: dict[Table, dict[str, Export]] = {
    "kernel": {
        "module_layout": Export(crc=1, module="vmlinux"),
        "vmap": Export(crc=2, module="vmlinux"),
        "ib_register_device": Export(crc=130, module="drivers/infiniband/core/ib_core"),
        "rdma_create_id": Export(crc=133, module="drivers/infiniband/core/ib_core"),
    },
    "ofed": {
        "mlx_backport": Export(crc=20, module="/usr/src/ofa_kernel/compat/mlx_compat"),
        "ib_register_device": Export(crc=30, module="drivers/infiniband/core/ib_core"),
        "mlx5_cmd_exec": Export(crc=31, module="drivers/net/ethernet/mlx5/core/mlx5_core"),
        "ib_register_peer_memory_client": Export(crc=32, module="drivers/infiniband/core/ib_core"),
        "rdma_create_id": Export(crc=33, module="drivers/infiniband/core/ib_core"),
    },
}
EXPORTERS = {"nvidia_p2p_get_pages": "nvidia", "nvme_v1_register_nvfs_dma_ops": "nvme"}


def module(name: str, path: str = "", vermagic: str = f"{NEXT} {FLAGS}") -> ModuleFile:
    path = path or f"updates/dkms/{name}.ko.zst"
    return ModuleFile(name=name, filename=f"/lib/modules/{NEXT}/{path}", vermagic=vermagic)


def dkms(kernel: str = NEXT, **states: State) -> Dkms:
    """All that is built, each ``installed`` for ``kernel`` where ``states`` says nothing else."""
    return Dkms(
        modules=tuple(
            DkmsModule(
                module=name,
                version=version,
                kernel=kernel,
                arch="x86_64",
                state=states.get(name.replace("-", "_"), "installed"),
            )
            for name, version in VERSIONS.items()
        )
    )


def on_disk(*without: str, written: dict[str, int] | None = None, **paths: str) -> OnDisk:
    """All modules but ``without``; those of ``paths`` lie there."""
    files = {name: module(name, paths.get(name, "")) for name in BUILT if name not in without}
    files["nvme"] = module("nvme", "kernel/drivers/nvme/host/nvme.ko.zst")
    return OnDisk(
        files=files,
        written=dict.fromkeys(files, 100) | {"nvidia_fs": 120} | (written or {}),
        sources=BUILT,
    )


def symbols(**imports: dict[str, int]) -> KernelSymbols:
    return KernelSymbols(needed=IMPORTS | imports, tables=TABLES, exporters=EXPORTERS)


def image(mtime: int = 200, **modules: str) -> Initramfs:
    inside = {"mlx5_core": "updates/dkms/mlx5_core.ko"} | modules
    return Initramfs(path=IMAGE, mtime=mtime, modules=inside)


def kernel(**changes: object) -> KernelOnDisk:
    values: dict[str, object] = {
        "kernel": NEXT,
        "disk": on_disk(),
        "vermagic": f"{NEXT} {FLAGS} ",
        "symbols": symbols(),
        "dkms": dkms(),
        "image": image(),
        "ofa_sources": NEXT,
    }
    return KernelOnDisk.model_validate(values | changes)


def check(**changes: object) -> KernelCheck:
    return check_kernel(NEEDED, kernel(**changes))


def told(check: KernelCheck) -> list[tuple[str, str]]:
    """Subject and kind of each finding."""
    return [(finding.subject, finding.kind) for finding in check.findings]
