"""What the root file system, other mounts and swap stand on, down to devices and addresses.

Read from the kernel: /proc/self/mountinfo, and sysfs for what lies under a block device (slaves of
dm and md, a loop device's file, the controllers of an NVMe namespace). An NVMe controller over a
fabric ends in an address, and so does a network file system.
"""

import re
from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from facts.device_chain import CHAINS, Devices, parse_chains
from facts.json_text import as_objects, load_json
from facts.mounts import plain
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

NETWORK = frozenset(
    {"nfs", "nfs4", "lustre", "beegfs", "wekafs", "ceph", "cifs", "smb3", "gpfs", "glusterfs", "9p"}
)
"""File systems whose data is on other machines."""

# Of the kernel, in memory, or over another mount that is listed by itself.
_PSEUDO = (
    "proc|sysfs|tmpfs|devtmpfs|devpts|cgroup|cgroup2|securityfs|debugfs|tracefs|pstore|bpf|mqueue|"
    "hugetlbfs|configfs|fusectl|autofs|binfmt_misc|efivarfs|rpc_pipefs|nfsd|nsfs|ramfs|overlay|"
    "selinuxfs|resctrl|fuse|fuse[.][^ ]*"
)

MOUNTS = Section(
    name="block_mounts",
    for_drivers=True,
    for_storage=True,
    script=rf"""
sed -E -e '/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ \/ /b keep' -e '/ - ({_PSEUDO}) /d' -e ':keep' \
    -e 's/^[^ ]+ [^ ]+ ([^ ]+) [^ ]+ ([^ ]+) .* - ([^ ]+) ([^ ]+) (.*)$/mount \1 \2 \3 \4 \5/' \
    -e 't options' -e ':options' \
    -e 's/ ([^ ]*,)?addr=([^, ]+)[^ ]*$/ \2/' -e t -e 's/ [^ ]*$/ -/' /proc/self/mountinfo
rc=$?
# A device without a number of its own (btrfs) is found by its name.
sed -nE 's/^[^ ]+ [^ ]+ 0:[0-9]+ .* - [^ ]+ (\/dev\/[^ ]+) .*/\1/p' /proc/self/mountinfo |
    sort -u | while read -r source; do echo "source $source $(readlink -f "$source")"; done
sed -nE 's/^(\/[^[:space:]]+)[[:space:]]+(partition|file).*/swap \2 \1/p' /proc/swaps
for link in /sys/fs/btrfs/*/devices/*; do
    [ -e "$link" ] || continue
    uuid=${{link#/sys/fs/btrfs/}}
    echo "btrfs ${{uuid%%/*}} ${{link##*/}}"
done
return "$rc"
""",
)

STACK = Section(
    name="block_stack",
    for_drivers=True,
    for_storage=True,
    script=r"""
for link in /sys/class/block/*; do
    cd -P "$link" 2>/dev/null || continue
    name=${link##*/}
    first "$link/dev"
    echo "number $name $first"
    [ ! -e partition ] || { part=${PWD%/*}; echo "under $name ${part##*/}"; }
    for slave in slaves/*; do
        [ ! -e "$slave" ] || echo "under $name ${slave##*/}"
    done
    for file in loop/backing_file md/level dm/uuid; do
        [ -r "$file" ] || continue
        first "$link/$file"
        echo "${file%/*} $name $first"
    done
done
for link in /sys/class/nvme/*; do
    [ -e "$link" ] || continue
    first "$link/transport"
    transport=$first
    first "$link/address"
    echo "controller ${link##*/} $transport $first"
    case $first in
        *traddr=*)
            address=${first#*traddr=}
            ip -j route get "${address%%,*}" | sed "s/^/route ${address%%,*} /"
            ;;
    esac
done
for link in /sys/class/nvme-subsystem/*/nvme*; do
    [ ! -e "$link/transport" ] || { above=${link%/*}; echo "of ${above##*/} ${link##*/}"; }
done
sed -nE 's/^.* - nfs4? .*[ ,]addr=([^, ]+).*/\1/p' /proc/self/mountinfo | sort -u |
    while read -r address; do ip -j route get "$address" | sed "s/^/route $address /"; done
true
""",
)

SECTIONS = (CHAINS, MOUNTS, STACK)


class Mount(Model):
    """A mounted file system; ``number`` is MAJOR:MINOR, ``server`` its ``addr=`` option."""

    target: str
    fstype: str
    source: str
    number: str
    server: str | None = None


class Controller(Model):
    """An NVMe controller; ``address`` is a PCI function's, or ``traddr=...`` over a fabric."""

    transport: str
    address: str

    @property
    def server(self) -> str | None:
        """The other end's address; None of a controller on PCI."""
        found = re.search(r"\btraddr=([^,\s]+)", self.address)
        return found[1] if found and self.transport in ("tcp", "rdma") else None


class BlockStack(Model):
    """Mounts, swap, and the block devices under them; names as in /sys/class/block.

    ``under`` is a device to those that it is made of (partition to disk, dm and md to slaves).
    ``subsystems`` is an NVMe subsystem to its controllers, ``routes`` an address to the interface
    that the kernel reaches it by. ``btrfs`` are the devices of each file system.
    """

    mounts: tuple[Mount, ...]
    devices: Devices
    swaps: tuple[str, ...] = ()
    numbers: dict[str, str] = Field(default={})
    under: dict[str, tuple[str, ...]] = Field(default={})
    loops: dict[str, str] = Field(default={})
    levels: dict[str, str] = Field(default={})
    dm: dict[str, str] = Field(default={})
    controllers: dict[str, Controller] = Field(default={})
    subsystems: dict[str, tuple[str, ...]] = Field(default={})
    routes: dict[str, str] = Field(default={})
    sources: dict[str, str] = Field(default={})
    btrfs: tuple[tuple[str, ...], ...] = ()


def read_block_stack(snapshot: Snapshot) -> BlockStack:
    """What the snapshot says. Raises ValueError where the mounts could not be read."""
    section = snapshot.section(MOUNTS.name)
    if section.rc != 0:
        raise ValueError(f"the mounts cannot be read: {section.stderr or section.rc}")
    return parse_stack(
        snapshot.text(MOUNTS.name),
        snapshot.text(STACK.name),
        parse_chains(snapshot.text(CHAINS.name)),
    )


def parse_stack(mounts: str, stack: str, devices: Devices) -> BlockStack:
    """Read the sections ``block_mounts`` and ``block_stack``.

    Raises ValueError for a line of another kind, and where no root is mounted.
    """
    found = _Lines()
    for line in [*mounts.splitlines(), *stack.splitlines()]:
        found.take(line)
    if not any(mount.target == "/" for mount in found.mounts):
        raise ValueError("expected a mount of /, got none")
    return BlockStack(
        mounts=tuple(found.mounts),
        devices=devices,
        swaps=tuple(found.swaps),
        numbers=found.pairs["number"],
        under=_grouped(found.groups["under"]),
        loops=found.pairs["loop"],
        levels=found.pairs["md"],
        dm=found.pairs["dm"],
        controllers=found.controllers,
        subsystems=_grouped(found.groups["of"]),
        routes=found.routes,
        sources=found.pairs["source"],
        btrfs=tuple(_grouped(found.groups["btrfs"]).values()),
    )


class _Lines:
    """Lines of the two sections, by kind."""

    def __init__(self) -> None:
        self.mounts: list[Mount] = []
        self.swaps: list[str] = []
        self.pairs: dict[str, dict[str, str]] = {
            kind: {} for kind in ("number", "loop", "md", "dm", "source")
        }
        self.groups: dict[str, list[tuple[str, str]]] = {k: [] for k in ("under", "of", "btrfs")}
        self.controllers: dict[str, Controller] = {}
        self.routes: dict[str, str] = {}

    def take(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        words = rest.split(" ")
        if kind == "mount" and len(words) == 5:
            number, target, fstype, source, server = words
            self.mounts.append(
                Mount(
                    target=plain(target),
                    fstype=fstype,
                    source=plain(source),
                    number=number,
                    server=None if server == "-" else server,
                )
            )
        elif kind == "swap" and len(words) == 2:
            self.swaps.append(plain(words[1]))
        elif kind in self.pairs and len(words) >= 2:
            self.pairs[kind][words[0]] = rest.partition(" ")[2]
        elif kind in self.groups and len(words) == 2:
            self.groups[kind].append((words[0], words[1]))
        elif kind == "controller" and len(words) >= 3:
            self.controllers[words[0]] = Controller(transport=words[1], address=" ".join(words[2:]))
        elif kind == "route" and len(words) >= 2:
            self.routes |= dict(_route(rest))
        else:
            raise ValueError(f"expected a line of what a mount stands on, got {line[:80]!r}")


def _route(rest: str) -> Iterator[tuple[str, str]]:
    address, _, text = rest.partition(" ")
    for route in as_objects(load_json(text, "ip -j route get"), "ip -j route get"):
        if "dev" in route:
            yield address, str(route["dev"])


def _grouped(pairs: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for upper, lower in pairs:
        found[upper] = (*found.get(upper, ()), lower)
    return found


class BlockPath(SnapshotFact):
    """What mounts stand on: ``pyinfra INVENTORY fact facts.block_path.BlockPath``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> BlockStack:
        return read_block_stack(snapshot)
