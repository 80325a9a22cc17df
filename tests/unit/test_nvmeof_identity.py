"""A host's name to targets: made once, from what is there."""

import subprocess
from pathlib import Path

import pytest

from railwright.templates import render

UUID = "11111111-2222-3333-4444-555555555555"
MADE = "99999999-2222-3333-4444-555555555555"
NQN = f"nqn.2014-08.org.nvmexpress:uuid:{UUID}"


def made(root: Path, shell: str = "sh", **files: str) -> tuple[str, str]:
    random = root / "proc/sys/kernel/random"
    random.mkdir(parents=True)
    (random / "uuid").write_text(f"{MADE}\n")
    folder = root / "etc/nvme"
    if files:
        folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [shell, "-s"],
        input=render("nvmeof/railwright-nvmeof-identity.sh.j2"),
        capture_output=True,
        text=True,
        timeout=30,
        env={"RAILWRIGHT_NVMEOF_ROOT": str(root), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["hostid", "hostnqn"]
    return (folder / "hostnqn").read_text(), (folder / "hostid").read_text()


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_bare_host_gets_one_uuid_for_both(tmp_path: Path, shell: str) -> None:
    nqn = f"nqn.2014-08.org.nvmexpress:uuid:{MADE}\n"
    assert made(tmp_path, shell) == (nqn, f"{MADE}\n")
    assert (tmp_path / "etc/nvme/hostnqn").stat().st_mode & 0o777 == 0o644


def test_one_that_is_there_gives_its_uuid_to_the_other(tmp_path: Path) -> None:
    assert made(tmp_path / "a", hostnqn=f"{NQN}\n") == (f"{NQN}\n", f"{UUID}\n")
    assert made(tmp_path / "b", hostid=f"{UUID}\n") == (f"{NQN}\n", f"{UUID}\n")


def test_what_is_there_is_never_changed(tmp_path: Path) -> None:
    named = "nqn.2014-08.org.example:host1\n"
    assert made(tmp_path / "a", hostnqn=named) == (named, f"{MADE}\n")
    assert made(tmp_path / "b", hostnqn=named, hostid=f"{UUID}\n") == (named, f"{UUID}\n")


def test_an_empty_file_is_none(tmp_path: Path) -> None:
    assert made(tmp_path, hostnqn="", hostid=f"{UUID}\n") == (f"{NQN}\n", f"{UUID}\n")
