"""make demo: a bare lab, converged by the literal command, and proven to stay so.

Every figure is read from what the tools themselves print.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .lab import Lab
from .layout import DISTROS, Distro, LabError

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = "inventories/lab.py"
CONVERGE = ("pyinfra", "-y", INVENTORY, "deploys/gpu_node.py")

_RESULT = re.compile(r"^\s+\[(?P<host>[^\]]+)\] (?P<result>Success|No changes|Error)", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class DemoError(Exception):
    """A step of the demo did not show what it is to show."""


def run(words: Sequence[str], distro: Distro) -> subprocess.CompletedProcess[str]:
    """Run one of the project's commands from the root of the checkout."""
    return subprocess.run(
        [str(Path(sys.executable).parent / words[0]), *words[1:]],
        cwd=ROOT,
        env={**os.environ, "DISTRO": distro, "PYINFRA_PROGRESS": "off"},
        capture_output=True,
        text=True,
    )


def changes(output: str) -> Counter[str]:
    """Operations that changed something, by host, as pyinfra's own results name them."""
    found: Counter[str] = Counter()
    for match in _RESULT.finditer(_COLOUR.sub("", output)):
        found[match["host"]] += match["result"] == "Success"
    return found


def converge(distro: Distro) -> tuple[Counter[str], str]:
    """Run the literal command; changes by host, and its whole output.

    Raises DemoError where pyinfra does not exit 0.
    """
    done = run(CONVERGE, distro)
    output = done.stdout + done.stderr
    if done.returncode != 0:
        raise DemoError(f"{' '.join(CONVERGE)} exited {done.returncode}:\n{output}")
    return changes(output), output


def drift(distro: Distro, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code of ``railwright drift`` and its report.

    Raises DemoError where it does not print one.
    """
    done = run(("railwright", "drift", INVENTORY, "--format", "json", *options), distro)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise DemoError(f"drift printed no report:\n{done.stdout}{done.stderr}") from None


def drifting(report: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The settings of each host that are not as they should be."""
    return {
        host["host"]: [entry for entry in host["findings"] if entry["outcome"] != "fine"]
        for host in report["hosts"]
    }


class Demo:
    """The steps, each of which says what it saw and fails where that is not what it should be."""

    def __init__(self, distro: Distro) -> None:
        self.distro: Distro = distro
        self.began = time.monotonic()

    def say(self, line: str) -> None:
        print(f"[{time.monotonic() - self.began:4.0f} s] {line}", flush=True)

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise DemoError(what)

    def bare_nodes(self) -> Lab:
        lab = Lab(self.distro)
        if lab.nodes:
            self.say("throwing the disks of the running nodes away")
            lab.down()
        return Lab.up(self.distro, 2, self.say)

    def first_run(self) -> None:
        code, report = drift(self.distro)
        wrong = {name: len(found) for name, found in drifting(report).items()}
        self.expect(code == 2, f"drift on bare nodes exited {code}, expected 2")
        checked = min(host["settings"] for host in report["hosts"])
        self.expect(checked >= 300, f"{checked} settings a node, expected at least 300")
        self.say(f"bare: {checked} settings a node looked at, wrong: {_each(wrong)}")
        self.say(f"$ {' '.join(CONVERGE)}")
        made, output = converge(self.distro)
        for name, found in drifting(report).items():
            # What is only looked at, such as a GID, comes right with the rest.
            count = sum(bool(entry["changes"]) for entry in found)
            self.expect(
                made[name] >= count > 0, f"{name}: {made[name]} changes for {count}:\n{output}"
            )
        self.say(f"first run: {_each(made)} changes")

    def second_run(self) -> None:
        made, output = converge(self.distro)
        self.expect(len(made) == 2, f"results of two nodes expected:\n{output}")
        self.expect(made.total() == 0, f"a second run changed something:\n{output}")
        self.say(f"second run: {_each(made)} changes")

    def pending(self) -> None:
        code, report = drift(self.distro)
        found = drifting(report)
        others = [
            finding
            for findings in found.values()
            for finding in findings
            if finding["verdict"] != "pending" or not finding["key"].startswith("argument ")
        ]
        self.expect(code == 2, f"drift before the reboot exited {code}, expected 2")
        self.expect(not others, f"more than kernel arguments is pending: {others}")
        counts = {name: len(findings) for name, findings in found.items()}
        self.say(f"drift before the reboot: kernel arguments pending: {_each(counts)}")

    def reboot(self, lab: Lab) -> None:
        names = [node.name for node in lab.nodes]
        before = {name: lab.boot_id(name) for name in names}
        with ThreadPoolExecutor() as pool:
            list(pool.map(lab.reboot, names))
        for name in names:
            self.expect(lab.boot_id(name) != before[name], f"{name} did not reboot")
        self.say(f"rebooted, boot ids changed: {', '.join(names)}")

    def no_drift(self) -> None:
        code, report = drift(self.distro)
        self.expect(code == 0, f"drift after the reboot exited {code}: {drifting(report)}")
        self.say(f"drift after the reboot: 0 of {report['summary']['settings']} settings")

    def verify(self) -> None:
        done = run(("railwright", "verify", INVENTORY), self.distro)
        self.expect(done.returncode == 0, f"verify failed:\n{done.stdout}{done.stderr}")
        self.say(f"verify: {done.stdout.strip().splitlines()[-1].strip('= ')}")


def _each(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def main() -> int:
    distro = os.environ.get("DISTRO", "bookworm")
    if distro not in DISTROS:
        print(f"DISTRO is {distro!r}: expected {' or '.join(DISTROS)}", file=sys.stderr)
        return 1
    demo = Demo(distro)
    try:
        lab = demo.bare_nodes()
        demo.first_run()
        demo.second_run()
        demo.pending()
        demo.reboot(lab)
        demo.no_drift()
        demo.verify()
    except (DemoError, LabError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    demo.say("the nodes stay up: make lab-ssh, make lab-down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
