"""Which disks a scratch is made of: those that may be taken, and why each other may not.

A disk may be taken that holds nothing and that nothing is built upon. The same is decided once
more on the node itself, by the script that makes the scratch, right before it does.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from facts.block_devices import BlockDevices, Disk, MdArray, Signature
from facts.block_path import Mount
from railwright.model import Model
from railwright.schema.base import size_kib
from railwright.schema.scratch import DiskRule, LocalScratch

LEAST_XFS_KIB = 300 * 1024
"""mkfs.xfs makes no smaller one. Source: validate_supported() in xfsprogs 5.19 and later."""

_MEMBER = "linux_raid_member"
_OWN_TRANSPORTS = frozenset({"pcie"})
_FAR = frozenset({"iscsi", "fc", "fcoe"})
"""Transports of SCSI to storage that others reach too, by lsblk's names. Source: get_transport() in
util-linux's lsblk.c."""


class Refusal(Model):
    """A disk that may not be taken, by the name that a person knows it by, and why."""

    disk: str
    reason: str

    def __str__(self) -> str:
        return f"{self.disk} {self.reason}"


class Choice(Model):
    """The disks to take; none where ``error`` says in words why the scratch cannot be made.

    ``refused`` are those that were asked for, or that match the rule, and may not be taken.
    """

    disks: tuple[Disk, ...] = ()
    refused: tuple[Refusal, ...] = ()
    error: str | None = None


def choose_all(scratches: Mapping[str, LocalScratch], seen: BlockDevices) -> dict[str, Choice]:
    """The disks of each scratch that is not there yet, by where it is mounted.

    A rule takes no disk that another scratch names, nor one that a rule before it has taken.
    """
    named = {
        where: {seen.ids[disk] for disk in scratch.disks if disk in seen.ids}
        for where, scratch in scratches.items()
        if isinstance(scratch.disks, tuple)
    }
    taken = {name for names in named.values() for name in names}
    found = {}
    for where, scratch in sorted(scratches.items()):
        if is_there(scratch, seen):
            continue
        found[where] = choose(scratch, seen, frozenset(taken))
        taken |= {disk.name for disk in found[where].disks}
    return found


def choose(
    scratch: LocalScratch, seen: BlockDevices, taken: frozenset[str] = frozenset()
) -> Choice:
    """The disks that ``scratch`` is to be made of; ``taken`` are those that a rule passes over."""
    if isinstance(scratch.disks, DiskRule):
        choice = _by_rule(scratch.disks, seen, taken)
    else:
        choice = _by_id(scratch.disks, seen)
    error = choice.error or _namesake(scratch, seen) or _unfit(scratch, choice.disks)
    return choice if error is None else Choice(refused=choice.refused, error=error)


def members(scratch: LocalScratch, seen: BlockDevices) -> tuple[Disk, ...]:
    """The disks that say of themselves that they are of the array of ``scratch``."""
    own = Signature(type=_MEMBER, label=f"any:{scratch.array}")
    return tuple(disk for disk in seen.disks if own in (disk.signatures or ()))


def array_of(disks: tuple[Disk, ...], seen: BlockDevices) -> MdArray | None:
    """The array that is assembled of ``disks``, or of some of them."""
    names = {disk.name for disk in disks}
    return next((array for array in seen.arrays if names & array.members.keys()), None)


def labelled(scratch: LocalScratch, seen: BlockDevices) -> tuple[Disk, ...]:
    """The disks, without RAID, that hold a file system by the label of ``scratch``."""
    return tuple(
        disk
        for disk in seen.disks
        if any(signature.label == scratch.label for signature in disk.signatures or ())
    )


def is_there(scratch: LocalScratch, seen: BlockDevices) -> bool:
    """Whether anything of ``scratch`` has been made."""
    return bool(labelled(scratch, seen) if scratch.raid is None else members(scratch, seen))


def _namesake(scratch: LocalScratch, seen: BlockDevices) -> str | None:
    """What has its name, and is made otherwise."""
    others = (*members(scratch, seen), *labelled(scratch, seen))
    if not others:
        return None
    names = ", ".join(disk.shown for disk in others)
    return f"there is one already by the name {scratch.name}, made otherwise: {names}"


def reasons_against(disk: Disk, seen: BlockDevices) -> tuple[str, ...]:
    """Why ``disk`` may not be taken, the gravest first; none where it may."""
    return (*_in_use(disk, seen), *_built_upon(disk, seen), *_of_itself(disk))


def _in_use(disk: Disk, seen: BlockDevices) -> Iterator[str]:
    upon = seen.upon(disk.name)
    mounted = [
        (mount.target, name)
        for mount in seen.stack.mounts
        for name in _devices_of(mount, seen)
        if name in upon
    ]
    if any(target == "/" for target, _ in mounted):
        yield "holds the root file system"
    for target, name in mounted:
        if target != "/":
            by = "" if name == disk.name else f" (by {name})"
            yield f"is mounted at {target}{by}"
    for swap in seen.stack.swaps:
        name = seen.stack.sources.get(swap, swap).rpartition("/")[2]
        if name in upon:
            by = "" if name == disk.name else f" (by {name})"
            yield f"is in use as swap{by}"


def _devices_of(mount: Mount, seen: BlockDevices) -> tuple[str, ...]:
    """The block devices of a mounted file system: of btrfs there may be several."""
    name = next((n for n, number in seen.stack.numbers.items() if number == mount.number), None)
    if name is None and mount.source.startswith("/dev/"):
        name = seen.stack.sources.get(mount.source, mount.source).rpartition("/")[2]
    if name is None:
        return ()
    return next((group for group in seen.stack.btrfs if name in group), (name,))


def _built_upon(disk: Disk, seen: BlockDevices) -> Iterator[str]:
    direct = [upper for upper, lowers in seen.stack.under.items() if disk.name in lowers]
    part = re.compile(rf"{re.escape(disk.name)}p?\d+")
    parts = sorted(name for name in direct if part.fullmatch(name))
    if parts:
        yield f"has partitions: {', '.join(parts)}"
    for name in sorted(set(direct) - set(parts)):
        yield f"is held by {name}"


def _of_itself(disk: Disk) -> Iterator[str]:
    if disk.signatures:
        yield f"has a signature: {', '.join(map(str, disk.signatures))}"
    if not disk.size_bytes:
        yield "has no size: it may have failed"
    elif disk.signatures is None:
        yield f"cannot be read: {disk.error or 'wipefs says nothing of it'}"
    if disk.read_only:
        yield "is read-only"
    if disk.removable:
        yield "is removable"
    if disk.fabric is not None and disk.fabric not in _OWN_TRANSPORTS:
        yield f"is on another machine, over {disk.fabric}"
    if disk.transport in _FAR:
        yield f"is on another machine, over {disk.transport}"
    if not disk.ids:
        yield "has no name in /dev/disk/by-id by which it could be found again"


def _by_id(asked: tuple[str, ...], seen: BlockDevices) -> Choice:
    by_name = {disk.name: disk for disk in seen.disks}
    disks: list[Disk] = []
    refused: list[Refusal] = []
    for one in asked:
        disk = by_name.get(seen.ids.get(one, ""))
        if disk is None:
            reason = f"is {seen.ids[one]}, no whole disk" if one in seen.ids else "is not there"
            refused.append(Refusal(disk=one, reason=reason))
            continue
        against = list(reasons_against(disk, seen))
        if disk in disks:
            against.append(f"is the same disk, {disk.name}, as another that is asked for")
        disks.append(disk)
        refused += [Refusal(disk=one, reason="; ".join(against))] if against else []
    if not refused:
        return Choice(disks=tuple(disks))
    error = "; ".join(map(str, refused))
    foreign = _made_by_others(disks) if len(disks) == len(asked) else None
    return Choice(refused=tuple(refused), error=f"{foreign}: {error}" if foreign else error)


def _made_by_others(disks: list[Disk]) -> str | None:
    """Where the disks are an array already, by whatever name, it is told as a whole."""
    found = {disk.superblock.uuid: disk.superblock for disk in disks if disk.superblock}
    if len(found) != 1 or not all(disk.superblock for disk in disks):
        return None
    (superblock,) = found.values()
    return f"they are the {superblock.level} {superblock.name} already, which is not adopted"


def _by_rule(rule: DiskRule, seen: BlockDevices, taken: frozenset[str]) -> Choice:
    refused, free = [], []
    for disk in seen.disks:
        if disk.name in taken or not _matches(rule, disk):
            continue
        against = reasons_against(disk, seen)
        if against:
            refused.append(Refusal(disk=disk.shown, reason="; ".join(against)))
        else:
            free.append(disk)
    if len(free) == rule.count:
        return Choice(
            disks=tuple(sorted(free, key=lambda disk: disk.shown)), refused=tuple(refused)
        )
    free_names = ", ".join(sorted(disk.shown for disk in free)) or "none"
    error = f"of {rule} can be taken: {free_names}"
    told = "; ".join([error, *map(str, refused)])
    return Choice(refused=tuple(refused), error=told)


def _matches(rule: DiskRule, disk: Disk) -> bool:
    kib = disk.size_bytes // 1024
    return (
        (rule.model is None or fnmatchcase(disk.model or "", rule.model))
        and (rule.min_size is None or kib >= size_kib(rule.min_size))
        and (rule.max_size is None or kib <= size_kib(rule.max_size))
        and rule.transport in (None, disk.transport)
        and rule.numa_node in (None, disk.numa_node)
    )


def _unfit(scratch: LocalScratch, disks: tuple[Disk, ...]) -> str | None:
    """Why what would be made of ``disks`` is not worth making."""
    sizes = [disk.size_bytes // 1024 for disk in disks]
    # mdadm asks a person then, and here there is none. Source: Create() in mdadm's Create.c.
    if scratch.raid and (max(sizes) - min(sizes)) * 100 > max(sizes):
        smallest = min(disks, key=lambda disk: disk.size_bytes)
        return (
            f"RAID{scratch.raid} of disks of more than 1 % difference: the smallest is "
            f"{smallest.shown}, of {smallest.size_bytes // 2**20} MiB"
        )
    copies = {None: 1, 0: 1, 1: len(sizes), 10: 2}[scratch.raid]
    if scratch.filesystem == "xfs" and sum(sizes) // copies < LEAST_XFS_KIB:
        return f"XFS is not made on less than {LEAST_XFS_KIB // 1024} MiB"
    return None
