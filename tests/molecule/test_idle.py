"""The scenario proves something: where a component is idle it converges, and its verify fails."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from deploys.components import COMPONENTS
from tests.molecule.scenario import DRIVERS, STORAGE, assert_verify_fails_where_idle, molecule


@pytest.fixture(autouse=True)
def _bare_container() -> Iterator[None]:
    molecule("default", "destroy")
    yield
    molecule("default", "destroy")


# What firmware persists is in the NICs, and the container is asked for no drivers and no storage.
NOT_ASKED_FOR = {"firmware", *DRIVERS, *STORAGE}
NAMES = [component.name for component in COMPONENTS if component.name not in NOT_ASKED_FOR]


RUNS = range(6)
IDLE_IN = dict(zip(NAMES, combinations(RUNS, 2), strict=False))
"""Each component is idle in two runs, and in one of them any other one is not."""


@pytest.mark.parametrize("number", RUNS)
def test_verify_fails_for_the_components_that_are_idle_and_for_no_other(number: int) -> None:
    assert IDLE_IN.keys() == set(NAMES)
    idle = {name for name, runs in IDLE_IN.items() if number in runs}
    assert_verify_fails_where_idle("default", idle)
