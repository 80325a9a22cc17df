"""Virtual nodes that get drivers: bare, with stand-ins of the vendors' repositories at hand.

gpu001 is brought through releases and a kernel upgrade; the runs on gpu002 are interrupted. The
steps are fixtures that need each other, so that the nodes are booted once a session.
RAILWRIGHT_LAB_KEEP=1 takes the nodes as they run, for work on single tests.
"""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drivers.asked import FOLDER
from tests.drivers.site import DISTRO, URL
from tests.lab import mirror, ssh
from tests.lab.commands import Changes, Commands, announced
from tests.lab.demo import changes, run
from tests.lab.lab import Lab
from tests.standins.build import ensure

DRIVERS = ("packages", "holds", "modules", "ofed", "gpu_driver", "gds")
"""The components that drivers are the business of."""

# A node without rails, whose NIC would hold the kernel's own ib_core; with a GPU in its slot.
_PREPARE = f"""
set -e
rm /etc/modules-load.d/00-0-lab-nic.conf
echo 'deb [trusted=yes] {URL}/lab ./' >/etc/apt/sources.list.d/standin-gpu.list
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y install standin-gpu-bus-dkms
modprobe standin-gpu-bus
"""


def site(inventory: str) -> Commands:
    """The project's commands on tests/drivers/inventories/``inventory``.py."""
    return Commands(DISTRO, f"tests/drivers/inventories/{inventory}.py")


def pyinfra(inventory: str) -> subprocess.CompletedProcess[str]:
    """A run, whatever becomes of it."""
    words = ("pyinfra", "-y", site(inventory).inventory, "deploys/gpu_node.py")
    return run(words, DISTRO)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """All that a run printed, each blank a single one."""
    return " ".join((done.stdout + done.stderr).split())


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    found = Lab(DISTRO)
    kept = bool(os.environ.get("RAILWRIGHT_LAB_KEEP"))
    if not kept:
        found.down()
        found = Lab.up(DISTRO, 2, print)
    mirror.start(found.layout, ensure(FOLDER) / "apt")
    with ThreadPoolExecutor() as pool:
        bare = [] if kept else found.nodes
        for done in pool.map(lambda node: found.run(node.name, _PREPARE), bare):
            assert done.returncode == 0, done.stdout + done.stderr
    yield found
    if not kept:
        mirror.stop(found.layout, FOLDER / "apt")


def packages(lab: Lab, name: str = "gpu001") -> str:
    """All packages of a node with their versions and states."""
    form = "${binary:Package} ${Version} ${db:Status-Abbrev}\\n"
    return lab.run(name, f"dpkg-query -W -f '{form}'").stdout


@dataclass(frozen=True)
class Refused:
    """A run that was refused: what it said, and packages of the node before and after."""

    said: str
    code: int
    before: str
    after: str


def _refused(lab: Lab, inventory: str) -> Refused:
    before = packages(lab)
    done = pyinfra(inventory)
    return Refused(said(done), done.returncode, before, packages(lab))


@pytest.fixture(scope="session")
def other_key(lab: Lab) -> Refused:
    return _refused(lab, "other_key")


@pytest.fixture(scope="session")
def vanished(other_key: Refused, lab: Lab) -> Refused:
    return _refused(lab, "vanished")


@dataclass(frozen=True)
class Converged:
    """A node before and after a run that reboots it, and what a second one does.

    ``told`` are the changes that only came to light within the run, ``left`` is the kernel that was
    left for another one, None where the node boots the same: what is built for it is no setting any
    more, and was proven by the last look before the reboot.
    """

    dry: Changes
    announced: Changes
    told: str
    changed: Changes
    boots: tuple[str, str]
    second: dict[str, int]
    drift: dict[str, object]
    failures: frozenset[str]
    left: str | None


def _converged(lab: Lab, inventory: str, folder: Path) -> Converged:
    asked = site(inventory)
    before = asked.snapshot(folder / f"{inventory}-before")
    boot, kernel = lab.boot_id("gpu001"), lab.run("gpu001", "uname -r").stdout.strip()
    dry = asked.dry()
    output = asked.converge()
    # The run rebooted it behind the back of the lab's own connection.
    ssh.hang_up(lab.layout, lab.node("gpu001"))
    after = asked.snapshot(folder / f"{inventory}-after")
    components = [word for name in DRIVERS for word in ("--component", name)]
    return Converged(
        dry=dry,
        announced=announced(output),
        told="\n".join(line for line in output.splitlines() if "now also" in line),
        changed=asked.differences(before, after),
        boots=(boot, lab.boot_id("gpu001")),
        second=dict(changes(asked.converge())),
        drift=asked.drift()["summary"],
        failures=asked.failures(*components),
        left=None if lab.run("gpu001", "uname -r").stdout.strip() == kernel else kernel,
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drivers")


@pytest.fixture(scope="session")
def first(vanished: Refused, lab: Lab, folder: Path) -> Converged:
    return _converged(lab, "first", folder)


@pytest.fixture(scope="session")
def rebooted(first: Converged, lab: Lab) -> dict[str, object]:
    """The summary of drift after one more reboot."""
    lab.reboot("gpu001")
    return dict(site("first").drift()["summary"])


@dataclass(frozen=True)
class Upgraded:
    """A node whose next kernel lacks a module, and a run that would have rebooted it."""

    other: str
    said: str
    code: int
    boots: tuple[str, str]
    findings: str


@pytest.fixture(scope="session")
def incomplete(rebooted: dict[str, object], lab: Lab) -> Upgraded:
    """Debian's other kernel comes as an unattended upgrade brings it; nvidia-fs does not build."""
    other = lab.run("gpu001", "cat /usr/local/lib/railwright-lab/other-kernel").stdout.strip()
    lab.run(
        "gpu001",
        f"DEBIAN_FRONTEND=noninteractive apt-get -qq -y install linux-image-{other} "
        f"linux-headers-{other}",
        timeout=900,
    )
    boot = lab.boot_id("gpu001")
    done = pyinfra("argument")
    drift = site("argument").drift()
    findings = [
        f"{entry['component']} {entry['key']}: {entry}"
        for host in drift["hosts"]
        for entry in host["findings"]
        if entry["outcome"] != "fine"
    ]
    return Upgraded(
        other, said(done), done.returncode, (boot, lab.boot_id("gpu001")), "\n".join(findings)
    )


@pytest.fixture(scope="session")
def second(incomplete: Upgraded, lab: Lab, folder: Path) -> Converged:
    return _converged(lab, "second", folder)
