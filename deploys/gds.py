"""GPUDirect Storage: cufile.json says what it must, and the way that IO takes can be taken.

The file is libcufile's, and the administrator's: single values of it are changed, everything else
in it stays. A process reads it when it starts, so that there is no running state to see.
"""

from collections.abc import Iterator

from deploys.gpu_driver import COMPONENT as GPU_DRIVER
from deploys.ofed import COMPONENT as OFED
from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from facts.gds_config import (
    CUFILE,
    SECTIONS,
    VARIABLE,
    CufileSeen,
    Override,
    read_cufile,
    read_overrides,
    read_platform,
)
from facts.nvidia_proc import NvidiaModule
from railwright.actions import Action
from railwright.component import Component
from railwright.gds.choice import MODES, Mode, Platform, Storage, choose, reasons_against, unknown
from railwright.gds.cufile import Cufile, dotted, shown
from railwright.gds.wanted import Edit, edits
from railwright.replacing import replacing
from railwright.schema import Node
from railwright.schema.cufile import CufileSpec
from railwright.settings import (
    HOSTS_KERNEL,
    Effect,
    Setting,
    Standing,
    State,
    looked_at,
    persists,
)
from railwright.snapshot import Snapshot

NAME = "gds"
_ABSENT = "absent"
_NEW = Cufile("{}\n")
_AT_START = State(
    standing=Standing.NOT_APPLICABLE, detail="a process reads the file when it starts"
)
_WHY = {
    "properties.allow_compat_mode": "true lets IO go through the host without a word "
    "(NVIDIA/gds-nvidia-fs#62)",
}


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    if node.gds.mode is None and node.gds.cufile == CufileSpec():
        return []
    seen = read_cufile(snapshot)
    found = list(_keys(node, snapshot, seen))
    found += [_environment(override) for override in read_overrides(snapshot)]
    found += _readable(seen)
    if node.gds.mode is not None:
        found.append(_way(node.gds.mode, snapshot))
    return found


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    due = {setting.key for setting in settings if persists(setting)}
    if not due:
        return
    seen = read_cufile(snapshot)
    file = before = _file(seen)
    for edit in edits(node, _mode(node, snapshot), before):
        if _key(edit) in due:
            file = _applied(edit, file)
    if file != before:
        # A link, as update-alternatives makes one to the file of a CUDA release, becomes a file,
        # which update-alternatives then leaves alone.
        yield replacing(CUFILE, file.text.encode(), seen.digest)


def _file(seen: CufileSeen) -> Cufile:
    """The file as it is there. Raises ValueError where it cannot be read."""
    if seen.error is not None:
        raise ValueError(seen.error)
    return _NEW if seen.text is None else Cufile(seen.text)


def _key(edit: Edit) -> str:
    return f"cufile {dotted(edit.path)}"


def _applied(edit: Edit, file: Cufile) -> Cufile:
    """Raises ValueError where a section stands in the place of a value, or a value in one's."""
    return file.remove(edit.path) if edit.value is None else file.set(edit.path, edit.value)


def _keys(node: Node, snapshot: Snapshot, seen: CufileSeen) -> Iterator[Setting]:
    mode, unread = _mode(node, snapshot), None
    if seen.text is None and arriving(node, snapshot) & node.gds.packages.keys():
        # Where the file that comes with libcufile has the key is not known yet.
        mode = None
    try:
        file = _file(seen)
    except ValueError as error:
        file, unread = _NEW, str(error)
    for edit in edits(node, mode, file):
        if edit.error is not None:
            yield _unplanned(edit)
        elif unread is not None:
            yield _setting(edit, _unreadable(unread))
        else:
            try:
                changed = _applied(edit, file)
            except ValueError as error:
                yield _setting(edit, _unreadable(str(error)))
            else:
                yield _setting(edit, _stands(edit, file, seen))
                file = changed


def _unreadable(reason: str) -> State:
    return State(standing=Standing.UNREADABLE, decider=CUFILE, detail=reason)


def _stands(edit: Edit, file: Cufile, seen: CufileSeen) -> State:
    found = file.find(edit.path)
    if found is None:
        standing = Standing.RIGHT if edit.value is None else Standing.ABSENT
        return State(standing=standing, decider=CUFILE if seen.record else None)
    link = seen.record.target if seen.record else None
    value = shown(found.value)
    right = edit.value is not None and value == shown(edit.value)
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=value,
        decider=f"{CUFILE}:{found.line}",
        detail=f"a link to {link}" if link else None,
    )


def _setting(edit: Edit, persisted: State) -> Setting:
    broken = persisted.standing is Standing.UNREADABLE
    key = dotted(edit.path)
    return Setting(
        component=NAME,
        key=_key(edit),
        desired=_ABSENT if edit.value is None else shown(edit.value),
        persisted=persisted,
        running=_AT_START,
        effect=Effect.NEW_PROCESSES,
        acts=not broken,
        remedy=f"mend {CUFILE} by hand: it is left as it is" if broken else None,
        why=_WHY.get(key),
    )


def _unplanned(edit: Edit) -> Setting:
    """A key whose value the plan of the rails does not give."""
    return Setting(
        component=NAME,
        key=_key(edit),
        desired="the rails' addresses",
        persisted=State(standing=Standing.ABSENT, detail=edit.error),
        running=_AT_START,
        effect=Effect.NEW_PROCESSES,
        acts=False,
        remedy="mend rails.nics or rails.plan",
    )


def _environment(override: Override) -> Setting:
    """A line by which new processes read another file."""
    detail = "new processes read that file"
    if not override.is_there:
        detail = "there is no such file"
    return Setting(
        component=NAME,
        key=f"environment {override.decider}",
        desired=CUFILE,
        persisted=State(
            standing=Standing.OVERRIDDEN,
            value=override.path,
            decider=override.decider,
            detail=detail,
        ),
        running=_AT_START,
        effect=Effect.NEW_PROCESSES,
        acts=False,
        remedy=f"take {VARIABLE} out of {override.decider.rpartition(':')[0]}",
    )


def _readable(seen: CufileSeen) -> Iterator[Setting]:
    mode = seen.record.mode if seen.record and seen.text is not None else None
    if mode is not None and not int(mode, 8) & 0o004:
        detail = "processes of users cannot read it"
        running = State(standing=Standing.DEGRADED, value=mode, detail=detail)
        yield looked_at(NAME, CUFILE, "read by all", running, remedy=f"chmod a+r {CUFILE}")


def _mode(node: Node, snapshot: Snapshot) -> Mode | None:
    """The way that is asked for; None where that is not known, or none is."""
    asked = node.gds.mode
    if asked != "auto":
        return asked
    if snapshot.is_container:
        return None
    platform, storage = read_platform(snapshot)
    driver = node.gpu_driver
    if platform.driver is None and arriving(node, snapshot) & driver.packages.keys():
        coming = NvidiaModule(version=str(driver.version), flavour=driver.modules)
        platform = platform.model_copy(update={"driver": coming})
    return choose(platform, storage).mode if platform.driver is not None else None


def _way(asked: str, snapshot: Snapshot) -> Setting:
    """Whether the way can be taken on this node."""
    if snapshot.is_container:
        return looked_at(NAME, "mode", asked, HOSTS_KERNEL)
    platform, storage = read_platform(snapshot)
    if platform.driver is None:
        late = State(standing=Standing.LATE, detail="no GPU driver is loaded")
        return looked_at(NAME, "mode", asked, late)
    mode = choose(platform, storage).mode if asked == "auto" else asked
    reasons = [
        reason
        for way in MODES
        if mode in (None, way)
        for reason in reasons_against(way, platform, storage)
    ]
    if not reasons:
        return looked_at(NAME, "mode", mode or asked, _free(mode, platform, storage))
    return looked_at(
        NAME,
        "mode",
        mode or asked,
        State(
            standing=Standing.DEGRADED,
            detail="; ".join(f"{reason.text} ({reason.source})" for reason in reasons),
        ),
        remedy="; ".join(dict.fromkeys(r.remedy for r in reasons if r.remedy)) or None,
    )


def _free(mode: str | None, platform: Platform, storage: Storage) -> State:
    way: Mode = "p2pdma" if mode == "p2pdma" else "nvidia-fs"
    if way == "nvidia-fs" and not platform.nvidia_fs_is_loaded:
        return State(standing=Standing.LATE, detail="nvidia-fs is not loaded")
    doubts = unknown(way, platform, storage)
    detail = f"not known: {'; '.join(doubts)}" if doubts else None
    return State(standing=Standing.RIGHT, value=way, detail=detail)


COMPONENT = Component(
    name=NAME,
    sections=(*SECTIONS, *PACKAGES.sections),
    settings=settings,
    actions=actions,
    # cufile.json comes with libcufile, and the way that IO takes is chosen by the loaded driver.
    upon=frozenset({PACKAGES.name, OFED.name, GPU_DRIVER.name}),
)
