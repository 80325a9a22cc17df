"""The drivers' packages by dnf itself, from signed repositories of the vendors' stand-ins."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dnf import container as podman
from tests.dnf.asked import CLOSED, packages
from tests.dnf.container import Container
from tests.dnf.image import DNF
from tests.molecule.image import ensure
from tests.standins.releases import DRIVERS, OFED
from tests.standins.rpms import DISTRIBUTION, EPOCH

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
COMPONENTS = ("packages", "ofed", "gpu_driver", "gds")
CONVERGED = "localhost/railwright-dnf-converged:test"


def named(release: int) -> dict[str, str]:
    """All packages that an inventory of ``release`` names."""
    return {name: at for part in packages(release).values() for name, at in part.items()}


def there(release: int) -> dict[str, str]:
    """All packages that are then on the node: what others need beside those named."""
    return named(release) | {"mlnx-tools": OFED[1].tools, DISTRIBUTION.name: DISTRIBUTION.version}


def locked(release: int) -> list[str]:
    """The lines that dnf's versionlock has for them."""
    return sorted(
        f"{name}-{at if ':' in at else f'0:{at}'}.*" for name, at in named(release).items()
    )


class Site:
    """The project's commands on the inventories beside this file."""

    def __init__(self, standins: Path) -> None:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}
        self.environment |= {"RAILWRIGHT_STANDINS": str(standins)}

    def command(self, tool: str, inventory: str, *words: str) -> list[str]:
        return [str(BIN / tool), *words, f"tests/dnf/inventories/{inventory}.py"]

    def ran(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )

    def run(self, inventory: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = self.command("pyinfra", inventory, *options)
        return self.ran([*command, "deploys/gpu_node.py"])

    def railwright(
        self, what: str, inventory: str, *options: str
    ) -> subprocess.CompletedProcess[str]:
        return self.ran([*self.command("railwright", inventory, what), *options])


def changes(run: subprocess.CompletedProcess[str]) -> int:
    """Operations that changed something, of a run with --json."""
    assert run.returncode == 0, run.stdout + run.stderr
    totals = json.loads(run.stdout)["results"]["totals"]
    # A run that reached no host has none.
    assert totals["hosts"] > 0
    return int(totals["success"])


def refused(run: subprocess.CompletedProcess[str], said: str) -> str:
    """What a run that failed has to say, which must have ``said`` in it."""
    text = " ".join((run.stdout + run.stderr).split())
    assert run.returncode != 0, text
    assert re.search(said, text), text
    return text


@pytest.fixture(scope="session")
def standins() -> Path:
    done = subprocess.run(
        (sys.executable, "-m", "tests.standins"), cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return Path(done.stdout.decode().splitlines()[-1])


@pytest.fixture(scope="session")
def site(standins: Path) -> Site:
    return Site(standins)


@pytest.fixture(scope="session")
def image() -> str:
    return ensure("bookworm", DNF)


@pytest.fixture
def bare(image: str, standins: Path) -> Iterator[Container]:
    with podman.bare(image, standins) as container:
        yield container


@pytest.fixture(scope="session")
def first_run(image: str, standins: Path, site: Site) -> Iterator[subprocess.CompletedProcess[str]]:
    """The first run on a bare node, and an image of the node after it."""
    with podman.bare(image, standins):
        run = site.run("first", "-y", "--json")
        podman.commit(CONVERGED)
    yield run
    podman.remove_image(CONVERGED)


@pytest.fixture
def converged(first_run: subprocess.CompletedProcess[str], standins: Path) -> Iterator[Container]:
    with podman.running(CONVERGED, standins) as container:
        yield container


def test_what_is_asked_for_is_installed_locked_and_left_alone(
    first_run: subprocess.CompletedProcess[str], converged: Container, site: Site
) -> None:
    assert changes(first_run) > 0
    assert converged.installed() == there(0)
    assert converged.locks() == locked(0)
    history = converged.sh("dnf -q -C history list").splitlines()
    assert len([line for line in history if re.match(r" +\d+ \|", line)]) == 1, history
    assert changes(site.run("first", "-y", "--json")) == 0
    dry = site.run("first", "--dry")
    assert dry.returncode == 0, dry.stderr
    assert "→" not in dry.stderr
    components = [word for name in COMPONENTS for word in ("--component", name)]
    verified = site.railwright("verify", "first", *components)
    assert verified.returncode == 0, verified.stdout
    drift = site.railwright("drift", "first")
    assert drift.returncode == 0, drift.stdout
    # Nor does an upgrade of everything touch it, though the repositories have newer versions.
    converged.sh("dnf -q -y upgrade")
    assert named(0).items() <= converged.installed().items()


def test_an_upgrade_waits_for_the_effect_that_allows_it(converged: Container, site: Site) -> None:
    site.run("upgrade_not_allowed", "-y")
    assert converged.installed() == there(0)
    drift = site.railwright("drift", "upgrade_not_allowed")
    assert drift.returncode == 2
    assert "allow the effect service" in " ".join(drift.stdout.split())
    assert changes(site.run("upgrade", "-y", "--json")) > 0
    assert converged.installed() == there(1)
    assert converged.locks() == locked(1)
    assert site.railwright("drift", "upgrade").returncode == 0


def test_what_stands_in_the_way_goes_in_the_same_transaction(bare: Container, site: Site) -> None:
    at = f"{DRIVERS[0]}-1.el9.noarch.rpm"
    closed = f"/srv/standins/dnf/cuda/{CLOSED}-{at} /srv/standins/dnf/cuda/nvidia-kmod-common-{at}"
    bare.sh(f"rpm --nosignature -i {closed}")
    assert bare.installed()[CLOSED] == f"{EPOCH}:{DRIVERS[0]}-1.el9"
    assert changes(site.run("first_allowed", "-y", "--json")) > 0
    assert bare.installed() == there(0)
    done = bare.sh("dnf -q -C history info 1")
    altered = {line.split()[0]: line for line in done.partition("Altered:")[2].splitlines() if line}
    assert CLOSED in altered["Removed"]
    assert "Install" in altered


def test_packages_signed_by_another_key_are_refused(
    bare: Container, site: Site, standins: Path
) -> None:
    other = (standins / "keys/other.asc").read_text()
    before = bare.installed()
    # A key file that somebody has put there is replaced, or dnf would take that key as its own.
    bare.sh(f"printf %s {shlex.quote(other)} >/etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-doca")
    said = refused(site.run("other_key", "-y"), "GPG check FAILED")
    assert "Failing package is: doca-ofed-" in said
    assert "GPG Keys are configured as: file:///etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-doca" in said
    assert "no package is changed" in said
    assert bare.installed() == before
    assert bare.locks() == []
    owners = bare.sh(r"rpm -q --qf '%{SUMMARY}\n' gpg-pubkey")
    assert "stand-in doca" in owners
    assert "stand-in other" not in owners


def test_an_index_signed_by_another_key_is_refused(bare: Container, site: Site) -> None:
    before = bare.installed()
    said = refused(site.run("other_index_key", "-y"), "the index of railwright-doca could not be")
    assert "no package is changed" in said
    assert bare.installed() == before


def test_a_version_that_vanished_is_told_before_anything_is_changed(
    converged: Container, site: Site
) -> None:
    before = converged.sh("rpm -qa | sort")
    said = refused(
        site.run("vanished", "-y"), r"no repository offers doca-ofed 3\.1\.0-091000\.el9; offered: "
    )
    assert "3.2.0-125000.el9 3.2.1-044000.el9" in said
    assert "no package is changed" in said
    assert converged.sh("rpm -qa | sort") == before
    assert converged.locks() == locked(0)


def test_a_key_file_with_another_key_is_refused_before_anything_is_written(
    bare: Container, site: Site
) -> None:
    before = bare.sh("rpm -qa; ls /etc/pki/rpm-gpg /etc/yum.repos.d")
    said = site.run("fingerprint", "-y")
    refused(said, r"doca\.asc of repository doca: expected the one key 0123456789ABCDEF")
    assert bare.sh("rpm -qa") == before.partition("/etc")[0]
    assert "railwright-doca" not in bare.sh("ls /etc/pki/rpm-gpg /etc/yum.repos.d")


# A build that takes its time, as real ones do; it says that it was begun.
_SLOW_DKMS = """#!/bin/sh
[ "$1" = build ] || exit 0
touch /run/dkms-builds
sleep 60
"""


def test_a_run_that_was_killed_is_healed_by_the_next(converged: Container, site: Site) -> None:
    converged.sh(f"cat >/usr/sbin/dkms <<'END'\n{_SLOW_DKMS}END\nchmod 755 /usr/sbin/dkms")
    command = [*site.command("pyinfra", "upgrade", "-y"), "deploys/gpu_node.py"]
    run = subprocess.Popen(
        command,
        cwd=ROOT,
        env=site.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not converged.sh("ls /run/dkms-builds", check=False):
        assert time.monotonic() < deadline, "no package was being built for"
        time.sleep(0.2)
    run.kill()
    run.wait()
    converged.sh(
        "for process in $(pgrep -x 'dnf|dkms|sleep|sh'); do"
        ' [ "$process" -eq $$ ] || kill -9 "$process"; done; rm /usr/sbin/dkms'
    )
    names = converged.sh(r"rpm -qa --qf '%{NAME}\n' | grep -v gpg-pubkey").split()
    assert len(names) > len(set(names)), "packages are there in both versions"
    converged.sh("rpm --verifydb")
    plan = site.railwright("plan", "upgrade")
    assert "nothing left off" in " ".join(plan.stdout.split())
    assert changes(site.run("upgrade", "-y", "--json")) > 0
    assert converged.installed() == there(1)
    assert converged.locks() == locked(1)
    converged.sh("dnf -q check; rpm -V $(rpm -qa | grep -v gpg-pubkey)")
    assert changes(site.run("upgrade", "-y", "--json")) == 0
