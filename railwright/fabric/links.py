"""What is wrong with the links of an InfiniBand fabric: down, slow, or not configured.

A switch lists a port without a cable as a port whose link is down, so that a link can only be
missed where it is known that it should be there: from an earlier look, or from a plan of cables.
Cables are told by the names of nodes, so that they stay the same where a switch is replaced; a name
that several nodes have (switches as they come from the factory) is made one by the GUID.
"""

from collections.abc import Iterable
from typing import Literal

from facts.iblinkinfo import FabricLink, LinkEnd
from railwright.model import Model


class Cable(Model):
    """Two ports as NODE/PORT, the lesser first, so that one cable is one whoever lists it."""

    one: str
    other: str

    @classmethod
    def between(cls, one: LinkEnd, other: LinkEnd) -> "Cable":
        lesser, greater = sorted((str(one), str(other)))
        return cls(one=lesser, other=greater)

    def __str__(self) -> str:
        return f"{self.one} - {self.other}"


class LinkProblem(Model):
    """What is wrong with one cable, and in words how."""

    cable: Cable
    kind: Literal["down", "slow", "not_active"]
    detail: str

    def __str__(self) -> str:
        return f"{self.cable}: {self.detail}"


def told_apart(links: Iterable[FabricLink]) -> tuple[FabricLink, ...]:
    """``links`` with the GUID behind each name that more than one node has."""
    listed = tuple(links)
    guids: dict[tuple[str, int], set[str]] = {}
    for end in (end for link in listed for end in (link.near, link.far) if end):
        # Each port of an HCA has a GUID of its own; all those of a switch have one.
        guids.setdefault((end.name, end.port), set()).add(end.guid)
    shared = {name for (name, _), found in guids.items() if len(found) > 1}

    def one(end: LinkEnd) -> LinkEnd:
        if end.name not in shared:
            return end
        return end.model_copy(update={"name": f"{end.name} {end.guid}".lstrip()})

    return tuple(
        link.model_copy(update={"near": one(link.near), "far": link.far and one(link.far)})
        for link in listed
    )


def cables_of(links: Iterable[FabricLink]) -> frozenset[Cable]:
    """The cables of a fabric that are in place, each once."""
    return frozenset(Cable.between(link.near, link.far) for link in links if link.far)


def link_problems(
    links: Iterable[FabricLink], rate_gbps: float | None, expected: Iterable[Cable] = ()
) -> tuple[LinkProblem, ...]:
    """The cables of ``expected`` that are not linked, and links below ``rate_gbps`` (Gb/s).

    Where ``rate_gbps`` is None no rate is asked for.
    """
    listed = tuple(links)
    by_port = {str(link.near): link for link in listed}
    found: dict[Cable, LinkProblem] = {}
    for link in listed:
        problem = _problem(link, rate_gbps)
        if problem is not None:
            found.setdefault(problem.cable, problem)
    for cable in set(expected) - cables_of(listed):
        found[cable] = LinkProblem(cable=cable, kind="down", detail=_down(cable, by_port))
    return tuple(found[cable] for cable in sorted(found, key=str))


def _problem(link: FabricLink, rate_gbps: float | None) -> LinkProblem | None:
    if link.far is None:
        return None
    cable = Cable.between(link.near, link.far)
    if link.state != "Active":
        detail = f"{link.state}: no subnet manager has configured it"
        return LinkProblem(cable=cable, kind="not_active", detail=detail)
    if rate_gbps is not None and link.rate_gbps is not None and link.rate_gbps < rate_gbps:
        detail = f"{link.rate_gbps:g} of {rate_gbps:g} Gb/s"
        return LinkProblem(cable=cable, kind="slow", detail=detail)
    return None


def _down(cable: Cable, by_port: dict[str, FabricLink]) -> str:
    """How each end that can still be asked has its port."""
    ends = []
    for name in (cable.one, cable.other):
        link = by_port.get(name)
        if link is None:
            ends.append(f"{name} does not answer")
        elif link.far is None:
            ends.append(f"{name} is {link.state}/{link.physical}")
        else:
            ends.append(f"{name} is linked to {link.far}")
    return ", ".join(ends)
