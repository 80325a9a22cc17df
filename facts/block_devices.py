"""Disks of a node: what each is, what it holds, and what is built or mounted upon it.

Signatures are read from the disks themselves (wipefs), not from what udev has noted of them. Tools
and columns are those that util-linux 2.32 (EL 8) has too.
"""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from pydantic import Field

from facts.block_path import MOUNTS, STACK, BlockStack, parse_stack
from facts.device_chain import Devices
from facts.json_text import as_object, as_objects, load_json
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

DISKS = Section(
    name="block_disks",
    for_storage=True,
    script="lsblk -J -b -d -o NAME,TYPE,SIZE,RO,RM,MODEL,SERIAL,TRAN",
)

# Of a namespace with several ways the controllers lie below its subsystem, as links.
PLACES = Section(
    name="block_places",
    for_storage=True,
    script=r"""
find /dev/disk/by-id -type l -printf 'id %f %l\n'
for link in /sys/class/block/*; do
    cd -P "$link/device" 2>/dev/null || continue
    transport=-
    for way in . nvme*; do
        [ -r "$way/transport" ] || continue
        first "$way/transport"
        transport=$first
        cd -P "$way" || return
        break
    done
    dir=$PWD
    while [ "${dir#/sys/devices/}" != "$dir" ] && [ ! -r "$dir/numa_node" ]; do dir=${dir%/*}; done
    first "$dir/numa_node"
    echo "place ${link##*/} $first $transport"
done
true
""",
)

SIGNATURES = Section(
    name="block_signatures",
    for_storage=True,
    deadline_s=30,
    script=r"""
command -v wipefs >/dev/null || { echo 'wipefs: not found' >&2; return 127; }
for link in /sys/class/block/*; do
    name=${link##*/}
    case $name in loop* | ram* | zram* | sr* | fd* | dm-*) continue ;; esac
    [ ! -e "$link/partition" ] || continue
    [ -e "/dev/$name" ] || continue
    first "$link/size"
    [ "$first" != 0 ] || continue
    told=$(wipefs -J "/dev/$name")
    printf '%s' "signatures $name $? "
    printf '%s\n' "$told" | tr '\n' ' '
    echo
    case $told in *linux_raid_member*) ;; *) continue ;; esac
    ! command -v mdadm >/dev/null ||
        mdadm --examine --export "/dev/$name" | sed "s/^/superblock $name /"
done
true
""",
)

ARRAYS = Section(
    name="md_arrays",
    for_storage=True,
    script=r"""
for tool in mdadm mkfs.xfs mkfs.ext4; do
    ! command -v "$tool" >/dev/null || echo "tool $tool"
done
for dir in /sys/class/block/md*/md; do
    [ -d "$dir" ] || continue
    name=${dir%/md}
    name=${name##*/}
    for key in level raid_disks chunk_size array_state degraded sync_action sync_completed; do
        first "$dir/$key"
        echo "array $name $key $first"
    done
    for member in "$dir"/dev-*; do
        [ -r "$member/state" ] || continue
        first "$member/state"
        echo "member $name ${member##*/dev-} $first"
    done
done
true
""",
)

SECTIONS = (MOUNTS, STACK, DISKS, PLACES, SIGNATURES, ARRAYS)


class Signature(Model):
    """A file system, RAID member, volume or partition table, as wipefs tells of it."""

    type: str
    label: str | None = None

    def __str__(self) -> str:
        return f"{self.type} (label {self.label})" if self.label else self.type


class Superblock(Model):
    """md's own of one member: ``name`` is HOMEHOST:NAME, ``disks`` how many the array has."""

    name: str
    uuid: str
    level: str
    disks: int


class Disk(Model):
    """A whole disk; ``transport`` is lsblk's, ``fabric`` that of an NVMe controller (``pcie``).

    ``ids`` are its names in /dev/disk/by-id, the best to tell it by first. ``signatures`` is None
    where they could not be read, which ``error`` then tells. ``superblock`` is None also where no
    mdadm is there to read it.
    """

    name: str
    size_bytes: int
    read_only: bool = False
    removable: bool = False
    model: str | None = None
    serial: str | None = None
    transport: str | None = None
    fabric: str | None = None
    numa_node: int | None = None
    ids: tuple[str, ...] = ()
    signatures: tuple[Signature, ...] | None = None
    error: str | None = None
    superblock: Superblock | None = None

    @property
    def shown(self) -> str:
        """What it is called to a person: a name that stays, where it has one."""
        return self.ids[0] if self.ids else self.name


class MdArray(Model):
    """An array that is assembled, whole or in part.

    ``chunk_kib`` is 0 for RAID1; ``missing`` counts the members that a level with redundancy goes
    without; ``members`` are those that are attached, to the kernel's state of each (``in_sync``).
    """

    name: str
    level: str
    disks: int
    chunk_kib: int
    state: str
    missing: int
    sync: str | None
    members: dict[str, str] = Field(default={})
    signatures: tuple[Signature, ...] | None = None


class BlockDevices(Model):
    """``ids`` is a name in /dev/disk/by-id to the device that it leads to, a disk or not;
    ``tools`` are those of mdadm and mkfs that are installed."""

    disks: tuple[Disk, ...]
    arrays: tuple[MdArray, ...]
    stack: BlockStack
    ids: dict[str, str] = Field(default={})
    tools: frozenset[str] = frozenset()

    def upon(self, name: str) -> tuple[str, ...]:
        """The device ``name`` and all that is built upon it: partitions, LVM, arrays."""
        found = [name]
        for lower in found:
            found += [
                upper
                for upper, lowers in self.stack.under.items()
                if lower in lowers and upper not in found
            ]
        return tuple(found)


class BlockDevicesFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.block_devices.BlockDevicesFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> BlockDevices:
        return read_block_devices(snapshot)


def read_block_devices(snapshot: Snapshot) -> BlockDevices:
    """What the snapshot says. Raises ValueError where a section cannot be read."""
    for name in (MOUNTS.name, DISKS.name, SIGNATURES.name):
        section = snapshot.section(name)
        if section.rc != 0:
            raise ValueError(f"{name}: {section.stderr or f'ended by {section.ended}'}")
    ids, places = parse_places(snapshot.text(PLACES.name))
    signatures, superblocks = parse_signatures(snapshot.text(SIGNATURES.name))
    tools, arrays = parse_arrays(snapshot.text(ARRAYS.name))
    stack = parse_stack(snapshot.text(MOUNTS.name), snapshot.text(STACK.name), Devices(devices=()))
    disks = [
        disk.model_copy(
            update={
                "ids": _best_first(one for one, name in ids.items() if name == disk.name),
                "numa_node": places.get(disk.name, (None, None))[0],
                "fabric": places.get(disk.name, (None, None))[1],
                "signatures": signatures[disk.name][0] if disk.name in signatures else None,
                "error": signatures[disk.name][1] if disk.name in signatures else None,
                "superblock": superblocks.get(disk.name),
            }
        )
        for disk in parse_disks(snapshot.text(DISKS.name))
    ]
    return BlockDevices(
        disks=tuple(disks),
        arrays=tuple(
            array.model_copy(update={"signatures": signatures.get(array.name, (None, None))[0]})
            for array in arrays
        ),
        stack=stack,
        ids=ids,
        tools=tools,
    )


def parse_disks(text: str) -> list[Disk]:
    """Read ``lsblk -J -b -d``: the disks alone. Raises ValueError.

    util-linux before 2.33 writes numbers and switches as text.
    """
    what = "lsblk"
    rows = as_objects(as_object(load_json(text, what), what).get("blockdevices"), what)
    return [
        Disk(
            name=str(row.get("name")),
            size_bytes=_number(row.get("size"), "size"),
            read_only=_number(row.get("ro"), "ro") != 0,
            removable=_number(row.get("rm"), "rm") != 0,
            model=_word(row.get("model")),
            serial=_word(row.get("serial")),
            transport=_word(row.get("tran")) or _by_name(str(row.get("name"))),
        )
        for row in rows
        if row.get("type") == "disk" and not str(row.get("name")).startswith(("zram", "ram"))
    ]


def _number(value: object, what: str) -> int:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and value.isdigit():
        return int(value)
    raise ValueError(f"lsblk: expected a number for {what}, got {value!r}")


def _word(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _by_name(name: str) -> str | None:
    """The transport of a disk of virtio, which lsblk does not tell everywhere."""
    return "virtio" if name.startswith("vd") else None


_ID = re.compile(r"id (\S+) \S*?([^/\s]+)")
_PLACE = re.compile(r"place (\S+) (-|-?\d+) (\S+)")


def parse_places(
    text: str,
) -> tuple[dict[str, str], dict[str, tuple[int | None, str | None]]]:
    """Read section ``block_places``: each name by id to its device; each device to its NUMA node
    and the transport of its NVMe controller. Raises ValueError for a line of another kind.
    """
    ids: dict[str, str] = {}
    places: dict[str, tuple[int | None, str | None]] = {}
    for line in text.splitlines():
        if found := _ID.fullmatch(line):
            ids[found[1]] = found[2]
        elif found := _PLACE.fullmatch(line):
            # The kernel says -1 where the firmware does not tell.
            node = None if found[2].startswith("-") else int(found[2])
            places[found[1]] = (node, None if found[3] == "-" else found[3])
        else:
            raise ValueError(f"expected a disk's name or place, got {line[:80]!r}")
    return ids, places


def _best_first(ids: Iterable[str]) -> tuple[str, ...]:
    """Names with model and serial before those made of a world wide number."""
    numbers = ("wwn-", "nvme-eui.", "nvme-uuid.", "nvme-nvme.", "scsi-")
    return tuple(sorted(ids, key=lambda one: (one.startswith(numbers), len(one), one)))


Told = tuple[tuple[Signature, ...] | None, str | None]
"""Signatures, or why they could not be read."""

_SIGNATURES = re.compile(r"signatures (\S+) (\d+)(?: (.*))?")
_SUPERBLOCK = re.compile(r"superblock (\S+) (MD_[^=]+)=(.*)")


def parse_signatures(text: str) -> tuple[dict[str, Told], dict[str, Superblock]]:
    """Read section ``block_signatures``, by device. Raises ValueError for a line that is neither
    of wipefs nor of ``mdadm --examine --export``.
    """
    told: dict[str, Told] = {}
    values: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if found := _SIGNATURES.fullmatch(line):
            told[found[1]] = _told(found[1], int(found[2]), (found[3] or "").strip())
        elif found := _SUPERBLOCK.fullmatch(line):
            values.setdefault(found[1], {})[found[2]] = found[3]
        else:
            raise ValueError(f"expected a device's signatures, got {line[:80]!r}")
    return told, dict(_superblocks(values))


def _told(name: str, rc: int, text: str) -> Told:
    if rc != 0:
        return None, f"wipefs {name}: exit {rc}"
    if not text:
        # util-linux before 2.38 prints nothing where there is none.
        return (), None
    what = f"wipefs {name}"
    rows = as_objects(as_object(load_json(text, what), what).get("signatures"), what)
    found = [Signature(type=str(row.get("type")), label=_word(row.get("label"))) for row in rows]
    # A table has its copy at the disk's end.
    return tuple(dict.fromkeys(found)), None


def _superblocks(values: dict[str, dict[str, str]]) -> Iterator[tuple[str, Superblock]]:
    for name, keys in values.items():
        if {"MD_UUID", "MD_LEVEL", "MD_DEVICES"} <= keys.keys() and keys["MD_DEVICES"].isdigit():
            yield (
                name,
                Superblock(
                    name=keys.get("MD_NAME", ""),
                    uuid=keys["MD_UUID"],
                    level=keys["MD_LEVEL"],
                    disks=int(keys["MD_DEVICES"]),
                ),
            )


_ARRAY = re.compile(r"(array|member) (\S+) (\S+) (.*)")


def parse_arrays(text: str) -> tuple[frozenset[str], list[MdArray]]:
    """Read section ``md_arrays``: the tools that are there, and the arrays. Raises ValueError."""
    tools: set[str] = set()
    keys: dict[str, dict[str, str]] = {}
    members: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        found = _ARRAY.fullmatch(line)
        if line.startswith("tool "):
            tools.add(line.removeprefix("tool "))
        elif found is None:
            raise ValueError(f"expected a line of md's sysfs, got {line[:80]!r}")
        else:
            into = keys if found[1] == "array" else members
            into.setdefault(found[2], {})[found[3]] = found[4]
    arrays = [_array(name, told, members.get(name, {})) for name, told in keys.items()]
    return frozenset(tools), arrays


def _array(name: str, told: dict[str, str], members: dict[str, str]) -> MdArray:
    def number(key: str) -> int:
        # An array of which too little is there has no value yet; RAID0 is never degraded.
        value = told.get(key, "-")
        return int(value) if value.isdigit() else 0

    done = told.get("sync_completed", "-")
    action = told.get("sync_action", "-")
    return MdArray(
        name=name,
        level=told.get("level", "-"),
        disks=number("raid_disks"),
        chunk_kib=number("chunk_size") // 1024,
        state=told.get("array_state", "-"),
        missing=number("degraded"),
        sync=None if action in ("-", "idle") else f"{action} {done}",
        members=members,
    )
