"""The steps of a molecule scenario, taken by tests that let components be idle."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

DRIVERS = ("packages", "ofed", "gpu_driver", "gds")
"""Components that only the containers of the scenario ``drivers`` are asked for."""
STORAGE = ("scratch", "nvmeof", "nfs", "lustre", "beegfs")
"""Likewise of the scenario ``storage``."""


def molecule(scenario: str, step: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(BIN / "molecule"), step, "-s", scenario],
        cwd=ROOT / "tests",
        env={**os.environ, "PATH": path, "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
    )


def assert_verify_fails_where_idle(scenario: str, idle: set[str]) -> None:
    """After a run in which the components ``idle`` do nothing, verify fails for just those."""
    converged = molecule(
        scenario, "converge", RAILWRIGHT_DEPLOY="tests/molecule/idle.py", IDLE=" ".join(idle)
    )
    assert converged.returncode == 0, converged.stdout
    verified = molecule(scenario, "verify")
    assert verified.returncode != 0
    failed = set(re.findall(r"FAILED tests/verify/test_(\w+)\.py", verified.stdout))
    assert failed == idle, verified.stdout
