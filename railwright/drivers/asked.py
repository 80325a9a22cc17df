"""The kernel modules that a node cannot do without, by the drivers that it asks for."""

from collections.abc import Iterable

from facts.drivers import Drivers
from railwright.drivers.dkms_order import dkms_of
from railwright.drivers.next_kernel import NeededModule, Stack
from railwright.drivers.options import has_ofed
from railwright.schema import Node
from railwright.schema.lustre import is_o2ib

_STORAGE: dict[str, Stack] = {
    "lnet": "lustre", "ko2iblnd": "lustre", "lustre": "lustre", "beegfs": "beegfs",
}  # fmt: skip
_PACKAGES = {
    "ofed": "OFED's kernel modules (mlnx-ofed-kernel-dkms, kmod-mlnx-ofa_kernel)",
    "gpu": "the GPU driver's kernel modules",
    "peer_memory": "the GPU driver's kernel modules",
    "gds": "nvidia-fs-dkms",
    "lustre": "the Lustre client's modules",
    "beegfs": "the BeeGFS client's module",
}


def needed_modules(node: Node, drivers: Drivers) -> tuple[NeededModule, ...]:
    """The modules that the node cannot do without, and what brings each."""
    built = {name: s for disk in drivers.kernels.values() for name, s in disk.disk.sources.items()}
    return tuple(
        NeededModule(
            name=name,
            package=_PACKAGES[stack] if stack else "the kernel's modules",
            stack=stack,
            dkms=built.get(name) or (dkms_of(stack, drivers.dkms) if stack else None),
        )
        for name, stack in _needed(node, built)
    )


def _needed(node: Node, built: Iterable[str]) -> Iterable[tuple[str, Stack | None]]:
    if node.ofed.kind is not None:
        stack: Stack | None = "ofed" if has_ofed(node) else None
        yield from ((name, stack) for name in ("ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib"))
    if node.gpu_driver.version is not None:
        yield from (("nvidia", "gpu"), ("nvidia_uvm", "gpu"))
        if node.gpu_driver.peer_memory == "nvidia_peermem":
            yield ("nvidia_peermem", "peer_memory")
    if node.gds.mode == "nvidia-fs":
        yield ("nvidia_fs", "gds")
    # What dkms builds of a storage client is wanted: nobody else would have installed it.
    clients = {*built, *_clients(node)}
    yield from ((name, stack) for name, stack in _STORAGE.items() if name in clients)


def _clients(node: Node) -> Iterable[str]:
    """The modules of storage clients that the inventory itself asks for."""
    if node.lustre.networks:
        yield from ("lnet", "lustre")
        if any(map(is_o2ib, node.lustre.networks)):
            yield "ko2iblnd"
    if node.beegfs.major is not None:
        yield "beegfs"
