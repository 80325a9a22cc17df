"""Which .link or .network file decides an interface.

The first by name, over all directories, whose [Match] fits. Source: systemd.link(5),
systemd.network(5), and net_match_config of src/shared/net-condition.c in systemd 252.
"""

import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from railwright.files import FileRecord, effective_files
from railwright.model import Model
from railwright.netconfig.ini import ini_sections, section_of

DIRECTORIES = (
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
    "/lib/systemd/network",
)


class Device(Model):
    """An interface as [Match] sees it; ``path`` and ``driver`` are udev's ID_PATH and ethtool's."""

    name: str
    mac: str
    permanent_mac: str
    path: str | None
    driver: str | None
    type: Literal["ether", "infiniband"]


class Winner(Model):
    """The file that decides. ``surely`` is False where its [Match] asks what is not known here."""

    path: str
    content: str
    surely: bool


_MACS = {"MACAddress": "mac", "PermanentMACAddress": "permanent_mac"}
_GLOBS = {
    "Path": "path",
    "Driver": "driver",
    "Type": "type",
    "Name": "name",
}


def winner(
    files: Iterable[FileRecord], suffix: Literal["link", "network"], device: Device
) -> Winner | None:
    """The file that decides ``device``; None where no file fits it.

    Raises ValueError where a file that could fit cannot be read.
    """
    records = [file for file in files if file.name.endswith(f".{suffix}")]
    for record in effective_files(records, DIRECTORIES):
        if record.target == "":
            continue
        if record.content is None:
            raise ValueError(f"{record.path} cannot be read, and could be what decides")
        fits = _fits(record.content, device)
        if fits is not False:
            return Winner(path=record.path, content=record.content, surely=fits is True)
    return None


def _fits(content: str, device: Device) -> bool | None:
    """Whether [Match] fits; None where that hangs on what is not known here (Host=, Property=)."""
    sure = True
    for key, values in section_of(ini_sections(content), "Match").values.items():
        if not values:
            continue
        found = _holds(key, values, device)
        if found is False:
            return False
        sure = sure and found is not None
    return True if sure else None


def _holds(key: str, values: tuple[str, ...], device: Device) -> bool | None:
    if key in _MACS:
        macs = {mac.replace("-", ":").lower() for value in values for mac in value.split()}
        return getattr(device, _MACS[key]) in macs
    if key == "Kind":
        # A port has no kind: it is no virtual device.
        return all(value.startswith("!") for value in values)
    if key == "OriginalName" and values == ("*",):
        return True
    if key not in _GLOBS:
        return None
    negated = values[0].startswith("!")
    globs = [glob for value in values for glob in _words(value.removeprefix("!"))]
    found = getattr(device, _GLOBS[key])
    return negated is not (found is not None and any(fnmatchcase(found, glob) for glob in globs))


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()
