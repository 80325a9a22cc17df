"""What an inventory says of its nodes that sizing goes by."""

from collections.abc import Sequence

from railwright.rails import planned
from railwright.schema import Node
from railwright.schema.beegfs import BeegfsMount
from railwright.schema.lustre import LustreMount
from railwright.schema.nfs import NfsRdmaMount
from railwright.sizing.hardware import hardware
from railwright.sizing.host import HostFacts, NodeStorage
from railwright.sizing.parallel import SizingError
from railwright.sizing.units import Quantity

_GBPS = 1e9 / 8
_SHARED = (LustreMount, BeegfsMount, NfsRdmaMount)
"""Mounts that all nodes reach: what a job's checkpoints are written to."""


def facts_of(nodes: Sequence[Node]) -> HostFacts:
    """What holds of all ``nodes``: a job goes at the pace of the least of them.

    Raises SizingError where they have different GPUs, of which no one figure holds.
    """
    gpus = {node.gpu_driver.gpu for node in nodes}
    if len(gpus) > 1:
        named = ", ".join(sorted(str(one or "none told") for one in gpus))
        raise SizingError(f"the nodes have different GPUs ({named}): choose some by --limit")
    nics = {node.platform.nic for node in nodes}
    known = [rate for rate in map(_rate, nodes) if rate is not None]
    # Where no node tells a rate and all have one model of NIC, that model says it.
    alike = len(nics) == 1 and not any(_rate_gbps(node) for node in nodes)
    return HostFacts(
        gpu=next(iter(gpus), None),
        gpus=_least([_gpus(node) for node in nodes]),
        rails=_least([len(node.rails.nics) or None for node in nodes]),
        rail_rate=min(known) if known and not alike else None,
        nic=next(iter(nics)) if len(nics) == 1 else None,
    )


def _gpus(node: Node) -> int | None:
    if node.rails.gpus is not None:
        return node.rails.gpus
    served = {nic.gpu for nic in node.rails.nics.values() if nic.gpu is not None}
    return len(served) or None


def _rate_gbps(node: Node) -> int | None:
    """The slowest rail's rate in Gb/s, None where not all are told."""
    return _least([one.rate_gbps for one in planned(node)])


def _rate(node: Node) -> Quantity | None:
    """The slowest rail's rate, or the line rate of the node's NICs."""
    told = _rate_gbps(node)
    if told is not None:
        return Quantity(told * _GBPS, "B/s")
    line_rate = hardware().nics.get(node.platform.nic or "")
    return line_rate.value if line_rate is not None else None


def _least(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None


def storage_of(nodes: Sequence[Node], mount: str | None) -> NodeStorage | None:
    """What each of ``nodes`` is expected to read and write on a shared mount: the least of them.

    ``mount`` is the directory; None takes the only one of which something is expected. Raises
    SizingError where there are several, or not the one that is named.
    """
    places = sorted({where for node in nodes for where in _expected(node)})
    if mount is None and len(places) > 1:
        raise SizingError(f"which storage? there are {', '.join(places)}: choose one by --mount")
    if mount is not None and mount not in places:
        known = f"there are {', '.join(places)}" if places else "there is none"
        raise SizingError(f"{mount}: no shared mount of which throughput is expected; {known}")
    if not places:
        return None
    where = mount or places[0]
    found = [_expected(node).get(where, (None, None)) for node in nodes]
    return NodeStorage(
        mount=where,
        read=_least_rate([read for read, _ in found]),
        write=_least_rate([write for _, write in found]),
    )


def _expected(node: Node) -> dict[str, tuple[float | None, float | None]]:
    """Shared mounts of which something is expected: GB/s that the node reads and writes."""
    return {
        where: (one.expected.read_gb_s, one.expected.write_gb_s)
        for where, one in node.storage.mounts.items()
        if isinstance(one, _SHARED) and (one.expected.read_gb_s or one.expected.write_gb_s)
    }


def _least_rate(rates: Sequence[float | None]) -> Quantity | None:
    known = [rate for rate in rates if rate is not None]
    whole = len(known) == len(rates)
    return Quantity(min(known) * 1e9, "B/s") if known and whole else None
