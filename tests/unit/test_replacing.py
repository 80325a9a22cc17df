"""The script that puts a file's new text in its place, run by a real shell."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from railwright.actions import render
from railwright.replacing import replacing

OLD, NEW = b"a = 1\r\n// \xc3\xa4 no line end", b"a = 2\r\n// \xc3\xa4 and \xff no line end"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def run(file: Path, read: bytes | None) -> tuple[int, str]:
    """What the script does where the probe has read ``read``: its exit, and what it says."""
    action = replacing(str(file), NEW, None if read is None else digest(read))
    ran = subprocess.run(
        ["dash", "-s", "--", *action.arguments],
        input=action.script,
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []
    return ran.returncode, ran.stderr


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that others wrote, in a directory whose name a shell would take apart."""
    found = tmp_path / "of $(others)" / "it's.conf"
    found.parent.mkdir()
    found.write_bytes(OLD)
    return found


def test_the_file_is_replaced_byte_by_byte_and_keeps_its_mode(file: Path) -> None:
    file.chmod(0o664)
    assert run(file, OLD) == (0, "")
    assert file.read_bytes() == NEW
    assert file.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_it_runs_as_part_of_what_a_run_sends(file: Path, shell: str) -> None:
    whole = render([replacing(str(file), NEW, digest(OLD))])
    first = subprocess.run([shell, "-c", whole], capture_output=True)
    assert (first.returncode, first.stderr) == (0, b"")
    assert file.read_bytes() == NEW
    again = subprocess.run([shell, "-c", whole], capture_output=True)
    assert again.returncode == 1
    assert b"changed since it was read" in again.stderr


def test_a_file_that_was_not_there_is_made_with_its_directory(tmp_path: Path) -> None:
    file = tmp_path / "beegfs" / "beegfs-client.conf"
    assert run(file, None) == (0, "")
    assert file.read_bytes() == NEW
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("read", [b"another", None])
def test_what_was_written_since_it_was_read_is_kept(file: Path, read: bytes | None) -> None:
    assert run(file, read) == (1, f"{file}: changed since it was read, left as it is\n")
    assert file.read_bytes() == OLD


def test_a_file_that_went_away_is_not_made_again(file: Path) -> None:
    file.unlink()
    assert run(file, OLD)[0] == 1
    file.symlink_to(file.parent / "nowhere")
    assert run(file, None)[0] == 1
    assert file.is_symlink()


def test_a_link_becomes_a_file_and_what_it_led_to_stays(file: Path) -> None:
    vendor = file.rename(file.parent / "vendor.json")
    vendor.chmod(0o640)
    file.symlink_to(vendor)
    assert run(file, OLD) == (0, "")
    assert not file.is_symlink()
    assert file.read_bytes() == NEW
    assert file.stat().st_mode & 0o777 == 0o640
    assert vendor.read_bytes() == OLD


def test_the_script_is_what_shellcheck_accepts() -> None:
    script = replacing("/etc/x", NEW, None).script
    checked = subprocess.run(
        ["shellcheck", "-s", "sh", "-"], input=script, text=True, capture_output=True
    )
    assert checked.stdout == ""
