"""Parameters of Lustre's client: what our unit sets after each mount, and what is in force.

A client cannot persist them: ``lctl set_param -P`` writes them into the MGS's own log, for all
clients alike. Source: Lustre manual, "Setting Permanent Parameters with lctl set_param -P". Newer
mounts read /etc/lustre/mount.client.params, which 2.15 does not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from facts.lctl import Parameters
from facts.lustre import (
    PARAMETERS_PATH,
    PARAMETERS_SCRIPT,
    PARAMETERS_UNIT,
    PARAMETERS_UNIT_PATH,
)
from railwright.actions import Action, RemoveFile, Run
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, first_wrong, owned_file_action
from railwright.settings import (
    HOSTS_KERNEL,
    NOTHING,
    Effect,
    Setting,
    Standing,
    State,
    enforces,
    persists,
)
from railwright.templates import render

Values = Mapping[str, int | str]

_UNIT_KEY = f"unit {PARAMETERS_UNIT}"
_WITH_MOUNTS = "with each mount"
_WANTS = re.compile(rf"/etc/systemd/system/(?P<unit>.+)\.wants/{re.escape(PARAMETERS_UNIT)}")
_DYNAMIC = "lru_size"
"""Set to 0 it sizes itself, and then shows how large it is."""


def owned(parameters: Values, mounts: Sequence[str]) -> tuple[OwnedFile, OwnedFile, OwnedFile]:
    """Script, data and unit; ``mounts`` are the units that start it."""
    if not parameters or not mounts:
        paths = (PARAMETERS_SCRIPT, PARAMETERS_PATH, PARAMETERS_UNIT_PATH)
        script, data, unit = (OwnedFile(path=path, content=None) for path in paths)
        return script, data, unit
    lines = "".join(f"{name}={value}\n" for name, value in sorted(parameters.items()))
    unit_text = render(
        "lustre/railwright-lustre.service.j2",
        header=HEADER,
        script=PARAMETERS_SCRIPT,
        parameters=PARAMETERS_PATH,
        after=mounts,
    )
    script_text = render("lustre/railwright-lustre.sh.j2", header=HEADER)
    return (
        OwnedFile(path=PARAMETERS_SCRIPT, content=script_text, mode="755"),
        OwnedFile(path=PARAMETERS_PATH, content=HEADER + lines),
        OwnedFile(path=PARAMETERS_UNIT_PATH, content=unit_text),
    )


def unit_setting(
    component: str, files: Iterable[FileRecord], mounts: Sequence[str], *, asked: bool
) -> Setting | None:
    """Whether each mount starts our unit, and none that is not asked for any more."""
    found = {match["unit"] for file in files if (match := _WANTS.fullmatch(file.path))}
    wanted = set(mounts) if asked else set()
    if not found and not wanted:
        return None
    standing = Standing.RIGHT if found == wanted else Standing.WRONG if found else Standing.ABSENT
    return Setting(
        component=component,
        key=_UNIT_KEY,
        desired=_WITH_MOUNTS if wanted else "absent",
        persisted=State(
            standing=standing,
            value=_WITH_MOUNTS if found == wanted else ", ".join(sorted(found)) or None,
        ),
        running=NOTHING,
    )


def parameter_settings(
    component: str,
    parameters: Values,
    ours: Sequence[OwnedFile],
    files: Sequence[FileRecord],
    unit: Setting | None,
    seen: Parameters | str | None,
    *,
    mounted: bool,
) -> Iterator[Setting]:
    """Each parameter. ``seen`` is what lctl said, or why that cannot be read; None in a container.

    ``mounted`` tells whether a Lustre is: its devices have the parameters.
    """
    data = next((file for file in files if file.path == PARAMETERS_PATH), None)
    lines = (data.content or "").splitlines() if data else []
    written = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    broken = first_wrong([one for one in ours if one.path != PARAMETERS_PATH], files)
    if broken is None and unit is not None and unit.persisted.standing is not Standing.RIGHT:
        broken = PARAMETERS_UNIT
    for name, value in sorted(parameters.items()):
        running = _running(name, value, seen, mounted=mounted)
        unknown = running.standing is Standing.WRONG and running.value is None
        yield Setting(
            component=component,
            key=f"param {name}",
            desired=str(value),
            persisted=_persisted(written.get(name), value, broken),
            running=running,
            acts=not unknown,
            remedy="take it out of lustre.parameters: this client has none of that name"
            if unknown
            else None,
        )


def parameter_files(
    ours: Sequence[OwnedFile], by_key: Mapping[str, Setting], files: Sequence[FileRecord]
) -> Iterator[Action]:
    """Puts files and unit right, which has to be before anything is mounted that starts it."""
    enabled = by_key.get(_UNIT_KEY)
    due = enabled is not None and persists(enabled)
    if due:
        yield from (RemoveFile(path=file.path) for file in files if _WANTS.fullmatch(file.path))
    reload = False
    for one in ours:
        changes = owned_file_action(one, by_key.get(one.path))
        reload = reload or (bool(changes) and one.path == PARAMETERS_UNIT_PATH)
        yield from changes
    if reload or due:
        yield Run(command=("systemctl", "daemon-reload"))
    if due and enabled is not None and enabled.desired == _WITH_MOUNTS:
        yield Run(command=("systemctl", "enable", PARAMETERS_UNIT))


def parameter_actions(
    parameters: Values,
    by_key: Mapping[str, Setting],
    allowed: frozenset[Effect],
    mounting: Sequence[Action],
) -> Iterator[Action]:
    """Sets those that are not in force on what is mounted, or was by ``mounting`` just now."""
    if parameters and any(_starts(action) for action in mounting):
        # The mount has asked for it already; this waits for its end.
        yield Run(command=("systemctl", "start", PARAMETERS_UNIT))
    for name, value in sorted(parameters.items()):
        setting = by_key.get(f"param {name}")
        if setting is not None and enforces(setting, allowed):
            yield Run(command=("lctl", "set_param", f"{name}={value}"))


def _starts(action: Action) -> bool:
    return isinstance(action, Run) and action.command[:2] == ("systemctl", "start")


def _persisted(found: str | None, value: int | str, broken: str | None) -> State:
    if found is None:
        return State(standing=Standing.ABSENT)
    if found != str(value):
        return State(standing=Standing.WRONG, value=found, decider=PARAMETERS_PATH)
    if broken is not None:
        detail = f"nothing sets it: {broken} is not right"
        return State(standing=Standing.ABSENT, decider=PARAMETERS_PATH, detail=detail)
    return State(standing=Standing.RIGHT, value=str(value), decider=PARAMETERS_UNIT)


def _running(name: str, value: int | str, seen: Parameters | str | None, *, mounted: bool) -> State:
    if seen is None:
        return HOSTS_KERNEL
    if isinstance(seen, str):
        return State(standing=Standing.UNREADABLE, detail=seen)
    found = {key: told for key, told in seen.values.items() if fnmatchcase(key, name)}
    if not found:
        if not mounted:
            detail = "nothing is mounted that has it"
            return State(standing=Standing.LATE, detail=detail)
        why = seen.errors.get(name.replace(".", "/")) or seen.errors.get(name)
        if why is None:
            return State(standing=Standing.UNREADABLE, detail="lctl says nothing of it")
        return State(standing=Standing.WRONG, detail=f"lctl get_param: {why}")
    if value == 0 and name.endswith(_DYNAMIC):
        detail = f"sizes itself, and shows its size: {_listed(found)}"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    others = {key: told for key, told in found.items() if not same(value, told)}
    if others:
        return State(standing=Standing.WRONG, value=_listed(others), detail=_where(others))
    return State(standing=Standing.RIGHT, value=str(value))


def same(value: int | str, told: str) -> bool:
    """Whether ``told`` means ``value``: numbers as numbers, for some are shown as 1024.00."""
    try:
        return float(value) == float(told)
    except ValueError:
        return str(value) == told.strip()


def _listed(found: Mapping[str, str]) -> str:
    return ", ".join(dict.fromkeys(found.values()))


def _where(others: Mapping[str, str]) -> str:
    first, more = next(iter(others)), len(others) - 1
    return f"{first} and {more} more" if more else first
