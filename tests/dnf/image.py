"""Root image of a node with dnf: Debian's, without a trace of dpkg."""

from pathlib import Path

from tests.molecule.image import Recipe

DNF = Recipe(
    name="dnf",
    packages=(
        *("dbus", "dnf", "dnf-plugins-core", "gpg", "iproute2", "kmod", "procps", "rpm"),
        *("systemd", "systemd-sysv", "udev"),
    ),
    hook=Path(__file__).resolve().parent / "customize.sh",
)
"""Its dnf is the one that EL 9 has (4.14), with the same plugin for versionlock."""
