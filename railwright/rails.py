"""The rail plan of a node: which address, table and routes each of its rails has.

Pure arithmetic over ``node.rails``; nothing here knows how a host writes it down.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from railwright.model import Model
from railwright.schema import Node, Rail, RailPlan

_ARP = {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}


class PlanError(ValueError):
    """A rail plan that has no address for a node: its host index, and what was expected of it."""

    def __init__(self, value: object, expected: str) -> None:
        self.value = value
        self.expected = expected
        super().__init__(f"rails.plan.host_index is {value}: expected {expected}")


class Route(Model):
    """A route in a rail's own table; without a gateway it is on the link."""

    to: IPv4Network
    via: IPv4Address | None = None


class PlannedRail(Model):
    """One rail of one node; ``name`` is None where the interface keeps its name."""

    rail: int
    nic: Rail
    name: str | None
    mtu: int
    rate_gbps: int | None
    address: IPv4Interface | None
    table: int
    rule_priority: int
    routes: tuple[Route, ...] = ()


def host_index(name: str, plan: RailPlan) -> int:
    """The index of the host ``name``, from 0: as given, or the number at the end of it less 1.

    Raises PlanError where the name ends in no number, or in 0.
    """
    if plan.host_index is not None:
        return plan.host_index
    number = re.search(r"(\d+)$", name.partition(".")[0])
    if number is None or int(number[1]) == 0:
        raise PlanError("missing", f"one, or a number from 1 at the end of the name {name}")
    return int(number[1]) - 1


def planned(node: Node) -> tuple[PlannedRail, ...]:
    """The rails of ``node``, by number. Raises PlanError where the plan has no room for it."""
    return tuple(_planned(node, rail, nic) for rail, nic in sorted(node.rails.nics.items()))


def _planned(node: Node, rail: int, nic: Rail) -> PlannedRail:
    rails, plan = node.rails, node.rails.plan
    address, subnet = nic.address, nic.address.network if nic.address else None
    if address is None and plan.prefix is not None:
        subnet = _subnet(plan, plan.prefix, rail)
        address = _address(node, plan, subnet, rail)
    return PlannedRail(
        rail=rail,
        nic=nic,
        name=None if rails.name is None else rails.name.format(rail=rail),
        mtu=nic.mtu or rails.mtu,
        rate_gbps=nic.rate_gbps or rails.rate_gbps,
        address=address,
        table=plan.table_base + rail,
        rule_priority=plan.rule_priority + rail,
        routes=() if subnet is None else tuple(_routes(plan, subnet)),
    )


def _subnet(plan: RailPlan, prefix: IPv4Network, rail: int) -> IPv4Network:
    # Without a length of its own (refused in a node) the rail has the whole prefix.
    if plan.layout == "shared_subnet" or plan.rail_prefix_length is None:
        return prefix
    length = plan.rail_prefix_length
    start = int(prefix.network_address) + rail * 2 ** (32 - length)
    return IPv4Network((start, length))


def _address(node: Node, plan: RailPlan, subnet: IPv4Network, rail: int) -> IPv4Interface:
    index = host_index(node.name, plan)
    if plan.layout == "shared_subnet":
        index = index * (max(node.rails.nics) + 1) + rail
    # The network's own address comes first, and the gateway's after it.
    offset = index + (2 if plan.routed else 1)
    room = subnet.num_addresses - (3 if plan.routed else 2)
    if offset >= subnet.num_addresses - 1:
        raise PlanError(
            host_index(node.name, plan), f"room for it in {subnet}, which has {room} addresses"
        )
    return IPv4Interface((int(subnet.network_address) + offset, subnet.prefixlen))


def _routes(plan: RailPlan, subnet: IPv4Network) -> Iterable[Route]:
    yield Route(to=subnet)
    if plan.routed and plan.prefix is not None and plan.prefix != subnet:
        yield Route(to=plan.prefix, via=subnet.network_address + 1)


def rail_sysctls(node: Node) -> dict[str, int]:
    """The sysctls that keep each rail's addresses to its own port, by key.

    A rail to which the plan gives no name or no address has none. arp_ignore 1: only the port
    that has the address answers for it. arp_announce 2: an ARP request names an address of the
    port that it leaves by. rp_filter 2: what comes back on another rail is not dropped. Source:
    kernel documentation, networking/ip-sysctl.
    """
    return {
        f"net.ipv4.conf.{rail.name}.{key}": value
        for rail in planned(node)
        if rail.name is not None and rail.address is not None
        for key, value in _ARP.items()
    }
