"""What drivers are packaged as: how it stands, and the one transaction that brings it about."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from facts.packages import Packages
from facts.repositories import Audit, canonical
from railwright.actions import RunScript
from railwright.apt import APT_INSTALL
from railwright.repositories import index_name
from railwright.resolve.repositories import (
    COMPONENT,
    Sources,
    changed_sources,
    key_digests,
    unusable,
)
from railwright.schema.drivers import DriverSet
from railwright.settings import NOTHING, Effect, Setting, Standing, State, persists
from railwright.templates import render

ABSENT = "absent"
"""What is asked of a package that must not be there."""
INTERRUPTED = {"dpkg": "dpkg", "rpm": "dnf"}
"""The key of the setting that tells whether an earlier run was interrupted, by package manager."""
_WHOLE = "nothing left off"


class Wanted(NamedTuple):
    """What is asked of packages: exact versions in the order in which they are installed (OFED,
    GPU driver, GDS), which must go, and the repositories that they come from.
    """

    versions: dict[str, str]
    gone: frozenset[str]
    repositories: tuple[str, ...]

    @property
    def names(self) -> AbstractSet[str]:
        return self.versions.keys() | self.gone


class Seen(NamedTuple):
    """What the node has; ``offered`` is None where its repositories could not be asked."""

    packages: Packages
    audit: Audit
    offered: Mapping[str, set[str]] | None

    def broken(self, name: str) -> str | None:
        """What was left off of a package, None where it is whole or not there."""
        if name in self.audit.unfinished:
            return "left off by dnf"
        found = [how for one, how in self.audit.broken.items() if one.partition(":")[0] == name]
        return found[0] if found else None

    def is_interrupted(self, names: AbstractSet[str]) -> bool:
        """Whether an earlier run is to be made whole, where ``names`` are asked for.

        dpkg does nothing else before. What dnf left off of others' packages alone is theirs.
        """
        if self.audit.manager == "dpkg":
            return bool(self.audit.interrupted)
        return bool(self.audit.unfinished.keys() & names)

    def is_offered(self, name: str, version: str) -> bool:
        """Whether the version is known to be offered; what is not known is not."""
        return canonical(version) in map(canonical, (self.offered or {}).get(name, ()))


def wanted_of(drivers: DriverSet) -> Wanted:
    versions: dict[str, str] = {}
    repositories: dict[str, None] = {}
    for _, spec in drivers.packaged():
        versions |= spec.packages
        if spec.packages and spec.repository is not None:
            repositories[spec.repository] = None
    return Wanted(versions, drivers.removes, tuple(repositories))


def package_settings(
    wanted: Wanted, seen: Seen, refused: list[str], allowed: frozenset[Effect]
) -> list[Setting]:
    """How each package stands. All are changed together or none is: ``refused`` are reasons why
    nothing may be installed, each in words.
    """
    if not wanted.versions and not wanted.gone:
        return []
    found = [_package(name, version, seen) for name, version in wanted.versions.items()]
    found += [_gone(name, seen) for name in sorted(wanted.gone)]
    due = [setting for setting in found if persists(setting)]
    waits = [setting.key for setting in due if setting.effect not in allowed]
    if waits:
        refused = [*refused, f"allow the effect {Effect.SERVICE.value}: {', '.join(waits)}"]
    if refused:
        found = [_refuse(setting, refused) if setting in due else setting for setting in found]
    if seen.audit.manager is not None:
        found.append(_interrupted(seen.audit, seen.is_interrupted(wanted.names)))
    return found


def _refuse(setting: Setting, reasons: Iterable[str]) -> Setting:
    remedy = "no package is changed: " + "; ".join(reasons)
    return setting.model_copy(update={"acts": False, "remedy": remedy})


def _setting(
    key: str,
    desired: str,
    persisted: State,
    effect: Effect = Effect.LIVE,
    remedy: str | None = None,
) -> Setting:
    # What is loaded of it, and whether that is of this version, is for other components to say.
    return Setting(
        component=COMPONENT,
        key=key,
        desired=desired,
        persisted=persisted,
        running=NOTHING,
        effect=effect,
        remedy=remedy,
    )


def _package(name: str, version: str, seen: Seen) -> Setting:
    key = f"package {name}"
    if seen.audit.manager is None:
        detail = "neither dpkg nor rpm is there"
        return _setting(key, version, State(standing=Standing.UNREADABLE, detail=detail))
    installed = {canonical(package.version) for package in seen.packages.installed(name)}
    broken = seen.broken(name)
    right = installed == {canonical(version)}
    if right and broken is None:
        return _setting(key, version, State(standing=Standing.RIGHT, value=version))
    state = State(
        standing=Standing.WRONG if installed else Standing.ABSENT,
        value=", ".join(sorted(installed)) + (f" {broken}" if broken else "") or None,
        detail=None if right else _unknown(name, version, seen),
    )
    # Its own scripts may restart its daemon, and a library that is newer than the loaded module
    # ends all new work; what is not there yet is in nobody's way.
    effect = Effect.SERVICE if installed and not right else Effect.LIVE
    remedy = None
    if state.detail is not None:
        remedy = "the run fetches the indexes; where it is still missing no package is changed"
    return _setting(key, version, state, effect, remedy)


def _unknown(name: str, version: str, seen: Seen) -> str | None:
    if seen.offered is None or seen.is_offered(name, version):
        return None
    others = ", ".join(sorted(seen.offered.get(name, ()))) or "none"
    return f"no repository is known to offer {version}; offered: {others}"


def _gone(name: str, seen: Seen) -> Setting:
    installed = ", ".join(sorted(p.version for p in seen.packages.installed(name)))
    state = State(standing=Standing.RIGHT, value=ABSENT)
    if installed:
        state = State(standing=Standing.WRONG, value=installed)
    return _setting(f"package {name}", ABSENT, state, Effect.SERVICE)


def _interrupted(audit: Audit, is_interrupted: bool) -> Setting:
    key = INTERRUPTED[audit.manager or "rpm"]
    if not is_interrupted:
        return _setting(key, _WHOLE, State(standing=Standing.RIGHT, value=_WHOLE))
    left = ", ".join(audit.interrupted)
    detail = f"an earlier run of {key} left it off"
    return _setting(key, _WHOLE, State(standing=Standing.WRONG, value=left, detail=detail))


def transaction(
    wanted: Wanted, seen: Seen, sources: Sources, by_key: Mapping[str, Setting]
) -> RunScript | None:
    """What makes all packages right at once; None where there is nothing to do."""
    due = [name for name in wanted.versions if _persists(by_key, f"package {name}")]
    gone = [name for name in sorted(wanted.gone) if _persists(by_key, f"package {name}")]
    manager = seen.audit.manager or ""
    heal = _persists(by_key, INTERRUPTED.get(manager, ""))
    changed = changed_sources(sources, by_key)
    unknown = [name for name in due if not seen.is_offered(name, wanted.versions[name])]
    refresh = bool(changed or unknown)
    if not (due or gone or heal or refresh):
        return None
    words = ["configure"] if heal and manager == "dpkg" else []
    if manager == "rpm":
        words += [f"key:{path}={digest}" for path, digest in key_digests(sources, by_key)]
    if refresh:
        words += [*_indexes(wanted, sources, by_key, changed), "refresh"]
    if heal:
        others = seen.audit.unfinished.keys() - wanted.names
        words += [f"again:{name}={seen.audit.unfinished[name]}" for name in sorted(others)]
    words += [f"remove:{name}" for name in gone]
    words += [f"install:{one}={wanted.versions[name]}" for name in due for one in _in(seen, name)]
    if manager == "dpkg":
        script = render("packages/apt.sh.j2", install=shlex.join(APT_INSTALL))
    else:
        script = render("packages/dnf.sh.j2")
    return RunScript(name="railwright-packages", script=script, arguments=tuple(words))


def _indexes(
    wanted: Wanted, sources: Sources, by_key: Mapping[str, Setting], changed: list[str]
) -> Iterator[str]:
    """The sources of ours whose index must be there, and be signed, before anything is done."""
    used = [name for name in wanted.repositories if unusable(sources, name, by_key) is None]
    for name in sorted({*used, *changed}):
        yield f"source:{index_name(name, sources.repositories[name])}"


def _in(seen: Seen, name: str) -> list[str]:
    """The package in each architecture in which it is there already; where it is not, its name."""
    return list(dict.fromkeys(package.name for package in seen.packages.installed(name))) or [name]


def _persists(by_key: Mapping[str, Setting], key: str) -> bool:
    return key in by_key and persists(by_key[key])
