"""The transaction of apt by a real shell, over stubs. Molecule has the real ones."""

import os
import subprocess
from pathlib import Path

import pytest

from railwright.templates import render

STUB = """\
#!/bin/sh
echo "${0##*/} $*" >>"$LOG"
case ${0##*/} in
    apt-cache) cat "$FOLDER/offered" ;;
    dpkg-query)
        for name; do :; done
        sed -n "s/^$name //p" "$FOLDER/installed"
        ;;
    apt-get) case " $* " in *" update "*) touch "$FOLDER/lists/updated" ;; esac ;;
esac
"""
INSTALL = "apt-get -qq install"


class Node:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "lists").mkdir()
        for name in ("apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query"):
            (folder / name).write_text(STUB)
            (folder / name).chmod(0o755)

    def run(
        self, *words: str, offered: str = "", installed: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        (self.folder / "offered").write_text(offered)
        (self.folder / "installed").write_text(installed)
        return subprocess.run(
            ["sh", "-s", "--", *words],
            input=render("packages/apt.sh.j2", install=INSTALL),
            env={
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "FOLDER": str(self.folder),
                "LOG": str(self.folder / "log"),
                "RAILWRIGHT_LISTS": str(self.folder / "lists"),
            },
            text=True,
            capture_output=True,
        )

    @property
    def ran(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_what_no_repository_offers_is_refused(node: Node) -> None:
    ended = node.run("install:doca-ofed=3.2.0", offered=" doca-ofed | 3.1.0 | http://x Packages\n")
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        "railwright: no repository offers doca-ofed 3.2.0; offered: 3.1.0 ",
        "railwright: no package is changed",
    ]
    assert not any(line.startswith("apt-get -qq install") for line in node.ran)


def test_what_is_there_by_now_is_asked_of_no_repository(node: Node) -> None:
    # A run that was cut off had unpacked it, and this one has configured it.
    installed = "doca-ofed installed 3.2.0\n"
    ended = node.run("configure", "install:doca-ofed=3.2.0", installed=installed)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "dpkg --force-confold --configure -a" in node.ran
    assert node.ran[-1] == "apt-mark -qq hold doca-ofed"


@pytest.mark.parametrize("state", ["unpacked 3.2.0", "installed 3.1.0", "config-files 3.2.0"])
def test_what_is_half_there_or_of_another_version_is_asked_for(node: Node, state: str) -> None:
    ended = node.run("install:doca-ofed=3.2.0", installed=f"doca-ofed {state}\n")
    assert ended.returncode == 1


def test_an_index_that_a_power_cut_left_empty_is_fetched_anew(node: Node) -> None:
    lists = node.folder / "lists"
    for name, text in (("a_Packages", ""), ("b_Packages", "Package: b\n"), ("lock", "")):
        (lists / name).write_text(text)
    (lists / "linked_Packages").symlink_to("a_Packages")
    (lists / "partial").mkdir()
    assert node.run("refresh").returncode == 0
    left = {path.name for path in lists.iterdir()}
    assert left == {"b_Packages", "lock", "linked_Packages", "partial", "updated"}
