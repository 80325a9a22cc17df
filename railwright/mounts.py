"""Mounts by systemd units of ours, which neither hold up the boot nor run before their network.

A unit in place of a line in fstab: the file is owned whole, its order is said in it, and nothing
of what an administrator has in fstab is touched. ``nofail`` keeps the boot from waiting for it.

From systemd 241 on a mount unit with ``nofail`` is not ordered before the target of its file
systems (systemd/systemd#11562). That of EL 8, 239, orders no mount unit so by itself
(mount_add_default_dependencies in src/core/mount.c). 240 waits (#11558); none of ours has it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from facts.mounts import ANSWERED, HANGS, STATES, UNITS, FstabEntry, MountEntry, MountsSeen
from facts.mounts import read_mounts as _read_mounts
from facts.units import Unit, read_units
from railwright.actions import Action, Run
from railwright.files import FileRecord
from railwright.model import Model
from railwright.owned import HEADER, OwnedFile, owned_file_setting
from railwright.owned_unit import OwnedUnit, enabled_setting, unit_actions
from railwright.settings import (
    HOSTS_KERNEL,
    NOTHING,
    Effect,
    Setting,
    Standing,
    State,
    enforces,
)
from railwright.snapshot import Snapshot
from railwright.templates import render

_UNITS = "/etc/systemd/system"
_MOUNTED = "mounted"
_FLAGS = frozenset({"ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime"})
"""Options that /proc/mounts shows as they are, of every file system. Source: show_mnt_opts() in
fs/proc_namespace.c."""
_COMPONENT = re.compile(r"^\[X-Railwright\]\nComponent=(\S+)$", re.MULTILINE)


class OwnedMount(Model):
    """A mount of ours.

    ``options`` are mount's; ``_netdev`` and ``nofail`` are added. ``shown`` are those that
    /proc/mounts must show once it is mounted, such as ``proto=rdma``, beside the flags that it
    shows of every file system; ``source`` is how it writes ``what`` where that is another text.
    ``after`` and ``requires`` are units.
    """

    where: str
    what: str
    fstype: str
    options: tuple[str, ...] = ()
    network: bool = True
    after: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    timeout_s: int = 90
    shown: tuple[str, ...] = ()
    source: str | None = None

    @property
    def unit(self) -> OwnedUnit:
        return OwnedUnit(
            name=unit_name(self.where),
            target="remote-fs.target" if self.network else "local-fs.target",
        )

    @property
    def path(self) -> str:
        return self.unit.path

    @property
    def link(self) -> str:
        return self.unit.link

    @property
    def unit_key(self) -> str:
        """The key of the setting that it is mounted at boot."""
        return self.unit.key

    @property
    def key(self) -> str:
        """The key of the setting that it is mounted."""
        return f"mount {self.where}"

    def owned(self, component: str) -> OwnedFile:
        added = ("_netdev", "nofail") if self.network else ("nofail",)
        content = render(
            "mounts/mount.j2",
            header=HEADER,
            component=component,
            where=self.where,
            what=self.what.replace("%", "%%"),
            fstype=self.fstype,
            options=",".join((*self.options, *added)).replace("%", "%%"),
            network=self.network,
            after=dict.fromkeys((*self.requires, *self.after)),
            requires=self.requires,
            timeout_s=self.timeout_s,
            target=self.unit.target,
        )
        return OwnedFile(path=self.path, content=content)


def unit_name(where: str) -> str:
    """The name that systemd asks of the mount unit of ``where``.

    Source: unit_name_path_escape() in src/basic/unit-name.c. Raises ValueError for the root.
    """
    inner = where.strip("/")
    if not inner:
        raise ValueError("expected a directory below /, got /")

    def escaped(position: int, char: str) -> str:
        if char == "/":
            return "-"
        if (char == "." and position > 0) or (char.isascii() and (char.isalnum() or char in ":_")):
            return char
        return "".join(f"\\x{byte:02x}" for byte in char.encode())

    return "".join(escaped(i, char) for i, char in enumerate(inner)) + ".mount"


def mount_settings(
    component: str,
    mounts: Sequence[OwnedMount],
    snapshot: Snapshot,
    allowed: frozenset[Effect],
    *,
    lacks: Mapping[str, str] | None = None,
) -> list[Setting]:
    """How the mounts of ``component`` stand, and what is left of those not asked for any more.

    ``lacks`` says of a directory why nothing can be mounted on it yet. Raises ValueError where
    the node's answer cannot be read.
    """
    if not mounts and UNITS.name not in snapshot.sections:
        return []
    files = snapshot.left_over(UNITS.name)
    seen = _read_mounts(snapshot)
    states = read_units(snapshot, STATES.name) if mounts and not snapshot.is_container else {}
    found: list[Setting] = []
    for mount in mounts:
        owned = owned_file_setting(component, mount.owned(component), files)
        enabled = enabled_setting(component, mount.unit, files, asked=True, word="at boot")
        found += filter(None, (owned, enabled))
        lack = (lacks or {}).get(mount.where)
        running = HOSTS_KERNEL
        if not snapshot.is_container:
            running = _running(mount, seen, states.get(mount.unit.name), lack)
        found.append(_mounted(component, mount, running, lack))
        found += (_foreign(component, mount, entry) for entry in _of_fstab(mount, seen.fstab))
    for unit in _left(component, mounts, files):
        found += _leaving(component, unit, files, seen, allowed)
    return found


def mount_actions(
    component: str,
    mounts: Sequence[OwnedMount],
    snapshot: Snapshot,
    by_key: Mapping[str, Setting],
    allowed: frozenset[Effect],
) -> Iterator[Action]:
    """Puts the units right, mounts what is not mounted, and what is mounted otherwise anew."""
    files = snapshot.left_over(UNITS.name)
    for unit in _left(component, mounts, files):
        gone = OwnedFile(path=unit.path, content=None)
        yield from unit_actions(unit, [gone], by_key)
    for mount in mounts:
        yield from unit_actions(mount.unit, [mount.owned(component)], by_key)
    for mount in mounts:
        setting = by_key.get(mount.key)
        if setting is None or not enforces(setting, allowed):
            continue
        if setting.running.standing is Standing.WRONG:
            yield Run(command=("systemctl", "stop", mount.unit.name))
        yield Run(command=("systemctl", "start", mount.unit.name))


def _mounted(component: str, mount: OwnedMount, running: State, lack: str | None) -> Setting:
    return Setting(
        component=component,
        key=mount.key,
        desired=_MOUNTED,
        persisted=NOTHING,
        running=running,
        effect=Effect.REMOUNT if running.standing is Standing.WRONG else Effect.LIVE,
        # What is mounted in the place of what cannot be is left mounted.
        acts=lack is None,
        remedy=f"journalctl -u {mount.unit.name}"
        if running.standing in (Standing.ABSENT, Standing.DEGRADED)
        else None,
    )


def _running(mount: OwnedMount, seen: MountsSeen, unit: Unit | None, lack: str | None) -> State:
    entry = seen.on(mount.where)
    if entry is None:
        if lack is not None:
            return State(standing=Standing.LATE, detail=lack)
        failed = unit is not None and unit.active == "failed"
        detail = f"{mount.unit.name} failed: {unit.result}" if failed and unit else None
        return State(standing=Standing.ABSENT, detail=detail)
    other = _otherwise(mount, entry)
    if other is not None:
        return State(standing=Standing.WRONG, value=other)
    answer = seen.answers.get(mount.where, HANGS)
    if answer != ANSWERED:
        value = HANGS if answer == HANGS else None
        detail = "statfs did not come back" if answer == HANGS else answer
        return State(standing=Standing.DEGRADED, value=value, detail=detail)
    if "ro" in entry.options and "ro" not in mount.options:
        detail = "the file system has been made read-only, as after an error"
        return State(standing=Standing.DEGRADED, value="read-only", detail=detail)
    return State(standing=Standing.RIGHT, value=_MOUNTED)


def _otherwise(mount: OwnedMount, entry: MountEntry) -> str | None:
    """In what the mounted file system is another one than is asked for."""
    if entry.fstype != mount.fstype:
        return f"{entry.fstype} of {entry.source}"
    source = mount.what if mount.source is None else mount.source
    if entry.source != source:
        return entry.source
    asked = (*mount.shown, *(option for option in mount.options if option in _FLAGS))
    missing = [option for option in asked if option not in entry.options]
    return f"without {','.join(missing)}" if missing else None


def _of_fstab(mount: OwnedMount, fstab: Sequence[FstabEntry]) -> Iterator[FstabEntry]:
    return (entry for entry in fstab if entry.target == mount.where)


def _foreign(component: str, mount: OwnedMount, entry: FstabEntry) -> Setting:
    """A line of fstab for the same directory: systemd takes our unit, ``mount -a`` takes it."""
    place = f"/etc/fstab:{entry.line}"
    return Setting(
        component=component,
        key=f"fstab {mount.where}",
        desired="absent",
        persisted=State(
            standing=Standing.OVERRIDDEN,
            value=entry.source,
            decider=place,
            detail="mount -a mounts what that line says",
        ),
        running=NOTHING,
        acts=False,
        remedy=f"take the line out of {place}",
    )


def _left(
    component: str, mounts: Sequence[OwnedMount], files: Sequence[FileRecord]
) -> list[OwnedUnit]:
    """Units of ours for ``component`` that nothing asks for."""
    asked = {mount.path for mount in mounts}
    units = []
    for file in files:
        of = _COMPONENT.search(file.content or "")
        if of is None or of[1] != component or file.path in asked:
            continue
        found = re.search(r"^WantedBy=(\S+)$", file.content or "", re.MULTILINE)
        units.append(
            OwnedUnit(
                name=file.path.removeprefix(f"{_UNITS}/"),
                target=found[1] if found else "remote-fs.target",
            )
        )
    return units


def _leaving(
    component: str,
    unit: OwnedUnit,
    files: Sequence[FileRecord],
    seen: MountsSeen,
    allowed: frozenset[Effect],
) -> Iterator[Setting]:
    """The unit goes with what it mounted, which is taken from nobody who may be using it."""
    content = next(file.content or "" for file in files if file.path == unit.path)
    where = re.search(r"^Where=(\S+)$", content, re.MULTILINE)
    mounted = where is not None and seen.on(where[1]) is not None
    stays = mounted and Effect.REMOUNT not in allowed
    for setting in (
        owned_file_setting(component, OwnedFile(path=unit.path, content=None), files),
        enabled_setting(component, unit, files, asked=False),
    ):
        if setting is not None:
            remedy = f"it is mounted: allow remount, or systemctl stop {unit.name}"
            yield setting.model_copy(
                update={"acts": not stays, "remedy": remedy if stays else None}
            )
