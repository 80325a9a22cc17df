"""Which port of a node a rail's NIC is."""

from collections.abc import Iterable

from facts.nics import Interface, Nics, RdmaDevice
from railwright.model import Model
from railwright.rails import PlannedRail, planned
from railwright.schema import Effect, Node, Rail


class Port(Model):
    """The port that a rail's NIC was found to be, and what keeps railwright off it."""

    interface: Interface | None
    rdma: RdmaDevice | None
    pci: str | None
    refusal: str | None = None


class FoundRail(Model):
    """A rail of the plan and its port; ``error`` says why there is none."""

    plan: PlannedRail
    port: Port | None
    error: str | None = None

    @property
    def key(self) -> str:
        """What the rail's settings are called."""
        return f"rail{self.plan.rail}"

    @property
    def interface(self) -> Interface | None:
        return self.port.interface if self.port else None


def find_rails(node: Node, nics: Nics) -> tuple[FoundRail, ...]:
    """Each rail of ``node`` with its port. Raises PlanError where the plan has no room for it."""
    return tuple(_found(plan, nics) for plan in planned(node))


def rails_in_image(node: Node) -> tuple[FoundRail, ...]:
    """The rails of a node that shares its kernel, whose ports are known by the inventory alone."""
    return tuple(
        FoundRail(plan=plan, port=Port(interface=None, rdma=None, pci=plan.nic.pci))
        for plan in planned(node)
    )


def renamed(node: Node, rails: Iterable[FoundRail], nics: Nics) -> dict[str, str]:
    """Rails whose interface a run gives its name, with the name that it has until then.

    A name that another interface has is free only where that one is renamed too.
    """
    if Effect.LINK not in node.effects.allow:
        return {}
    due = {
        rail.key: (port.interface.name, rail.plan.name)
        for rail in rails
        if (port := rail.port) is not None and port.interface is not None
        if port.refusal is None and rail.plan.name not in (None, port.interface.name)
    }
    while True:
        leaving = {name for name, _ in due.values()}
        free = {
            key: (name, new)
            for key, (name, new) in due.items()
            if new not in nics.addresses or new in leaving
        }
        if len(free) == len(due):
            return {key: name for key, (name, _) in due.items()}
        due = free


def _found(plan: PlannedRail, nics: Nics) -> FoundRail:
    interfaces = _interfaces(plan.nic, nics)
    devices = _devices(plan.nic, nics, interfaces)
    name = _name_of(plan.nic)
    if len(interfaces) > 1 or (not interfaces and len(devices) > 1):
        several = ", ".join(x.name for x in interfaces or devices)
        return FoundRail(plan=plan, port=None, error=f"{name} has several ports: {several}")
    if not interfaces and not devices:
        return FoundRail(plan=plan, port=None, error=f"there is no NIC {name}")
    interface = interfaces[0] if interfaces else None
    device = devices[0] if devices else None
    pci = (interface.pci if interface else None) or (device.pci if device else None)
    return FoundRail(
        plan=plan,
        port=Port(interface=interface, rdma=device, pci=pci, refusal=_refusal(interface, nics)),
    )


def _name_of(nic: Rail) -> str:
    return next(
        f"{kind} {value}"
        for kind, value in (
            ("at", nic.pci),
            ("with MAC", nic.mac),
            ("with GUID", nic.guid),
            ("of RDMA device", nic.rdma_device),
        )
        if value is not None
    )


def _interfaces(nic: Rail, nics: Nics) -> list[Interface]:
    every = list(nics.interfaces.values())
    if nic.mac is not None:
        return _ports([one for one in every if one.permanent_mac == nic.mac])
    if nic.pci is not None:
        return _ports([one for one in every if one.pci == nic.pci])
    devices = [device for device in nics.rdma.values() if _is(device, nic)]
    netdevs = {link.netdev for device in devices for link in device.links if link.netdev}
    if netdevs:
        return [one for one in every if one.name in netdevs]
    # Before Linux 6.7 an InfiniBand port does not name its interface.
    functions = {device.pci for device in devices if device.pci is not None}
    return _ports([one for one in every if one.pci in functions])


def _ports(at: list[Interface]) -> list[Interface]:
    """Those of the interfaces at one place that are a port.

    A device below the function (virtio) counts where the function itself has no interface; an
    IPoIB interface for one partition (ib0.8001) is not a port beside its parent.
    """
    names = {one.name for one in at}
    whole = [one for one in at if "." not in one.name or one.name.partition(".")[0] not in names]
    return [one for one in whole if one.is_function] or whole


def _is(device: RdmaDevice, nic: Rail) -> bool:
    if nic.rdma_device is not None:
        return device.name == nic.rdma_device
    return nic.guid is not None and device.guid == nic.guid


def _devices(nic: Rail, nics: Nics, interfaces: list[Interface]) -> list[RdmaDevice]:
    if nic.guid is not None or nic.rdma_device is not None:
        return [device for device in nics.rdma.values() if _is(device, nic)]
    on = {one.name for one in interfaces}
    by_link = [d for d in nics.rdma.values() if any(link.netdev in on for link in d.links)]
    return by_link or [d for d in nics.rdma.values() if d.pci is not None and d.pci == nic.pci]


def _refusal(interface: Interface | None, nics: Nics) -> str | None:
    """Why nothing may be done to the port: the way in must stay as it is."""
    if interface is None:
        return None
    if nics.way_in is None:
        return "the interface that ssh came in by is not known, so it could be this one"
    if interface.name in nics.way_in:
        return f"ssh came in by {interface.name}"
    return None
