"""The arithmetic of the rail plan."""

from ipaddress import IPv4Address, IPv4Interface, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.rails import PlanError, host_index, planned, rail_sysctls
from railwright.schema import Node, Rail, RailPlan, RailsSpec, RoceFabric, SysctlSpec

BOUND = SysctlSpec(values={"net.ipv4.conf.all.arp_ignore": 1, "net.ipv4.conf.all.arp_announce": 2})


def node(name: str, rails: int, **plan: object) -> Node:
    return Node(
        name=name,
        fabric=RoceFabric(),
        sysctl=BOUND,
        rails=RailsSpec(
            nics={rail: Rail(pci=f"0000:{rail + 1:02x}:00.0") for rail in range(rails)},
            plan=RailPlan.model_validate(plan),
        ),
    )


def addresses(name: str, rails: int = 8, **plan: object) -> list[IPv4Interface]:
    found = [rail.address for rail in planned(node(name, rails, **plan))]
    return [address for address in found if address is not None]


def test_one_subnet_for_each_rail() -> None:
    found = planned(node("gpu003", 2, prefix="10.64.0.0/12", rail_prefix_length=20))
    assert [str(rail.address) for rail in found] == ["10.64.0.4/20", "10.64.16.4/20"]
    assert [(rail.name, rail.table, rail.rule_priority) for rail in found] == [
        ("rail0", 100, 1000),
        ("rail1", 101, 1001),
    ]
    assert [(str(r.to), str(r.via)) for r in found[1].routes] == [
        ("10.64.16.0/20", "None"),
        ("10.64.0.0/12", "10.64.16.1"),
    ]


def test_one_subnet_for_all_rails() -> None:
    found = addresses("gpu002", 4, prefix="10.64.0.0/22", layout="shared_subnet", routed=False)
    assert [str(address) for address in found] == [f"10.64.0.{n}/22" for n in (5, 6, 7, 8)]


def test_a_rail_with_an_address_of_its_own_keeps_it() -> None:
    plan = RailPlan(prefix=IPv4Network("10.64.0.0/12"), rail_prefix_length=20)
    own = IPv4Interface("10.99.0.7/24")
    nics = {0: Rail(pci="0000:01:00.0", address=own)}
    asked = Node(name="x1", fabric=RoceFabric(), rails=RailsSpec(nics=nics, plan=plan))
    (rail,) = planned(asked)
    assert rail.address == own
    assert str(rail.routes[0].to) == "10.99.0.0/24"


PLANS = st.fixed_dictionaries(
    {
        "prefix": st.integers(8, 20).map(lambda n: f"10.0.0.0/{n}"),
        "rail_prefix_length": st.integers(24, 28),
        "routed": st.booleans(),
    }
) | st.fixed_dictionaries(
    {
        "prefix": st.integers(16, 22).map(lambda n: f"10.0.0.0/{n}"),
        "layout": st.just("shared_subnet"),
        "routed": st.booleans(),
    }
)


@given(
    plan=PLANS,
    rails=st.integers(1, 8),
    hosts=st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True),
)
def test_all_addresses_are_distinct_in_their_subnet_and_no_gateways(
    plan: dict[str, object], rails: int, hosts: list[int]
) -> None:
    seen: set[IPv4Address] = set()
    for number in hosts:
        for rail in planned(node(f"gpu{number:03}", rails, **plan)):
            address = rail.address
            assert address is not None
            network = address.network
            assert address.ip not in (network.network_address, network.broadcast_address)
            assert address.ip not in {route.via for route in rail.routes}
            assert not plan["routed"] or address.ip != network.network_address + 1
            assert network.subnet_of(IPv4Network(str(plan["prefix"])))
            assert address.ip not in seen
            seen.add(address.ip)
            assert all(route.via is None or route.via in network for route in rail.routes)


@pytest.mark.parametrize(
    ("plan", "last"),
    [
        ({"prefix": "10.0.0.0/20", "rail_prefix_length": 26, "routed": False}, 61),
        ({"prefix": "10.0.0.0/20", "rail_prefix_length": 26}, 60),
        ({"prefix": "10.0.0.0/24", "layout": "shared_subnet", "routed": False}, 62),
        ({"prefix": "10.0.0.0/24", "layout": "shared_subnet"}, 62),
    ],
)
def test_a_host_for_which_there_is_no_room_is_told(plan: dict[str, object], last: int) -> None:
    fits = addresses("x", 4, host_index=last, **plan)
    assert len(fits) == 4
    assert all(a.ip < a.network.broadcast_address for a in fits)
    with pytest.raises(PlanError, match="room"):
        addresses("x", 4, host_index=last + 1, **plan)


def test_the_index_of_a_host() -> None:
    plan = RailPlan()
    assert host_index("gpu001", plan) == 0
    assert host_index("rack2-gpu17.example.org", plan) == 16
    assert host_index("login", RailPlan(host_index=4)) == 4
    for name in ("login", "gpu000"):
        with pytest.raises(PlanError, match=r"rails\.plan\.host_index"):
            host_index(name, plan)


def test_each_named_rail_with_an_address_has_its_sysctls() -> None:
    asked = node("gpu001", 1, prefix="10.64.0.0/12", rail_prefix_length=20)
    assert rail_sysctls(asked) == {
        "net.ipv4.conf.rail0.arp_ignore": 1,
        "net.ipv4.conf.rail0.arp_announce": 2,
        "net.ipv4.conf.rail0.rp_filter": 2,
    }
    assert rail_sysctls(node("gpu001", 1)) == {}
    unnamed = asked.model_copy(update={"rails": asked.rails.model_copy(update={"name": None})})
    assert rail_sysctls(unnamed) == {}
