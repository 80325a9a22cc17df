"""make bench: how long things take here. Figures to look at; no test asserts a time."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deploys.components import COMPONENTS
from facts.probe import script
from railwright.component import sections_of
from railwright.drift import judge
from railwright.focus import focus_of
from railwright.reading import load
from railwright.site import load_inventory

ROOT = Path(__file__).parents[1]
INVENTORY = """
from railwright.site import inventory

globals().update(inventory(__file__, {"roce": "gpu[0001-1000]"}))
"""


def timed(what: str, repeats: int, action: Callable[[], object]) -> None:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        taken.append(time.perf_counter() - began)
    print(f"{statistics.median(taken) * 1000:9.1f} ms  {what} (median of {repeats})")


def main() -> None:
    lab = load_inventory(ROOT / "inventories" / "lab.py").nodes["gpu001"]
    snapshot = load("gpu001", ROOT / "tests" / "snapshots" / "converged")
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "lab.py"
        site.write_text(INVENTORY, encoding="utf-8")
        (Path(folder) / "group_data").symlink_to(ROOT / "group_data")
        timed("load and validate a site of 1000 nodes", 5, lambda: load_inventory(site))
    timed(
        "judge all settings of one node",
        20,
        lambda: judge([lab], {"gpu001": snapshot}, COMPONENTS),
    )
    command = ["sh", "-c", script(sections_of(COMPONENTS), focus_of(lab))]
    timed(
        "probe this machine, all sections",
        5,
        lambda: subprocess.run(command, capture_output=True, check=True),
    )
    print(f"{len(command[2]):9} bytes, the probe's script")


if __name__ == "__main__":
    main()
