"""What packages bring to light in the middle of a run: looked at, told, and proven."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from railwright import converge
from railwright.actions import Action
from railwright.actions import Run as Command
from railwright.component import Component
from railwright.converge import Run, announce, apply, prove
from railwright.schema import Node
from railwright.settings import NOTHING, Change, Setting, Standing, State
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER

BEFORE, AFTER = "before", "after"


def snapshot(what: str) -> Snapshot:
    return Snapshot(host="n1", marker=MARKER, sections={what: Section(stdout="", rc=0)})


def component(name: str, wrong_in: str, *upon: str) -> Component:
    """One setting, which is wrong in the snapshot ``wrong_in`` alone."""

    def settings(_: Node, seen: Snapshot) -> list[Setting]:
        wrong = wrong_in in seen.sections
        state = State(standing=Standing.ABSENT if wrong else Standing.RIGHT, value=None)
        return [Setting(component=name, key="x", desired="y", persisted=state, running=NOTHING)]

    def actions(_: Node, __: Snapshot, found: list[Setting]) -> Iterator[Action]:
        if found[0].persisted.standing is Standing.ABSENT:
            yield Command(command=("do", name))

    return Component(name, (), settings, actions, upon=frozenset(upon))


PACKAGES = component("packages", BEFORE)
HOLDS = component("holds", AFTER, "packages")
OFED = component("ofed", AFTER, "packages")
QOS = component("qos", AFTER)


def started(*components: Component) -> Run:
    def noop(_: str) -> None:
        return None

    state = SimpleNamespace(is_executing=True)
    host = cast("Host", SimpleNamespace(print_prefix="", state=state, noop=noop))
    run = Run(host=host, node=Node(name="n1"), components=components, seen=snapshot(BEFORE))
    announce(run)
    return run


def done(run: Run) -> list[list[StringCommand | FunctionCommand]]:
    return [list(apply(run, component)) for component in run.components]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each look at the host after the first; what packages brought is there then."""
    made: list[str] = []

    def look(*_: object) -> Snapshot:
        made.append(AFTER)
        return snapshot(AFTER)

    monkeypatch.setattr(converge, "_probe", look)
    return made


def test_what_comes_to_light_is_told_of_each_component_by_one_look(looks: list[str]) -> None:
    run = started(PACKAGES, HOLDS, OFED, QOS)
    assert run.promised == {("packages", "x", "persisted")}
    assert all(len(commands) == 1 for commands in done(run))
    assert looks == [AFTER]
    # Those that were looked at by another's look, and what stands on nobody, too.
    assert [one.name for one, _ in run.unannounced] == ["holds", "ofed", "qos"]
    assert run.seen.settled


def test_what_was_announced_is_not_told_twice(looks: list[str]) -> None:
    run = started(PACKAGES, component("ofed", BEFORE, "packages"))
    assert [len(commands) for commands in done(run)] == [1, 0]
    assert run.unannounced == []


def test_where_no_package_was_changed_nobody_looks(looks: list[str]) -> None:
    run = started(component("packages", AFTER), OFED)
    assert done(run) == [[], []]
    assert looks == []


def test_a_host_that_does_not_answer_then_fails_the_component_and_not_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dead(*_: object) -> Snapshot:
        raise PyinfraError("n1: no answer")

    monkeypatch.setattr(converge, "_probe", dead)
    run = started(PACKAGES, OFED)
    _, (command,) = done(run)
    assert isinstance(command, FunctionCommand)
    assert command.function(None, run.host) is False
    assert run.failures == ["n1: no answer"]


def test_what_was_built_for_the_kernel_that_is_left_is_proven_before_the_reboot() -> None:
    """After it the node has no setting of that kernel any more."""

    def settings(_: Node, seen: Snapshot) -> list[Setting]:
        found = HOLDS.settings(Node(name="n1"), seen)
        return [] if "left" in seen.sections else found

    ofed = Component("holds", (), settings, HOLDS.actions)
    change = Change(component="holds", key="x", state="persisted", before=None, after="y")
    run = started(ofed)
    run.seen = snapshot("left")
    proof = prove(run, ofed, "x", [change])
    assert proof.function(None, run.host) is False
    # Seen as it must be, just before.
    run.before_reboot = snapshot(BEFORE)
    assert proof.function(None, run.host) is True
    # And not where it was wrong then too, nor for what was to run.
    run.before_reboot = snapshot(AFTER)
    assert proof.function(None, run.host) is False
    run.before_reboot = snapshot(BEFORE)
    started_too = change.model_copy(update={"state": "running"})
    assert prove(run, ofed, "x", [change, started_too]).function(None, run.host) is False
