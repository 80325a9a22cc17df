"""Running tests of the fabric: look at the nodes, plan who meets whom, run, read the counters.

Each node gets one command per step, which reads its counters, runs its side of the test, and reads
them again. Nothing on a node is changed, and nothing is left behind: a server ends by itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from facts.counters import read_counters
from facts.counters import section as counters_section
from facts.probe import Section
from railwright.fabric import perftest
from railwright.fabric.ends import SECTIONS, End, NoEnd, ends_of, lossless_priority
from railwright.fabric.judge import MIN_PERCENT, Observation, Trial, judge, unjudged
from railwright.fabric.pairs import rounds
from railwright.fabric.perftest import Load
from railwright.fabric.window import RailPort, Window, busy, rail_ports, window
from railwright.fleet import Ask, Question
from railwright.reading import Reading, Unread
from railwright.schema import Node
from railwright.schema.fabric import RoceFabric
from railwright.snapshot import Snapshot

BEFORE, AFTER = "counters_before", "counters_after"
IDLE_S = 1
"""Seconds that a rail is watched for traffic of others before it is tested."""


@dataclass(frozen=True)
class Looked:
    """A node as it was found: how its rails take part, and what ran on them meanwhile."""

    node: Node
    ends: tuple[End | NoEnd, ...]
    ports: tuple[RailPort, ...]
    windows: tuple[Window, ...]

    @property
    def lossless(self) -> int | None:
        """The priority that may not drop; None for InfiniBand, where nothing may."""
        fabric = self.node.fabric
        return lossless_priority(fabric.qos) if isinstance(fabric, RoceFabric) else None


@dataclass(frozen=True)
class Step:
    """Tests that run at once: on one rail, no node in two of them; the first of a pair sends."""

    rail: int
    round: int
    pairs: tuple[tuple[End, End], ...]


def waiting(seconds: int) -> tuple[Section, ...]:
    """The sections that read the counters twice, ``seconds`` apart."""
    pause = Section(name="wait", script=f"sleep {seconds}", deadline_s=seconds + 10)
    return (counters_section(BEFORE), pause, counters_section(AFTER))


def look(nodes: Sequence[Node], ask: Ask, seconds: int = IDLE_S) -> dict[str, Looked | Unread]:
    """Each of ``nodes`` by name; one that cannot be reached or made sense of is ``Unread``."""
    sections = (*SECTIONS, *waiting(seconds))
    answers = ask([Question(node=node, sections=sections) for node in nodes])
    return {node.name: _looked(node, answers.get(node.name)) for node in nodes}


def _looked(node: Node, answer: Reading | None) -> Looked | Unread:
    if not isinstance(answer, Snapshot):
        return answer or Unread(host=node.name, error="was not read")
    try:
        if answer.is_container:
            return Unread(host=node.name, error="is a container, which has no rails of its own")
        ports = rail_ports(node, answer)
        windows = tuple(_windows(ports, answer).values())
        return Looked(node=node, ends=ends_of(node, answer), ports=ports, windows=windows)
    except (ValueError, LookupError) as error:
        return Unread(host=node.name, error=str(error))


def _windows(ports: Sequence[RailPort], snapshot: Snapshot) -> dict[int, Window]:
    before, after = read_counters(snapshot, BEFORE), read_counters(snapshot, AFTER)
    return {port.rail: window(port, before, after) for port in ports}


def occupied(found: Sequence[Looked], rails: frozenset[int] | None) -> list[str]:
    """The rails to be tested that carry traffic already, in words."""
    return [
        f"{one.host} rail{one.rail} carries {rate / 1e9:.2f} Gb/s"
        for looked in found
        for one in looked.windows
        if (rails is None or one.rail in rails) and (rate := busy(one)) is not None
    ]


def plan(
    found: Sequence[Looked], rails: frozenset[int] | None = None, most_rounds: int | None = None
) -> tuple[list[Step], list[NoEnd]]:
    """The steps, rail by rail, and the rails that cannot be tested.

    ``rails`` are those to be tested, None all; ``most_rounds`` bounds the rounds of each rail.
    """
    every = [end for looked in found for end in looked.ends if rails is None or end.rail in rails]
    left = [end for end in every if isinstance(end, NoEnd)]
    steps = []
    for rail in sorted({end.rail for end in every}):
        here = {end.host: end for end in every if isinstance(end, End) and end.rail == rail}
        if len(here) == 1:
            alone = "there is no other node to test it with"
            left += [NoEnd(host=host, rail=rail, reason=alone) for host in here]
        for turn, pairs in enumerate(rounds(list(here))[:most_rounds], start=1):
            steps.append(Step(rail, turn, tuple((here[a], here[b]) for a, b in pairs)))
    return steps, left


def run(
    steps: Sequence[Step],
    found: Mapping[str, Looked],
    load: Load,
    ask: Ask,
    min_percent: int = MIN_PERCENT,
    tell: Callable[[Step], None] = lambda _: None,
) -> Iterator[Trial]:
    """Run ``steps`` one after the other; ``tell`` is called before each.

    A node that is lost costs its own tests only, each of which says so.
    """
    for step in steps:
        tell(step)
        answers = ask(list(_questions(step, found, load)))
        for client, server in step.pairs:
            yield _trial(step, client, server, found, answers, min_percent)


def _questions(step: Step, found: Mapping[str, Looked], load: Load) -> Iterator[Question]:
    before, after = counters_section(BEFORE), counters_section(AFTER)
    for client, server in step.pairs:
        for end, test in (
            (server, perftest.server_section(server, load)),
            (client, perftest.client_section(client, server, load)),
        ):
            yield Question(node=found[end.host].node, sections=(before, test, after))


def _trial(
    step: Step,
    client: End,
    server: End,
    found: Mapping[str, Looked],
    answers: Mapping[str, Reading],
    min_percent: int,
) -> Trial:
    seen: dict[str, Observation] = {}
    lost = []
    for end, role in ((client, perftest.CLIENT), (server, perftest.SERVER)):
        answer = answers.get(end.host)
        if not isinstance(answer, Snapshot):
            lost.append(f"{end.host}: {answer.error if answer else 'was not read'}")
            continue
        try:
            seen[end.host] = Observation(
                result=perftest.result_of(answer.section(perftest.NAME), role),
                windows=_windows(found[end.host].ports, answer),
            )
        except (ValueError, LookupError) as error:
            lost.append(f"{end.host}: {error}")
    if lost:
        reason = "; ".join(lost)
        return unjudged(step.rail, step.round, client.host, server.host, reason)
    return judge(step.round, client, server, seen, min_percent)
