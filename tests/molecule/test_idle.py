"""The scenario proves something: where a component is idle it converges, and its verify fails."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
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


# What firmware persists is in the NICs.
@pytest.mark.parametrize("component", [c.name for c in COMPONENTS if c.name != "firmware"])
def test_verify_fails_for_the_component_that_is_idle_and_for_no_other(component: str) -> None:
    converged = molecule("converge", RAILWRIGHT_DEPLOY="tests/molecule/idle.py", IDLE=component)
    assert converged.returncode == 0, converged.stdout
    verified = molecule("verify")
    assert verified.returncode != 0
    failed = set(re.findall(r"FAILED tests/verify/test_(\w+)\.py", verified.stdout))
    assert failed == {component}, verified.stdout
