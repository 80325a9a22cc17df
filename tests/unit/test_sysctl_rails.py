"""The sysctls of the rails' interfaces, which the larger of all and the interface's decides."""

import json

import pytest

from deploys.sysctl import wanted
from railwright.actions import WriteValue
from railwright.schema import (
    Effect,
    EffectsSpec,
    Node,
    Rail,
    RailPlan,
    RailsSpec,
    RoceFabric,
    SysctlSpec,
)
from railwright.settings import Standing, changes
from railwright.snapshot import Section, Snapshot
from tests.unit.sysctl_host import LIVE, done, of, snapshot, verdicts
from tests.unit.sysctl_host import node as plain

LINK = LIVE | {Effect.LINK}
PORT = (
    "port net enp26s0 /sys/devices/pci0000:17/0000:1a:00.0 mlx5_core b8:3f:d2:00:00:01"
    " 1500 down -1 0 1\n"
    "port net eth0 /sys/devices/pci0000:00/0000:00:03.0 e1000 52:54:00:00:00:01 1500 up - -1 1\n"
)
WAY_IN = 'ssh 192.0.2.9 50000 192.0.2.5 22\n[{{"dev":"{}"}}]\n'
BASE = {
    "net.ipv4.conf.all.arp_ignore": "0",
    "net.ipv4.conf.all.arp_announce": "0",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.arp_ignore": "0",
    "net.ipv4.conf.default.arp_announce": "0",
}


def node(allow: frozenset[Effect] = LINK, **values: object) -> Node:
    given = {key.replace("__", "."): value for key, value in values.items()}
    plan = {"prefix": "10.64.0.0/12", "rail_prefix_length": 20}
    return Node(
        name="gpu001",
        fabric=RoceFabric(),
        effects=EffectsSpec(allow=allow),
        sysctl=SysctlSpec.model_validate({"values": given}),
        rails=RailsSpec(nics={0: Rail(pci="0000:1a:00.0")}, plan=RailPlan.model_validate(plan)),
    )


def host(dev: str = "eth0", **values: str) -> Snapshot:
    """A node without rail0 yet, unless its keys are given."""
    addresses = [{"ifname": "eth0", "flags": ["UP"], "addr_info": []}, {"ifname": "enp26s0"}]
    given = {key.replace("__", "."): value for key, value in values.items()}
    return snapshot(
        None,
        {**BASE, **given},
        nic_ports=Section(stdout=PORT, rc=0),
        nic_addresses=Section(stdout=json.dumps(addresses), rc=0),
        way_in=Section(stdout=WAY_IN.format(dev), rc=0),
    )


def has(arp_ignore: int, arp_announce: int, rp_filter: int, interface: str) -> dict[str, str]:
    names = {"arp_ignore": arp_ignore, "arp_announce": arp_announce, "rp_filter": rp_filter}
    return {f"net__ipv4__conf__{interface}__{name}": str(n) for name, n in names.items()}


KEY = "net.ipv4.conf.rail0.rp_filter"


def test_each_rail_has_its_keys_unless_the_inventory_says_otherwise() -> None:
    assert wanted(node()) == {
        "net.ipv4.conf.rail0.arp_announce": "2",
        "net.ipv4.conf.rail0.arp_ignore": "1",
        "net.ipv4.conf.rail0.rp_filter": "2",
    }
    own = node(net__ipv4__conf__rail0__rp_filter=0, net__ipv4__conf__rail0__arp_ignore=None)
    assert wanted(own)[KEY] == "0"
    assert "net.ipv4.conf.rail0.arp_ignore" not in wanted(own)
    # What all interfaces have is the least that one can have.
    assert wanted(node(net__ipv4__conf__all__arp_ignore=2))["net.ipv4.conf.rail0.arp_ignore"] == "2"


def test_keys_of_a_rail_that_is_named_in_this_run_are_announced_and_written() -> None:
    found = of(KEY, node(), host())
    assert (found.running.standing, found.running.detail) == (Standing.ABSENT, "comes with rail0")
    assert [c.state for c in changes(found, LINK)] == ["persisted", "running"]
    written = [a.path for a in done(node(), host()) if isinstance(a, WriteValue)]
    assert "/proc/sys/net/ipv4/conf/rail0/rp_filter" in written


@pytest.mark.parametrize(("allow", "dev"), [(LIVE, "eth0"), (LINK, "enp26s0"), (LIVE, "enp26s0")])
def test_keys_of_a_rail_that_is_not_named_in_this_run_are_late(
    allow: frozenset[Effect], dev: str
) -> None:
    found = of(KEY, node(allow), host(dev))
    assert found.running.standing is Standing.LATE
    assert found.running.detail == "there is no interface rail0 yet"
    assert not [a for a in done(node(allow), host(dev)) if isinstance(a, WriteValue)]


def test_bug_14_arp_that_is_not_bound_is_wrong_by_the_effective_value() -> None:
    seen = host(**has(0, 0, 2, "rail0"))
    found = of("net.ipv4.conf.rail0.arp_ignore", node(), seen)
    assert found.running.standing is Standing.WRONG
    assert found.running.detail == "effective 0: all has 0, rail0 has 0"
    assert [c.after for c in changes(found, LINK)] == ["1", "1"]


@pytest.mark.parametrize(
    "values", [has(1, 2, 2, "rail0"), {**has(0, 0, 0, "rail0"), **has(1, 2, 2, "all")}]
)
def test_bug_14_twin_bound_by_the_interface_or_by_all_is_right(values: dict[str, str]) -> None:
    seen = host(**values)
    for key in wanted(node()):
        assert of(key, node(), seen).running.standing is Standing.RIGHT
    assert not [a for a in done(node(), seen) if isinstance(a, WriteValue)]


def test_bug_16_strict_filtering_of_all_holds_though_the_interface_has_none() -> None:
    seen = host(**{**has(1, 2, 0, "rail0"), "net__ipv4__conf__all__rp_filter": "1"})
    found = of(KEY, node(), seen)
    assert (found.running.standing, found.running.value) == (Standing.WRONG, "1")
    assert found.running.detail == "effective 1: all has 1, rail0 has 0"
    # For loose filtering the interface alone is enough.
    assert found.acts
    # For none it is not: all must be lowered as well.
    off = of(KEY, node(net__ipv4__conf__rail0__rp_filter=0), seen)
    assert (off.running.value, off.acts) == ("1", False)
    assert off.remedy == "set sysctl.values net.ipv4.conf.all.rp_filter to 0: it is 1"
    both = node(net__ipv4__conf__rail0__rp_filter=0, net__ipv4__conf__all__rp_filter=0)
    assert of(KEY, both, seen).acts


@pytest.mark.parametrize(("common", "own"), [("2", "0"), ("0", "2"), ("1", "2")])
def test_bug_16_twin_loose_filtering_is_right_by_either(common: str, own: str) -> None:
    values = {**has(1, 2, 0, "rail0"), "net__ipv4__conf__all__rp_filter": common}
    seen = host(**{**values, "net__ipv4__conf__rail0__rp_filter": own})
    assert of(KEY, node(), seen).running.value == "2"
    assert of(KEY, node(), seen).running.standing is Standing.RIGHT


@pytest.mark.parametrize(
    ("common", "own", "effective", "standing"),
    [
        ("1", "0", "1", Standing.WRONG),
        ("2", "0", "2", Standing.RIGHT),
        ("0", "2", "2", Standing.RIGHT),
    ],
    ids=["the row", "twin by all", "twin by the interface"],
)
def test_bug_16_of_an_interface_that_is_no_rail(
    common: str, own: str, effective: str, standing: Standing
) -> None:
    key = "net.ipv4.conf.ens3f0np0.rp_filter"
    seen = snapshot(None, {key: own, "net.ipv4.conf.all.rp_filter": common})
    found = of(key, plain(net__ipv4__conf__ens3f0np0__rp_filter=2), seen).running
    assert (found.value, found.standing) == (effective, standing)
    assert found.detail == f"effective {effective}: all has {common}, ens3f0np0 has {own}"


def test_without_rails_no_nic_is_read() -> None:
    broken = Section(stdout="", stderr="ip: not found", rc=127)
    seen = snapshot(nic_addresses=broken)
    assert set(verdicts(plain(vm__swappiness=60), seen)) == {
        "vm.swappiness",
        "/etc/sysctl.d/99-zz-railwright.conf",
    }
