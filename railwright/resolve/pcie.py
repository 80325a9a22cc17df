"""PCIe paths: what lies between two functions, how near they are, and what ACS does there."""

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from railwright.model import Model
from railwright.pcie import ACS_BITS, AcsControl, Function, Pcie

Affinity = Literal["PIX", "PXB", "PHB", "NODE", "SYS"]

_ORDER: dict[Affinity | None, int] = {
    "PIX": 0,
    "PXB": 1,
    "PHB": 2,
    "NODE": 3,
    "SYS": 4,
    None: 5,
}

_REDIRECTING = ("ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl")
REDIRECT_MASK = sum(1 << ACS_BITS.index(name) for name in _REDIRECTING)
"""The bits of the ACS control register that keep peer traffic off the direct way.

ReqRedir and CmpltRedir send it to the root complex, UpstreamFwd passes on what a port below sent
up, EgressCtrl blocks or redirects it by a table. The kernel's peer-to-peer DMA judges by the first
two and EgressCtrl (drivers/pci/p2pdma.c), and sets all but EgressCtrl itself where it isolates
(drivers/pci/pci.c, pci_std_enable_acs). SrcValid only checks who asks; TransBlk and DirectTrans
concern translated requests (ATS) alone.
"""


class Nearest(Model):
    """What is nearest to a GPU; an affinity is None where there is no such device, or where the
    NUMA nodes that decide it are not known."""

    numa_node: int | None
    nic: Affinity | None
    nics: tuple[str, ...]
    nvme: Affinity | None
    nvmes: tuple[str, ...]


class Pair(NamedTuple):
    """Two functions that a bridge lies between."""

    one: str
    other: str


def redirection(acs: AcsControl) -> str | None:
    """The bits that redirect, as lspci writes them (``ReqRedir+ CmpltRedir+``); None for none."""
    return " ".join(f"{name}+" for name in acs.enabled if name in _REDIRECTING) or None


def between(one: Function, other: Function) -> tuple[str, ...] | None:
    """The bridges that decide on the way of what one sends to the other; None across host bridges.

    The nearest bridge that is above both is not one of them: there the way turns, and what decides
    are the ports below it (drivers/pci/p2pdma.c, calc_map_type_and_dist). Where none is above
    both, the way leads through the host bridge and all count.
    """
    if one.host != other.host:
        return None
    shared = _shared(one, other)
    return (*one.bridges[shared:], *other.bridges[shared:])


def _shared(one: Function, other: Function) -> int:
    pairs = list(zip(one.bridges, other.bridges, strict=False))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))


def affinity(one: Function, other: Function) -> Affinity | None:
    """How near two functions are, as ``nvidia-smi topo -m`` has it; None where not known.

    PIX: under one switch. PXB: under several, below one host bridge's port. PHB: through a host
    bridge. NODE: through two host bridges of one NUMA node. SYS: between NUMA nodes. Where the
    firmware gives one of them no NUMA node, only the nearer three can be told apart.
    """
    if one.host == other.host:
        shared = _shared(one, other)
        if shared == 0:
            return "PHB"
        below = max(len(one.bridges), len(other.bridges)) - shared
        return "PIX" if below <= 1 else "PXB"
    if one.numa_node is None or other.numa_node is None:
        return None
    return "NODE" if one.numa_node == other.numa_node else "SYS"


def nearness(near: Affinity | None) -> int:
    """0 for the nearest affinity; not known is the farthest."""
    return _ORDER[near]


def nearest(
    one: Function, others: Iterable[Function]
) -> tuple[Affinity | None, tuple[Function, ...]]:
    """The best affinity that ``one`` has to any of ``others``, and those that have it."""
    found = [(affinity(one, other), other) for other in others]
    if not found:
        return None, ()
    best = min((near for near, _ in found), key=nearness)
    return best, tuple(other for near, other in found if near == best)


def nearest_of_gpus(pcie: Pcie) -> dict[str, Nearest]:
    """What is nearest to each GPU, by the GPU's address."""
    found = {}
    for gpu in pcie.of_kind("gpu"):
        nic, nics = nearest(gpu, pcie.of_kind("nic"))
        nvme, nvmes = nearest(gpu, pcie.of_kind("nvme"))
        found[gpu.address] = Nearest(
            numa_node=gpu.numa_node,
            nic=nic,
            nics=tuple(f.address for f in nics),
            nvme=nvme,
            nvmes=tuple(f.address for f in nvmes),
        )
    return found


def peer_bridges(pcie: Pcie, rails: Collection[str]) -> dict[str, Pair]:
    """The bridges that peer traffic passes, each with a pair of functions that it lies between.

    Peers are the GPUs, the NICs of the rails (by address) and the NVMe drives, of which one must
    be a GPU. Without a GPU one must be a rail's NIC: NVMe-oF targets do peer-to-peer DMA between
    NIC and drive too.
    """
    nics = tuple(f for f in pcie.of_kind("nic") if f.address in rails)
    gpus = pcie.of_kind("gpu")
    found: dict[str, Pair] = {}
    for one in gpus or nics:
        for other in (*nics, *pcie.of_kind("nvme"), *gpus):
            for bridge in between(one, other) or ():
                found.setdefault(bridge, Pair(one.address, other.address))
    return found
