"""Runs that are cut off while packages are installed: the next one puts the node right."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drivers.conftest import packages, said, site
from tests.drivers.conftest import pyinfra as finished
from tests.drivers.site import DISTRO
from tests.lab import demo, ssh
from tests.lab.demo import changes
from tests.lab.lab import Lab

NODE = "gpu002"
INVENTORY = "interrupted"


@dataclass(frozen=True)
class Interrupted:
    """States of packages after each cut, and the run that was not cut off."""

    cut: str
    killed: str
    last: str
    code: int
    second: dict[str, int]
    drift: dict[str, object]


def started() -> "subprocess.Popen[bytes]":
    """A run that goes on by itself."""
    words = (str(Path(sys.executable).parent / "pyinfra"), "-y", site(INVENTORY).inventory)
    return subprocess.Popen(
        [*words, "deploys/gpu_node.py"],
        cwd=demo.ROOT,
        env={**os.environ, "DISTRO": DISTRO, "PYINFRA_PROGRESS": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def until_packages_are_configured(lab: Lab, run: "subprocess.Popen[bytes]") -> None:
    """Wait until a package's script builds its modules, which takes a minute: all is unpacked."""
    script = "until pgrep -f /usr/lib/dkms/common.postins[t] >/dev/null; do sleep 0.2; done"
    done = lab.run(NODE, script, timeout=600)
    assert done.returncode == 0
    assert run.poll() is None, "the run ended before it was cut off"


def kill(run: "subprocess.Popen[bytes]") -> None:
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()


@pytest.fixture(scope="module")
def interrupted(lab: Lab) -> Interrupted:
    first = started()
    until_packages_are_configured(lab, first)
    lab.pull_plug(NODE)
    kill(first)
    cut = packages(lab, NODE)
    # The next one heals that, and is killed while it does. Its apt goes on without it.
    healing = started()
    until_packages_are_configured(lab, healing)
    kill(healing)
    killed = packages(lab, NODE)
    last = finished(INVENTORY)
    ssh.hang_up(lab.layout, lab.node(NODE))
    return Interrupted(
        cut=cut,
        killed=killed,
        last=said(last),
        code=last.returncode,
        second=dict(changes(site(INVENTORY).converge())),
        drift=site(INVENTORY).drift()["summary"],
    )


def left_off(states: str) -> list[str]:
    """Packages that dpkg has begun and not finished."""
    return [line for line in states.splitlines() if line.split()[-1] not in ("ii", "hi", "rc")]


def test_the_power_cut_and_the_kill_left_packages_half_done(interrupted: Interrupted) -> None:
    assert left_off(interrupted.cut), interrupted.cut
    assert left_off(interrupted.killed), interrupted.killed


def test_the_next_run_repairs_what_was_left_off_and_converges(interrupted: Interrupted) -> None:
    assert interrupted.code == 0, interrupted.last
    assert interrupted.second == {NODE: 0}
    assert interrupted.drift["drift"] == 0, interrupted.drift


def test_no_package_is_left_half_done(interrupted: Interrupted, lab: Lab) -> None:
    assert left_off(packages(lab, NODE)) == []
    assert lab.run(NODE, "dpkg --audit").stdout == ""
