"""Holds: packages that no unattended upgrade may touch, and whether one did.

A hold is dpkg's, and unattended-upgrades is told the same in a drop-in of ours (apt itself honours
holds, but a package that is not installed yet cannot be held). RHEL: dnf's versionlock.
"""

import re
from collections.abc import Iterator, Set
from textwrap import shorten

from deploys.packages import COMPONENT as PACKAGES_COMPONENT
from deploys.packages import arriving
from facts.packages import (
    BLACKLIST,
    FILES,
    HISTORY,
    HOLDS_FILE,
    OFFERED,
    SECTIONS,
    VERSIONLOCK_FILE,
    Package,
    Packages,
    packages_of,
    parse_blacklist,
    parse_history,
    parse_madison,
)
from facts.repositories import canonical
from railwright.actions import Action, InstallFile, Run
from railwright.apt import APT_INSTALL
from railwright.component import Component
from railwright.files import FileRecord
from railwright.ledger import PATH as LEDGER
from railwright.ledger import Ledger, read_ledger
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.schema import Node
from railwright.schema.holds import HoldsSpec
from railwright.settings import NOTHING, Effect, Setting, Standing, State, persists
from railwright.snapshot import Snapshot

_NOT_INSTALLED = State(standing=Standing.NOT_APPLICABLE, detail="not installed")
_ARCHES = "noarch|x86_64|aarch64|i686"
_CHECK = ("apt-config", "dump", "APT::Architecture", "-c")


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    files = snapshot.files(FILES.name)
    spec = HoldsSpec(packages=node.held)
    # The versions of those are the component packages'.
    elsewhere = {name for _, one in node.drivers.packaged() for name in one.packages}
    found = []
    packages = packages_of(snapshot) if spec.packages else None
    own = owned_file_setting("holds", owned_file(spec, packages), files)
    if own is not None:
        found.append(own)
    if packages is None:
        return found
    ledger, unreadable = _ledger(files)
    if unreadable is not None:
        found.append(unreadable)
    comes = arriving(node, snapshot)
    for name, version in spec.packages.items():
        hold = _hold(name, packages, files)
        found.append(_held_with_its_package(hold) if name in comes else hold)
        if packages.manager == "dpkg":
            found.append(_blacklist(name, snapshot, own))
        if name in elsewhere:
            continue
        wanted = version or ledger.held.get(name)
        if wanted is not None:
            found.append(_version(node, name, wanted, packages, snapshot))
        else:
            found += [_first_version(package) for package in packages.installed(name)[:1]]
    return found


def owned_file(spec: HoldsSpec, packages: Packages | None) -> OwnedFile:
    """Our drop-in for unattended-upgrades; none where nothing is held, or where there is no apt.

    unattended-upgrades matches each expression at the start of a package's name.
    """
    if packages is None or packages.manager != "dpkg":
        return OwnedFile(path=HOLDS_FILE, content=None)
    lines = "".join(f'    "{pattern(name)}";\n' for name in sorted(spec.packages))
    content = f"{HEADER}Unattended-Upgrade::Package-Blacklist {{\n{lines}}};\n"
    return OwnedFile(path=HOLDS_FILE, content=content)


def pattern(name: str) -> str:
    """The regular expression that is ``name`` and nothing else.

    Of what a package's name may hold only ``+`` and ``.`` mean something in it.
    """
    escaped = re.sub(r"([+.])", r"\\\1", name)
    return f"^{escaped}$"


def _ledger(files: list[FileRecord]) -> tuple[Ledger, Setting | None]:
    try:
        return read_ledger(files), None
    except ValueError as error:
        return Ledger(), Setting(
            component="holds",
            key=LEDGER,
            desired="readable",
            persisted=State(standing=Standing.UNREADABLE, detail=str(error), decider=LEDGER),
            running=NOTHING,
            acts=False,
            remedy="remove it: versions are then no longer remembered from when they were held",
        )


def _hold(name: str, packages: Packages, files: list[FileRecord]) -> Setting:
    installed = packages.installed(name)
    if packages.manager is None:
        state = State(standing=Standing.UNREADABLE, detail="neither dpkg nor rpm is there")
    elif not installed:
        state = _NOT_INSTALLED
    else:
        if packages.manager == "dpkg":
            held, decider = all(package.held for package in installed), "dpkg"
        else:
            held = is_locked(name, {package.version for package in installed}, files)
            decider = VERSIONLOCK_FILE
        state = State(
            standing=Standing.RIGHT if held else Standing.WRONG,
            value="held" if held else "not held",
            decider=decider,
        )
    return _setting(f"hold {name}", "held", state)


def _held_with_its_package(hold: Setting) -> Setting:
    """The hold of a package that is installed first, in the same run, and held by what installs
    it."""
    if hold.persisted.standing is not Standing.NOT_APPLICABLE:
        return hold
    return hold.model_copy(update={"persisted": State(standing=Standing.ABSENT)})


def is_locked(name: str, versions: Set[str], files: list[FileRecord]) -> bool:
    """Whether dnf's versionlock keeps ``name`` at the one of ``versions`` that is installed.

    A line is ``NAME-EPOCH:VERSION-RELEASE.*``; epoch, release and architecture may be left out. A
    name alone locks nothing, one more line with another version lets dnf go there, and a line
    with ! excludes. Lines with wildcards in the name are not counted.
    """
    record = next((record for record in files if record.path == VERSIONLOCK_FILE), None)
    lines = (record.content or "").splitlines() if record else []
    line = re.compile(rf"{re.escape(name)}(-(?P<at>(\d+:)?\d[^-]*(-[^-]+?)?))?(\.(\*|{_ARCHES}))?")
    found = [line.fullmatch(text.strip()) for text in lines]
    locks = [canonical(match["at"] or "") for match in found if match]
    return bool(locks) and all(_covers(lock, versions) for lock in locks)


def _covers(lock: str, versions: Set[str]) -> bool:
    """Whether a lock (``3:1.0-1.el9``, ``1.0-1.el9`` or ``1.0``) is of all ``versions``."""
    if not lock:
        return False
    for version in map(canonical, versions):
        plain = version.rpartition(":")[2]
        if lock not in {form for v in (version, plain) for form in (v, v.rpartition("-")[0])}:
            return False
    return True


def _blacklist(name: str, snapshot: Snapshot, own: Setting | None) -> Setting:
    section = snapshot.section(BLACKLIST.name)
    text = snapshot.text(BLACKLIST.name)
    if section.rc != 0:
        detail = f"apt-config: {section.stderr or section.rc}"
        state = State(standing=Standing.UNREADABLE, detail=detail)
    elif any(_matches(entry, name) for entry in parse_blacklist(text)):
        state = State(standing=Standing.RIGHT, value="blacklisted", decider="apt-config dump")
    elif own is not None and own.persisted.standing is Standing.RIGHT:
        detail = f"apt drops what {HOLDS_FILE} adds: look for #clear in its configuration"
        state = State(standing=Standing.OVERRIDDEN, detail=detail, decider="/etc/apt/apt.conf")
    else:
        state = State(standing=Standing.ABSENT)
    return _setting(f"blacklist {name}", "blacklisted", state)


def _matches(entry: str, name: str) -> bool:
    try:
        return re.match(entry, name) is not None
    except re.error:
        return False


def _first_version(package: Package) -> Setting:
    """Any version is right that nobody has named and that was never held."""
    state = State(
        standing=Standing.NOT_APPLICABLE,
        value=package.version,
        detail="remembered from when it is first held",
    )
    return _setting(f"version {package.base}", package.version, state)


def _version(node: Node, name: str, wanted: str, packages: Packages, snapshot: Snapshot) -> Setting:
    named = node.holds.packages[name] is not None
    found = {canonical(package.version) for package in packages.installed(name)}
    if not found:
        return _setting(f"version {name}", wanted, _NOT_INSTALLED)
    is_ = ", ".join(sorted(found))
    if found == {canonical(wanted)}:
        return _setting(f"version {name}", wanted, State(standing=Standing.RIGHT, value=wanted))
    offered = named and wanted in _offered(name, snapshot)
    allowed = Effect.SERVICE in node.effects.allow
    state = State(
        standing=Standing.WRONG,
        value=is_,
        detail=f"{'must be' if named else 'held at'} {wanted}, is {is_}"
        + _who(name, found, snapshot),
    )
    remedy: str | None = None
    if not named:
        remedy = f"name {is_} in the inventory to accept it, or {wanted} to go back to it"
    elif not offered:
        remedy = f"no repository is known to have {wanted}: add one, install it, or name {is_}"
    elif not allowed:
        remedy = f"allow the effect {Effect.SERVICE.value}"
    return _setting(f"version {name}", wanted, state, acts=offered and allowed, remedy=remedy)


def _offered(name: str, snapshot: Snapshot) -> set[str]:
    """The versions that the node's repositories have; none where that cannot be told."""
    try:
        return parse_madison(snapshot.text(OFFERED.name)).get(name, set())
    except ValueError:
        return set()


def _who(name: str, versions: set[str], snapshot: Snapshot) -> str:
    """Which command left the version behind, as apt's history has it."""
    try:
        history = parse_history(snapshot.text(HISTORY.name))
    except ValueError:
        return ""
    done = [c for c in history if c.name == name and canonical(c.new) in versions]
    if not done:
        return ""
    return f", by {shorten(done[-1].command, 80, placeholder=' …')} on {done[-1].date}"


def _setting(
    key: str, desired: str, persisted: State, acts: bool = True, remedy: str | None = None
) -> Setting:
    # Whether a loaded module or a running daemon is of that version is not for a hold to say.
    return Setting(
        component="holds",
        key=key,
        desired=desired,
        persisted=persisted,
        running=NOTHING,
        # A package's own scripts may restart its daemon.
        effect=Effect.SERVICE if key.startswith("version ") else Effect.LIVE,
        acts=acts,
        remedy=remedy,
    )


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    spec = HoldsSpec(packages=node.held)
    by_key = {setting.key: setting for setting in settings}
    packages = packages_of(snapshot) if spec.packages else None
    own = owned_file_action(owned_file(spec, packages), by_key.get(HOLDS_FILE), check=_CHECK)
    yield from own
    if packages is None:
        return
    wrong = [n for n in spec.packages if _persists(by_key, f"version {n}")]
    unheld = [n for n in spec.packages if _persists(by_key, f"hold {n}")]
    if packages.manager == "dpkg":
        yield from _apt(spec, packages, wrong, unheld)
    elif unheld:
        # What has a lock of another version is given no other one.
        yield Run(command=("dnf", "-q", "-y", "versionlock", "delete", *unheld))
        yield Run(command=("dnf", "-q", "-y", "versionlock", "add", *unheld))
    if own or wrong or unheld:
        yield from _remember(spec, packages, snapshot.files(FILES.name))


def _persists(by_key: dict[str, Setting], key: str) -> bool:
    setting = by_key.get(key)
    return setting is not None and persists(setting)


def _apt(
    spec: HoldsSpec, packages: Packages, wrong: list[str], unheld: list[str]
) -> Iterator[Action]:
    if wrong:
        # In one transaction, for a driver's packages depend on each other's exact version;
        # nothing else may go for it.
        yield Run(
            command=(
                *APT_INSTALL,
                *("--allow-downgrades", "--allow-change-held-packages", "--no-remove"),
                *("-o", "Dpkg::Options::=--force-confold"),
                *(f"{p.name}={spec.packages[n]}" for n in wrong for p in packages.installed(n)),
            )
        )
    # apt takes the hold off what it is told to install.
    names = [p.name for n in {*wrong, *unheld} for p in packages.installed(n)]
    if names:
        yield Run(command=("apt-mark", "hold", *sorted(names)))


def _remember(
    spec: HoldsSpec, packages: Packages, files: list[FileRecord]
) -> Iterator[InstallFile]:
    """The versions as they are when first held; what is remembered already stays."""
    try:
        ledger = read_ledger(files)
    except ValueError:
        return
    held = {}
    for name, version in spec.packages.items():
        installed = packages.installed(name)
        remembered = version or ledger.held.get(name)
        if installed:
            held[name] = remembered or installed[0].version
        elif remembered:
            held[name] = remembered
    new = ledger.model_copy(update={"held": held})
    if new != ledger:
        yield InstallFile(path=LEDGER, content=new.text)


COMPONENT = Component(
    name="holds",
    sections=(*SECTIONS, *PACKAGES_COMPONENT.sections),
    settings=settings,
    actions=actions,
    upon=frozenset({PACKAGES_COMPONENT.name}),
)
