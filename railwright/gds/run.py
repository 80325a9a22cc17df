"""Tests of the direct path on many nodes at once: look at each, run gdsio, judge what it left.

A node gets two commands: by the first it tells its cufile.json, of which the second has a copy.
"""

from collections.abc import Mapping, Sequence

from railwright.fleet import Ask, Question
from railwright.gds.gdsio import (
    Evidence,
    Look,
    Where,
    look_sections,
    read_evidence,
    read_look,
    run_section,
)
from railwright.gds.judge import Trial, judge, not_tested
from railwright.reading import Reading, Unread
from railwright.schema import Node
from railwright.snapshot import Snapshot


def look(nodes: Sequence[Node], where: Where, ask: Ask) -> dict[str, Look | Unread]:
    """Each of ``nodes`` by name; one that cannot be reached or made sense of is ``Unread``."""
    sections = look_sections(where)
    answers = ask([Question(node=node, sections=sections) for node in nodes])
    return {node.name: _looked(node.name, answers.get(node.name)) for node in nodes}


def _looked(host: str, answer: Reading | None) -> Look | Unread:
    if not isinstance(answer, Snapshot):
        return answer or Unread(host=host, error="was not read")
    try:
        return read_look(answer)
    except (ValueError, LookupError) as error:
        return Unread(host=host, error=str(error))


def run(
    nodes: Sequence[Node], found: Mapping[str, Look], where: Where, gpu: int, seconds: int, ask: Ask
) -> list[Trial]:
    """The tests of all ``nodes`` that are in ``found``, side by side, in their order.

    A node that cannot be tested, or is lost meanwhile, costs its own test only.
    """
    questions: list[Question] = []
    trials: dict[str, Trial] = {}
    for node in nodes:
        if node.name not in found:
            continue
        try:
            section = run_section(where, found[node.name], gpu, seconds)
        except ValueError as error:
            trials[node.name] = not_tested(node.name, str(error), found[node.name])
            continue
        questions.append(Question(node=node, sections=(section,)))
    answers = ask(questions) if questions else {}
    for question in questions:
        host = question.node.name
        seen = _seen(host, answers.get(host))
        trials[host] = (
            judge(host, found[host], seen)
            if isinstance(seen, Evidence)
            else not_tested(host, seen.error, found[host])
        )
    return [trials[node.name] for node in nodes if node.name in trials]


def _seen(host: str, answer: Reading | None) -> Evidence | Unread:
    if not isinstance(answer, Snapshot):
        return answer or Unread(host=host, error="was not read")
    try:
        return read_evidence(answer)
    except (ValueError, LookupError) as error:
        return Unread(host=host, error=str(error))
