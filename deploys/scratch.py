"""Local scratch: made once of disks that hold nothing, found again by its name, and mounted.

An array is assembled at boot by udev, by what its disks say of themselves: it is made for any host
(``--homehost=any``), which mdadm takes for its own everywhere. So mdadm.conf is read and never
written: a line in it would add nothing, goes stale as soon as the array is made anew, and has its
copy in the initramfs. The mount is by the file system's label, so that what is mounted is what was
made here. When a scratch is not asked for any more its mount goes, and its disks stay as they are.
"""

from collections.abc import Iterator, Mapping

from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from facts.block_devices import SECTIONS as DEVICES
from facts.block_devices import read_block_devices
from facts.mdadm import CONFIG, read_config
from facts.mounts import SECTIONS as MOUNTS
from facts.probe import Section
from facts.units import read_units
from railwright.actions import Action, Run, RunScript
from railwright.component import Component
from railwright.mounts import OwnedMount, mount_actions, mount_settings
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.owned_unit import UNITS, OwnedUnit, enabled_setting
from railwright.resolve.scratch import COMPONENT as NAME
from railwright.resolve.scratch import View, array_setting, entry_settings, filesystem_setting
from railwright.schema import Node
from railwright.schema.scratch import LocalScratch
from railwright.scratch import choose_all
from railwright.settings import HOSTS_KERNEL, Setting, Standing, State, enforces, persists
from railwright.snapshot import Snapshot
from railwright.templates import render

TIMER = OwnedUnit(name="fstrim.timer", target="timers.target")
"""The distribution's. It runs fstrim.service, which takes file systems from fstab alone where that
has any. Source: --listed-in in fstrim(8)."""
DROP_IN = f"{UNITS}/fstrim.service.d/railwright-scratch.conf"

TRIM = Section(
    name="fstrim",
    for_storage=True,
    script=f"files {DROP_IN}\nmeta {TIMER.link}",
)
TRIM_STATE = Section(name="fstrim_state", for_storage=True, script=f"units {TIMER.name}")

_NO_DISKS = State(standing=Standing.NOT_APPLICABLE, detail="a container has no disks of its own")


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    scratches, allowed = node.storage.of(LocalScratch), node.effects.allow
    trim = list(_trim(scratches, snapshot))
    if not scratches:
        return trim + mount_settings(NAME, [], snapshot, allowed)
    if snapshot.is_container:
        mounts = [_mount(where, one, None) for where, one in scratches.items()]
        made = [_of_no_disks(one) for one in scratches.values()]
        return made + trim + mount_settings(NAME, mounts, snapshot, allowed)
    found: list[Setting] = []
    mounts, lacks = [], {}
    for view in _views(node, snapshot):
        array = array_setting(view)
        filesystem = filesystem_setting(view, array)
        found += [*filter(None, [array]), filesystem, *entry_settings(view)]
        mounts.append(_mount(view.where, view.scratch, view.device))
        lack = _lack(array, filesystem, node)
        if lack is not None:
            lacks[view.where] = lack
    return found + trim + mount_settings(NAME, mounts, snapshot, allowed, lacks=lacks)


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    scratches, allowed = node.storage.of(LocalScratch), node.effects.allow
    by_key = {setting.key: setting for setting in settings}
    views = list(_views(node, snapshot)) if scratches and not snapshot.is_container else []
    for view in views:
        yield from _made(view, by_key, node)
    trimmed = owned_file_action(_drop_in(scratches), by_key.get(DROP_IN))
    yield from trimmed
    if trimmed:
        yield Run(command=("systemctl", "daemon-reload"))
    timer = by_key.get(TIMER.key)
    if timer is not None and (persists(timer) or enforces(timer, allowed)):
        now = () if snapshot.is_container else ("--now",)
        yield Run(command=("systemctl", "enable", *now, TIMER.name))
    devices = {view.where: view.device for view in views}
    mounts = [_mount(where, one, devices.get(where)) for where, one in scratches.items()]
    yield from mount_actions(NAME, mounts, snapshot, by_key, allowed)


def _views(node: Node, snapshot: Snapshot) -> Iterator[View]:
    seen, config = read_block_devices(snapshot), read_config(snapshot)
    scratches = node.storage.of(LocalScratch)
    choices = choose_all(scratches, seen)
    coming = arriving(node, snapshot)
    for where, scratch in scratches.items():
        yield View(where, scratch, seen, config, choices.get(where), coming)


def _mount(where: str, scratch: LocalScratch, device: str | None) -> OwnedMount:
    """``device`` is what /proc/mounts tells of it; None where that is not there."""
    return OwnedMount(
        where=where,
        what=f"/dev/disk/by-label/{scratch.label}",
        fstype=scratch.filesystem,
        options=scratch.options,
        network=False,
        timeout_s=scratch.timeout_s,
        source=f"/dev/{device}" if device else None,
    )


def _lack(array: Setting | None, filesystem: Setting, node: Node) -> str | None:
    """Why there is nothing to mount, nor will be by the end of the run; None where there is."""
    if filesystem.persisted.standing is Standing.RIGHT or persists(filesystem):
        return None
    if array is not None and enforces(array, node.effects.allow):
        return None
    for state in (filesystem.persisted, filesystem.running):
        if state.detail is not None:
            return state.detail
    return "there is no such file system"


def _of_no_disks(scratch: LocalScratch) -> Setting:
    return Setting(
        component=NAME,
        key=f"{scratch.name} file system",
        desired=f"{scratch.filesystem} {scratch.label}",
        persisted=_NO_DISKS,
        running=_NO_DISKS,
    )


def _drop_in(scratches: Mapping[str, LocalScratch]) -> OwnedFile:
    if not scratches:
        return OwnedFile(path=DROP_IN, content=None)
    content = render("scratch/fstrim.conf.j2", header=HEADER, mounts=sorted(scratches))
    return OwnedFile(path=DROP_IN, content=content)


def _trim(scratches: Mapping[str, LocalScratch], snapshot: Snapshot) -> Iterator[Setting]:
    """The drop-in, and the timer: which stays enabled where nothing is asked for any more."""
    files = snapshot.left_over(TRIM.name)
    owned = owned_file_setting(NAME, _drop_in(scratches), files)
    if owned is not None:
        yield owned
    if not scratches:
        return
    running = HOSTS_KERNEL if snapshot.is_container else _ticks(snapshot)
    timer = enabled_setting(NAME, TIMER, files, asked=True, running=running)
    if timer is not None:
        yield timer


def _ticks(snapshot: Snapshot) -> State:
    try:
        unit = read_units(snapshot, TRIM_STATE.name).get(TIMER.name)
    except ValueError as error:
        return State(standing=Standing.UNREADABLE, detail=str(error))
    if unit is None:
        detail = f"systemctl show says nothing of {TIMER.name}"
        return State(standing=Standing.UNREADABLE, detail=detail)
    right = unit.active == "active"
    # In the words of the one setting that it shares with its enablement.
    value = "enabled" if right else unit.active
    return State(standing=Standing.RIGHT if right else Standing.WRONG, value=value)


def _made(view: View, by_key: Mapping[str, Setting], node: Node) -> Iterator[Action]:
    """What makes the scratch, or assembles an array that is there."""
    array, filesystem = by_key.get(view.array_key), by_key.get(view.filesystem_key)
    if array is not None and persists(array) and view.choice is not None:
        yield _script("make", view)
    elif array is not None and enforces(array, node.effects.allow):
        uuid = next(disk.superblock.uuid for disk in view.disks if disk.superblock)
        devices = [f"/dev/{disk.name}" for disk in view.disks]
        target = f"/dev/md/{view.scratch.array}"
        yield Run(command=("mdadm", "--assemble", target, f"--uuid={uuid}", *devices))
        yield Run(command=("udevadm", "settle"))
    elif filesystem is not None and persists(filesystem):
        yield _script("make" if view.choice is not None else "format", view)


def _script(mode: str, view: View) -> RunScript:
    scratch = view.scratch
    level = "-" if scratch.raid is None else str(scratch.raid)
    chunk = str(scratch.chunk_kib)
    return RunScript(
        name="railwright-scratch",
        script=render("scratch/railwright-scratch.sh.j2"),
        arguments=(mode, scratch.name, level, chunk, scratch.filesystem, *view.ids),
    )


COMPONENT = Component(
    name=NAME,
    sections=(*DEVICES, CONFIG, TRIM, TRIM_STATE, *MOUNTS, *PACKAGES.sections),
    settings=settings,
    actions=actions,
    # mdadm and mkfs come with packages.
    upon=frozenset({PACKAGES.name}),
)
