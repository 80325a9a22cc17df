"""What dpkg, rpm and apt print of packages, as the probe brings it."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.packages import (
    HISTORY,
    PackagesFact,
    packages_of,
    parse_blacklist,
    parse_history,
    parse_madison,
    parse_packages,
)
from railwright.snapshot import Section, Snapshot

DPKG = (
    "manager dpkg\n"
    "chrony\t4.3-2+deb12u3\tinstall\tinstalled\n"
    "libnvidia-compute-460:amd64\t460.56-0ubuntu0.20.04.1\thold\tinstalled\n"
    "libnvidia-compute-460:i386\t460.56-0ubuntu0.20.04.1\tinstall\tinstalled\n"
    "gone\t1.0\tdeinstall\tconfig-files\n"
    "never\t\tunknown\tnot-installed\n"
)


def test_dpkg() -> None:
    found = parse_packages(DPKG)
    assert found.manager == "dpkg"
    assert [(p.name, p.held) for p in found.installed("libnvidia-compute-460")] == [
        ("libnvidia-compute-460:amd64", True),
        ("libnvidia-compute-460:i386", False),
    ]
    assert found.installed("chrony")[0].version == "4.3-2+deb12u3"
    assert found.installed("gone") == found.installed("never") == found.installed("x") == []


def test_rpm() -> None:
    found = parse_packages(
        "manager rpm\n"
        "nvidia-driver\t3:550.54.14-1.el9\tinstall\tinstalled\n"
        "package doca-ofed is not installed\n"
        "kernel\t5.14.0-427.el9\tinstall\tinstalled\nkernel\t5.14.0-503.el9\tinstall\tinstalled\n"
    )
    assert found.manager == "rpm"
    assert [p.version for p in found.packages] == [
        "3:550.54.14-1.el9",
        "5.14.0-427.el9",
        "5.14.0-503.el9",
    ]


def test_nothing_asked_is_nothing_found() -> None:
    assert parse_packages("").manager is None


@pytest.mark.parametrize("text", ["chrony\t1\tinstall\tinstalled\n", "manager dpkg\nchrony 1\n"])
def test_rubbish_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="expected a package"):
        parse_packages(text)


def seen(section: Section) -> Snapshot:
    return Snapshot(host="n1", marker="m", sections={"packages": section})


def test_a_name_that_dpkg_does_not_know_is_no_failure() -> None:
    unknown = Section(stdout=DPKG, stderr="dpkg-query: no packages found matching x", rc=1)
    assert len(packages_of(seen(unknown)).packages) == 5
    assert PackagesFact().read(seen(unknown)) == packages_of(seen(unknown))
    broken = Section(stdout="manager dpkg\n", stderr="dpkg-query: error: parsing file", rc=2)
    with pytest.raises(ValueError, match="parsing file"):
        packages_of(seen(broken))


def test_the_fact_asks_for_packages_by_name() -> None:
    assert "RW_PACKAGES='chrony gone=1.0'" in PackagesFact().command(packages="chrony,gone=1.0")


def test_madison() -> None:
    found = parse_madison(
        "railwright-lab-held |        1.1 | file:/srv/lab-repo ./ Packages\n"
        "railwright-lab-held |        1.0 | file:/srv/lab-repo ./ Packages\n"
    )
    assert found == {"railwright-lab-held": {"1.0", "1.1"}}
    assert parse_madison("") == {}
    with pytest.raises(ValueError, match="madison"):
        parse_madison("E: Could not open lock file\n")


UPGRADED = "libnvidia-compute-460:amd64 (460.56-0ubuntu0.20.04.1, 460.73.01-0ubuntu0.20.04.1)"
LOG = f"""\
libold:amd64 (1, 2)
End-Date: 2021-04-19  06:25:33

Start-Date: 2021-04-20  06:25:32
Commandline: /usr/bin/unattended-upgrade
Upgrade: {UPGRADED}, tzdata:all (1, 2)
Remove: linux-image-5.4:amd64 (5.4.0-70.78)
End-Date: 2021-04-20  06:26:01

Start-Date: 2021-04-21  10:00:00
Requested-By: ops (1000)
Install: libstdc++6:amd64 (12.2.0-14, automatic), g++:amd64 (4:12.2.0-3)
End-Date: 2021-04-21  10:00:01
"""


def test_history() -> None:
    found = parse_history(LOG)
    assert [(c.name, c.old, c.new) for c in found] == [
        ("libnvidia-compute-460", "460.56-0ubuntu0.20.04.1", "460.73.01-0ubuntu0.20.04.1"),
        ("tzdata", "1", "2"),
        ("libstdc++6", None, "12.2.0-14"),
        ("g++", None, "4:12.2.0-3"),
    ]
    assert {(c.date, c.command) for c in found} == {
        ("2021-04-20 06:25:32", "/usr/bin/unattended-upgrade"),
        ("2021-04-21 10:00:00", "a command that apt does not name"),
    }


def filtered(packages: str, log: Path) -> str:
    """The log through the probe's own filter."""
    script = HISTORY.script.replace("/var/log/apt/history.log", str(log))
    body = f"RW_PACKAGES='{packages}'\nsection() {{\n{script}\n}}\nsection"
    done = subprocess.run(["sh", "-c", body], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_the_probe_keeps_what_is_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "history.log"
    log.write_text(LOG)
    wanted = [c for c in parse_history(LOG) if c.name == "g++"]
    kept = filtered("g++ linux-image-5.4=1 none", log)
    assert [c for c in parse_history(kept) if c.name == "g++"] == wanted
    # What was removed left no version behind.
    assert not [c for c in parse_history(kept) if c.name == "linux-image-5.4"]
    assert "tzdata" not in kept
    assert filtered("", log) == ""
    assert filtered("g++", tmp_path / "nowhere") == ""


@given(st.text())
def test_any_history_is_read(text: str) -> None:
    assert all(change.date for change in parse_history(text))


def test_blacklist() -> None:
    dump = (
        'Unattended-Upgrade::Package-Blacklist "";\n'
        'Unattended-Upgrade::Package-Blacklist:: "^libstdc\\+\\+6$";\n'
        'Unattended-Upgrade::Package-Blacklist:: "nvidia";\n'
    )
    assert parse_blacklist(dump) == ["^libstdc\\+\\+6$", "nvidia"]
    assert parse_blacklist("") == []
