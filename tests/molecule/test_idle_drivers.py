"""The scenario of drivers proves something: what only an idle component puts right stays wrong."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.molecule.scenario import DRIVERS, assert_verify_fails_where_idle, molecule

BREAKS = {
    "packages": "rm -f /etc/apt/sources.list.d/railwright-doca.sources",
    "ofed": "systemctl disable openibd.service",
    "gpu_driver": "rm -f /etc/railwright/gpu_driver/plan",
    "gds": """sed -i '/"allow_compat_mode"/s/false/true/' /etc/cufile.json""",
}
"""One thing of each component that its own operation alone puts right."""


@pytest.fixture(scope="module", autouse=True)
def _converged_container() -> Iterator[None]:
    molecule("drivers", "destroy")
    converged = molecule("drivers", "converge")
    assert converged.returncode == 0, converged.stdout
    yield
    molecule("drivers", "destroy")


@pytest.mark.parametrize("idle", [{"packages", "gpu_driver"}, {"ofed", "gds"}])
def test_verify_fails_for_the_components_that_are_idle_and_for_no_other(idle: set[str]) -> None:
    assert BREAKS.keys() == set(DRIVERS)
    for command in BREAKS.values():
        subprocess.run(
            ("podman", "exec", "railwright-drivers", "sh", "-c", command),
            check=True,
            capture_output=True,
        )
    assert_verify_fails_where_idle("drivers", idle)
