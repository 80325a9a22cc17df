"""validate warns of sets of drivers that nobody is known to have run, and still passes them."""

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


def test_a_set_without_drivers_gives_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site(tmp_path)
    (tmp_path / "group_data/hgx.py").write_text("")
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().err == ""
