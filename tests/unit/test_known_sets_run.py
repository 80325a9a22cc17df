"""A run by pyinfra of a host whose set is known to be bad: nothing is done to it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.gpu_host import host
from tests.unit.test_recorded import ROOT, fleet

DEPLOY = """
from pyinfra.context import ctx_host

from deploys.node import converge
from railwright.actions import Run
from railwright.component import Component
from railwright.schema import GdsSpec, GpuDriverSpec
from railwright.settings import NOTHING, Setting, Standing, State

host = ctx_host.get()
asked = {
    "gpu_driver": GpuDriverSpec(version="580.95.05"),
    "gds": GdsSpec(mode="nvidia-fs", version="VERSION"),
}
host.data.node = host.data.node.model_copy(update=asked)
wrong = Setting(
    component="c",
    key="k",
    desired="x",
    persisted=State(standing=Standing.WRONG),
    running=NOTHING,
)
change = Run(command=("install", "everything"))
converge(host, [Component("c", (), lambda _n, _s: [wrong], lambda _n, _s, _f: iter([change]))])
"""
ROW = "kernel-nvidia_fs/before-2.19.6-on-6.5"


@pytest.mark.parametrize("words", [["--dry"], ["-y"]])
@pytest.mark.parametrize(("version", "refused"), [("2.18.3", True), ("2.29.4", False)])
def test_pyinfra_does_nothing_to_a_host_whose_set_is_known_to_be_bad(
    version: str, refused: bool, words: list[str], tmp_path: Path
) -> None:
    inventory = fleet(tmp_path, {"@fake/gpu001": "usual"}, {"usual": host()})
    deploy = tmp_path / "deploy.py"
    deploy.write_text(DEPLOY.replace("VERSION", version))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "pyinfra"), *words, str(inventory), str(deploy)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYINFRA_PROGRESS": "off"},
        capture_output=True,
        text=True,
    )
    assert (ROW in done.stderr) is refused, done.stderr
    commands = json.loads((tmp_path / "counts.json").read_text())["@fake/gpu001"]
    # The one command is the probe.
    assert (commands == 1) is (refused or words == ["--dry"])
    # The host answers as before whatever is done to it, and so is failed in either case.
    assert done.returncode == (1 if words == ["-y"] else 0), done.stderr
