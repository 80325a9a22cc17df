"""Files of secrets on a node: whether they are as given, and what puts them right."""

import base64
from collections.abc import Iterable, Mapping

from railwright.actions import Action, InstallSecret
from railwright.secrets import SecretFile, content_of
from railwright.settings import NOTHING, Effect, Setting, Standing, State, persists
from railwright.snapshot import Snapshot

SECTION = "secrets"
AS_GIVEN = "as given"


def secret_setting(component: str, file: SecretFile, snapshot: Snapshot) -> Setting:
    """How a file of secrets is there; it is never shown, only whether it is as given."""
    return Setting(
        component=component,
        key=file.key,
        desired=AS_GIVEN,
        persisted=_state(file, snapshot.text(SECTION)),
        running=NOTHING,
        effect=Effect.NEW_PROCESSES,
    )


def _state(file: SecretFile, text: str) -> State:
    """By the line ``PATH ANSWER OWNER MODE``, or ``PATH unknown REASON``."""
    lines = (line.split(" ", 1) for line in text.splitlines())
    told = next((rest for path, rest in lines if path == file.path), "unknown the node is silent")
    answer, _, rest = told.partition(" ")
    if answer == "absent":
        return State(standing=Standing.ABSENT)
    if answer == "differs":
        return State(standing=Standing.WRONG, value="another", decider=file.path)
    if answer != "equal":
        return State(standing=Standing.UNREADABLE, decider=file.path, detail=rest or told)
    if rest != f"root {file.mode}":
        return State(standing=Standing.WRONG, value=f"as given, but {rest}", decider=file.path)
    return State(standing=Standing.RIGHT, value=AS_GIVEN, decider=file.path)


def secret_actions(files: Iterable[SecretFile], by_key: Mapping[str, Setting]) -> list[Action]:
    """What puts the files right that are not."""
    return [
        InstallSecret(file=file)
        for file in files
        if (setting := by_key.get(file.key)) is not None and persists(setting)
    ]


def sent(actions: Iterable[Action]) -> list[str]:
    """The lines that the script of ``actions`` reads from its standard input, one a secret.

    Raises SecretError.
    """
    return [
        base64.b64encode(content_of(action.file)).decode("ascii")
        for action in actions
        if isinstance(action, InstallSecret)
    ]
