"""A stand-in for a node with gdsio: tools that say what the real ones print, and a fake root.

There is no GPU here. ``gdsio`` writes and reads nothing but the file's length; what nvidia-fs and
libcufile would count of it is what the test tells it to.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from facts.probe import Focus, script
from railwright.gds import gdsio
from railwright.gds.gdsio import Look, Where, run_section
from railwright.snapshot import Section, Snapshot, parse_probe
from tests.unit.test_gds_proof import STATS

STOCK = '{\n  // fall back\n  "properties": {"allow_compat_mode": true},\n}\n'
COMPAT = (
    " 29-04-2026 11:38:58:214 [pid=1 tid=1] NOTICE  cufio:294 cuFileHandleRegister GDS not "
    "supported or disabled by config, using cuFile posix read/write with compat mode enabled\n"
)
QUIET = " 29-04-2026 11:38:58:100 [pid=1 tid=1] INFO   cufio-drv:720 GDS release version: 1.14.1\n"


def counters(
    read: int | str = 0, written: int | str = 0, processes: int = 0, on: bool = True
) -> str:
    """nvidia-fs' stats with so many MiB, as tests.unit.test_gds_proof has them."""
    reads = f"Reads\t\t: n={read} ok={read} err=0 readMiB={read} io_state_err=0"
    writes = f"Writes\t\t: n={written} ok={written} err=0 writeMiB={written} io_state_err=0"
    if not on:
        reads, writes = "Reads\t\t: err=0 io_state_err=0", "Writes\t\t: err=0 io_state_err=0"
    text = STATS.format(
        driver="2.24.2", io="Enabled" if on else "Disabled", reads=reads, writes=writes
    )
    return text.replace("Active Process: 1", f"Active Process: {processes}")


def gpu_line(
    direction: str,
    n: int | str,
    p2pdma: int | str = 0,
    nvfs: int | str = 0,
    posix: int | str = 0,
) -> str:
    """A line of libcufile's counters since GDS 1.14 (NVIDIA/gds-nvidia-fs#78)."""
    idle = "bw=0 util(%)=0 n=0 pcie p2pdma=0 nvfs=0 posix=0 unalign=0 dr=0 err=0 MiB=0"
    busy = (
        f"bw=5.6 util(%)=7 n={n} pcie p2pdma={p2pdma} nvfs={nvfs} posix={posix} unalign=0 dr=0 "
        f"err=0 MiB={n}"
    )
    read, write = (busy, idle) if direction == "read" else (idle, busy)
    return f"GPU 0(UUID: 7d1a) Read: {read} Write: {write} BufRegister: n=1 err=0 free=0 MiB=1\n"


def result(direction: str, kib: int | str, gib_per_s: float = 5.5) -> str:
    """The line of results of gdsio (NVIDIA GDS getting started)."""
    return (
        f"IoType: {direction.upper()} XferType: GPUD Threads: 1 DataSetSize: {kib}/{kib}(KiB) "
        f"IOSize: 1024(KiB) Throughput: {gib_per_s} GiB/sec, Avg_Latency: 197.0 usecs ops: 8 "
        "total_time 1.0 secs\n"
    )


# It imports next to nothing, so that it is there at once.
_GDSIO = """#!{python} -IS
import json, os, sys, time

root = {root!r}
with open(root + "/how.json") as file:
    how = json.load(file)
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
step = "write" if given["-I"] == "1" else "read"
config = os.environ.get("CUFILE_ENV_PATH_JSON")
switch = root + "/switch"
call = {{
    "step": step,
    "arguments": sys.argv[1:],
    "config": open(config).read() if config else None,
    "switch": open(switch).read().strip() if os.path.isfile(switch) else None,
}}
with open(root + "/calls", "a") as calls:
    calls.write(json.dumps(call) + chr(10))
if how.get("breaks_switch") and os.path.isfile(switch):
    os.unlink(switch)
    os.mkdir(switch)
time.sleep(how.get("sleep", 0))
if step in how.get("fails", []):
    print("file register error: GPUDirect Storage not supported on current file", flush=True)
    sys.exit(1)
mib = int(given["-s"].rstrip("M"))
done = mib if step == "write" else 3 * mib
with open(given["-f"], "r+b") as data:
    data.truncate(mib << 20)
moved = how["moved"]
moved[step] += int(done * how.get("direct", 0))
with open(root + "/how.json", "w") as file:
    json.dump(how, file)
if os.path.exists(root + "/stats"):
    with open(root + "/stats", "w") as file:
        told = how["stats"].replace("@read@", str(moved["read"]))
        file.write(told.replace("@write@", str(moved["write"])))
with open(os.environ["CUFILE_LOGFILE_PATH"], "w") as file:
    file.write(how["log"] + how["lines"][step].replace("@n@", str(done)))
print(how["results"][step].replace("@kib@", str(done << 10)), end="")
"""


def _counted(step: str, way: str | None) -> str:
    if way is None:
        return ""
    head = " 29-04-2026 11:39:01:100 [pid=1 tid=1] INFO  0:42 "
    return head + gpu_line(step, "@n@", **{way: "@n@"})


class Host:
    """The node: its root is ``root``; ``how`` decides what its gdsio does."""

    def __init__(self, root: Path, **how: Any) -> None:
        self.root, self.tools = root, root / "tools"
        self.storage = root / "storage"
        self.storage.mkdir()
        self.tools.mkdir()
        (root / "stats").write_text(counters())
        (root / "switch").write_text("0\n")
        self.tool("gdsio", _GDSIO.format(python=sys.executable, root=str(root)))
        whole: dict[str, Any] = {
            "moved": {"read": 0, "write": 0},
            "log": QUIET,
            "stats": counters("@read@", "@write@"),
            "lines": {step: _counted(step, how.get("counts")) for step in ("read", "write")},
            "results": {step: result(step, "@kib@") for step in ("read", "write")},
        }
        (root / "how.json").write_text(json.dumps(whole | how))

    def tool(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    @property
    def calls(self) -> list[dict[str, Any]]:
        file = self.root / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def switch(self) -> str:
        return (self.root / "switch").read_text().strip()

    def wait_for_call(self) -> None:
        end = time.monotonic() + 20
        while not self.calls:
            assert time.monotonic() < end
            time.sleep(0.05)

    def section(self, where: Where | None = None, text: str | None = STOCK) -> str:
        """The whole command that a test sends."""
        place = where or Where(directory=str(self.storage))
        part = run_section(place, look(tools=str(self.tools), text=text), gpu=3, seconds=2)
        return script((part,), Focus())

    def run(self, where: Where | None = None, shell: str = "sh") -> Snapshot:
        """What comes back of a test."""
        return answer(self.section(where), shell)


def answer(command: str, shell: str = "sh") -> Snapshot:
    done = subprocess.run(
        [shell, "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={key: value for key, value in os.environ.items() if not key.startswith("CUFILE_")},
    )
    return parse_probe(done.stdout, host="gpu001")


def make_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> Host:
    found = Host(tmp_path, **how)
    monkeypatch.setattr(gdsio, "STATS", str(tmp_path / "stats"))
    monkeypatch.setattr(gdsio, "SWITCH", str(tmp_path / "switch"))
    monkeypatch.setattr(gdsio, "TOOLS", (str(found.tools),))
    return found


def look(**given: Any) -> Look:
    """A node on which all is fine, but for what is given."""
    fields: dict[str, Any] = {
        "tools": "/usr/local/cuda/gds/tools",
        "file_system": "ext4",
        "mount": None,
        "free_mib": 4000,
        "config": "/etc/cufile.json",
        "text": STOCK,
        "platform": {},
        "storage": {},
    }
    return Look.model_validate(fields | given)


def sections(**told: str | Section) -> dict[str, Section]:
    return {
        name: said if isinstance(said, Section) else Section(stdout=said, rc=0)
        for name, said in told.items()
    }
