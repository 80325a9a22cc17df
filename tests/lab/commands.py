"""The project's own commands against the lab, and what they print, as data."""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from deploys.components import COMPONENTS
from railwright import reading
from railwright.drift import judge
from railwright.settings import Change
from railwright.site import load_inventory

from . import demo
from .layout import Distro

DEPLOY = "deploys/gpu_node.py"

MEASURED = {("time", "synchronised")}
"""What a run waits for but cannot announce: that the clock follows its sources."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CHANGE = re.compile(
    r"^\s*\[(?P<host>[^\]]+)\] (?P<text>(?!now also )[a-z_]+ .+: (?:persisted|running) .+ → .+)$",
    re.MULTILINE,
)

Changes = frozenset[tuple[str, str]]
"""Host, and a change of one of its settings in the words of ``Change``."""


@dataclass(frozen=True)
class Commands:
    """The commands on one inventory; ``inventory`` is its path from the root of the checkout."""

    distro: Distro
    inventory: str = demo.INVENTORY

    def snapshot(self, folder: Path) -> Path:
        """Save what the nodes are now in ``folder``."""
        self._run("railwright", "snapshot", self.inventory, "--out", str(folder), codes=(0,))
        return folder

    def drift(self, *options: str) -> dict[str, Any]:
        """The report; where it says that nodes could not be read it is a report all the same."""
        words = ("railwright", "drift", self.inventory, "--format", "json", *options)
        return dict(json.loads(self._run(*words, codes=(0, 1, 2))))

    def replay(self, folder: Path) -> dict[str, Any]:
        """The report on nodes as they were when ``folder`` was saved."""
        return self.drift("--from", str(folder))

    def plan(self, folder: Path) -> Changes:
        """What ``railwright plan`` says that a run would change."""
        words = ("railwright", "plan", self.inventory, "--format", "json", "--from", str(folder))
        report = json.loads(self._run(*words, codes=(0,)))
        return frozenset(
            (host["host"], str(Change.model_validate(change)))
            for host in report["hosts"]
            for finding in host["findings"]
            for change in finding["changes"]
        )

    def dry(self) -> Changes:
        """What ``pyinfra --dry`` announces, read from what it prints."""
        output = self._run("pyinfra", "--dry", self.inventory, DEPLOY, codes=(0,), errors=True)
        return announced(output)

    def converge(self) -> str:
        """Run the literal ``pyinfra -y``; its whole output."""
        return self._run("pyinfra", "-y", self.inventory, DEPLOY, codes=(0,), errors=True)

    def failures(self, *options: str) -> frozenset[str]:
        """Tests of ``railwright verify`` that fail, as ``test_sysctl.py::test_sysctl[...]``."""
        with tempfile.TemporaryDirectory() as folder:
            junit = Path(folder) / "junit.xml"
            words = ("railwright", "verify", self.inventory, "--junit", str(junit), *options)
            self._run(*words, codes=(0, 1))
            cases = list(ElementTree.parse(junit).iter("testcase"))
        assert cases, "verify tested nothing"
        return frozenset(
            f"{case.get('classname', '').rpartition('.')[2]}.py::{case.get('name')}"
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        )

    def differences(self, before: Path, after: Path) -> Changes:
        """How the values of all settings differ between two snapshots, as changes."""
        old, new = self._values(before), self._values(after)
        return frozenset(
            (host, str(Change(component=component, key=key, state=state, before=was, after=is_)))
            for (host, component, key, state), was, is_ in _differing(old, new)
            if (component, key) not in MEASURED
        )

    def _values(self, folder: Path) -> "Values":
        nodes = load_inventory(demo.ROOT / self.inventory).nodes.values()
        readings = {node.name: reading.load(node.name, folder) for node in nodes}
        return {
            (report.host, found.setting.component, found.setting.key, state): value
            for report in judge(nodes, readings, COMPONENTS)
            for found in report.findings
            # What is only looked at, such as a GID, follows from the rest.
            if found.setting.acts
            for state, value in (
                ("persisted", found.setting.persisted.value),
                ("running", found.setting.running.value),
            )
        }

    def _run(self, *words: str, codes: tuple[int, ...], errors: bool = False) -> str:
        done = demo.run(words, self.distro)
        said = f"{' '.join(words)} exited {done.returncode}:\n{done.stdout}{done.stderr}"
        assert done.returncode in codes, said
        return _COLOUR.sub("", done.stdout + done.stderr) if errors else done.stdout


Values = dict[tuple[str, str, str, str], str | None]
"""Value by host, component, key and state (``persisted`` or ``running``)."""


def _differing(
    old: Values, new: Values
) -> Iterator[tuple[tuple[str, str, str, str], str | None, str]]:
    for place in sorted({*old, *new}):
        was, is_ = old.get(place), new.get(place)
        if was != is_:
            yield place, was, is_ or "absent"


def announced(output: str) -> Changes:
    """The changes that pyinfra's output names."""
    return frozenset((match["host"], match["text"].rstrip()) for match in _CHANGE.finditer(output))
