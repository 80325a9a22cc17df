"""Packages of the drivers: their repositories, each with its key, and their exact versions.

All are changed in one transaction. That they are held, and kept from unattended upgrades, is the
component holds'; what is loaded of them is for the drivers' own components.
"""

from collections.abc import Iterator

from facts.packages import PACKAGES, Packages, packages_of
from facts.repositories import (
    ENTRIES,
    OURS,
    SECTIONS,
    Audit,
    audit_of,
    offered_of,
    parse_entries,
)
from railwright.actions import Action
from railwright.component import Component
from railwright.resolve.packages import (
    ABSENT,
    Seen,
    Wanted,
    package_settings,
    transaction,
    wanted_of,
)
from railwright.resolve.repositories import COMPONENT as _NAME
from railwright.resolve.repositories import (
    Sources,
    repository_actions,
    repository_settings,
    unusable,
)
from railwright.schema import Node
from railwright.schema.drivers import DriverSet
from railwright.settings import Setting, persists
from railwright.snapshot import Snapshot


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    """Reads the signing keys that the node does not have yet, on this machine."""
    sources, seen, wanted = _view(node.drivers, snapshot)
    found = list(repository_settings(sources))
    by_key = {setting.key: setting for setting in found}
    reasons = (unusable(sources, name, by_key) for name in wanted.repositories)
    refused = [*filter(None, reasons)]
    return found + package_settings(wanted, seen, refused, node.effects.allow)


def arriving(node: Node, snapshot: Snapshot) -> frozenset[str]:
    """The packages that a run will install, in whatever version was there before."""
    if snapshot.settled:
        return frozenset()
    head = "package "
    return frozenset(
        setting.key.removeprefix(head)
        for setting in settings(node, snapshot)
        if setting.key.startswith(head) and setting.desired != ABSENT and persists(setting)
    )


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    sources, seen, wanted = _view(node.drivers, snapshot)
    by_key = {setting.key: setting for setting in settings}
    yield from repository_actions(sources, by_key)
    script = transaction(wanted, seen, sources, by_key)
    if script is not None:
        yield script


def _view(drivers: DriverSet, snapshot: Snapshot) -> tuple[Sources, Seen, Wanted]:
    wanted = wanted_of(drivers)
    if not (drivers.repositories or wanted.versions or wanted.gone):
        # Then there is no more to look at than files of ours that are left over.
        nothing = Packages(manager=None, packages=())
        files = snapshot.left_over(OURS.name)
        return Sources({}, None, files, []), Seen(nothing, Audit(manager=None), None), wanted
    files = snapshot.files(OURS.name)
    audit = audit_of(snapshot)
    entries = parse_entries(snapshot.text(ENTRIES.name))
    sources = Sources(drivers.repositories, audit.manager, files, entries)
    return sources, Seen(packages_of(snapshot), audit, offered_of(snapshot)), wanted


COMPONENT = Component(
    name=_NAME, sections=(*SECTIONS, PACKAGES), settings=settings, actions=actions
)
