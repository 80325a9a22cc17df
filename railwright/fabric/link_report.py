"""The links of an InfiniBand fabric as one of its hosts sees them: read, judged, and reported."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from facts.iblinkinfo import FabricLink, parse_iblinkinfo
from facts.nics import SECTIONS as NICS
from facts.nics import read_nics
from facts.probe import Section
from facts.rdma import RdmaLink
from railwright.fabric.document import ExitCode
from railwright.fabric.links import Cable, LinkProblem, cables_of, link_problems, told_apart
from railwright.fleet import Ask, Question
from railwright.model import Model
from railwright.rails import planned
from railwright.reading import Reading, Unread
from railwright.resolve.nics import find_rails
from railwright.schema import Node
from railwright.schema.fabric import InfinibandFabric
from railwright.snapshot import Snapshot

MOST_ASKED = 5
"""Hosts that are asked one after the other: where so many are not reached, no other will be."""
_NOT_INSTALLED = 127

NAME = "iblinkinfo"
"""The section of a probe that reads the fabric."""


def section(port: RdmaLink | None) -> Section:
    """Reads the fabric through ``port``; through the first that is active where it is None.

    A link is a line of some 200 bytes at each of its ends; a fabric can have 100,000 of them.
    """
    through = f" -C {shlex.quote(port.ifname)} -P {port.port}" if port else ""
    return Section(
        name=NAME,
        script=f"command -v iblinkinfo >/dev/null || return 127\niblinkinfo -l{through}",
        deadline_s=300,
        cap_bytes=64 << 20,
    )


class Cables(Model):
    """Cables that were seen, or are planned: what ``--save`` writes and ``--expect`` reads."""

    format: Literal[1] = 1
    cables: tuple[Cable, ...]


class FabricLinks(Model):
    """What ``host`` sees through ``port`` (mlx5_0/1; None is the first that is active).

    ``warnings`` are of the tool, on parts of the fabric that did not answer it.
    """

    host: str
    port: str | None
    links: tuple[FabricLink, ...]
    warnings: tuple[str, ...] = ()

    @property
    def cables(self) -> frozenset[Cable]:
        return cables_of(self.links)


class LinksReport(Model):
    """What ``railwright fabric links`` found; exit codes as of ``fabric test``."""

    format: Literal[1] = 1
    command: Literal["fabric links"] = "fabric links"
    exit_code: ExitCode
    host: str | None = Field(description="The host that saw all this; null where none did.")
    port: str | None = Field(description="The port it looked through; null is its first one.")
    unread: dict[str, str] = Field(
        description="Hosts that told nothing of the fabric, and why; another one may have done so."
    )
    warnings: tuple[str, ...] = Field(description="What iblinkinfo could not read, in its words.")
    rate_gbps: int | None = Field(description="The rate that is asked for; null asks for none.")
    cables: int = Field(description="Cables that are in place.")
    expected: int | None = Field(description="Cables there should be; null where nobody said.")
    problems: tuple[LinkProblem, ...]


def on_infiniband(nodes: Iterable[Node]) -> list[Node]:
    """Those of ``nodes`` whose fabric is InfiniBand."""
    return [node for node in nodes if isinstance(node.fabric, InfinibandFabric)]


def rates_of(nodes: Iterable[Node], rail: int | None = None) -> set[int]:
    """The rates in Gb/s that the rails of ``nodes`` are to have, as far as they say.

    ``rail`` is the one that counts, None all.
    """
    rates = {
        one.rate_gbps for node in nodes for one in planned(node) if rail is None or one.rail == rail
    }
    return {rate for rate in rates if rate is not None}


def look_at_links(
    nodes: Sequence[Node], ask: Ask, rail: int | None = None
) -> tuple[FabricLinks | None, dict[str, str]]:
    """What the first of ``nodes`` that is reached sees of the fabric, and why others told nothing.

    It looks through its NIC of ``rail``, None being the first rail that is active. A host that is
    reached and cannot read the fabric is the last: the fault may be the fabric's.
    """
    unread: dict[str, str] = {}
    for node in nodes[:MOST_ASKED]:
        nics = _ask(node, NICS, ask)
        if isinstance(nics, Unread):
            unread[node.name] = nics.error
            continue
        try:
            port = port_of(node, nics, rail)
            answer = _ask(node, (section(port),), ask)
            if not isinstance(answer, Unread):
                return read_links(answer, port), unread
            unread[node.name] = answer.error
        except (ValueError, LookupError) as error:
            unread[node.name] = str(error)
        break
    return None, unread


def _ask(node: Node, sections: tuple[Section, ...], ask: Ask) -> Reading:
    answers = ask([Question(node=node, sections=sections)])
    return answers.get(node.name) or Unread(host=node.name, error="was not read")


def port_of(node: Node, snapshot: Snapshot, rail: int | None) -> RdmaLink | None:
    """The RDMA port of ``rail``, or of the first rail that is active; None without any rails.

    A host can be on a second fabric too, for storage, whose ports are not to be taken for these.
    Raises ValueError where there is no such port, and where the NICs cannot be read.
    """
    if not node.rails.nics:
        return None
    links = [
        link
        for found in find_rails(node, read_nics(snapshot))
        if (rail is None or found.plan.rail == rail) and found.port and found.port.rdma
        for link in found.port.rdma.links
    ]
    if not links:
        which = "none of its rails" if rail is None else f"no NIC of its rail{rail}"
        raise ValueError(f"{which} has an RDMA device")
    return next((link for link in links if link.state == "ACTIVE"), links[0])


def read_links(snapshot: Snapshot, port: RdmaLink | None = None) -> FabricLinks:
    """What the section ``iblinkinfo`` says. Raises ValueError where that is nothing."""
    answer = snapshot.section(NAME)
    if answer.rc == _NOT_INSTALLED:
        raise ValueError("there is no iblinkinfo (package infiniband-diags)")
    text = snapshot.text(NAME)
    if answer.rc != 0:
        said = " / ".join((answer.stderr or text).strip().splitlines()[-2:])
        raise ValueError(f"iblinkinfo failed with {answer.rc}: {said or 'without a word'}")
    links = told_apart(parse_iblinkinfo(text))
    if not links:
        raise ValueError("iblinkinfo lists no link")
    return FabricLinks(
        host=snapshot.host,
        port=port.name if port else None,
        links=links,
        warnings=tuple(answer.stderr.strip().splitlines()),
    )


def links_report(
    seen: FabricLinks | None,
    unread: Mapping[str, str],
    rate_gbps: int | None,
    expected: frozenset[Cable] | None,
) -> LinksReport:
    """The report on what was ``seen``; without that nothing is proved."""
    problems = link_problems(seen.links, rate_gbps, expected or ()) if seen else ()
    code: ExitCode = 2 if problems else 0
    if seen is None or seen.warnings:
        code = 1
    return LinksReport(
        exit_code=code,
        host=seen.host if seen else None,
        port=seen.port if seen else None,
        unread=dict(unread),
        warnings=seen.warnings if seen else (),
        rate_gbps=rate_gbps,
        cables=len(seen.cables) if seen else 0,
        expected=None if expected is None else len(expected),
        problems=problems,
    )


def load_cables(path: Path) -> frozenset[Cable]:
    """The cables in the file ``path``. Raises OSError, and ValueError where it has none."""
    try:
        found = Cables.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"is no list of cables: {where or 'it'}: {first['msg']}") from error
    if not found.cables:
        raise ValueError("has no cable")
    # Whoever plans by hand may name the ends either way round.
    return frozenset(
        Cable(one=min(cable.one, cable.other), other=max(cable.one, cable.other))
        for cable in found.cables
    )


def save_cables(cables: Iterable[Cable], path: Path) -> None:
    """Write ``cables`` to ``path``, whole or not at all. Raises OSError."""
    found = Cables(cables=tuple(sorted(cables, key=str)))
    new = path.with_name(f"{path.name}.new")
    new.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    new.replace(path)
