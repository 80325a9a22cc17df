"""The ports of a node's NICs, their interfaces and RDMA devices, and the way that ssh came in by.

A port is told by its PCI address: interface names depend on the distribution's rules, and the
numbers of RDMA devices on the probing order.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import Field

from facts.json_text import as_objects, load_json
from facts.probe import Section, SnapshotFact
from facts.rdma import RdmaLink, parse_rdma_links
from railwright.model import Model
from railwright.snapshot import Snapshot

SECTIONS = (
    Section(
        name="nic_ports",
        for_drivers=True,
        for_rails=True,
        script=r"""
for link in /sys/class/net/*; do
    [ -e "$link/device" ] || continue
    # A representor of a virtual function is no port of its own (mlx5 in switchdev mode).
    first "$link/phys_port_name"
    case $first in *vf* | *sf*) continue ;; esac
    # By cd, as that starts no process.
    cd -P "$link/device" 2>/dev/null || continue
    line="port net ${link##*/} $PWD"
    driver=
    ! cd -P driver 2>/dev/null || driver=${PWD##*/}
    line="$line $driver"
    for file in address mtu operstate speed device/numa_node type; do
        first "$link/$file"
        line="$line $first"
    done
    echo "$line"
done
for link in /sys/class/net/*/lower_*; do
    [ -e "$link" ] || continue
    upper=${link#/sys/class/net/}
    echo "lower ${upper%%/*} ${link##*/lower_}"
done
# What takes a port down takes its virtual functions with it.
for link in /sys/class/net/*/device/physfn/net/*; do
    [ -e "$link" ] || continue
    upper=${link#/sys/class/net/}
    echo "lower ${upper%%/*} ${link##*/}"
done
for link in /sys/class/infiniband/*; do
    [ -e "$link" ] || continue
    first "$link/node_guid"
    cd -P "$link/device" 2>/dev/null || cd -P "$link" || continue
    echo "rdma ${link##*/} $first $PWD"
done
true
""",
    ),
    Section(
        name="nic_rdma",
        for_drivers=True,
        for_rails=True,
        # A node without RDMA modules answers with nothing or with an error of its netlink.
        script="[ ! -d /sys/class/infiniband ] || rdma -j link show",
    ),
    Section(
        name="nic_addresses",
        for_rails=True,
        for_drivers=True,
        script="ip -j -d addr show",
    ),
    Section(
        name="way_in",
        for_drivers=True,
        for_rails=True,
        script=r"""
pid=$$
found=
while [ "$pid" -gt 1 ]; do
    found=$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | sed -n 's/^SSH_CONNECTION=//p')
    [ -z "$found" ] || break
    pid=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status")
    [ -n "$pid" ] || break
done
[ -n "$found" ] || return 0
echo "ssh $found"
set -- $found
case $1 in
    # The interface stands in a link-local address.
    *%*) ;;
    *) ip -j route get "$1" from "$3" && ip -j route get "$1" ;;
esac
""",
    ),
)

_PCI = re.compile(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=/|$)")
_ETHERNET, _INFINIBAND = "1", "32"


class Interface(Model):
    """A network interface of a device. ``speed_mbps`` is None where there is no link.

    ``is_function`` tells an interface of the PCI function itself from one of a device below it
    (virtio).
    """

    name: str
    pci: str | None
    is_function: bool
    driver: str
    mac: str
    permanent_mac: str
    mtu: int
    operstate: str
    speed_mbps: int | None
    numa_node: int | None
    is_infiniband: bool
    addresses: tuple[str, ...]
    is_up: bool


class RdmaDevice(Model):
    """An RDMA device; ``links`` are its ports."""

    name: str
    guid: str
    pci: str | None
    links: tuple[RdmaLink, ...]


class Nics(Model):
    """NICs of a node. ``way_in`` names the interfaces that ssh came in by, and those below them.

    It is None where that is not known: then no interface may be taken for another one's.
    """

    interfaces: dict[str, Interface]
    rdma: dict[str, RdmaDevice]
    lowers: dict[str, tuple[str, ...]]
    holders: dict[str, str]
    """Address to the interface that has it, of all interfaces, virtual ones too."""
    way_in: frozenset[str] | None
    addresses: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Interface to its addresses with their prefix length, of all interfaces."""
    client: str | None = None
    """The address that ssh came from."""

    def rdma_of(self, interface: str) -> RdmaDevice | None:
        """The RDMA device whose port lies on ``interface``."""
        return next(
            (
                device
                for device in self.rdma.values()
                if any(link.netdev == interface for link in device.links)
            ),
            None,
        )


class NicFact(SnapshotFact):
    """NICs of a node: ``pyinfra INVENTORY fact facts.nics.NicFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Nics:
        return read_nics(snapshot)


def read_nics(snapshot: Snapshot) -> Nics:
    """What the snapshot says. Raises ValueError where it cannot be read."""
    addresses = _addresses(_answer(snapshot, "nic_addresses"))
    ports = snapshot.text("nic_ports").splitlines()
    rdma = _answer(snapshot, "nic_rdma")
    lowers: dict[str, tuple[str, ...]] = {}
    for line in ports:
        if line.startswith("lower "):
            _, upper, lower = line.split(" ")
            lowers[upper] = (*lowers.get(upper, ()), lower)
    interfaces = [_interface(line, addresses) for line in ports if line.startswith("port net ")]
    links = parse_rdma_links(rdma) if rdma.strip() else ()
    devices = [_rdma(line, links) for line in ports if line.startswith("rdma ")]
    # A way back that the kernel could not tell is not known.
    way_in = snapshot.text("way_in") if snapshot.section("way_in").rc == 0 else ""
    holders = {
        address.partition("/")[0]: name
        for name, found in addresses.items()
        for address in found.addresses
    }
    return Nics(
        interfaces={interface.name: interface for interface in interfaces},
        rdma={device.name: device for device in devices},
        lowers=lowers,
        holders=holders,
        way_in=parse_way_in(
            way_in,
            {name: link.addresses for name, link in addresses.items()},
            lowers,
            frozenset(interface.name for interface in interfaces),
        ),
        addresses={name: link.addresses for name, link in addresses.items()},
        client=parse_client(way_in),
    )


def _answer(snapshot: Snapshot, name: str) -> str:
    section = snapshot.section(name)
    if section.rc != 0:
        raise ValueError(f"{name} failed with {section.rc}: {section.stderr or 'no word'}")
    return snapshot.text(name)


class _Link(Model):
    addresses: tuple[str, ...]
    permanent_mac: str | None
    is_up: bool


def _addresses(text: str) -> dict[str, _Link]:
    """Read ``ip -j -d addr show``. Raises ValueError where it is not that."""
    found = {}
    for entry in as_objects(load_json(text, "ip -j addr"), "ip -j addr"):
        name = str(entry["ifname"])
        infos = as_objects(entry.get("addr_info", []), "ip -j addr")
        mac, flags = entry.get("permaddr"), entry.get("flags")
        found[name] = _Link(
            addresses=tuple(
                f"{info['local']}/{info['prefixlen']}"
                for info in infos
                if info.get("scope") == "global" and "local" in info
            ),
            permanent_mac=None if mac is None else str(mac),
            is_up=isinstance(flags, list) and "UP" in flags,
        )
    return found


def pci_of(path: str) -> str | None:
    """The PCI function that a device's path in sysfs ends in or leads through last."""
    found = _PCI.findall(path)
    return found[-1] if found else None


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d+", text) else None


def _interface(line: str, addresses: dict[str, _Link]) -> Interface:
    words = line.split(" ")
    if len(words) != 11:
        raise ValueError(f"expected a port of a NIC, got {line!r}")
    _, _, name, path, driver, mac, mtu, operstate, speed, numa, kind = words
    pci = pci_of(path)
    link = addresses.get(name, _Link(addresses=(), permanent_mac=None, is_up=False))
    return Interface(
        name=name,
        pci=pci,
        is_function=pci is not None and path.endswith(pci),
        driver=driver,
        mac=mac,
        permanent_mac=link.permanent_mac or mac,
        mtu=int(mtu),
        operstate=operstate,
        # A port without a link shows -1, or no speed at all.
        speed_mbps=_number(speed),
        numa_node=_number(numa),
        is_infiniband=kind == _INFINIBAND,
        addresses=link.addresses,
        is_up=link.is_up,
    )


def _rdma(line: str, links: tuple[RdmaLink, ...]) -> RdmaDevice:
    _, name, guid, path = line.split(" ", 3)
    return RdmaDevice(
        name=name,
        guid=guid,
        pci=pci_of(path),
        links=tuple(link for link in links if link.ifname == name),
    )


_SSH = re.compile(r"ssh (\S+) \d+ (\S+) \d+")


def parse_client(text: str) -> str | None:
    """The address that ssh came from, as the section ``way_in`` tells it."""
    match = _SSH.match(text)
    return match[1].partition("%")[0] if match else None


def parse_way_in(
    text: str,
    addresses: Mapping[str, tuple[str, ...]],
    lowers: Mapping[str, tuple[str, ...]],
    ports: frozenset[str],
) -> frozenset[str] | None:
    """The interfaces that carry the ssh session: in, out, and all that they are made of.

    None where ssh did not tell, and where it came in by an interface below which no port is seen
    (a tunnel, or an agent on the node itself): any port could then be the one.
    """
    match = _SSH.match(text)
    if match is None:
        return None
    server, _, scope = match[2].partition("%")
    found = {scope} if scope else set()
    found |= {name for name, all_ in addresses.items() if server in _hosts(all_)}
    for line in text.splitlines()[1:]:
        routes = as_objects(load_json(line, "ip -j route get"), "ip -j route get")
        found |= {str(route["dev"]) for route in routes if "dev" in route}
    known: set[str] = set()
    for start in found:
        below = _below(start, lowers)
        if not below & ports:
            return None
        known |= below
    return frozenset(known) or None


def _hosts(addresses: Iterable[str]) -> set[str]:
    return {address.partition("/")[0] for address in addresses}


def _below(start: str, lowers: Mapping[str, tuple[str, ...]]) -> set[str]:
    """``start`` and all interfaces that it is made of."""
    found, todo = {start}, [start]
    while todo:
        new = [name for name in lowers.get(todo.pop(), ()) if name not in found]
        found.update(new)
        todo += new
    return found
