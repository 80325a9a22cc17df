"""The script that a component's actions become, run by a real shell on real files."""

import os
import subprocess
from pathlib import Path

import pytest

from railwright.actions import Action, InstallFile, RemoveFile, Run, WriteValue, render


def run(*actions: Action) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", render(actions)], capture_output=True, text=True)


def install(path: Path, content: str, **more: object) -> InstallFile:
    return InstallFile.model_validate({"path": str(path), "content": content, **more})


def test_a_file_is_installed_with_its_mode_and_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "new.d" / "x.conf"
    done = run(install(target, "a = $HOME `id`\n\\n'\"\n", mode="600"))
    assert (done.returncode, done.stderr) == (0, "")
    assert target.read_text() == "a = $HOME `id`\n\\n'\"\n"
    assert oct(target.stat().st_mode & 0o777) == "0o600"


def test_a_file_is_put_in_place_by_rename(tmp_path: Path) -> None:
    target = tmp_path / "x.conf"
    target.write_text("old\n")
    other_name = tmp_path / "old-inode"
    os.link(target, other_name)
    assert run(install(target, "new\n")).returncode == 0
    assert target.read_text() == "new\n"
    assert other_name.read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old-inode", "x.conf"]


def test_content_that_looks_like_the_end_of_a_here_document_is_content(tmp_path: Path) -> None:
    target = tmp_path / "x"
    content = "RAILWRIGHT_END\nRAILWRIGHT_END_\n"
    assert run(install(target, content)).returncode == 0
    assert target.read_text() == content


def test_a_refused_file_leaves_the_old_one_and_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "x.conf"
    target.write_text("old\n")
    done = run(install(target, "bad\n", check=("grep", "-q", "good")))
    assert done.returncode == 1
    assert "refused by grep -q good, left as it was" in done.stderr
    assert target.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [target]


def test_an_accepted_file_takes_its_place(tmp_path: Path) -> None:
    target = tmp_path / "x.conf"
    assert run(install(target, "good\n", check=("grep", "-q", "good"))).returncode == 0
    assert target.read_text() == "good\n"


def test_one_failure_does_not_stop_the_rest_and_is_named(tmp_path: Path) -> None:
    done = run(
        Run(command=("false",)),
        WriteValue(path=str(tmp_path / "none" / "x"), value="1"),
        install(tmp_path / "y", "y\n"),
    )
    assert done.returncode == 1
    assert "railwright: failed: false" in done.stderr
    assert f"{tmp_path}/none/x: the kernel refuses 1" in done.stderr
    assert (tmp_path / "y").read_text() == "y\n"


def test_a_value_is_written_as_one_line(tmp_path: Path) -> None:
    target = tmp_path / "knob"
    target.touch()
    assert run(WriteValue(path=str(target), value="4096 131072; rm -rf /")).returncode == 0
    assert target.read_text() == "4096 131072; rm -rf /\n"


def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    assert run(Run(command=("touch", str(tmp_path / "$(id) ; x")))).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["$(id) ; x"]


def test_removing_what_is_not_there_is_no_failure(tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.touch()
    assert run(RemoveFile(path=str(target)), RemoveFile(path=str(target))).returncode == 0
    assert not target.exists()


def test_a_last_line_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a last line that ends"):
        render([install(tmp_path / "x", "no end")])
