"""How a scratch stands: its array by what its disks say of themselves, and its file system.

Nothing that is made otherwise than it is asked for is ever made anew: what is on it would be lost.
"""

from collections.abc import Iterator
from typing import NamedTuple

from facts.block_devices import BlockDevices, Disk, MdArray, Signature, Superblock
from facts.mdadm import Entry, MdadmConfig
from railwright.schema.scratch import DiskRule, LocalScratch
from railwright.scratch import Choice, array_of, labelled, members
from railwright.settings import NOTHING, Setting, Standing, State

COMPONENT = "scratch"
_PACKAGES = {"mdadm": "mdadm", "mkfs.xfs": "xfsprogs", "mkfs.ext4": "e2fsprogs"}
_WORKING = frozenset({"clean", "active", "active-idle", "write-pending", "read-auto"})
"""States of an array that can be written. Source: Documentation/admin-guide/md.rst."""
_LEFT = "what is on it is never overwritten"


class View(NamedTuple):
    """One scratch on one node; ``choice`` is None where something of it has been made.

    ``arriving`` are the packages that this run brings.
    """

    where: str
    scratch: LocalScratch
    seen: BlockDevices
    config: MdadmConfig
    choice: Choice | None
    arriving: frozenset[str]

    @property
    def array_key(self) -> str:
        return f"{self.scratch.name} array"

    @property
    def filesystem_key(self) -> str:
        return f"{self.scratch.name} file system"

    @property
    def disks(self) -> tuple[Disk, ...]:
        """Those that it is made of, or is to be made of."""
        if self.choice is not None:
            return self.choice.disks
        return (labelled if self.scratch.raid is None else members)(self.scratch, self.seen)

    @property
    def array(self) -> MdArray | None:
        return None if self.scratch.raid is None else array_of(self.disks, self.seen)

    @property
    def device(self) -> str | None:
        """The block device that its file system is on, None where that is not there."""
        if self.choice is not None:
            return None
        if self.scratch.raid is None:
            return self.disks[0].name if len(self.disks) == 1 else None
        array = self.array
        return array.name if array and array.state in _WORKING else None

    @property
    def ids(self) -> tuple[str, ...]:
        """The disks by the names that a person knows them by; none where they are not known."""
        if isinstance(self.scratch.disks, tuple):
            return self.scratch.disks
        return tuple(sorted(disk.shown for disk in self.disks))

    def lack(self) -> str | None:
        """What keeps the scratch from being made, in words."""
        tools = [f"mkfs.{self.scratch.filesystem}", *(["mdadm"] * (self.scratch.raid is not None))]
        for tool in tools:
            if tool not in self.seen.tools and _PACKAGES[tool] not in self.arriving:
                return f"{tool} is not installed (package {_PACKAGES[tool]})"
        return self.choice.error if self.choice is not None else None


def array_setting(view: View) -> Setting | None:
    """The array; None where the scratch is one disk."""
    if view.scratch.raid is None:
        return None
    desired = _array_words(f"raid{view.scratch.raid}", view.ids, view.scratch)
    if view.choice is not None:
        return _not_made(view, view.array_key, desired)
    unread = _unread(view)
    if unread is not None:
        persisted = NOTHING if unread.standing is Standing.LATE else unread
        return _setting(view.array_key, desired, persisted, unread, acts=False)
    wrong = tuple(_otherwise(view))
    missing = _missing(view)
    running = _running_array(view, desired, wrong)
    if wrong or missing:
        remedy = missing.remedy if missing and not wrong else _LEFT
        detail = "; ".join((*wrong, *([missing.detail] if missing else [])))
        persisted = State(standing=Standing.WRONG, value=_as_it_is(view), detail=detail)
        return _setting(view.array_key, desired, persisted, running, acts=False, remedy=remedy)
    return _setting(view.array_key, desired, _persisted_array(view, desired), running)


def filesystem_setting(view: View, array: Setting | None) -> Setting:
    """The file system, on the array whose setting is ``array`` or on one disk."""
    scratch = view.scratch
    desired = f"{scratch.filesystem} {scratch.label}"
    if array is None:
        desired += f" on {', '.join(view.ids) or scratch.disks}"
    key = view.filesystem_key
    if view.choice is not None:
        return _not_made(view, key, desired)
    device = view.device
    if device is None and array is not None:
        late = State(standing=Standing.LATE, detail="the array is not assembled")
        return _setting(key, desired, NOTHING, late, acts=False)
    persisted = _persisted_filesystem(view, desired)
    blank = persisted.standing is Standing.ABSENT
    lack = view.lack()
    # A disk of its own that is blank is one that is not made yet: it has a choice.
    makes = blank and lack is None and array is not None and _is_as_asked(array)
    acts = makes or persisted.standing is Standing.RIGHT
    remedy = None
    if not acts:
        remedy = lack or (f"wipefs -a /dev/{device} gives it up" if device else _LEFT)
    return _setting(key, desired, persisted, NOTHING, acts=acts, remedy=remedy)


def entry_settings(view: View) -> Iterator[Setting]:
    """Lines of mdadm.conf that name another array by the name of this one."""
    uuids = {disk.superblock.uuid for disk in view.disks if disk.superblock}
    for entry in view.config.entries if view.scratch.raid is not None else ():
        if _names(entry, view.scratch) and entry.uuid is not None and entry.uuid not in uuids:
            yield Setting(
                component=COMPONENT,
                key=f"mdadm.conf {entry.place}",
                desired="no array that is not there",
                persisted=State(
                    standing=Standing.OVERRIDDEN,
                    value=entry.text,
                    decider=entry.place,
                    detail=f"no disk is of the array {entry.uuid}",
                ),
                running=NOTHING,
                acts=False,
                remedy=f"take the line out of {entry.place}; Debian: update-initramfs -u after it",
            )


def _setting(
    key: str,
    desired: str,
    persisted: State,
    running: State,
    *,
    acts: bool = True,
    remedy: str | None = None,
) -> Setting:
    return Setting(
        component=COMPONENT,
        key=key,
        desired=desired,
        persisted=persisted,
        running=running,
        acts=acts,
        remedy=remedy,
    )


def _not_made(view: View, key: str, desired: str) -> Setting:
    lack = view.lack()
    absent = State(standing=Standing.ABSENT, detail=lack)
    running = absent if key == view.array_key else NOTHING
    remedy = None
    if lack is not None:
        remedy = "name disks that hold nothing, or empty those by hand (wipefs -a)"
        if "not installed" in lack:
            remedy = "name the package in packages of scratch"
    return _setting(key, desired, absent, running, acts=lack is None, remedy=remedy)


def _array_words(level: str, ids: tuple[str, ...], scratch: LocalScratch) -> str:
    told = ", ".join(ids)
    if not told:
        return f"{level} of {scratch.disks}"
    return f"{level} of {told}"


def _as_it_is(view: View) -> str:
    superblock = _superblock(view)
    level = superblock.level if superblock else "an array"
    return _array_words(level, tuple(sorted(disk.shown for disk in view.disks)), view.scratch)


def _superblock(view: View) -> Superblock | None:
    return next((disk.superblock for disk in view.disks if disk.superblock), None)


def _unread(view: View) -> State | None:
    """Where members are there, and what they say cannot be read."""
    mute = [disk.shown for disk in view.disks if disk.superblock is None]
    if not mute:
        return None
    if "mdadm" not in view.seen.tools and "mdadm" in view.arriving:
        return State(standing=Standing.LATE, detail="mdadm comes with this run")
    why = "mdadm is not installed" if "mdadm" not in view.seen.tools else "mdadm --examine failed"
    return State(standing=Standing.UNREADABLE, detail=f"{why}: {', '.join(mute)}")


def _otherwise(view: View) -> Iterator[str]:
    """In what the array is another one than is asked for."""
    scratch, found = view.scratch, {d.superblock.uuid for d in view.disks if d.superblock}
    if len(found) > 1:
        yield f"{len(found)} arrays have this name: {', '.join(sorted(found))}"
        return
    superblock = _superblock(view)
    if superblock is None:
        return
    if superblock.level != f"raid{scratch.raid}":
        yield f"it is {superblock.level}"
    if superblock.disks != scratch.count:
        yield f"it is made of {superblock.disks} disks"
    if not isinstance(scratch.disks, DiskRule):
        asked = {view.seen.ids.get(disk) for disk in scratch.disks}
        strange = [disk.shown for disk in view.disks if disk.name not in asked]
        if strange:
            yield f"{', '.join(strange)} is of it, and is not asked for"
    array = view.array
    chunk = array.chunk_kib if array and scratch.raid != 1 else 0
    if chunk not in (0, scratch.chunk_kib):
        yield f"its chunk is {chunk}KiB"


class Missing(NamedTuple):
    """Disks that the array is made of and that are not there."""

    detail: str
    remedy: str


def _missing(view: View) -> Missing | None:
    superblock = _superblock(view)
    if superblock is None or len(view.disks) >= superblock.disks:
        return None
    detail = f"{len(view.disks)} of its {superblock.disks} disks are there"
    if isinstance(view.scratch.disks, tuple):
        there = {disk.name for disk in view.disks}
        gone = [one for one in view.scratch.disks if view.seen.ids.get(one) not in there]
        detail += f", without {', '.join(gone)}" if gone else ""
    if superblock.level == "raid0":
        words = "what was on it is lost unless they come back; wipefs -a the others to make it anew"
        return Missing(f"{detail}: RAID0 does not work without all", words)
    return Missing(detail, "mdadm --add a disk in its place, and name that one here")


def _persisted_array(view: View, desired: str) -> State:
    superblock = _superblock(view)
    decider = _keeps_from_assembling(view.config, superblock) if superblock else None
    if decider is not None:
        place, why = decider
        return State(standing=Standing.OVERRIDDEN, value=desired, decider=place, detail=why)
    return State(standing=Standing.RIGHT, value=desired, decider="superblocks of its disks")


def _keeps_from_assembling(config: MdadmConfig, superblock: Superblock) -> tuple[str, str] | None:
    """What keeps udev from assembling an array at boot, and how. Source: Incremental() and
    conf_match() in mdadm."""
    matching = [
        entry
        for entry in config.entries
        if (entry.uuid or entry.name)
        and entry.uuid in (None, superblock.uuid)
        and (entry.name or superblock.name).lower() == superblock.name.lower()
    ]
    if len(matching) > 1:
        return matching[1].place, f"mdadm assembles none of which {matching[0].place} tells too"
    if matching and (matching[0].device or "").lower() == "<ignore>":
        return matching[0].place, "it is ignored"
    if not matching and config.refuses is not None:
        return config.refuses, "arrays without an ARRAY line are not assembled"
    if not config.rule:
        return "udev", "no rule of mdadm's is in force"
    return None


def _running_array(view: View, desired: str, wrong: tuple[str, ...]) -> State:
    array, superblock = view.array, _superblock(view)
    if array is None or superblock is None:
        return State(standing=Standing.ABSENT, detail="not assembled")
    failed = sorted(n for n, state in array.members.items() if "faulty" in state.split(","))
    lacking = max(array.missing, superblock.disks - len(array.members))
    if array.state not in _WORKING:
        has = f"{len(array.members)} of {superblock.disks} disks"
        detail = f"{array.name} is {array.state}, with {has}"
        return State(standing=Standing.DEGRADED, value=array.state, detail=detail)
    if failed or lacking > 0:
        told = f"{array.name} runs without {max(lacking, len(failed))} of {superblock.disks} disks"
        detail = f"{told}: {', '.join(failed)} failed" if failed else told
        if array.sync:
            detail += f" ({array.sync})"
        return State(standing=Standing.DEGRADED, value="degraded", detail=detail)
    if wrong:
        return State(standing=Standing.WRONG, value=_as_it_is(view))
    return State(standing=Standing.RIGHT, value=desired, decider=array.name, detail=array.sync)


def _is_as_asked(array: Setting) -> bool:
    return array.persisted.standing in (Standing.RIGHT, Standing.OVERRIDDEN)


def _persisted_filesystem(view: View, desired: str) -> State:
    scratch = view.scratch
    if scratch.raid is None and len(view.disks) > 1:
        names = ", ".join(disk.shown for disk in view.disks)
        return State(standing=Standing.WRONG, detail=f"{scratch.label} is on each of {names}")
    if scratch.raid is None:
        found, place = view.disks[0].signatures, view.disks[0].shown
        asked = scratch.disks if isinstance(scratch.disks, tuple) else ()
        if asked and view.seen.ids.get(asked[0]) != view.disks[0].name:
            return State(standing=Standing.WRONG, value=f"{scratch.label} on {place}")
    else:
        array = view.array
        found, place = (array.signatures, array.name) if array else (None, "the array")
    if found is None:
        return State(standing=Standing.UNREADABLE, detail=f"the signatures of {place}")
    if not found:
        return State(standing=Standing.ABSENT)
    if found == (Signature(type=scratch.filesystem, label=scratch.label),):
        return State(standing=Standing.RIGHT, value=desired, decider=place)
    return State(
        standing=Standing.WRONG,
        value=", ".join(map(str, found)),
        decider=place,
        detail="it is formatted once, and never again",
    )


def _names(entry: Entry, scratch: LocalScratch) -> bool:
    device = (entry.device or "").removeprefix("/dev/").removeprefix("md/")
    return scratch.array in (device, (entry.name or "").rpartition(":")[2])
