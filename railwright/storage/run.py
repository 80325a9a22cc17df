"""Tests of mounts on many nodes: look at each, run fio mount after mount, judge what it measured.

A node gets one command per mount. Mounts of one node come one after the other, as they share its
way to the storage; nodes run side by side, or one after the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from railwright.fleet import Ask, Question
from railwright.gds import run as gds_run
from railwright.gds.gdsio import Where
from railwright.gds.judge import not_tested
from railwright.gds.mounts import reason_against
from railwright.reading import Reading, Unread
from railwright.schema import Node
from railwright.schema.mounted import Throughput
from railwright.snapshot import Snapshot
from railwright.storage.document import GpuTrial
from railwright.storage.fio import (
    Evidence,
    Look,
    look_sections,
    read_evidence,
    read_look,
    run_section,
)
from railwright.storage.judge import Result, judge, not_measured, obstacle
from railwright.storage.sizes import Kind, Load, Target, Wanted, load

GPU = 0
"""Index of the GPU that gdsio reads to."""


class Asked(Protocol):
    """A mount of an inventory."""

    @property
    def kind(self) -> Kind: ...
    @property
    def expected(self) -> Throughput: ...


@dataclass(frozen=True)
class Step:
    """Nodes on which one mount is tested at once."""

    mount: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Done:
    """What a step brought."""

    results: tuple[Result, ...]
    gpu: tuple[GpuTrial, ...]


Targets = Mapping[str, Sequence[Target]]
"""What is tested, by node."""


def targets_of(mounts: Mapping[str, Asked], paths: Sequence[str]) -> list[Target]:
    """The mounts that ``paths`` name, all where there are none.

    A path is a mount, or a directory on one, in which it is tested then. Raises ValueError where
    two of them are on one mount.
    """
    if not paths:
        return [_target(mount, asked, mount) for mount, asked in mounts.items()]
    found: dict[str, Target] = {}
    for path in dict.fromkeys(paths):
        on = [mount for mount in mounts if is_on(path, mount)]
        if not on:
            continue
        mount = max(on, key=len)
        if mount in found:
            raise ValueError(f"{found[mount].directory} and {path} are both on {mount}: name one")
        found[mount] = _target(mount, mounts[mount], path)
    return list(found.values())


def is_on(path: str, mount: str) -> bool:
    """Whether ``path`` is ``mount``, or below it."""
    return path == mount or path.startswith(f"{mount.rstrip('/')}/")


def _target(mount: str, asked: Asked, directory: str) -> Target:
    return Target(mount=mount, directory=directory, kind=asked.kind, expected=asked.expected)


def steps_of(nodes: Sequence[Node], targets: Targets, serial: bool) -> list[Step]:
    """The steps, in the order in which mounts are named first."""
    mounts = dict.fromkeys(target.mount for node in nodes for target in targets[node.name])
    together = [
        Step(mount, tuple(n for n in nodes if any(t.mount == mount for t in targets[n.name])))
        for mount in mounts
    ]
    if not serial:
        return together
    return [Step(step.mount, (node,)) for step in together for node in step.nodes]


def look(nodes: Sequence[Node], targets: Targets, ask: Ask) -> dict[str, Look | Unread]:
    """Each of ``nodes`` by name; one that cannot be reached or made sense of is ``Unread``."""
    directories = {name: [one.directory for one in found] for name, found in targets.items()}
    questions = [
        Question(node=node, sections=look_sections(directories[node.name])) for node in nodes
    ]
    answers = ask(questions)
    return {
        node.name: _looked(node.name, answers.get(node.name), directories[node.name])
        for node in nodes
    }


def _looked(host: str, answer: Reading | None, directories: Sequence[str]) -> Look | Unread:
    if not isinstance(answer, Snapshot):
        return answer or Unread(host=host, error="was not read")
    try:
        return read_look(answer, directories)
    except (ValueError, LookupError) as error:
        return Unread(host=host, error=str(error))


def run(
    steps: Sequence[Step],
    targets: Targets,
    found: Mapping[str, Look],
    wanted: Wanted,
    ask: Ask,
    tell: Callable[[Step], None] = lambda _: None,
) -> Iterator[Done]:
    """Run ``steps`` on the nodes that are in ``found``, one after the other.

    ``tell`` is called before each. A node that cannot be tested, or is lost, costs its own test.
    """
    for step in steps:
        here = [
            (node, next(one for one in targets[node.name] if one.mount == step.mount))
            for node in step.nodes
            if node.name in found
        ]
        if here:
            tell(Step(step.mount, tuple(node for node, _ in here)))
            results = tuple(_by_fio(here, found, wanted, ask))
            measured = {one.host for one in results if one.outcome != "not_measured"}
            able = [
                (node, target)
                for node, target in here
                if node.name in measured and _is_able(target, found[node.name])
            ]
            yield Done(results=results, gpu=tuple(_by_gdsio(able, wanted.seconds, ask)))


Here = Sequence[tuple[Node, Target]]


def _by_fio(here: Here, found: Mapping[str, Look], wanted: Wanted, ask: Ask) -> Iterator[Result]:
    against = {node.name: obstacle(target, found[node.name]) for node, target in here}
    at_once = sum(reason is None for reason in against.values())
    loads: dict[str, Load] = {}
    for node, target in here:
        if against[node.name] is None:
            try:
                loads[node.name] = _load(target, found[node.name], wanted, at_once)
            except ValueError as error:
                against[node.name] = str(error)
    questions = [
        Question(node=node, sections=(run_section(target, loads[node.name]),))
        for node, target in here
        if node.name in loads
    ]
    answers = ask(questions) if questions else {}
    for node, target in here:
        reason = against[node.name]
        if reason is not None:
            yield not_measured(node.name, target, reason)
            continue
        seen = _seen(node.name, answers.get(node.name))
        if isinstance(seen, Unread):
            yield not_measured(node.name, target, seen.error)
        else:
            yield judge(node.name, target, loads[node.name], len(loads), seen)


def _load(target: Target, look: Look, wanted: Wanted, at_once: int) -> Load:
    place = look.places[target.directory]
    return load(target, wanted, place.free_mib or 0, look.memory_mib, at_once)


def _seen(host: str, answer: Reading | None) -> Evidence | Unread:
    if not isinstance(answer, Snapshot):
        return answer or Unread(host=host, error="was not read")
    try:
        return read_evidence(answer)
    except (ValueError, LookupError) as error:
        return Unread(host=host, error=str(error))


def _is_able(target: Target, look: Look) -> bool:
    """Whether there is a GPU, and libcufile can reach the mount."""
    mount = look.gds.get(target.mount)
    return look.gpu and mount is not None and reason_against(mount) is None


def _by_gdsio(able: Here, seconds: int, ask: Ask) -> Iterator[GpuTrial]:
    """gdsio on the nodes of ``able``, all of which have the same mount."""
    if not able:
        return
    nodes = [node for node, _ in able]
    target = able[0][1]
    where = Where(directory=target.directory)
    looked = gds_run.look(nodes, where, ask)
    asking = {node.name for node in nodes if node.gds.mode is not None}
    ready = {
        name: one.model_copy(update={"free_mib": one.free_mib // len(nodes)})
        for name, one in looked.items()
        # Where nobody asks for it, it need not be there.
        if not isinstance(one, Unread) and (one.tools is not None or name in asking)
    }
    trials = list(gds_run.run(nodes, ready, where, GPU, seconds, ask))
    for name, one in looked.items():
        if isinstance(one, Unread) and name in asking:
            trials.append(not_tested(name, one.error))
    for trial in trials:
        yield GpuTrial(mount=target.mount, counts=trial.host in asking, trial=trial)
