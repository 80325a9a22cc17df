"""The scenario proves something: where a component is idle it converges, and its verify fails."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from deploys.components import COMPONENTS

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def molecule(step: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(BIN / "molecule"), step],
        cwd=ROOT / "tests",
        env={**os.environ, "PATH": path, "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture(autouse=True)
def _bare_container() -> Iterator[None]:
    molecule("destroy")
    yield
    molecule("destroy")


# What firmware persists is in the NICs, and the container is asked for no drivers.
NOT_ASKED_FOR = {"firmware", "packages", "ofed", "gpu_driver", "gds"}
NAMES = [component.name for component in COMPONENTS if component.name not in NOT_ASKED_FOR]


RUNS = range(6)
IDLE_IN = dict(zip(NAMES, combinations(RUNS, 2), strict=False))
"""Each component is idle in two runs, and in one of them any other one is not."""


@pytest.mark.parametrize("number", RUNS)
def test_verify_fails_for_the_components_that_are_idle_and_for_no_other(number: int) -> None:
    assert IDLE_IN.keys() == set(NAMES)
    idle = [name for name, runs in IDLE_IN.items() if number in runs]
    converged = molecule(
        "converge", RAILWRIGHT_DEPLOY="tests/molecule/idle.py", IDLE=" ".join(idle)
    )
    assert converged.returncode == 0, converged.stdout
    verified = molecule("verify")
    assert verified.returncode != 0
    failed = set(re.findall(r"FAILED tests/verify/test_(\w+)\.py", verified.stdout))
    assert failed == set(idle), verified.stdout
