"""Whose repositories a node has, what dpkg left off, and what rpm repositories offer."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.repositories import (
    AUDIT,
    ENTRIES,
    SECTIONS,
    Entry,
    RepositoriesFact,
    canonical,
    host_of,
    offered_of,
    parse_audit,
    parse_entries,
    parse_repoquery,
    plain,
)
from railwright.snapshot import Section, Snapshot

LIST, SOURCES = "/etc/apt/sources.list", "/etc/apt/sources.list.d/ubuntu.sources"
REPO = "/etc/yum.repos.d/cuda.repo"


def numbered(path: str, text: str) -> str:
    """As grep -n prints a file."""
    return "".join(f"{path}:{n}:{line}\n" for n, line in enumerate(text.splitlines(), 1))


def entries(path: str, text: str) -> list[tuple[int, str, str | None, bool]]:
    found = parse_entries(numbered(path, text))
    assert {entry.path for entry in found} <= {path}
    return [(entry.line, entry.url, entry.suite, entry.enabled) for entry in found]


def test_one_line_sources() -> None:
    text = (
        "# deb http://old.example/ stable main\n"
        "deb http://deb.example/debian bookworm main contrib\n"
        "deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] https://repo.example/doca ./\n"
        "deb-src http://deb.example/debian bookworm main\n"
    )
    assert entries(LIST, text) == [
        (2, "http://deb.example/debian", "bookworm", True),
        (3, "https://repo.example/doca", "./", True),
    ]


def test_deb822_sources() -> None:
    text = (
        "# Ubuntu\nTypes: deb\nURIs: http://a.example/ubuntu/ http://b.example/ubuntu\n"
        "Suites: noble\n noble-updates\nComponents: main\n\n"
        "types: deb-src\nuris: http://src.example/\nsuites: noble\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://off.example/\nSuites: noble\n"
    )
    assert entries(SOURCES, text) == [
        (3, "http://a.example/ubuntu/", "noble", True),
        (3, "http://a.example/ubuntu/", "noble-updates", True),
        (3, "http://b.example/ubuntu", "noble", True),
        (3, "http://b.example/ubuntu", "noble-updates", True),
        (14, "http://off.example/", "noble", False),
    ]


def test_repositories_of_dnf() -> None:
    text = (
        "[main]\ngpgcheck=1\n\n[cuda]\nname=cuda\nbaseurl=https://a.example/rhel9/x86_64\n"
        "    https://b.example/rhel9\nenabled = 1\n; a note\n\n"
        "[off]\nenabled=0\nbaseurl=https://off.example/\n\n[mirrors]\nmirrorlist=https://m.example\n"
    )
    assert entries(REPO, text) == [
        (6, "https://a.example/rhel9/x86_64", None, True),
        (7, "https://b.example/rhel9", None, True),
        (13, "https://off.example/", None, False),
    ]


@pytest.mark.parametrize("text", ["unreadable /etc/apt/sources.list\n", "deb http://x y\n"])
def test_entries_that_cannot_be_read_are_not_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be read|expected a line"):
        parse_entries(text)


@given(
    st.sampled_from([LIST, SOURCES, REPO]),
    st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" \t\n")),
)
def test_any_file_has_entries_or_none(path: str, text: str) -> None:
    lines = "".join(f"{path}:{n}:{line}\n" for n, line in enumerate(text.split("\n"), 1))
    assert all(entry.line <= len(text.split("\n")) for entry in parse_entries(lines))


def test_addresses_are_compared_by_meaning() -> None:
    assert plain("HTTPS://Repo.example/doca/") == plain("https://repo.example/doca")
    assert plain("https://repo.example/doca") != plain("https://repo.example/doca2")
    assert (host_of("https://u@repo.example:8443/x"), host_of("file:///srv")) == (
        "repo.example",
        "",
    )
    assert (canonical("0:1.0"), canonical("3:1.0")) == ("1.0", "3:1.0")


def test_the_probe_keeps_names_and_passwords_to_itself(tmp_path: Path) -> None:
    folder = tmp_path / "etc/apt/sources.list.d"
    folder.mkdir(parents=True)
    (folder / "a.list").write_text("deb https://me:secret@repo.example/x ./\n")
    (folder / "railwright-x.sources").write_text("Types: deb\n")
    script = ENTRIES.script.replace("/etc/", f"{tmp_path}/etc/")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert "secret" not in done.stdout
    assert parse_entries(done.stdout) == [
        Entry(path=f"{folder}/a.list", line=1, url="https://repo.example/x", suite="./")
    ]


def test_what_dpkg_left_off() -> None:
    whole = parse_audit("manager dpkg\n")
    assert (whole.manager, whole.interrupted) == ("dpkg", [])
    left = parse_audit(
        "manager dpkg\nupdate 0003\nhalf-configured ok doca-ofed\n"
        "half-installed reinstreq libnvidia-compute-580:amd64\n"
    )
    assert left.interrupted == [
        "its journal",
        "doca-ofed half-configured",
        "libnvidia-compute-580:amd64 half-installed (reinstreq)",
    ]
    # Not what dpkg takes for a journal, nor what apt asks for.
    assert not parse_audit("manager dpkg\nupdate 0003.tmp\n").journal
    assert parse_audit("manager rpm\n").interrupted == []
    assert parse_audit("").manager is None


@pytest.mark.parametrize(
    "text", ["installed ok x\n", "manager dpkg\nfailed\n", "manager apk\n", "left x y\n"]
)
def test_an_audit_that_cannot_be_read_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|manager"):
        parse_audit(text)


# dnf 4.14 after kill -9 in the middle of an upgrade; and after one that came to its end, where
# somebody has installed something with rpm since.
KILLED = """\
Transaction ID : 2
Begin time     : Mon Nov 30 19:03:20 2026
Begin rpmdb    : d813bc8951a36d9adc4f11f06557b9a812805b7acae570640e704edc181731f3
End time       : Thu Jan  1 00:00:00 1970 (-1796065400 seconds)
End rpmdb      :  **
User           : System <unset>
Return-Code    : Failure: 1
Releasever     :
Command Line   : -y --setopt=clean_requirements_on_remove=False shell /dev/stdin
Comment        :
Packages Altered:
 ** Upgrade  kmod-nvidia-open-dkms-3:580.105.08-1.el9.noarch            @railwright-cuda
 ** Upgraded kmod-nvidia-open-dkms-3:580.95.05-1.el9.noarch             @@System
 ** Upgrade  doca-ofed-3.2.1-044000.el9.x86_64                          @railwright-doca
 ** Upgraded doca-ofed-3.2.0-125000.el9.x86_64                          @@System
"""
ENDED = """\
Transaction ID : 1
Begin rpmdb    : 77f2464bd1f98bad1661181cebefdaf0f5ff6891d41a1542bd5e4b10f1d4e19f
End time       : Mon Nov 30 19:03:03 2026 (1 seconds)
End rpmdb      : d813bc8951a36d9adc4f11f06557b9a812805b7acae570640e704edc181731f3 **
Return-Code    : Success
Packages Altered:
    Install doca-ofed-3.2.0-125000.el9.x86_64                          @railwright-doca
"""


@pytest.mark.parametrize(
    ("history", "unfinished"),
    [
        (KILLED, {"kmod-nvidia-open-dkms": "3:580.105.08-1.el9", "doca-ofed": "3.2.1-044000.el9"}),
        (ENDED, {}),
        ("", {}),
    ],
)
def test_what_dnf_left_off(tmp_path: Path, history: str, unfinished: dict[str, str]) -> None:
    (tmp_path / "history").write_text(history)
    for tool, does in (("dnf", f"cat {tmp_path}/history"), ("rpm", "exit 0")):
        (tmp_path / tool).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / tool).chmod(0o755)
    section = AUDIT.script.replace("/var/lib/dpkg/", f"{tmp_path}/")
    told = subprocess.run(
        ["sh", "-c", f"RW_PACKAGES=doca-ofed\ns() {{\n{section}\n}}\ns"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = parse_audit(told.stdout)
    assert (found.manager, found.unfinished) == ("rpm", unfinished)
    assert found.interrupted == sorted(f"{name} {at}" for name, at in unfinished.items())


# As dnf 4 prints it (a blank line after each) and as dnf 5 does.
REPOQUERY = (
    "nvidia-open\t3:580.95.05-1.el9\n\nnvidia-open\t3:580.82.07-1.el9\n\ndoca-ofed\t0:3.2.1-1\n"
)


def test_what_dnf_offers() -> None:
    assert parse_repoquery(REPOQUERY) == {
        "nvidia-open": {"3:580.95.05-1.el9", "3:580.82.07-1.el9"},
        "doca-ofed": {"3.2.1-1"},
    }
    with pytest.raises(ValueError, match="dnf offers"):
        parse_repoquery("Error: Cache-only enabled but no cache for 'cuda'\n")


def offered(deb: Section, rpm: Section) -> dict[str, set[str]] | None:
    sections = {"packages_offered": deb, "packages_offered_rpm": rpm}
    return offered_of(Snapshot(host="n1", marker="m", sections=sections))


def test_what_could_not_be_asked_is_not_known() -> None:
    nothing = Section(stdout="", rc=0)
    assert offered(nothing, nothing) == {}
    madison = Section(stdout=" x | 1.0 | file:/srv ./ Packages\n", rc=0)
    assert offered(madison, nothing) == {"x": {"1.0"}}
    assert offered(nothing, Section(stdout=REPOQUERY, rc=0)) == parse_repoquery(REPOQUERY)
    assert offered(nothing, Section(stdout="", rc=1)) is None
    assert offered(Section(stdout="", rc=100), nothing) is None
    assert offered(Section(stdout="", rc=None, ended="deadline"), nothing) is None


def test_the_fact_reads_its_sections() -> None:
    sections = {
        ENTRIES.name: Section(stdout=numbered(LIST, "deb http://a.example/ x\n"), rc=0),
        AUDIT.name: Section(stdout="manager dpkg\n", rc=0),
    }
    found = RepositoriesFact().read(Snapshot(host="n1", marker="m", sections=sections))
    assert [entry.decider for entry in found.entries] == [f"{LIST}:1"]
    failed = Section(stdout="manager dpkg\nfailed\n", stderr="dpkg-query: error", rc=0)
    with pytest.raises(ValueError, match="dpkg-query: error"):
        RepositoriesFact().read(
            Snapshot(host="n1", marker="m", sections={**sections, AUDIT.name: failed})
        )


def test_the_sections_are_what_shellcheck_accepts() -> None:
    for section in SECTIONS:
        checked = subprocess.run(
            ["shellcheck", "-s", "sh", "-e", "SC2034,SC2154,SC2317,SC2329", "-"],
            input=f"s_{section.name}() {{\n{section.script}\n}}\ns_{section.name}\n",
            capture_output=True,
            text=True,
        )
        assert checked.returncode == 0, checked.stdout
