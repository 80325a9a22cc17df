"""A stand-in for a node with fio: real shells, a fio that is a script, a directory as mount."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from facts.probe import Focus, Section, script
from railwright.schema.mounted import Throughput
from railwright.snapshot import Snapshot, parse_probe
from railwright.storage.fio import run_section
from railwright.storage.sizes import Kind, Load, Target

# It makes files of the length that it is told, and says what ``result`` has.
_FIO = """#!/bin/sh
printf '%s\\n' "$*" >>{root}/calls
for given in "$@"; do
    case $given in
        --rw=*) way=${{given#*=}} ;;
        --directory=*) directory=${{given#*=}} ;;
        --size=*) size=${{given#--size=}} ;;
        --numjobs=*) jobs=${{given#*=}} ;;
    esac
done
[ "$way" = read ] || while [ "$jobs" -gt 0 ]; do
    jobs=$((jobs - 1))
    truncate -s "${{size%m}}M" "$directory/data.$jobs"
done
: >{root}/began
[ ! -e {root}/on_$way ] || . {root}/on_$way
cat {root}/$way.json
"""


def result(way: str, gb_s: float, error: int = 0) -> str:
    """What fio prints of one way."""
    done = {"io_bytes": int(gb_s * 1e10), "bw_bytes": int(gb_s * 1e9), "runtime": 10_000}
    idle = {"io_bytes": 0, "bw_bytes": 0, "runtime": 0}
    job = {"error": error, "read": idle, "write": idle} | {way: done}
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]}, indent=2)


class Host:
    """``on`` has what fio does in its middle, by way, in sh."""

    def __init__(self, root: Path, **on: str) -> None:
        self.root, self.storage = root, root / "storage"
        self.storage.mkdir()
        (root / "bin").mkdir()
        self.tool("fio", _FIO.format(root=root))
        for way, gb_s in (("write", 2.0), ("read", 4.0)):
            (root / f"{way}.json").write_text(result(way, gb_s))
        for way, does in on.items():
            (root / f"on_{way}").write_text(does)

    def tool(self, name: str, text: str) -> None:
        path = self.root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        file = self.root / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def mount(self) -> str:
        """Where the file system is mounted that the directory is really on."""
        told = subprocess.run(
            ["stat", "-c", "%m", str(self.storage)], capture_output=True, text=True, check=True
        )
        return told.stdout.strip()

    def target(self, **given: Any) -> Target:
        fields = {"mount": self.mount, "directory": str(self.storage), "kind": "scratch"}
        return Target.model_validate(fields | given)

    def section(self, load: Load | None = None, real: bool = False, **given: Any) -> str:
        """The whole command that a test sends."""
        part = run_section(self.target(**given), load or small())
        return script((part if real else self.faked(part),), Focus())

    def faked(self, part: Section) -> Section:
        path = f"PATH={self.root}/bin:$PATH"
        return part.model_copy(update={"script": f"{path}\n{part.script}"})

    def run(self, load: Load | None = None, shell: str = "sh", **given: Any) -> Snapshot:
        return answer(self.section(load, **given), shell)

    def wait_for_call(self) -> None:
        end = time.monotonic() + 20
        while not (self.root / "began").exists():
            assert time.monotonic() < end
            time.sleep(0.05)


def answer(command: str, shell: str = "sh") -> Snapshot:
    done = subprocess.run(
        [shell, "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    return parse_probe(done.stdout, host="gpu001")


def small(**given: Any) -> Load:
    """A few MiB for a second."""
    fields: dict[str, Any] = {
        "block_mib": 1,
        "jobs": 2,
        "depth": 2,
        "engine": "libaio",
        "direct": True,
        "file_mib": 2,
        "seconds": 1,
        "limit_s": 20,
    }
    return Load.model_validate(fields | given)


def target(kind: Kind = "scratch", mount: str = "/data", **expected: float) -> Target:
    return Target(mount=mount, directory=mount, kind=kind, expected=Throughput(**expected))
