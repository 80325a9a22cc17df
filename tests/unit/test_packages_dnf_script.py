"""The script for dnf, on what dnf 4.14 was recorded to say; tests/dnf has dnf itself."""

import os
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from railwright.templates import render

# Each says what it was told. What is installed are lines "NAME EPOCH:VERSION-RELEASE" of a file; a
# transaction that is done puts another one in its place.
DNF = """#!/bin/sh
echo "dnf $*" >>"$LOG"
case "$*" in
*skip_if_unavailable*) [ -z "$UNFETCHED" ] ;;
*versionlock*delete*) [ -z "$LOCKLESS" ] ;;
*repoquery*) cat "$FOLDER/offered" ;;
*shell*)
    sed 's/^/: /' >>"$LOG"
    case $1 in
    --assumeno) cat "$FOLDER/plan" ;;
    *) cp "$FOLDER/after" "$FOLDER/installed" ;;
    esac
    ;;
esac
"""
RPM = """#!/bin/sh
case $1 in
-qa) sed 's/ .*://' "$FOLDER/installed" ;;
*) for name; do :; done; sed -n "s/^$name //p" "$FOLDER/installed" | grep . ;;
esac
"""
HEAD = """\
Last metadata expiration check: 0:01:46 ago on Mon Nov 30 19:03:01 2026.
=======================================================================================
 Package                 Arch    Version                        Repository         Size
=======================================================================================
"""
TAIL = """
Transaction Summary
=======================================================================================
Install  1 Package

Total size: 83 k
Error: Operation aborted.
Dependencies resolved.
Nothing to do.
Complete!
"""
INSTALLS = f"""{HEAD}Installing:
 kmod-open               noarch  3:2-1.el9                      railwright-cuda   9.8 k
Installing dependencies:
 mlnx-tools              noarch  25.10-0.2510171                railwright-doca   6.5 k
{TAIL}"""
REPLACES = f"""{HEAD}Installing:
 kmod-open               noarch  3:2-1.el9                      railwright-cuda   9.8 k
Removing:
 kmod-closed             noarch  3:2-1.el9                      @railwright-cuda  8.1 k
{TAIL}"""
DEPENDENT = f"""{HEAD}Installing:
 kmod-open               noarch  3:2-1.el9                      railwright-cuda   9.8 k
Removing:
 kmod-closed             noarch  3:2-1.el9                      @railwright-cuda  8.1 k
Removing dependent packages:
 somebodys               x86_64  1.0-1                          @other            3.2 k
{TAIL}"""
OBSOLETES = f"""{HEAD}Installing:
 kmod-open               noarch  3:2-1.el9                      railwright-cuda   9.8 k
     replacing  somebodys.x86_64 1.0-1
{TAIL}"""
AGAIN = f"""{HEAD}Reinstalling:
 kmod-open               noarch  3:2-1.el9                      railwright-cuda   9.8 k
     replacing  kmod-open.noarch 3:1-1.el9
{TAIL}"""
SKIPS = f"""{HEAD}Skipping packages with broken dependencies:
 kmod-open               noarch  3:2-1.el9                      railwright-cuda   9.8 k
{TAIL}"""
OFFERED = "kmod-open=3:1-1.el9\n\nkmod-open=3:2-1.el9\n\n"
OPEN, CLOSED, OLD = "kmod-open 3:2-1.el9", "kmod-closed 3:2-1.el9", "kmod-open 3:1-1.el9"
INSTALL = "install:kmod-open=3:2-1.el9"
REFUSED = "railwright: no package is changed"


class Ended(NamedTuple):
    """How the script ended, what it said and what it ran."""

    status: int
    said: list[str]
    ran: list[str]

    @property
    def commands(self) -> list[str]:
        """What dnf's shell was told, each time."""
        return [line.removeprefix(": ") for line in self.ran if line.startswith(": ")]


class Node:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("dnf", DNF), ("rpm", RPM)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def run(
        self,
        *words: str,
        plan: str = INSTALLS,
        installed: tuple[str, ...] = (),
        after: tuple[str, ...] = (OPEN,),
        offered: str = OFFERED,
        environment: Mapping[str, str] | None = None,
    ) -> Ended:
        files = {"plan": plan, "offered": offered, "log": ""}
        files |= {"installed": "".join(f"{one}\n" for one in installed)}
        files |= {"after": "".join(f"{one}\n" for one in after)}
        for name, text in files.items():
            (self.folder / name).write_text(text)
        known = {"FOLDER": str(self.folder), "LOG": str(self.folder / "log")}
        known |= {"PATH": f"{self.folder}:{os.environ['PATH']}", "UNFETCHED": "", "LOCKLESS": ""}
        ended = subprocess.run(
            ["sh", "-s", "--", *words],
            input=render("packages/dnf.sh.j2"),
            env={**known, **(environment or {})},
            text=True,
            capture_output=True,
            check=False,
        )
        ran = (self.folder / "log").read_text().splitlines()
        return Ended(ended.returncode, ended.stdout.splitlines(), ran)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_dnf_is_asked_for_the_plan_then_for_the_deed_with_the_locks_off(node: Node) -> None:
    ended = node.run("source:railwright-cuda", "refresh", INSTALL)
    assert ended.status == 0, ended.said
    shell = "--setopt=clean_requirements_on_remove=False shell /dev/stdin"
    told = [": install kmod-open-3:2-1.el9", ": run"]
    assert ended.ran == [
        "dnf -q -y --repo=railwright-cuda --setopt=railwright-cuda.skip_if_unavailable=False "
        "makecache --refresh",
        "dnf -q -y makecache --refresh",
        "dnf -q --disableplugin=versionlock repoquery --available --showduplicates "
        "--qf %{name}=%{epoch}:%{version}-%{release} kmod-open",
        "dnf -q -y versionlock delete kmod-open",
        f"dnf --assumeno {shell}",
        *told,
        f"dnf -y {shell}",
        *told,
        "dnf -q -y versionlock add kmod-open",
    ]


def test_nothing_is_done_where_a_key_is_not_the_one_that_was_checked(node: Node) -> None:
    key = node.folder / "key.asc"
    key.write_text("checked\n")
    word = f"key:{key}={sha256(key.read_bytes()).hexdigest()}"
    assert node.run(word, INSTALL).status == 0
    key.write_text("another\n")
    ended = node.run(word, "source:railwright-cuda", INSTALL)
    assert (ended.status, ended.ran) == (1, [])
    assert ended.said == [
        f"railwright: {key} is not the key that was checked: no package is changed"
    ]
    key.unlink()
    assert node.run(word, INSTALL).status == 1


def test_nothing_is_done_where_the_index_cannot_be_had(node: Node) -> None:
    ended = node.run("source:railwright-cuda", INSTALL, environment={"UNFETCHED": "yes"})
    assert ended.status == 1
    assert ended.said[-1].endswith("is not signed by its key: no package is changed")
    assert len(ended.ran) == 1


def test_nothing_is_done_where_one_version_is_gone_not_even_to_the_locks(node: Node) -> None:
    ended = node.run(INSTALL, "install:b=1-1", installed=(OLD,))
    assert ended.status == 1
    assert ended.said == ["railwright: no repository offers b 1-1; offered: none", REFUSED]
    assert not any("lock delete" in line or "shell" in line for line in ended.ran)
    other = node.run("install:kmod-open=3:9-1.el9", installed=(OLD,))
    assert "kmod-open 3:9-1.el9; offered: 3:1-1.el9 3:2-1.el9" in other.said[0]


def test_nothing_is_done_where_dnf_cannot_lock_versions(node: Node) -> None:
    ended = node.run(INSTALL, environment={"LOCKLESS": "yes"})
    assert ended.status == 1
    assert "python3-dnf-plugin-versionlock" in ended.said[0]
    assert ended.commands == []


def test_what_stands_in_the_way_goes_in_the_same_transaction(node: Node) -> None:
    ended = node.run("remove:kmod-closed", INSTALL, plan=REPLACES, installed=(CLOSED,))
    assert ended.status == 0, ended.said
    assert ended.commands == ["remove kmod-closed", "install kmod-open-3:2-1.el9", "run"] * 2


@pytest.mark.parametrize("plan", [DEPENDENT, OBSOLETES])
def test_nothing_goes_that_nothing_names(node: Node, plan: str) -> None:
    there = (CLOSED, "somebodys 0:1.0-1")
    ended = node.run("remove:kmod-closed", INSTALL, plan=plan, installed=there)
    assert ended.status == 1
    assert ended.said[0] == "railwright: somebodys would be removed, which nothing names"
    assert ended.said[-1] == REFUSED
    assert ended.commands == ["remove kmod-closed", "install kmod-open-3:2-1.el9", "run"]


def test_a_plan_without_what_is_asked_for_is_not_done(node: Node) -> None:
    nothing = "Error: Unable to find a match: kmod-open-3:2-1.el9\nNothing to do.\nComplete!\n"
    for plan in (nothing, SKIPS):
        ended = node.run("remove:kmod-closed", INSTALL, plan=plan, installed=(CLOSED,))
        assert ended.status == 1
        assert ended.said[0] == "railwright: dnf would not install kmod-open 3:2-1.el9"
        assert ended.said[-1] == REFUSED


def test_a_transaction_that_dnf_did_not_do_is_a_failure_though_it_exits_with_0(node: Node) -> None:
    ended = node.run(INSTALL, installed=(OLD,), after=(OLD,))
    assert ended.status == 1
    assert ended.said[-1] == REFUSED
    # The version that stays is locked again.
    assert ended.ran[-1] == "dnf -q -y versionlock add kmod-open"


def test_a_package_that_is_there_beside_another_version_is_installed_anew(node: Node) -> None:
    ended = node.run(INSTALL, plan=AGAIN, installed=(OLD, OPEN))
    assert ended.status == 0, ended.said
    assert ended.commands == ["reinstall kmod-open-3:2-1.el9", "run"] * 2


def test_what_was_left_off_is_installed_anew_only_where_it_is_there(node: Node) -> None:
    words = ("again:tools=0:1-1", "again:others=2-1", INSTALL)
    there = (OLD, OPEN, "tools 0:1-1", "others 0:1-1")
    ended = node.run(*words, plan=AGAIN, installed=there)
    assert ended.commands[:3] == ["reinstall kmod-open-3:2-1.el9", "reinstall tools-1-1", "run"]
