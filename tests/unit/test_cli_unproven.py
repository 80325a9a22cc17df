"""validate warns of sets of drivers that nobody is known to have run, and still passes them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from railwright.cli import main

ROOT = Path(__file__).parents[2]
SITE = """
from railwright.site import inventory

globals().update(inventory(__file__, {"hgx": "HOSTS"}))
"""
GROUP = """
from railwright.schema import *

platform = PlatformSpec(distribution="ubuntu", release="24.04", kernel="6.8.0-60-generic")
ofed = OfedSpec(kind="doca_ofed", version="9.9.9")
"""


def site(tmp_path: Path, hosts: str = "gpu[001-003]") -> Path:
    (tmp_path / "inventories").mkdir()
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data/hgx.py").write_text(GROUP)
    path = tmp_path / "inventories/site.py"
    path.write_text(SITE.replace("HOSTS", hosts))
    return path


def test_an_unknown_set_is_a_warning_and_names_the_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(site(tmp_path))]) == 0
    told = capsys.readouterr()
    assert "all valid" in told.out
    unknown = [line for line in told.err.splitlines() if "not known to work" in line]
    assert unknown
    assert all(line.startswith("warning: gpu[001-003]: ") for line in unknown)
    assert "9.9.9" in told.err


def test_what_is_checked_and_put_on_no_host_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(site(tmp_path))]) == 0
    said = "ofed is checked here and put on no host: there is no component for it yet"
    assert f"warning: gpu[001-003]: {said}" in capsys.readouterr().err.splitlines()


def test_a_site_that_asks_for_what_no_component_does_is_never_without_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "gpu001 asks for ofed: there is no component for it yet"
    path = site(tmp_path)
    for command in ("drift", "plan", "verify"):
        assert main([command, str(path)]) == 1
        assert said in capsys.readouterr().err


def test_a_run_of_such_a_site_ends_before_the_host_is_read(tmp_path: Path) -> None:
    deploy = ROOT / "deploys" / "gpu_node.py"
    done = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "pyinfra"), "-y"),
            *(str(site(tmp_path, "@fake/gpu001")), str(deploy)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYINFRA_PROGRESS": "off"},
    )
    assert done.returncode != 0
    assert "asks for ofed: there is no component for it yet" in done.stdout + done.stderr


def test_a_set_without_drivers_gives_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site(tmp_path)
    (tmp_path / "group_data/hgx.py").write_text("")
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().err == ""
