"""How a node's package repositories stand: each one's key, its source and its pin."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from facts.repositories import Entry, host_of, plain
from railwright.actions import Action, InstallFile
from railwright.files import FileRecord
from railwright.openpgp import primary_fingerprints
from railwright.owned import OwnedFile, owned_file_action, owned_file_setting
from railwright.repositories import FOLDERS, key_path, pin_file, source_file, source_path
from railwright.schema.repositories import AptRepository, DnfRepository, Repository
from railwright.settings import NOTHING, Setting, Standing, State, persists
from railwright.signing_keys import signing_key

COMPONENT = "packages"
_MANAGERS = {"apt": "dpkg", "dnf": "rpm"}


class Sources(NamedTuple):
    """What is asked of repositories, and what the node has: ``manager`` is dpkg or rpm."""

    repositories: Mapping[str, Repository]
    manager: str | None
    files: list[FileRecord]
    entries: list[Entry]


def repository_settings(sources: Sources) -> Iterator[Setting]:
    """How each repository stands, and each file of ours for one that is not asked for."""
    for name, repository in sorted(sources.repositories.items()):
        yield from _repository(sources, name, repository)
    for path in leftovers(sources):
        setting = owned_file_setting(COMPONENT, OwnedFile(path=path, content=None), sources.files)
        if setting is not None:
            yield setting


def key_setting_of(name: str) -> str:
    """The key of the setting that tells how the key of a repository stands."""
    return f"key {name}"


def _repository(sources: Sources, name: str, repository: Repository) -> Iterator[Setting]:
    if _MANAGERS[repository.kind] != sources.manager:
        # It has no files on such a node, and what comes from it cannot be installed.
        yield _setting(
            key_setting_of(name),
            repository.fingerprint,
            State(standing=Standing.ABSENT),
            f"this node's package manager is {sources.manager or 'not known'}, "
            f"and the repository is one of {repository.kind}",
        )
        return
    key = _key(sources, name, repository)
    yield key
    source = _source(sources, name, repository)
    refused = key.persisted.standing is Standing.UNREADABLE
    yield _unless(source, key.remedy if refused else None)
    pin = _pin(sources, name, repository)
    if pin is not None:
        yield pin


def _unless(setting: Setting, refused: str | None) -> Setting:
    if refused is None or setting.persisted.standing is Standing.RIGHT or not setting.acts:
        return setting
    return setting.model_copy(update={"acts": False, "remedy": refused})


def _setting(key: str, desired: str, persisted: State, remedy: str | None) -> Setting:
    return Setting(
        component=COMPONENT,
        key=key,
        desired=desired,
        persisted=persisted,
        running=NOTHING,
        acts=remedy is None,
        remedy=remedy,
    )


def _key(sources: Sources, name: str, repository: Repository) -> Setting:
    path = key_path(name, repository)
    record = next((record for record in sources.files if record.path == path), None)
    state = _key_state(record, repository.fingerprint)
    remedy = None
    if state.standing is not Standing.RIGHT:
        # Where the node has the right key already, nobody's server is asked for it.
        try:
            signing_key(name, repository)
        except ValueError as error:
            state = State(standing=Standing.UNREADABLE, detail=str(error), decider=repository.key)
            remedy = "compare key and fingerprint with what its owner publishes"
    return _setting(key_setting_of(name), repository.fingerprint, state, remedy)


def _key_state(record: FileRecord | None, expected: str) -> State:
    if record is None:
        return State(standing=Standing.ABSENT)
    if record.kind != "file" or record.content is None:
        return State(standing=Standing.WRONG, value=record.kind, decider=record.path)
    detail = None
    try:
        found = primary_fingerprints(record.content.encode("ascii", "replace"))
        value = ", ".join(found)
    except ValueError as error:
        value, detail = "no key", str(error)
    if value == expected and (record.owner, record.mode) != ("root", "644"):
        value = f"{value} {record.owner} {record.mode}"
    standing = Standing.RIGHT if value == expected else Standing.WRONG
    return State(standing=standing, value=value, detail=detail, decider=record.path)


def rival(sources: Sources, repository: Repository) -> Entry | None:
    """The entry of somebody else for the same repository, None where there is none."""
    for entry in sources.entries:
        same = plain(entry.url) == plain(repository.url)
        if isinstance(repository, AptRepository):
            same = same and entry.suite is not None
            same = same and (entry.suite or "").strip("./") == repository.suite.strip("./")
        elif entry.suite is not None:
            continue
        if same and entry.enabled:
            return entry
    return None


_REASONS = {
    "apt": "apt reads no source at all where two name one repository with different keys",
    "dnf": "packages would be taken from it, whatever it says of signatures",
}


def _source(sources: Sources, name: str, repository: Repository) -> Setting:
    setting = owned_file_setting(COMPONENT, source_file(name, repository), sources.files)
    assert setting is not None, "a file that is asked for has a setting"
    other = rival(sources, repository)
    if other is None:
        return setting
    state = State(
        standing=Standing.OVERRIDDEN,
        value=setting.persisted.value,
        decider=other.decider,
        detail=f"{other.decider} names the same repository",
    )
    remedy = f"remove {other.decider}: {_REASONS[repository.kind]}"
    return setting.model_copy(update={"persisted": state, "acts": False, "remedy": remedy})


def _pin(sources: Sources, name: str, repository: Repository) -> Setting | None:
    owned = _pinned(name, repository)
    if owned is None:
        return None
    setting = owned_file_setting(COMPONENT, owned, sources.files)
    host = host_of(repository.url)
    others = [entry.decider for entry in sources.entries if host_of(entry.url) == host]
    if setting is None or not others:
        return setting
    # apt tells repositories of one host apart by their own words alone, which are not known yet.
    remedy = f"the pin is for all of {host or 'its files'}, which {others[0]} names as well"
    return setting.model_copy(update={"remedy": remedy})


def _pinned(name: str, repository: Repository) -> OwnedFile | None:
    if isinstance(repository, DnfRepository):
        return None
    return pin_file(name, repository, host_of(repository.url))


def _owned_paths(sources: Sources) -> Iterator[str]:
    for name, repository in sources.repositories.items():
        yield key_path(name, repository)
        yield source_path(name, repository)
        pin = _pinned(name, repository)
        if pin is not None:
            yield pin.path


def leftovers(sources: Sources) -> list[str]:
    """Files of ours that nothing asks for any more; sources first, for they need the keys."""
    asked = set(_owned_paths(sources))
    return [
        record.path
        for head, tail in FOLDERS.items()
        for record in sources.files
        if record.path.startswith(head) and record.path.endswith(tail) and record.path not in asked
    ]


def unusable(sources: Sources, name: str, by_key: Mapping[str, Setting]) -> str | None:
    """Why nothing may be installed from the repository ``name``; None where all may."""
    for key in (key_setting_of(name), source_path(name, sources.repositories[name])):
        setting = by_key.get(key)
        if setting is None or setting.persisted.standing is Standing.RIGHT or persists(setting):
            continue
        reason = setting.persisted.detail or setting.remedy
        return f"repository {name}: {reason}"
    return None


def repository_actions(sources: Sources, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """What writes the files of repositories, the keys first, and removes what is left over."""
    for path in leftovers(sources):
        yield from owned_file_action(OwnedFile(path=path, content=None), by_key.get(path))
    for name, repository in sorted(sources.repositories.items()):
        key = by_key[key_setting_of(name)]
        if persists(key):
            content = signing_key(name, repository)
            yield InstallFile(path=key_path(name, repository), content=content)
        for owned in (_pinned(name, repository), source_file(name, repository)):
            if owned is not None:
                yield from owned_file_action(owned, by_key.get(owned.path))


def key_digests(sources: Sources, by_key: Mapping[str, Setting]) -> Iterator[tuple[str, str]]:
    """Path and SHA-256 of the key file of each repository that is used, as it has to be.

    dnf takes whatever key is there, without asking, as its own.
    """
    records = {record.path: record.content for record in sources.files}
    for name, repository in sorted(sources.repositories.items()):
        if unusable(sources, name, by_key) is not None:
            continue
        path = key_path(name, repository)
        content = records.get(path) or ""
        if persists(by_key[key_setting_of(name)]):
            content = signing_key(name, repository)
        yield path, sha256(content.encode()).hexdigest()


def changed_sources(sources: Sources, by_key: Mapping[str, Setting]) -> list[str]:
    """Repositories whose index is to be fetched anew: a source or a key is put right."""
    return [
        name
        for name, repository in sorted(sources.repositories.items())
        for keys in [(key_setting_of(name), source_path(name, repository))]
        if any(key in by_key and persists(by_key[key]) for key in keys)
        and unusable(sources, name, by_key) is None
    ]
