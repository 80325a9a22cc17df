"""All that is known of a node's rails: the plan, the ports, the manager and what it has to do."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface

from facts.network import Network, read_network
from facts.nics import Interface, Nics, read_nics
from railwright.netconfig import WRITERS, Match, RailConfig
from railwright.netconfig.networkd import link_content, link_path
from railwright.owned import OwnedFile
from railwright.resolve.network import Manager, UnknownManagerError, manager_of
from railwright.resolve.networkd import Device
from railwright.resolve.nics import FoundRail, find_rails, rails_in_image, renamed
from railwright.schema import InfinibandFabric, Node
from railwright.snapshot import Snapshot


@dataclass(frozen=True)
class RailView:
    """One rail; ``interface`` is None in a container, and of a port that has none."""

    found: FoundRail
    config: RailConfig
    interface: Interface | None
    device: Device | None

    @property
    def key(self) -> str:
        return self.found.key

    @property
    def port(self) -> str:
        """How the script finds the interface: by the PCI address where there is one."""
        pci = self.found.port.pci if self.found.port else None
        return pci or (self.interface.name if self.interface else "-")

    @property
    def addresses(self) -> tuple[str, ...]:
        """The IPv4 addresses that the interface has."""
        return tuple(a for a in (self.interface.addresses if self.interface else ()) if "." in a)


@dataclass(frozen=True)
class RailsView:
    """The rails of a node. ``manager`` is None where it is not known, and ``unknown`` says why."""

    node: Node
    network: Network
    nics: Nics | None
    manager: Manager | None
    unknown: str | None
    rails: tuple[RailView, ...]
    missing: tuple[FoundRail, ...]
    renamed: dict[str, str]

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot) -> "RailsView":
        """Raises ValueError where the node's answer, or its plan, cannot be read."""
        network = read_network(snapshot)
        nics = None if snapshot.is_container else read_nics(snapshot)
        found = rails_in_image(node) if nics is None else find_rails(node, nics)
        names = [rail.interface.name for rail in found if rail.interface is not None]
        manager, unknown = None, None
        try:
            manager = manager_of(network, names, snapshot.is_container)
        except UnknownManagerError as error:
            unknown = str(error)
        return cls(
            node=node,
            network=network,
            nics=nics,
            manager=manager,
            unknown=unknown,
            rails=tuple(_rail(rail, node, network) for rail in found if rail.port),
            missing=tuple(rail for rail in found if rail.port is None),
            renamed={} if nics is None else renamed(node, found, nics),
        )

    def owned(self, rail: RailView) -> Iterator[OwnedFile]:
        """The files of ours for ``rail``: the name's, and the manager's."""
        key, match = rail.key, rail.config.match
        named = rail.config.name is not None and (match.path or match.mac)
        if self.node.rails.name is not None and named:
            yield OwnedFile(path=link_path(key), content=link_content(rail.config))
        if self.manager is not None and self.is_configured(rail):
            writer = WRITERS[self.manager.name]
            content = writer.content(rail.config)
            if content is not None and (match.path or match.mac):
                yield OwnedFile(path=writer.path(key), content=content, mode=writer.mode)

    def is_configured(self, rail: RailView) -> bool:
        """Whether there is anything to configure: InfiniBand does without IPoIB."""
        config = rail.config
        return not config.is_infiniband or config.address is not None or config.mtu is not None

    def stale(self) -> Iterator[OwnedFile]:
        """Files of ours that nothing asks for any more."""
        kept = {owned.path for rail in self.rails for owned in self.owned(rail)}
        # Of a rail whose port is not seen, or must not be touched, nothing is taken away either,
        # nor where it is not known which manager's files are in use.
        held = [rail.key for rail in self.missing]
        held += [rail.key for rail in self.rails if rail.found.port and rail.found.port.refusal]
        for file in self.network.files:
            key = our_key(file.path)
            if key is None or file.path in kept or key in held:
                continue
            planned = any(rail.key == key for rail in self.rails)
            if not (planned and self.manager is None):
                yield OwnedFile(path=file.path, content=None)

    def cuts_way_in(self, rail: RailView) -> str | None:
        """Why the rail's address must not be set: ssh's way back would lead over the rail."""
        if self.nics is None or rail.config.address is None:
            return None
        subnet = rail.config.address.network
        client = self.nics.client
        if client is not None and ip_address(client) in subnet:
            return f"ssh came from {client}, which lies in the rail's subnet {subnet}"
        for name in sorted(self.nics.way_in or ()):
            for address in self.nics.addresses.get(name, ()):
                if ip_interface(address).network.overlaps(subnet):
                    return f"ssh came in by {name}, whose {address} lies in the subnet {subnet}"
        return None


def our_key(path: str) -> str | None:
    """The rail that a file of ours is for, None where it is not ours."""
    directory, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    for prefix in ("00-railwright-", "90-railwright-", "railwright-"):
        key = stem.removeprefix(prefix)
        if key == stem or not re.fullmatch(r"rail\d+", key):
            continue
        places = {link_path(key), *(writer.path(key) for writer in WRITERS.values())}
        return key if f"{directory}/{name}" in places else None
    return None


def _rail(rail: FoundRail, node: Node, network: Network) -> RailView:
    interface = rail.interface
    udev = network.udev.get(interface.name) if interface else None
    infiniband = isinstance(node.fabric, InfinibandFabric)
    pci = rail.port.pci if rail.port else None
    path = (udev.path if udev else None) or (f"pci-{pci}" if pci else None)
    mac = interface.permanent_mac if interface else rail.plan.nic.mac
    driver = udev.driver if udev else None
    # Where an interface below the function has the same path, the driver tells the two apart.
    shared = interface is not None and any(
        other.path == path and name != interface.name and "." not in name
        for name, other in network.udev.items()
    )
    match = Match(
        path=path,
        driver=driver if shared else None,
        mac=mac if path is None else None,
    )
    name = rail.plan.name or (interface.name if interface else None)
    device = None
    if interface is not None:
        device = Device(
            name=interface.name,
            mac=interface.mac,
            permanent_mac=interface.permanent_mac,
            path=path,
            driver=driver or interface.driver,
            type="infiniband" if interface.is_infiniband else "ether",
        )
    config = RailConfig.of(rail.plan, match, name, infiniband)
    return RailView(found=rail, config=config, interface=interface, device=device)
