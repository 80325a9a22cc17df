"""How each rail of a node takes part in a test: its device, address, GID and QoS."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from facts.nics import SECTIONS as NICS
from facts.nics import Interface, RdmaDevice, read_nics
from facts.ports import TABLES, PortTables, read_tables, v2_indices
from facts.qos import KERNEL, PORTS, KernelFiles, PortQos, Problem, read_kernel_files, read_port_qos
from facts.rdma import RdmaLink
from railwright.model import Model
from railwright.resolve.nics import FoundRail, find_rails
from railwright.schema import Node
from railwright.schema.fabric import RoceFabric, RoceQos
from railwright.snapshot import Snapshot

SECTIONS = (*NICS, TABLES, PORTS, KERNEL)
"""The sections that ``ends_of`` reads."""


class End(Model):
    """One rail of one node, ready to be tested.

    ``address`` is where the peer finds it: the rail's own address, or for InfiniBand without IPoIB
    the node's. ``gid_index`` and ``qos`` are those of RoCE. ``pfc`` has the priorities that PFC is
    on for, None where ``pfc_error`` says why that is not known. ``forced_class`` is a traffic
    class that the driver gives all packets, ``cma_tos`` that of connections of rdma_cm.
    """

    host: str
    rail: int
    interface: str | None
    device: str
    port: int
    address: str
    rate_gbps: int | None
    gid_index: int | None = None
    qos: RoceQos | None = None
    pfc: frozenset[int] | None = None
    pfc_error: str | None = None
    forced_class: int | None = None
    cma_tos: int | None = None

    @property
    def rdma_port(self) -> str:
        return f"{self.device}/{self.port}"


@dataclass(frozen=True)
class _Ports:
    """A node's RoCE ports as they are: GID tables by ``DEVICE/PORT``, QoS by interface."""

    tables: dict[str, PortTables]
    qos: dict[str, PortQos]
    kernel: KernelFiles


class NoEnd(Model):
    """A rail that cannot be tested, and why."""

    host: str
    rail: int
    reason: str


def ends_of(node: Node, snapshot: Snapshot) -> tuple[End | NoEnd, ...]:
    """Each rail of ``node`` as it is found in ``snapshot``. Raises ValueError where unreadable."""
    ports = _Ports(read_tables(snapshot), read_port_qos(snapshot), read_kernel_files(snapshot))
    return tuple(_end(node, rail, ports) for rail in find_rails(node, read_nics(snapshot)))


def _end(node: Node, rail: FoundRail, ports: _Ports) -> End | NoEnd:
    number = rail.plan.rail
    if rail.port is None:
        return NoEnd(host=node.name, rail=number, reason=rail.error or "there is no NIC")
    device, interface = rail.port.rdma, rail.port.interface
    if device is None or not device.links:
        where = interface.name if interface else rail.port.pci
        return NoEnd(host=node.name, rail=number, reason=f"{where} has no RDMA device")
    link = _link(device, interface)
    if link.state != "ACTIVE":
        return NoEnd(host=node.name, rail=number, reason=f"{link.name} is {link.state}")
    end = End(
        host=node.name,
        rail=number,
        interface=interface.name if interface else None,
        device=device.name,
        port=link.port,
        address=_address(rail, interface) or _management(node),
        rate_gbps=rail.plan.rate_gbps,
    )
    return _roce(node.fabric.qos, end, rail, ports) if isinstance(node.fabric, RoceFabric) else end


def _link(device: RdmaDevice, interface: Interface | None) -> RdmaLink:
    on = (link for link in device.links if interface and link.netdev == interface.name)
    return next(on, device.links[0])


def _address(rail: FoundRail, interface: Interface | None) -> str | None:
    if rail.plan.address is not None:
        return str(rail.plan.address.ip)
    given: Iterable[str] = interface.addresses if interface else ()
    return next((one.partition("/")[0] for one in given if ":" not in one), None)


def _management(node: Node) -> str:
    return node.ssh.address or node.name


def _roce(qos: RoceQos, end: End, rail: FoundRail, ports: _Ports) -> End | NoEnd:
    address = _address(rail, rail.interface)
    if address is None:
        reason = f"{end.interface or end.device} has no IPv4 address, and the plan gives it none"
        return NoEnd(host=end.host, rail=end.rail, reason=reason)
    gids = ports.tables.get(end.rdma_port, PortTables()).gids
    indices = v2_indices(gids, IPv4Address(address))
    if not indices:
        have = ", ".join(sorted({gid.ipv4 for gid in gids if gid.ipv4 and gid.version == "v2"}))
        reason = f"{end.rdma_port} has no RoCE v2 GID of {address}, but {have or 'none of IPv4'}"
        return NoEnd(host=end.host, rail=end.rail, reason=reason)
    told = ports.qos.get(end.interface or "")
    pfc = told.pfc if told else Problem(reason="dcb was not asked about this port")
    return end.model_copy(
        update={
            "gid_index": indices[0],
            "qos": qos,
            "pfc": None if isinstance(pfc, Problem) else frozenset(pfc.pfc_enabled),
            "pfc_error": pfc.reason if isinstance(pfc, Problem) else None,
            "forced_class": ports.kernel.forced_class(end.device, end.port),
            "cma_tos": ports.kernel.cma_tos(end.device, end.port),
        }
    )


def lossless_priority(qos: RoceQos) -> int:
    """The priority that packets with the fabric's traffic class are meant to have."""
    return qos.priority_of(qos.traffic_class >> 2)
