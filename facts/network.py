"""A node's network as it is configured: its managers, their files, its rules and routes."""

import re
from ipaddress import IPv4Address
from typing import ClassVar, Literal

from facts.json_text import as_object, as_objects, load_json
from facts.probe import Section, SnapshotFact
from facts.units import Unit, read_units
from railwright.files import FileRecord
from railwright.model import Model
from railwright.netconfig.ifupdown import INTERFACES
from railwright.snapshot import Snapshot

UNITS: dict[str, str] = {
    "systemd-networkd.service": "networkd",
    "NetworkManager.service": "NetworkManager",
    "networking.service": "ifupdown",
}

# What a file says of keys and passwords stays on the node.
_SECRET = "[A-Za-z0-9_-]*(password|psk|secret|passphrase|key)[A-Za-z0-9_-]*"
_MASK = rf"s/^([ \t]*{_SECRET}[ \t]*[ :=]).*/\1/"

SECTIONS = (
    Section(
        name="network_units",
        for_rails=True,
        script=f"units {' '.join(UNITS)}",
    ),
    Section(
        name="network_start",
        for_rails=True,
        script="""
systemctl show --no-pager -p ExecMainStartTimestampMonotonic systemd-networkd.service
echo "Uptime=$(cut -d ' ' -f 1 /proc/uptime)"
command -v netplan
true
""",
    ),
    Section(
        name="network_files",
        script=rf"""
masked() {{
    meta "$1"
    printf '%s content\n' "$N"
    head -c 65536 -- "$1" | sed -E '{_MASK}'
    echo
}}
for dir in /etc /run /usr/local/lib /usr/lib; do
    files "$dir"/systemd/network/*.link "$dir"/systemd/network/*.network
done
[ -L /lib ] || files /lib/systemd/network/*.link /lib/systemd/network/*.network
for path in /etc/netplan/*.yaml /etc/network/interfaces /etc/network/interfaces.d/* \
    /etc/NetworkManager/system-connections/* /run/NetworkManager/system-connections/*; do
    [ ! -f "$path" ] || [ ! -r "$path" ] || masked "$path"
done
""",
    ),
    # What udev knows of each port: the path and the driver that files match.
    Section(
        name="network_udev",
        for_rails=True,
        script="""
set --
for link in /sys/class/net/*; do [ ! -e "$link/device" ] || set -- "$@" "$link"; done
[ $# -gt 0 ] || return 0
found=$(udevadm info --query=property "$@") || return
echo "$found" | sed -n -E '/^(DEVPATH|INTERFACE|ID_PATH|ID_NET_DRIVER)=/p'
""",
    ),
    Section(
        name="network_networkd",
        for_rails=True,
        script="! systemctl -q is-active systemd-networkd.service || networkctl --json=short list",
    ),
    Section(
        name="network_nm",
        for_rails=True,
        script="""
! systemctl -q is-active NetworkManager.service || nmcli -t -f DEVICE,STATE,CONNECTION device
""",
    ),
    Section(name="network_rules", script="ip -4 -N -j rule show", for_rails=True),
    Section(name="network_routes", script="ip -4 -N -j route show table all", for_rails=True),
    Section(
        name="network_arp",
        for_rails=True,
        script="cd /proc/sys/net/ipv4/conf && grep -H . */arp_ignore */arp_announce",
    ),
)

_ARP = re.compile(r"^([^/]+)/(arp_ignore|arp_announce):(\d+)$")
MAIN = "254"


class Rule(Model):
    """A routing rule; ``plain`` where it selects by the source alone and looks a table up."""

    priority: int
    source: str
    table: str | None
    plain: bool


class KernelRoute(Model):
    """A route; ``to`` is a prefix, or ``default``. ``table`` is its number."""

    to: str
    via: str | None
    device: str | None
    table: str


class Udev(Model):
    """What udev knows of an interface."""

    path: str | None = None
    driver: str | None = None


ArpKey = Literal["arp_ignore", "arp_announce"]


class Network(Model):
    """A node's network configuration.

    ``claims`` has what managers say of interfaces: manager to the interfaces that it manages.
    ``network_files`` is the .network file that networkd has applied to each interface;
    ``networkd_since`` when it was started, in seconds since the epoch. ``arp`` has the values of
    arp_ignore and arp_announce by interface, ``all`` among them.
    """

    units: dict[str, Unit]
    has_netplan: bool
    files: tuple[FileRecord, ...]
    udev: dict[str, Udev]
    claims: dict[str, frozenset[str]]
    network_files: dict[str, str]
    networkd_since: float | None
    rules: tuple[Rule, ...]
    routes: tuple[KernelRoute, ...]
    arp: dict[str, dict[str, int]]

    def effective_arp(self, interface: str, key: ArpKey) -> int:
        """The larger of ``all`` and the interface's own. Source: include/linux/inetdevice.h."""
        return max(self.arp.get(name, {}).get(key, 0) for name in ("all", interface))


class NetworkFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.network.NetworkFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Network:
        return read_network(snapshot)


def read_network(snapshot: Snapshot) -> Network:
    """What the snapshot says; of a container its units and files alone.

    Raises ValueError where a part of it cannot be read.
    """
    units = read_units(snapshot, "network_units")
    start = snapshot.text("network_start")
    live = not snapshot.is_container
    networkd = parse_networkctl(_answer(snapshot, "network_networkd")) if live else {}
    managed = frozenset(name for name, (managed, _) in networkd.items() if managed)
    return Network(
        units={manager: units[name] for name, manager in UNITS.items() if name in units},
        has_netplan=any(line.endswith("/netplan") for line in start.splitlines()),
        files=tuple(snapshot.files("network_files")),
        udev=parse_udev(_answer(snapshot, "network_udev")) if live else {},
        claims={
            "networkd": managed,
            "NetworkManager": parse_nmcli(_answer(snapshot, "network_nm")) if live else frozenset(),
        },
        network_files={name: file for name, (_, file) in networkd.items() if file},
        networkd_since=_since(start, snapshot.facts("identity").get("time", "")),
        rules=parse_rules(_answer(snapshot, "network_rules")) if live else (),
        routes=parse_routes(_answer(snapshot, "network_routes")) if live else (),
        arp=parse_arp(_answer(snapshot, "network_arp")) if live else {},
    )


def _answer(snapshot: Snapshot, name: str) -> str:
    """What a section printed. Raises ValueError where its tool failed."""
    section = snapshot.section(name)
    if section.rc != 0:
        raise ValueError(f"{name} failed with {section.rc}: {section.stderr or 'no word'}")
    return snapshot.text(name)


def _since(text: str, now: str) -> float | None:
    """When networkd was started, from its start and the uptime, both since the boot."""
    start = re.search(r"^ExecMainStartTimestampMonotonic=(\d+)$", text, re.MULTILINE)
    uptime = re.search(r"^Uptime=([\d.]+)$", text, re.MULTILINE)
    if not start or not uptime or not now.isdigit() or start[1] == "0":
        return None
    return int(now) - float(uptime[1]) + int(start[1]) / 1e6


def parse_udev(text: str) -> dict[str, Udev]:
    """Read the properties of interfaces; each begins with its DEVPATH."""
    found = {}
    for block in f"\n{text}".split("\nDEVPATH=")[1:]:
        values = dict(line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)
        if "INTERFACE" in values:
            found[values["INTERFACE"]] = Udev(
                path=values.get("ID_PATH"), driver=values.get("ID_NET_DRIVER")
            )
    return found


def parse_networkctl(text: str) -> dict[str, tuple[bool, str | None]]:
    """Interface to whether networkd manages it, and by which file. Raises ValueError."""
    if not text.strip():
        return {}
    what = "networkctl list"
    interfaces = as_object(load_json(text, what), what).get("Interfaces")
    found = {}
    for values in as_objects(interfaces, f"Interfaces of {what}"):
        file = values.get("NetworkFile")
        state = values.get("AdministrativeState") or values.get("SetupState")
        # A version that does not tell the state tells the file of what it manages.
        managed = file is not None if state is None else state not in ("unmanaged", "linger")
        found[str(values.get("Name"))] = (managed, None if file is None else str(file))
    return found


def parse_nmcli(text: str) -> frozenset[str]:
    """The interfaces that NetworkManager manages: ``DEVICE:STATE:CONNECTION`` lines."""
    lines = [line.replace("\\:", "\0").split(":") for line in text.splitlines() if line]
    return frozenset(
        words[0].replace("\0", ":")
        for words in lines
        # What others have set up is shown as connected externally.
        if len(words) >= 2 and words[1] != "unmanaged" and "external" not in words[1]
    )


def _entries(text: str, what: str) -> list[dict[str, object]]:
    return as_objects(load_json(text, what), what) if text.strip() else []


# What a rule has that selects by its source alone.
_PLAIN = {"priority", "src", "srclen", "table", "protocol"}


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Read ``ip -4 -N -j rule show``. Raises ValueError."""
    found = []
    for entry in _entries(text, "ip rule"):
        length = entry.get("srclen", 32)
        source = str(entry.get("src", "all"))
        table = entry.get("table")
        try:
            priority = int(str(entry.get("priority")))
        except ValueError:
            raise ValueError(f"ip rule: expected a priority, got {entry}") from None
        found.append(
            Rule(
                priority=priority,
                source=source if source == "all" or length == 32 else f"{source}/{length}",
                table=None if table is None else str(table),
                plain=entry.keys() <= _PLAIN and table is not None,
            )
        )
    return tuple(found)


def parse_routes(text: str) -> tuple[KernelRoute, ...]:
    """Read ``ip -4 -N -j route show table all``; a route of several ways has no gateway here."""
    found = []
    for entry in _entries(text, "ip route"):
        to = str(entry.get("dst", ""))
        via, device = entry.get("gateway"), entry.get("dev")
        found.append(
            KernelRoute(
                to=to if to == "default" or "/" in to else f"{to}/32",
                via=None if via is None else str(IPv4Address(str(via))),
                device=None if device is None else str(device),
                # The main table's routes are listed without it.
                table=str(entry.get("table", MAIN)),
            )
        )
    return tuple(found)


def parse_arp(text: str) -> dict[str, dict[str, int]]:
    """Read the section ``network_arp``. Raises ValueError for a line of another kind."""
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        match = _ARP.match(line)
        if match is None:
            raise ValueError(f"expected a value of arp_ignore or arp_announce, got {line[:80]!r}")
        found.setdefault(match[1], {})[match[2]] = int(match[3])
    return found


def netplan_files(network: Network) -> list[FileRecord]:
    return [file for file in network.files if file.directory == "/etc/netplan"]


def interfaces_files(network: Network) -> list[FileRecord]:
    """/etc/network/interfaces and what stands in interfaces.d."""
    return [
        file
        for file in network.files
        if file.path == INTERFACES or file.directory == f"{INTERFACES}.d"
    ]


def keyfiles(network: Network) -> list[FileRecord]:
    return [file for file in network.files if file.directory.endswith("/system-connections")]
