"""The rails, read by ip, from sysfs and from the files of whichever manager the host runs."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from ipaddress import IPv4Interface, IPv4Network
from typing import Any

from testinfra.host import Host

from railwright.schema import Node, Rail
from tests.verify.cases import for_each


def _subnet(node: Node, rail: int) -> IPv4Network | None:
    plan = node.rails.plan
    if plan.prefix is None or plan.layout == "shared_subnet":
        return plan.prefix
    assert plan.rail_prefix_length is not None
    size = 1 << (32 - plan.rail_prefix_length)
    start = plan.prefix.network_address + rail * size
    return IPv4Network(f"{start}/{plan.rail_prefix_length}")


def _address(node: Node, rail: int, nic: Rail) -> IPv4Interface | None:
    """The plan's arithmetic once more, from its description."""
    if nic.address is not None:
        return nic.address
    subnet, plan = _subnet(node, rail), node.rails.plan
    if subnet is None:
        return None
    index = plan.host_index
    if index is None:
        digits = re.search(r"[0-9]+$", node.name.split(".")[0])
        assert digits is not None
        index = int(digits.group()) - 1
    if plan.layout == "shared_subnet":
        index = index * (1 + max(node.rails.nics)) + rail
    # Hosts come after the network's own address, and after a gateway's.
    ip = subnet.network_address + index + 1 + (1 if plan.routed else 0)
    return IPv4Interface(f"{ip}/{subnet.prefixlen}")


def _each_rail(node: Node) -> Iterator[tuple[str, int, Rail]]:
    for rail, nic in sorted(node.rails.nics.items()):
        yield f"rail{rail}", rail, nic


def _each_address(node: Node) -> Iterator[tuple[str, int, Rail]]:
    for name, rail, nic in _each_rail(node):
        if _address(node, rail, nic) is not None:
            yield name, rail, nic


def _each_named(node: Node) -> Iterator[tuple[str, int, Rail]]:
    if node.rails.name is not None:
        for name, rail, nic in _each_rail(node):
            if nic.pci is not None:
                yield name, rail, nic


def _json(host: Host, command: str) -> list[dict[str, Any]]:
    found = json.loads(host.check_output(command) or "[]")
    assert isinstance(found, list)
    return found


def _interface(host: Host, node: Node, nic: Rail) -> str:
    """The interface of a NIC, by what the inventory tells it by."""
    if nic.pci is not None:
        at = f"/sys/bus/pci/devices/{nic.pci}"
        names = (
            host.run(f"ls {at}/net").stdout.split()
            or host.run(f"ls -d {at}/virtio*/net/*").stdout.split()
        )
    elif nic.mac is not None:
        names = [
            link["ifname"]
            for link in _json(host, "ip -j -d link show")
            if nic.mac in (link.get("permaddr"), link["address"])
        ]
    else:
        device = nic.rdma_device
        if device is None:
            line = host.run(f"grep -l {nic.guid} /sys/class/infiniband/*/node_guid").stdout
            device = line.strip().split("/")[-2]
        names = host.run(f"ls /sys/class/infiniband/{device}/device/net").stdout.split()
    names = [name.rpartition("/")[2] for name in names]
    names = [name for name in names if "." not in name]
    assert len(names) == 1, names
    return names[0]


def _texts(host: Host) -> list[str]:
    """The files that a network manager or udev reads and that could be of a rail."""
    found = host.run(
        "cat /etc/systemd/network/*railwright* /etc/netplan/*railwright* "
        "/etc/NetworkManager/system-connections/*railwright* "
        "/etc/network/interfaces.d/*railwright*"
    )
    return found.stdout.splitlines()


def _links(host: Host) -> list[list[str]]:
    """The lines of each .link file, in the order in which udev looks at them; /etc masks /run."""
    found: dict[str, dict[str, list[str]]] = {}
    look = "grep -sH '' /etc/systemd/network/*.link /run/systemd/network/*.link"
    for line in host.run(look).stdout.splitlines():
        path, _, text = line.partition(":")
        folder, _, name = path.rpartition("/")
        found.setdefault(name, {}).setdefault(folder, []).append(text)
    return [next(iter(by_folder.values())) for _, by_folder in sorted(found.items())]


def _is_of_another(lines: list[str], pci: str | None, mac: str, driver: str) -> bool:
    """Whether a .link file cannot be of the port; one without any match is of all of them."""
    ours = {"Path": f"pci-{pci}", "MACAddress": mac, "PermanentMACAddress": mac, "Driver": driver}
    return any(
        key in ours and not any(fnmatch(ours[key], word) for word in value.lower().split())
        for key, _, value in (line.partition("=") for line in lines)
    )


@for_each(_each_named)
def test_rail_name(host: Host, node: Node, case: tuple[str, int, Rail], owns_kernel: bool) -> None:
    _, rail, nic = case
    assert node.rails.name is not None
    name = node.rails.name.format(rail=rail)
    links = _links(host)
    named = [f"Name={name}" in lines and f"Path=pci-{nic.pci}" in lines for lines in links]
    assert named.count(True) == 1
    mac = driver = ""
    if owns_kernel:
        assert _interface(host, node, nic) == name
        (link,) = [a for a in _json(host, "ip -j address show") if a["ifname"] == name]
        mac = link["address"]
        driver = host.check_output(f"ethtool -i {name}").split()[1]
    for lines in links[: named.index(True)]:
        assert _is_of_another(lines, nic.pci, mac, driver), lines


@for_each(_each_address)
def test_rail_address_is_persisted(host: Host, node: Node, case: tuple[str, int, Rail]) -> None:
    _, rail, nic = case
    address, plan = _address(node, rail, nic), node.rails.plan
    lines = [line.strip() for line in _texts(host)]
    assert [line for line in lines if line.endswith(str(address)) or line == f"- {address}"]
    text = "\n".join(lines)
    assert str(plan.table_base + rail) in text
    assert str(plan.rule_priority + rail) in text
    assert "dhcp4: true" not in text
    assert "DHCP=yes" not in text


@for_each(_each_address)
def test_rail_address(
    host: Host, node: Node, case: tuple[str, int, Rail], owns_kernel: bool
) -> None:
    _, rail, nic = case
    if not owns_kernel:
        return
    address = _address(node, rail, nic)
    assert address is not None
    interface = _interface(host, node, nic)
    (link,) = [a for a in _json(host, "ip -j address show") if a["ifname"] == interface]
    ipv4 = [f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] == "inet"]
    assert ipv4 == [str(address)]
    assert "UP" in link["flags"]


@for_each(_each_address)
def test_rail_rule_and_routes(
    host: Host, node: Node, case: tuple[str, int, Rail], owns_kernel: bool
) -> None:
    _, rail, nic = case
    if not owns_kernel:
        return
    address, plan = _address(node, rail, nic), node.rails.plan
    assert address is not None
    table = str(plan.table_base + rail)
    rules = [r for r in _json(host, "ip -4 -N -j rule show") if r.get("src") == str(address.ip)]
    assert [(r["priority"], r["table"]) for r in rules] == [(plan.rule_priority + rail, table)]
    interface = _interface(host, node, nic)
    every = _json(host, "ip -4 -N -j route show table all")
    routes = [route for route in every if route.get("table") == table]
    assert {route["dev"] for route in routes} == {interface}
    assert str(address.network) in [route["dst"] for route in routes if "gateway" not in route]
    # What leaves from the rail's address leaves by the rail's port, to a neighbour and beyond.
    targets = [address.network.network_address + 1]
    if plan.routed and plan.prefix is not None and plan.prefix != address.network:
        targets.append(plan.prefix.broadcast_address - 1)
    for target in targets:
        if target == address.ip:
            continue
        (way,) = _json(host, f"ip -4 -j route get {target} from {address.ip}")
        assert way["dev"] == interface, way
    # No rail has a default route.
    defaults = _json(host, "ip -4 -j route show default")
    assert interface not in [route.get("dev") for route in defaults]


@for_each(_each_rail)
def test_rail_mtu(host: Host, node: Node, case: tuple[str, int, Rail], owns_kernel: bool) -> None:
    _, _, nic = case
    # The MTU of IPoIB is another one.
    if not owns_kernel or node.fabric is None or node.fabric.kind != "roce":
        return
    interface = _interface(host, node, nic)
    (link,) = [a for a in _json(host, "ip -j address show") if a["ifname"] == interface]
    assert link["mtu"] == (nic.mtu or node.rails.mtu)
