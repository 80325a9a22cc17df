"""The lab for all tests of this folder: made bare, converged and proven as ``make demo`` does it.

The steps are fixtures that need each other, so that the nodes are booted once a session and
every test finds what it needs, whichever tests are picked. RAILWRIGHT_LAB_KEEP=1 takes the nodes
as they run, for work on single tests: they must be converged, and what needs bare nodes errors.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .commands import Changes, Commands
from .demo import Demo
from .lab import Lab
from .layout import DISTROS, Distro

ORDER = (
    "test_demo",
    "test_breaks",
    "test_commands",
    "test_reboot",
    "test_fabric",
    "test_nic",
    "test_nic_traffic",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First what needs bare nodes, last what reboots one and what reloads its NICs."""

    def place(item: pytest.Item) -> int:
        return ORDER.index(item.path.stem) if item.path.stem in ORDER else -1

    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker("lab")
    items.sort(key=place)


class Recorded(Demo):
    """The demo, with what it says kept."""

    def __init__(self, distro: Distro) -> None:
        super().__init__(distro)
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        super().say(line)
        self.lines.append(line)

    def said(self, step: Callable[..., object], *arguments: object) -> list[str]:
        """Do a step; what it says."""
        before = len(self.lines)
        step(*arguments)
        return self.lines[before:]


@dataclass(frozen=True)
class Bare:
    """Bare nodes: their snapshot, what would be done to them, what verify says of them."""

    snapshot: Path
    planned: Changes
    dry: Changes
    failures: frozenset[str]


@dataclass(frozen=True)
class FirstRun:
    """What the demo says of the first run, and the nodes after it."""

    said: list[str]
    snapshot: Path


@dataclass(frozen=True)
class Waiting:
    """Converged nodes that still have to boot: what drift and verify say of them."""

    said: list[str]
    report: dict[str, Any]
    failures: frozenset[str]


@pytest.fixture(scope="session")
def distro() -> Distro:
    """DISTRO of the environment, as inventories/lab.py has it."""
    name = os.environ.get("DISTRO", "bookworm")
    return next(known for known in DISTROS if known == name)


@pytest.fixture(scope="session")
def commands(distro: Distro) -> Commands:
    return Commands(distro)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def demo(distro: Distro) -> Recorded:
    return Recorded(distro)


@pytest.fixture(scope="session")
def bare_lab(demo: Recorded) -> Lab:
    """Nodes as they are installed."""
    if os.environ.get("RAILWRIGHT_LAB_KEEP"):
        pytest.fail("RAILWRIGHT_LAB_KEEP keeps the nodes as they are: none is bare")
    return demo.bare_nodes()


@pytest.fixture(scope="session")
def bare(bare_lab: Lab, commands: Commands, folder: Path) -> Bare:
    before = commands.snapshot(folder / "bare")
    return Bare(
        snapshot=before,
        planned=commands.plan(before),
        dry=commands.dry(),
        failures=commands.failures(),
    )


@pytest.fixture(scope="session")
def first_run(bare: Bare, demo: Recorded, commands: Commands, folder: Path) -> FirstRun:
    return FirstRun(
        said=demo.said(demo.first_run), snapshot=commands.snapshot(folder / "first-run")
    )


@pytest.fixture(scope="session")
def second_run(first_run: FirstRun, demo: Recorded) -> list[str]:
    return demo.said(demo.second_run)


@pytest.fixture(scope="session")
def waiting(second_run: list[str], demo: Recorded, commands: Commands) -> Waiting:
    return Waiting(
        said=demo.said(demo.pending),
        report=commands.drift(),
        failures=commands.failures("--component", "kernel", "--limit", "gpu001"),
    )


@pytest.fixture(scope="session")
def rebooted(waiting: Waiting, demo: Recorded, bare_lab: Lab) -> list[str]:
    return demo.said(demo.reboot, bare_lab)


@pytest.fixture(scope="session")
def undrifted(rebooted: list[str], demo: Recorded) -> list[str]:
    return demo.said(demo.no_drift)


@pytest.fixture(scope="session")
def verified(undrifted: list[str], demo: Recorded) -> list[str]:
    return demo.said(demo.verify)


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest, distro: Distro) -> Lab:
    """Two converged nodes."""
    if not os.environ.get("RAILWRIGHT_LAB_KEEP"):
        request.getfixturevalue("verified")
    return Lab(distro)
