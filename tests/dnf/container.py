"""A container that looks like a node of EL 9: dnf, rpm and systemd, and no kernel of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.dnf.asked import MOUNTED, NAME

# What a node has from the start: no dpkg, and packages of the distribution that rpm knows of.
_FIRST = f"""
rm -rf /var/lib/dpkg /var/lib/apt /etc/apt /usr/bin/apt* /usr/bin/dpkg*
rpm --nosignature -i {MOUNTED}/dnf/base/*.rpm
"""
_RUN = (
    *("run", "--detach", "--pull=never", f"--name={NAME}", f"--hostname={NAME}"),
    # podman's own rlimits are above what an unprivileged host may grant.
    *("--network=none", "--ulimit=nofile=4096:4096", "--ulimit=nproc=1024:1024"),
)


class Container:
    """The one that runs: its name is in the inventories."""

    def sh(self, script: str, *, check: bool = True) -> str:
        """What ``script`` prints in it. Raises CalledProcessError where it fails."""
        command = ("podman", "exec", NAME, "sh", "-c", f"export LC_ALL=C\n{script}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise subprocess.CalledProcessError(done.returncode, script, done.stdout, done.stderr)
        return done.stdout

    def installed(self) -> dict[str, str]:
        """Package to version, with its epoch where it has one, as rpm has them; keys left out."""
        form = r"%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\n"
        lines = self.sh(f"rpm -qa --qf '{form}'").splitlines()
        rows = [line.split(" ") for line in lines if not line.startswith("gpg-pubkey ")]
        found = {name: version.removeprefix("0:") for name, version in rows}
        assert len(found) == len(rows), f"a package is there in two versions: {sorted(rows)}"
        return found

    def locks(self) -> list[str]:
        """dnf's own list of versions that are locked."""
        return sorted(self.sh("dnf -q versionlock list").split())


@contextmanager
def running(image: str, standins: Path) -> Iterator[Container]:
    """``image`` with systemd as PID 1, and the stand-ins read-only at their place."""
    remove()
    _podman(*_RUN, f"--volume={standins}/dnf:{MOUNTED}/dnf:ro", image, "/sbin/init")
    container = Container()
    try:
        # Drivers' daemons fail where there is no kernel for them: degraded is as far as it gets.
        container.sh("systemctl is-system-running --wait", check=False)
        yield container
    finally:
        remove()


@contextmanager
def bare(image: str, standins: Path) -> Iterator[Container]:
    """The same as it is before anything of the vendors' is there."""
    with running(image, standins) as container:
        container.sh(_FIRST)
        yield container


def commit(image: str) -> None:
    """Keep what the container holds as ``image``."""
    _podman("commit", "--quiet", NAME, image)


def remove_image(image: str) -> None:
    _podman("rmi", "--force", "--ignore", image)


def remove() -> None:
    _podman("rm", "--force", "--ignore", "--time=0", NAME)


def _podman(*words: str) -> None:
    subprocess.run(("podman", *words), check=True, capture_output=True)
