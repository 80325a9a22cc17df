"""What packages that a run installs bring to other components of the same run.

A bare node has no module to load and no unit to start. Where the packages that have both are about
to be installed, the rest is done in the same run, and the dry run tells so.
"""

import re
from collections.abc import Iterable, Iterator

from railwright.settings import Setting, Standing

_DKMS_NAME = re.compile(r"(?P<name>.+)-dkms")
_UBUNTU_NVIDIA = re.compile(r"nvidia-dkms-[0-9]{3}(-server)?(-open)?")
_DKMS_NAMES = {
    "nvidia-kernel-dkms": "nvidia-current",
    "nvidia-open-kernel-dkms": "nvidia-current-open",
    "nvidia-kernel-open-dkms": "nvidia",
    "kmod-nvidia-latest-dkms": "nvidia",
    "kmod-nvidia-open-dkms": "nvidia-open",
}
"""Packages whose module has another name to dkms. Source: dkms.conf of these packages."""


def dkms_modules(packages: Iterable[str]) -> frozenset[str]:
    """The names by which dkms will know what ``packages`` bring it; those of no other package."""
    return frozenset(filter(None, map(_dkms_module, packages)))


def _dkms_module(package: str) -> str | None:
    if _UBUNTU_NVIDIA.fullmatch(package):
        return "nvidia"
    found = _DKMS_NAME.fullmatch(package)
    return _DKMS_NAMES.get(package, found["name"]) if found else None


def brought(settings: Iterable[Setting]) -> Iterator[Setting]:
    """``settings`` as they are where packages bring what they lack.

    One that could not be acted on for want of a file is acted on; what would come late comes now.
    What is masked, overridden or unreadable stays as it is, and what is only looked at too.
    """
    for setting in settings:
        lacks = setting.persisted.standing in (Standing.ABSENT, Standing.WRONG, Standing.STALE)
        if not setting.acts and not lacks:
            yield setting
            continue
        running = setting.running
        if running.standing is Standing.LATE:
            running = running.model_copy(update={"standing": Standing.ABSENT})
        more = {} if setting.acts else {"acts": True, "remedy": None}
        yield setting.model_copy(update={"running": running, **more})
