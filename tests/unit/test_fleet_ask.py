"""Asking nodes side by side, each its own question, over pyinfra's connectors."""

from facts.probe import Section
from railwright.fleet import Question, ask
from railwright.reading import Unread
from railwright.schema import Node
from railwright.snapshot import Snapshot
from tests.unit.fake_site import probe_output
from tests.unit.test_fleet import fake


def question(name: str, text: str) -> Question:
    return Question(Node(name=name), (Section(name="said", script=f"echo {text}"),))


def test_each_node_is_asked_its_own_question() -> None:
    found = ask([question("@local", "one")])["@local"]
    assert isinstance(found, Snapshot)
    assert found.text("said") == "one\n"


def test_a_node_that_fails_is_told_and_the_others_answer() -> None:
    answers = {
        "@fake/gpu001": fake(probe_output("a right right")),
        "@fake/gpu002": fake(stderr="sudo: not allowed", success=False),
        "@fake/gpu003": fake(probe_output("b right right")),
    }
    found = ask([question(name, "x") for name in answers], lambda node: answers[node.name])
    assert list(found) == list(answers)
    texts = {
        name: one.error if isinstance(one, Unread) else one.text("fake").strip()
        for name, one in found.items()
    }
    assert texts == {
        "@fake/gpu001": "a right right",
        "@fake/gpu002": "the probe failed: sudo: not allowed",
        "@fake/gpu003": "b right right",
    }


def test_the_time_allowed_grows_with_what_is_asked() -> None:
    short = question("@local", "x")
    long = Question(short.node, (Section(name="said", script="", deadline_s=500),))
    assert long.limit_s - short.limit_s == 480


def test_nobody_to_ask_is_no_error() -> None:
    assert ask([]) == {}
