"""The verdict: its whole table, which docs/verdicts.md prints, and what a run announces."""

from itertools import product
from pathlib import Path

import pytest

from railwright.settings import (
    PERSISTED_STANDINGS,
    RUNNING_STANDINGS,
    Change,
    Effect,
    Setting,
    Standing,
    State,
    Verdict,
    changes,
    enforces,
    is_drift,
    persists,
    verdict,
    verdict_of,
)

DOCS = Path(__file__).parents[2] / "docs" / "verdicts.md"

Row = tuple[Standing, Standing, str, str]


def documented() -> list[Row]:
    """The table of the documentation: persisted, running, verdict if allowed, if not."""
    rows = []
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0] in {standing.value for standing in Standing}:
            rows.append((Standing(cells[0]), Standing(cells[1]), cells[2], cells[3]))
    return rows


def test_the_documentation_has_every_combination_once() -> None:
    pairs = [(persisted, running) for persisted, running, _, _ in documented()]
    assert sorted(pairs) == sorted(product(PERSISTED_STANDINGS, RUNNING_STANDINGS))


@pytest.mark.parametrize(("persisted", "running", "allowed", "not_allowed"), documented())
def test_the_verdict_is_the_documented_one(
    persisted: Standing, running: Standing, allowed: str, not_allowed: str
) -> None:
    assert verdict_of(persisted, running, True).value == allowed
    assert verdict_of(persisted, running, False).value == not_allowed


@pytest.mark.parametrize(
    ("persisted", "running"),
    [
        *product(set(Standing) - PERSISTED_STANDINGS, RUNNING_STANDINGS),
        *product(PERSISTED_STANDINGS, set(Standing) - RUNNING_STANDINGS),
    ],
)
def test_a_standing_that_the_state_cannot_have_is_refused(
    persisted: Standing, running: Standing
) -> None:
    with pytest.raises(ValueError, match="no such state"):
        verdict_of(persisted, running, True)


def test_unreadable_is_never_ok() -> None:
    for persisted, running, allowed in product(
        PERSISTED_STANDINGS, RUNNING_STANDINGS, (True, False)
    ):
        if Standing.UNREADABLE in (persisted, running):
            assert is_drift(verdict_of(persisted, running, allowed))


def test_every_verdict_is_reached() -> None:
    reached = {
        verdict_of(persisted, running, allowed)
        for persisted, running, allowed in product(
            PERSISTED_STANDINGS, RUNNING_STANDINGS, (True, False)
        )
    }
    assert reached == set(Verdict)


def setting(persisted: State, running: State, **more: object) -> Setting:
    return Setting.model_validate(
        {
            "component": "sysctl",
            "key": "vm.swappiness",
            "desired": "1",
            "persisted": persisted,
            "running": running,
            **more,
        }
    )


LIVE = frozenset({Effect.LIVE})
ABSENT = State(standing=Standing.ABSENT)
SIXTY = State(standing=Standing.WRONG, value="60")
RIGHT = State(standing=Standing.RIGHT, value="1")


def test_a_bare_setting_is_announced_in_both_states() -> None:
    assert [str(change) for change in changes(setting(ABSENT, SIXTY), LIVE)] == [
        "sysctl vm.swappiness: persisted absent → 1",
        "sysctl vm.swappiness: running 60 → 1",
    ]


def test_what_is_not_allowed_is_persisted_and_pending() -> None:
    asked = setting(ABSENT, SIXTY, effect="reboot")
    assert [change.state for change in changes(asked, LIVE)] == ["persisted"]
    assert verdict(setting(RIGHT, SIXTY, effect="reboot"), LIVE) is Verdict.PENDING


def test_a_right_setting_is_left_alone() -> None:
    asked = setting(RIGHT, RIGHT)
    assert changes(asked, LIVE) == []
    assert not is_drift(verdict(asked, LIVE))


def test_an_overridden_setting_is_put_in_force_but_not_persisted() -> None:
    overridden = State(standing=Standing.OVERRIDDEN, value="60", decider="/etc/sysctl.d/zz.conf:1")
    asked = setting(overridden, SIXTY)
    assert not persists(asked)
    assert enforces(asked, LIVE)
    assert changes(asked, LIVE) == [
        Change(component="sysctl", key="vm.swappiness", state="running", before="60", after="1")
    ]


def test_nothing_is_put_in_force_that_cannot_be_read_back_after_a_reboot() -> None:
    unreadable = State(standing=Standing.UNREADABLE)
    assert not enforces(setting(unreadable, SIXTY), LIVE)


def test_a_setting_that_does_not_act_is_only_reported() -> None:
    asked = setting(ABSENT, SIXTY, acts=False)
    assert changes(asked, LIVE) == []
    assert is_drift(verdict(asked, LIVE))


def test_what_is_overridden_is_not_rebooted_for() -> None:
    overridden = State(standing=Standing.OVERRIDDEN)
    asked = setting(overridden, ABSENT, effect="reboot")
    assert not enforces(asked, frozenset({Effect.REBOOT}))
