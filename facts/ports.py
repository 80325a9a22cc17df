"""RDMA ports, InfiniBand and RoCE: state, rate, subnet manager, partitions, GIDs; IPoIB; OpenSM.

All of it is read in sysfs, but for the MTU of RDMA, which only a verbs tool tells.
"""

import re
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar

from facts.gids import Gid
from facts.ibstatus import PortStatus, parse_ibstatus
from facts.ibv_devinfo import Devinfo, parse_ibv_devinfo
from facts.nics import pci_of
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

IPOIB_RULES = "/etc/udev/rules.d/90-railwright-ipoib.rules"

# The form of ibstatus, which itself is a script over these files.
STATUS = Section(
    name="port_status",
    for_rails=True,
    script=r"""
told() {
    first "$port/$2"
    [ "$first" != - ] || first=unknown
    printf '\t%s:\t %s\n' "$1" "$first"
}
for port in /sys/class/infiniband/*/ports/*; do
    [ -d "$port" ] || continue
    device=${port#/sys/class/infiniband/}
    echo "Infiniband device '${device%%/*}' port ${port##*/} status:"
    told 'base lid' lid
    told 'sm lid' sm_lid
    told state state
    told 'phys state' phys_state
    told rate rate
    told link_layer link_layer
done
true
""",
)
# An entry that is not set reads as zeros, or its type and its interface not at all.
TABLES = Section(
    name="port_tables",
    for_rails=True,
    script=r"""
cd /sys/class/infiniband 2>/dev/null || return 0
class=$PWD
for device in *; do
    cd -P "$class/$device/device" 2>/dev/null || cd -P "$class/$device" 2>/dev/null || continue
    echo "$device/device:$PWD"
    cd "$class" || return
    # Device by device: with all tables at once a host of many functions has too many arguments.
    grep -sH '' "$device"/sys_image_guid
    grep -sHv '^0x0000$' "$device"/ports/*/pkeys/*
    # A table has up to 1024 places; only those that are taken are looked at further.
    grep -sHvE '^(0000:){7}0000$' "$device"/ports/*/gids/* | while IFS=: read -r file gid; do
        echo "$file:$gid"
        for attribute in types ndevs; do
            first "${file%/gids/*}/gid_attrs/$attribute/${file##*/}"
            [ "$first" = - ] || echo "${file%/gids/*}/gid_attrs/$attribute/${file##*/}:$first"
        done
    done
done
true
""",
)
MTU = Section(
    name="port_mtu",
    for_rails=True,
    script="""
[ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] || return 0
command -v ibv_devinfo >/dev/null || return 127
ibv_devinfo 2>&1
""",
)
IPOIB_FILES = Section(name="ipoib_files", script=f"files {IPOIB_RULES}")
IPOIB = Section(
    name="ipoib",
    for_rails=True,
    script=r"""
for file in /sys/class/net/*/mode; do
    [ -e "$file" ] || continue
    interface=${file#/sys/class/net/}
    echo "mode ${interface%%/*} $(cat "$file")"
done
[ "$(systemctl is-active NetworkManager 2>/dev/null)" != active ] || echo "manager NetworkManager"
[ ! -r /etc/infiniband/openib.conf ] ||
    sed -n 's/^SET_IPOIB_CM=/openib /p' /etc/infiniband/openib.conf
true
""",
)
SECTIONS = (STATUS, TABLES, MTU, IPOIB_FILES, IPOIB)


class PortTables(Model):
    """What is set in the tables of one port; the top bit of a partition key is full membership."""

    pkeys: tuple[int, ...] = ()
    gids: tuple[Gid, ...] = ()


class RdmaImage(Model):
    """The PCI function of an RDMA device and the GUID of the card, None where it has none."""

    pci: str | None
    guid: str | None


class Ipoib(Model):
    """IPoIB on a node: the mode of each interface, and who else may set it.

    ``manager`` is a daemon that sets the mode when it brings an interface up. ``openib`` is what
    NVIDIA's openib.conf says of connected mode (SET_IPOIB_CM), None where it says nothing.
    """

    modes: dict[str, str]
    manager: str | None = None
    openib: str | None = None


_ENTRY = re.compile(
    r"([^/:]+)/ports/([0-9]+)/(pkeys|gids|gid_attrs/types|gid_attrs/ndevs)/([0-9]+)"
)
_VERSIONS = {"RoCE v2": "v2", "IB/RoCE v1": "v1", "RoCE v1": "v1"}


def read_ports(snapshot: Snapshot) -> dict[str, PortStatus]:
    """The ports of all RDMA devices by DEVICE/PORT. Raises ValueError."""
    text = snapshot.text(STATUS.name)
    return parse_ibstatus(text).ports if text.strip() else {}


def read_tables(snapshot: Snapshot) -> dict[str, PortTables]:
    """Partition keys and GIDs by DEVICE/PORT; a port without any is not there."""
    return parse_tables(snapshot.text(TABLES.name))


def parse_tables(text: str) -> dict[str, PortTables]:
    """Read the section ``port_tables``. Raises ValueError for a line of another kind."""
    entries: dict[str, dict[str, dict[int, str]]] = {}
    for line in filter(None, text.splitlines()):
        path, colon, value = line.partition(":")
        entry = _ENTRY.fullmatch(path)
        if entry:
            port = entries.setdefault(f"{entry[1]}/{entry[2]}", {})
            port.setdefault(entry[3], {})[int(entry[4])] = value
        elif not colon or not path.endswith(("/device", "/sys_image_guid")):
            raise ValueError(f"expected an entry of an RDMA port, got {line[:80]!r}")
    return {name: _tables(name, kinds) for name, kinds in entries.items()}


def _tables(name: str, kinds: dict[str, dict[int, str]]) -> PortTables:
    device, _, port = name.rpartition("/")
    types, ndevs = kinds.get("gid_attrs/types", {}), kinds.get("gid_attrs/ndevs", {})
    gids = []
    for index, text in sorted(kinds.get("gids", {}).items()):
        try:
            mapped = IPv6Address(text).ipv4_mapped
        except ValueError:
            raise ValueError(f"{name}: expected a GID at {index}, got {text[:60]!r}") from None
        gids.append(
            Gid(
                device=device,
                port=int(port),
                index=index,
                gid=text,
                ipv4=str(mapped) if mapped else None,
                version=_VERSIONS.get(types.get(index, "")),
                netdev=ndevs.get(index),
            )
        )
    pkeys = kinds.get("pkeys", {})
    return PortTables(
        pkeys=tuple(_pkey(name, pkeys[index]) for index in sorted(pkeys)), gids=tuple(gids)
    )


def _pkey(name: str, text: str) -> int:
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,4}", text):
        raise ValueError(f"{name}: expected a partition key, got {text[:40]!r}")
    return int(text, 16)


def read_images(snapshot: Snapshot) -> dict[str, RdmaImage]:
    """The card behind each RDMA device; ports of one card share its GUID."""
    found: dict[str, dict[str, str]] = {}
    for line in snapshot.text(TABLES.name).splitlines():
        match = re.fullmatch(r"([^/:]+)/(device|sys_image_guid):(.*)", line)
        if match:
            found.setdefault(match[1], {})[match[2]] = match[3]
    return {
        name: RdmaImage(
            pci=pci_of(values.get("device", "")),
            guid=guid if re.search("[1-9a-f]", guid := values.get("sys_image_guid", "")) else None,
        )
        for name, values in found.items()
    }


def v2_indices(gids: tuple[Gid, ...], address: IPv4Address) -> tuple[int, ...]:
    """Where in a port's table ``address`` stands as a RoCE v2 GID."""
    return tuple(g.index for g in gids if g.version == "v2" and g.ipv4 == str(address))


def read_devinfo(snapshot: Snapshot) -> Devinfo | None:
    """What the verbs tool says, None where it is not installed. Raises ValueError."""
    section, text = snapshot.section(MTU.name), snapshot.text(MTU.name)
    if section.rc == 127:
        return None
    return parse_ibv_devinfo(text) if text.strip() else Devinfo(devices={})


def read_ipoib(snapshot: Snapshot) -> Ipoib:
    """IPoIB interfaces and their modes."""
    modes: dict[str, str] = {}
    manager = openib = None
    for line in snapshot.text(IPOIB.name).splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "mode":
            interface, _, mode = rest.partition(" ")
            modes[interface] = mode
        elif kind == "manager":
            manager = rest
        elif kind == "openib":
            openib = rest.strip("\"'")
    return Ipoib(modes=modes, manager=manager, openib=openib)


class RdmaPorts(Model):
    """Ports of a node as the fact prints them."""

    ports: dict[str, PortStatus]
    tables: dict[str, PortTables]


class Ports(SnapshotFact):
    """``pyinfra INVENTORY fact facts.ports.Ports``."""

    sections: ClassVar[tuple[Section, ...]] = (STATUS, TABLES)

    def read(self, snapshot: Snapshot) -> RdmaPorts:
        return RdmaPorts(ports=read_ports(snapshot), tables=read_tables(snapshot))
