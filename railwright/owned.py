"""Files that railwright owns whole."""

import hashlib
from collections.abc import Iterable

from railwright.actions import Action, InstallFile, RemoveFile
from railwright.files import FileRecord
from railwright.model import Model
from railwright.settings import NOTHING, Setting, Standing, State, persists

HEADER = "# Managed by railwright: whatever is changed here is put back by the next run.\n"


class OwnedFile(Model):
    """A drop-in of ours; ``content`` None where nothing is asked for and it must not be there.

    The content comes with ``HEADER`` (or with what stands for a comment in its language).
    """

    path: str
    content: str | None
    mode: str = "644"


def owned_file_setting(
    component: str, owned: OwnedFile, found: Iterable[FileRecord]
) -> Setting | None:
    """How our file is there; None where nothing is asked for and nothing is there.

    The content is compared as text, and its hash is what is shown.
    """
    record = next((record for record in found if record.path == owned.path), None)
    if owned.content is None and record is None:
        return None
    desired = "absent" if owned.content is None else _seal(owned.content, owned.mode)
    return Setting(
        component=component,
        key=owned.path,
        desired=desired,
        persisted=_file_state(record, desired),
        running=NOTHING,
    )


def first_wrong(owned: Iterable[OwnedFile], found: Iterable[FileRecord]) -> str | None:
    """The path of the first of our files that is not as it must be; None where all are."""
    records = list(found)
    for one in owned:
        setting = owned_file_setting("", one, records)
        if setting is not None and setting.persisted.standing is not Standing.RIGHT:
            return one.path
    return None


def _file_state(record: FileRecord | None, desired: str) -> State:
    if record is None:
        return State(standing=Standing.ABSENT)
    if record.kind != "file" or record.content is None:
        if record.kind == "unreadable":
            return State(standing=Standing.UNREADABLE, decider=record.path)
        return State(standing=Standing.WRONG, value=record.kind, decider=record.path)
    value = _seal(record.content, record.mode or "?", record.owner or "?")
    right = value == desired
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG, value=value, decider=record.path
    )


def _seal(content: str, mode: str, owner: str = "root") -> str:
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return f"sha256:{digest} {owner} {mode}"


def owned_file_action(
    owned: OwnedFile, setting: Setting | None, check: tuple[str, ...] | None = None
) -> list[Action]:
    """What puts our file right, nothing where it is."""
    if setting is None or not persists(setting):
        return []
    if owned.content is None:
        return [RemoveFile(path=owned.path)]
    return [
        InstallFile.model_validate(
            {"path": owned.path, "content": owned.content, "mode": owned.mode, "check": check}
        )
    ]
