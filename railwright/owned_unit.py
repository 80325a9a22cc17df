"""Units that railwright owns, which systemd starts at boot."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from facts.units import read_units
from railwright.actions import Action, RemoveFile, Run
from railwright.files import FileRecord
from railwright.model import Model
from railwright.owned import OwnedFile, owned_file_action
from railwright.settings import NOTHING, Setting, Standing, State, persists
from railwright.snapshot import Snapshot

UNITS = "/etc/systemd/system"
_ABSENT = "absent"


class OwnedUnit(Model):
    """A unit of ours that starts with ``target`` at boot."""

    name: str
    target: str

    @property
    def path(self) -> str:
        return f"{UNITS}/{self.name}"

    @property
    def link(self) -> str:
        """What ``systemctl enable`` makes, and what makes the unit hold after a reboot."""
        return f"{UNITS}/{self.target}.wants/{self.name}"

    @property
    def key(self) -> str:
        """The key of the setting that it is enabled."""
        return f"unit {self.name}"

    @property
    def started_key(self) -> str:
        return f"start of {self.name}"

    def is_enabled(self, files: Iterable[FileRecord]) -> bool:
        return any(file.path == self.link for file in files)


def enabled_setting(
    component: str,
    unit: OwnedUnit,
    files: Iterable[FileRecord],
    *,
    asked: bool,
    word: str = "enabled",
    running: State = NOTHING,
) -> Setting | None:
    """Whether ``unit`` starts at boot; None where it is not asked for and does not.

    ``word`` is what it is then called; ``running`` is the state of a unit that stays and has no
    setting of its own for that.
    """
    enabled = unit.is_enabled(files)
    if not asked and not enabled:
        return None
    standing = Standing.RIGHT if enabled else Standing.ABSENT
    return Setting(
        component=component,
        key=unit.key,
        desired=word if asked else _ABSENT,
        persisted=State(
            standing=standing if asked else Standing.WRONG, value=word if enabled else None
        ),
        running=running if asked else NOTHING,
    )


def started_setting(component: str, unit: OwnedUnit, running: State) -> Setting:
    """Whether ``unit``, which does its work once, has done it since the boot."""
    return Setting(
        component=component,
        key=unit.started_key,
        desired="active",
        persisted=NOTHING,
        running=running,
    )


def started(unit: OwnedUnit, snapshot: Snapshot, section: str, lacks: Sequence[str]) -> State:
    """How the start of ``unit`` stands by ``section``; ``lacks`` are the settings not in force."""
    try:
        found = read_units(snapshot, section).get(unit.name)
    except ValueError as error:
        return State(standing=Standing.UNREADABLE, detail=str(error))
    if found is None:
        detail = f"systemctl show says nothing of {unit.name}"
        return State(standing=Standing.UNREADABLE, detail=detail)
    if found.active == "failed":
        return failed(lacks, f"it could not set {', '.join(lacks)}" if lacks else None)
    standing = Standing.RIGHT if found.active == "active" else Standing.WRONG
    return State(standing=standing, value=found.active)


def failed(lacks: Sequence[str], detail: str | None) -> State:
    """A unit that failed; one whose settings are in force since is put right by a start."""
    standing = Standing.DEGRADED if lacks else Standing.WRONG
    return State(standing=standing, value="failed", detail=detail)


def unit_actions(
    unit: OwnedUnit, owned: Iterable[OwnedFile], by_key: Mapping[str, Setting]
) -> Iterator[Action]:
    """Puts our files right and enables ``unit``, or stops it first where it goes with them.

    ``owned`` are all files of the component, ``by_key`` its settings. Whether it is started is
    the component's own.
    """
    enabled = by_key.get(unit.key)
    leaves = enabled is not None and enabled.desired == _ABSENT and persists(enabled)
    if leaves:
        if unit.path in by_key:
            yield Run(command=("systemctl", "disable", "--now", unit.name))
        yield RemoveFile(path=unit.link)
    reload = False
    for file in owned:
        changes = owned_file_action(file, by_key.get(file.path))
        reload = reload or (bool(changes) and file.path.startswith(f"{UNITS}/"))
        yield from changes
    if reload:
        yield Run(command=("systemctl", "daemon-reload"))
    if enabled is not None and persists(enabled) and not leaves:
        yield Run(command=("systemctl", "enable", unit.name))
