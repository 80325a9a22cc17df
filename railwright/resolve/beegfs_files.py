"""Keys in BeeGFS's files as settings, and what changes them and nothing else."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from facts.beegfs import ConfFile, encoded
from railwright.actions import RunScript
from railwright.beegfs_conf import (
    Conf,
    Found,
    build_args,
    mount_lines,
    with_build_args,
    without_lines,
)
from railwright.model import Model
from railwright.replacing import replacing
from railwright.resolve.beegfs_wanted import MOUNTS_CONFIG, OURS, Keys, same
from railwright.schema.beegfs_keys import MISTAKEN, Major
from railwright.settings import NOTHING, Effect, Setting, Standing, State, persists

_ABSENT = "absent"
_BUILD_ARGS = "buildArgs"

Running = Callable[[str, str], State]
"""What is in force of a key, by its name and the value asked for."""


class Edited(Model):
    """A file of ``key = value`` lines: where it is, what is in it, and what is asked of it.

    ``file`` is None where there is none yet. ``kind`` says how it is written and read.
    """

    path: str
    file: ConfFile | None
    wanted: Keys
    kind: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def key(self, name: str) -> str:
        return f"{self.name} {name}"

    @property
    def error(self) -> str | None:
        return self.file.error if self.file else None

    def conf(self) -> Conf:
        text = (self.file.text if self.file else None) or ""
        return Conf(
            text,
            separator=" = " if self.kind in ("client", "helperd") else "=",
            open_end_is_lost=self.kind == "client",
        )


def find(edited: Edited, name: str) -> Found | None:
    """How ``name`` is set: by a line of its own, or within the arguments of the build."""
    conf = edited.conf()
    if edited.kind != "autobuild" or name == "buildEnabled":
        return conf.find(name)
    args = conf.find(_BUILD_ARGS)
    value = None if args is None else build_args(args.value).get(name)
    return None if args is None or value is None else Found(value=value, line=args.line)


def changed(edited: Edited, names: Iterable[str]) -> str:
    """The file's text with these keys as they must be."""
    conf, due = edited.conf(), {name: edited.wanted[name] for name in names}
    if edited.kind == "autobuild":
        args = {name: value for name, value in due.items() if name != "buildEnabled"}
        if args:
            before = conf.find(_BUILD_ARGS)
            words = with_build_args(before.value if before else "-j8", args)
            conf = conf.set(_BUILD_ARGS, words)
        due = {name: value for name, value in due.items() if name == "buildEnabled"}
    for name, value in due.items():
        conf = conf.remove(name) if value is None else conf.set(name, value)
    return conf.text


def key_settings(
    component: str,
    edited: Edited,
    running: Running | None = None,
    effect: Effect = Effect.LIVE,
    why: Mapping[str, str] | None = None,
) -> Iterator[Setting]:
    """Each key that is asked for, and those that must go and are there."""
    for name, value in edited.wanted.items():
        found = None if edited.error else find(edited, name)
        if value is None and found is None:
            continue
        broken = edited.error is not None
        yield Setting(
            component=component,
            key=edited.key(name),
            desired=_ABSENT if value is None else value or "(empty)",
            persisted=_stands(edited, found, value),
            running=NOTHING if running is None or value is None else running(name, value),
            effect=effect,
            acts=not broken,
            remedy=f"mend {edited.path} by hand: it is left as it is" if broken else None,
            why=(why or {}).get(name),
        )


def _stands(edited: Edited, found: Found | None, value: str | None) -> State:
    if edited.error is not None:
        return State(standing=Standing.UNREADABLE, decider=edited.path, detail=edited.error)
    if found is None:
        return State(standing=Standing.ABSENT, decider=edited.path if edited.file else None)
    right = value is not None and same(found.value, value) and found.times == 1
    detail = f"it is set in {found.times} lines" if found.times > 1 else None
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        # Written as the inventory has it, so that the two compare as text.
        value=(value if right else found.value) or "(empty)",
        decider=f"{edited.path}:{found.line}",
        detail=detail,
    )


def stale_lists(edited: Edited) -> Keys:
    """Lists of interfaces of ours that the client is still led to; the mount may ask for others.

    Without the file that it is led to it is not mounted.
    """
    conf = edited.conf()
    names = ("connInterfacesFile", "connRDMAInterfacesFile")
    led = {name: found for name in names if (found := conf.find(name)) is not None}
    return {name: "" for name, found in led.items() if found.value.startswith(f"{OURS}/")}


def told_keys(component: str, edited: Edited, major: Major) -> Iterator[Setting]:
    """Foreign lines with a key that no release has: they are told, and left to who wrote them."""
    for name, meant in MISTAKEN.items():
        found = None if edited.error else edited.conf().find(name)
        if found is None:
            continue
        does = "7 does not mount with it" if major == 7 else "8 passes it over without a word"
        yield Setting(
            component=component,
            key=edited.key(name),
            desired=_ABSENT,
            persisted=State(
                standing=Standing.WRONG,
                value=found.value or "(empty)",
                decider=f"{edited.path}:{found.line}",
                detail=f"no release of BeeGFS has this key: {does}",
            ),
            running=NOTHING,
            acts=False,
            remedy=f"take it out; {meant} is what is meant",
        )


def edit_actions(edited: Edited, by_key: Mapping[str, Setting]) -> list[RunScript]:
    """What writes the keys that are not right; nothing where all are."""
    due = [
        name
        for name in edited.wanted
        if (setting := by_key.get(edited.key(name))) is not None and persists(setting)
    ]
    return [rewrite(edited.path, edited.file, changed(edited, due))] if due else []


def rewrite(path: str, file: ConfFile | None, text: str) -> RunScript:
    """Puts ``text`` in the place of the file that was read, unless that has changed since."""
    record = file.record if file else None
    at = record.target if record and record.kind == "link" and record.target else path
    return replacing(at, encoded(text), file.digest if file else None)


def rival_lines(file: ConfFile | None, wheres: set[str], configs: set[str]) -> dict[str, set[int]]:
    """Lines by which beegfs-client.service mounts what our units mount, by their directory.

    Also one for another directory with a configuration of ours: two clients would be bound to one
    port. The package comes with one for /mnt/beegfs.
    """
    found: dict[str, set[int]] = {}
    for line in mount_lines((file.text if file else None) or ""):
        if line.where.rstrip("/") in wheres or line.config in configs:
            found.setdefault(line.where, set()).add(line.line)
    return found


def rival_settings(
    component: str, file: ConfFile | None, rivals: Mapping[str, set[int]]
) -> Iterator[Setting]:
    for where, lines in rivals.items():
        yield Setting(
            component=component,
            key=rival_key(where),
            desired=_ABSENT,
            persisted=State(
                standing=Standing.WRONG,
                value="mounted by beegfs-client.service",
                decider=f"{MOUNTS_CONFIG}:{min(lines)}",
                detail="one mount that fails there keeps the others of the file from being made",
            ),
            running=NOTHING,
            acts=file is not None and file.error is None,
        )


def rival_key(where: str) -> str:
    return f"beegfs-mounts.conf {where}"


def rival_actions(
    file: ConfFile | None, rivals: Mapping[str, set[int]], by_key: Mapping[str, Setting]
) -> list[RunScript]:
    due = {
        line
        for where, lines in rivals.items()
        for line in lines
        if (setting := by_key.get(rival_key(where))) is not None and persists(setting)
    }
    if not due or file is None or file.text is None:
        return []
    return [rewrite(MOUNTS_CONFIG, file, without_lines(file.text, due))]
