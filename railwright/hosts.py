"""Host names as the field writes them: ranges such as ``gpu[001-128]``, folded and picked."""

from collections.abc import Hashable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from railwright.schema import Node
from railwright.site import Site
from railwright.words import unknown

_What = TypeVar("_What", bound=Hashable)


class LimitError(ValueError):
    """A limit that names no host of the site."""


def fold(names: Iterable[str]) -> str:
    """``names`` as ranges: ``gpu[001-003],login1``."""
    # Without groups: the @ of @podman/x is no group of ClusterShell's.
    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


def by_what(entries: Iterable[tuple[_What, str]]) -> dict[_What, list[str]]:
    """What is said of hosts alike, once, and of whom; in the order in which it was said first."""
    found: dict[_What, list[str]] = {}
    for said, of in entries:
        found.setdefault(said, []).append(of)
    return found


def pick(site: Site, limits: Sequence[str]) -> list[Node]:
    """The nodes that ``limits`` name, in the site's order; all where there is no limit.

    Each is a group of the site, or hosts: names, ranges and globs, parted by commas. Raises
    LimitError where one of them names no host, or a host that the site does not have.
    """
    if not limits:
        return list(site.nodes.values())
    wanted = {name for limit in limits for name in _names(site, limit)}
    return [node for name, node in site.nodes.items() if name in wanted]


def _names(site: Site, limit: str) -> Iterable[str]:
    if limit in site.groups:
        return site.groups[limit]
    return [name for part in _parts(limit) for name in _part(site, part)]


def _parts(limit: str) -> list[str]:
    """``limit`` at its commas, those within brackets left alone."""
    parts, depth = [""], 0
    for letter in limit:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _part(site: Site, part: str) -> Iterable[str]:
    if part in site.groups:
        return site.groups[part]
    if "*" in part or "?" in part:
        found = [name for name in site.nodes if fnmatchcase(name, part)]
        if not found:
            raise LimitError(f"--limit {part}: no host of {site.file} is named like that")
        return found
    try:
        names = list(NodeSet(part, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise LimitError(f"--limit {part}: {error}") from error
    strange = [name for name in names if name not in site.nodes]
    if strange or not names:
        known = [*site.nodes, *site.groups]
        what = fold(strange) if strange else repr(part)
        raise LimitError(f"--limit: {unknown('host or group', what, known, site.file)}")
    return names
