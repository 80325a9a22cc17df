"""The package sources a root image is built from: this machine's own, for the wanted suite."""

import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .layout import Distro

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FORMAT = "$(ORIGIN)|$(COMPONENT)|$(REPO_URI)|$(RELEASE)"


def debian_lines(index_targets: Iterable[str], host_suite: str, suite: str) -> list[str]:
    """sources.list lines for ``suite`` from this machine's lines for ``host_suite``.

    ``index_targets`` are lines of ``ORIGIN|COMPONENT|REPO_URI|RELEASE``. Only Debian's main is
    kept. The release, its updates and its security suite keep their addresses: bookworm,
    bookworm-updates and bookworm-security become trixie, trixie-updates and trixie-security.
    """
    options = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    lines = []
    for target in index_targets:
        origin, component, address, release = target.split("|")
        name, dash, branch = release.partition("-")
        if origin == "Debian" and component == "main" and name == host_suite:
            lines.append(f"deb {options}{address} {suite}{dash}{branch} main")
    return list(dict.fromkeys(lines))


def sources(suite: Distro) -> list[str]:
    """Lines for mmdebstrap; none on a machine that is not Debian, where mmdebstrap's default holds.

    The machine's index lists must be there (``apt-get update``): apt learns the origin from them.
    """
    release = platform.freedesktop_os_release()
    if release["ID"] != "debian":
        return []
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", _FORMAT, "Created-By: Packages"],
        check=True,
        capture_output=True,
        text=True,
    )
    return debian_lines(targets.stdout.splitlines(), release["VERSION_CODENAME"], suite)
