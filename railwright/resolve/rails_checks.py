"""What is looked at on the rails and never acted on.

Subnets that overlap, and addresses and default routes that are not of the plan.
"""

from collections.abc import Iterator
from ipaddress import IPv4Interface

from facts.network import MAIN, ArpKey
from facts.nics import Nics
from railwright.resolve.rails_view import RailsView, RailView
from railwright.settings import Setting, Standing, State, looked_at

_BOUND: dict[ArpKey, int] = {"arp_ignore": 1, "arp_announce": 2}
"""What binds ARP to the port that has the address; see railwright.rails.rail_sysctls."""


def checks(component: str, view: RailsView, rail: RailView) -> Iterator[Setting]:
    """The findings on ``rail``. None of them stands where there is no interface to look at."""
    if view.nics is None or rail.interface is None:
        return
    for key, desired, state, remedy in _found(view, view.nics, rail, rail.interface.name):
        yield looked_at(component, f"{rail.key} {key}", desired, state, remedy=remedy)


def _found(
    view: RailsView, nics: Nics, rail: RailView, name: str
) -> Iterator[tuple[str, str, State, str | None]]:
    if rail.addresses:
        yield _subnet(view, nics, rail, name)
    planned = str(rail.config.address)
    foreign = [address for address in rail.addresses if address != planned]
    if foreign and planned in rail.addresses:
        state = State(standing=Standing.WRONG, value=" ".join(foreign))
        yield "other addresses", "none", state, f"take {state.value} off {name}"
    defaults = [
        route
        for route in view.network.routes
        if (route.to, route.table, route.device) == ("default", MAIN, name)
    ]
    if defaults:
        via = defaults[0].via
        state = State(standing=Standing.WRONG, value=f"via {via}" if via else "on the link")
        yield "default route", "none", state, f"take the default route off {name}: a rail has none"


def _subnet(
    view: RailsView, nics: Nics, rail: RailView, name: str
) -> tuple[str, str, State, str | None]:
    """Two interfaces in one prefix answer ARP for each other unless they are told not to."""
    desired = "its own, or ARP bound to the port"
    shared = [
        (own, other, address)
        for own in rail.addresses
        for other, addresses in sorted(nics.addresses.items())
        for address in addresses
        if other != name and "." in address and _overlap(own, address)
    ]
    if not shared:
        return "subnet", desired, State(standing=Standing.RIGHT, value=desired), None
    told = "; ".join(f"{own} and {address} of {other}" for own, other, address in shared)
    unbound = [
        f"{key} of {one} is {view.network.effective_arp(one, key)}, at least {least} is needed"
        for one in sorted({name, *(other for _, other, _ in shared)})
        for key, least in _BOUND.items()
        if view.network.effective_arp(one, key) < least
    ]
    if not unbound:
        detail = f"shared: {told}; arp_ignore and arp_announce bind ARP to the port"
        return "subnet", desired, State(standing=Standing.RIGHT, value=desired, detail=detail), None
    state = State(
        standing=Standing.WRONG,
        value="shared",
        detail=f"{told} lie in one subnet; effective (the larger of all and the interface's) "
        + ", ".join(unbound),
    )
    return "subnet", desired, state, "one subnet for each rail, or the sysctls named"


def _overlap(one: str, other: str) -> bool:
    return IPv4Interface(one).network.overlaps(IPv4Interface(other).network)
