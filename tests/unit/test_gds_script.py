"""The script that puts cufile.json in its place, run by a real shell."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from railwright.actions import RunScript, render
from tests.unit.gds_host import STOCK, done, node, snapshot, written

ASKED = node(properties={"allow_compat_mode": False})


def _script(text: str | None) -> RunScript:
    (action,) = done(ASKED, snapshot(text))
    assert isinstance(action, RunScript)
    return action


def run(file: Path, read: str | None) -> tuple[int, str]:
    """What the script does where the probe has read ``read``: its exit, and what it says."""
    action = _script(read)
    ran = subprocess.run(
        ["dash", "-s", "--", *action.arguments],
        input=action.script,
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "RW_CUFILE": str(file)},
    )
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []
    return ran.returncode, ran.stderr


def test_the_file_is_replaced_byte_by_byte_and_keeps_its_mode(tmp_path: Path) -> None:
    file, text = tmp_path / "cufile.json", STOCK.replace("\n", "\r\n") + "// \u00e4 no line end"
    file.write_bytes(text.encode())
    file.chmod(0o664)
    assert run(file, text) == (0, "")
    assert file.read_bytes().decode() == written(ASKED, snapshot(text))
    assert file.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_it_runs_as_part_of_what_a_run_sends(tmp_path: Path, shell: str) -> None:
    file = tmp_path / "cufile.json"
    file.write_text(STOCK, encoding="utf-8")
    whole, environment = render([_script(STOCK)]), {**os.environ, "RW_CUFILE": str(file)}
    first = subprocess.run([shell, "-c", whole], capture_output=True, env=environment)
    assert (first.returncode, first.stderr) == (0, b"")
    assert file.read_text(encoding="utf-8") == written(ASKED, snapshot())
    again = subprocess.run([shell, "-c", whole], capture_output=True, env=environment)
    assert again.returncode == 1
    assert b"changed since it was read" in again.stderr


def test_a_file_that_was_not_there_is_made(tmp_path: Path) -> None:
    file = tmp_path / "cufile.json"
    assert run(file, None) == (0, "")
    assert file.read_text(encoding="utf-8") == written(ASKED, snapshot(None))
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("read", [STOCK, None])
def test_what_was_written_since_it_was_read_is_kept(tmp_path: Path, read: str | None) -> None:
    file = tmp_path / "cufile.json"
    file.write_text("{}", encoding="utf-8")
    code, said = run(file, read)
    assert code == 1
    assert "changed since it was read, left as it is" in said
    assert file.read_text(encoding="utf-8") == "{}"


def test_a_file_that_went_away_is_not_made_again(tmp_path: Path) -> None:
    file = tmp_path / "cufile.json"
    assert run(file, STOCK)[0] == 1
    file.symlink_to(tmp_path / "nowhere")
    assert run(file, None)[0] == 1
    assert file.is_symlink()


def test_a_link_becomes_a_file_and_what_it_led_to_stays(tmp_path: Path) -> None:
    vendor, file = tmp_path / "vendor.json", tmp_path / "cufile.json"
    vendor.write_text(STOCK, encoding="utf-8")
    vendor.chmod(0o640)
    file.symlink_to(vendor)
    assert run(file, STOCK) == (0, "")
    assert not file.is_symlink()
    assert file.read_text(encoding="utf-8") == written(ASKED, snapshot())
    assert file.stat().st_mode & 0o777 == 0o640
    assert vendor.read_text(encoding="utf-8") == STOCK


def test_the_digest_is_that_of_the_bytes_that_were_read() -> None:
    assert _script(STOCK).arguments == (hashlib.sha256(STOCK.encode()).hexdigest(),)


def test_the_script_is_what_shellcheck_accepts() -> None:
    checked = subprocess.run(
        ["shellcheck", "-s", "sh", "-"], input=_script(STOCK).script, text=True, capture_output=True
    )
    assert checked.stdout == ""
