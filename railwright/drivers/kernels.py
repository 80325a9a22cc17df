"""The kernels that a node runs and may boot, held against the drivers that it asks for."""

from collections.abc import Mapping

from facts.drivers import Drivers, read_drivers
from facts.initramfs import IMAGES, Initramfs, read_images
from railwright.drivers.asked import needed_modules
from railwright.drivers.finding import Finding
from railwright.drivers.next_kernel import (
    KernelCheck,
    KernelOnDisk,
    check_kernel,
    kernel_on_disk,
    kernels_to_prove,
    reboot_refusal,
)
from railwright.drivers.options import has_ofed
from railwright.schema import Node
from railwright.snapshot import Snapshot

_PEERMEM, _PEER_SYMBOL = "nvidia_peermem", "ib_register_peer_memory_client"


def kernels_of(drivers: Drivers) -> tuple[str, ...]:
    """The kernel that runs, then those that may boot next; only such as are on disk."""
    wanted = (drivers.next_boot.running, *kernels_to_prove(drivers.next_boot))
    return tuple(kernel for kernel in dict.fromkeys(wanted) if kernel in drivers.kernels)


def checks_of(
    node: Node, drivers: Drivers, images: Mapping[str, Initramfs] | None = None
) -> dict[str, KernelCheck]:
    """Each kernel of ``kernels_of``, with what it lacks; ``images`` where they were listed."""
    needed = needed_modules(node, drivers)
    found = {}
    for version in kernels_of(drivers):
        kernel = kernel_on_disk(version, drivers, images or {})
        # The link to OFED's sources leads to one kernel: what is built for another is judged by
        # its symbols.
        kernel = kernel.model_copy(update={"ofa_sources": ""})
        check = check_kernel(needed, kernel)
        stub = _stub(node, kernel)
        found[version] = (
            check if stub is None else check.model_copy(update={"whole": (*check.whole, stub)})
        )
    return found


def refusal(node: Node, snapshot: Snapshot) -> str | None:
    """Why a run may not reboot the node as ``snapshot`` has it, in words; None where it may.

    What cannot be read refuses: a node that comes up without its NICs has no way in.
    """
    if snapshot.is_container:
        return None
    try:
        drivers = read_drivers(snapshot)
        images = read_images(snapshot) if IMAGES.name in snapshot.sections else {}
    except ValueError as error:
        return f"whether the next kernel has the node's drivers cannot be read: {error}"
    return reboot_refusal(drivers.next_boot, checks_of(node, drivers, images).values())


def _stub(node: Node, kernel: KernelOnDisk) -> Finding | None:
    """nvidia-peermem built where no OFED was found: it is there, and can do nothing."""
    symbols = kernel.symbols.needed.get(_PEERMEM) if kernel.symbols else None
    file = kernel.disk.files.get(_PEERMEM)
    asked = node.gpu_driver.peer_memory == _PEERMEM and has_ofed(node)
    if not asked or file is None or not symbols or _PEER_SYMBOL in symbols:
        return None
    return Finding(
        kind="symbols",
        subject=_PEERMEM,
        kernel=kernel.version,
        found=f"was built without OFED: {file.path} does not ask for {_PEER_SYMBOL}",
        remedy="build the GPU driver anew, after OFED",
    )
