"""Firmware of NICs as ``mlxfwmanager`` (mlxup) and ``flint`` (mstflint) query it.

Formats: mstflint flint/subcommands.cpp; recorded outputs of mlxfwmanager, which is not public.
"""

import re
from typing import Literal

from pydantic import Field

from railwright.model import Model

Problem = Literal["cannot_open", "no_devices", "query_failed", "failed"]


class Version(Model):
    """What is in the flash, and what the tool has to offer; None where it has nothing."""

    current: str | None = None
    available: str | None = None


class Rom(Model):
    """An expansion ROM as flint tells of it."""

    type: str
    version: str


class Firmware(Model):
    """One device.

    ``device`` is what it is addressed by (a PCI address, or a path under /dev/mst), None where
    flint does not repeat it. ``fw`` is what is in the flash, ``fw_running`` what runs where that is
    another: it waits for a reset. ``psid`` names the board: only its images fit.
    """

    device: str | None = None
    type: str | None = None
    part: str | None = None
    description: str | None = None
    psid: str | None = None
    base_guid: str | None = None
    base_mac: str | None = None
    fw: str | None = None
    fw_running: str | None = None
    fw_available: str | None = None
    product_version: str | None = None
    release_date: str | None = None
    security: str | None = None
    status: str | None = None
    """Of mlxfwmanager alone: Up to date, Update required, No matching image found, ..."""
    versions: dict[str, Version] = Field(default_factory=dict)
    """FW, PXE, UEFI, ... of mlxfwmanager."""
    roms: tuple[Rom, ...] = ()


class FirmwareProblem(Model):
    """A line ``-E-``, and the device that it names."""

    error: Problem
    message: str
    device: str | None = None


class FirmwareReport(Model):
    """Devices in the order listed, and what went wrong."""

    devices: tuple[Firmware, ...]
    problems: tuple[FirmwareProblem, ...] = ()


_COMPLAINTS: tuple[tuple[str, Problem], ...] = (
    ("cannot open", "cannot_open"),
    ("failed to open", "cannot_open"),
    ("no devices found", "no_devices"),
    ("failed to query", "query_failed"),
    ("fw query failed", "query_failed"),
)
_NAMED = re.compile(r"[Dd]evice:? (\S*[:/]\S*?)[.,:]?(?:\s|$)|query (/dev/\S+)")
_COLON = re.compile(r"([A-Z][A-Za-z0-9 ()#]*):(?:\s+(.*))?")
_VERSION = re.compile(r"(\S.*?)\s{2,}(\S+)(?:\s+(\S+))?")
_ROM = re.compile(r"type=(\S+) version=(\S+)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def parse_firmware(text: str) -> FirmwareReport:
    """Read ``mlxfwmanager --query`` or ``flint -d DEVICE q``. Raises ValueError for others."""
    problems = [
        _problem(line.strip().removeprefix("-E-").strip())
        for line in text.splitlines()
        if line.lstrip().startswith("-E-")
    ]
    lines = [line.strip() for line in text.splitlines() if not line.lstrip().startswith("-E-")]
    starts = [at for at, line in enumerate(lines) if re.fullmatch(r"Device #[0-9]+:", line)]
    if starts:
        ends = [*starts[1:], len(lines)]
        blocks = [lines[start + 1 : end] for start, end in zip(starts, ends, strict=True)]
        return FirmwareReport(
            devices=tuple(_managed(block) for block in blocks), problems=tuple(problems)
        )
    if any(line.startswith(("FW Version", "Image type")) for line in lines):
        return FirmwareReport(devices=(_flint(lines),), problems=tuple(problems))
    if not problems:
        raise ValueError("expected mlxfwmanager or flint, got no device of theirs")
    return FirmwareReport(devices=(), problems=tuple(problems))


def _problem(message: str) -> FirmwareProblem:
    lower = message.lower()
    named = _NAMED.search(message)
    return FirmwareProblem(
        error=next((problem for words, problem in _COMPLAINTS if words in lower), "failed"),
        message=message,
        device=(named[1] or named[2]) if named else None,
    )


def _fields(lines: list[str]) -> dict[str, str]:
    """Keys to values, N/A left out; the first of each, as a value can look like a key."""
    found: dict[str, str] = {}
    for line in lines:
        pair = _COLON.fullmatch(line)
        if pair and pair[2] and pair[2].strip() not in ("", "N/A"):
            found.setdefault(pair[1], pair[2].strip())
    return found


def _managed(lines: list[str]) -> Firmware:
    values = _fields(lines)
    versions = _versions(lines)
    device, status = values.get("PCI Device Name"), values.get("Status")
    if device is None or status is None:
        raise ValueError("expected a device of mlxfwmanager with its name and status")
    fw = versions.get("FW", Version())
    running = versions.get("FW (Running)", Version())
    return Firmware(
        device=device,
        type=values.get("Device Type"),
        part=values.get("Part Number"),
        description=values.get("Description"),
        psid=values.get("PSID"),
        base_guid=values.get("Base GUID"),
        base_mac=values.get("Base MAC") or values.get("Port1 MAC"),
        fw=fw.current,
        fw_running=running.current,
        fw_available=fw.available,
        status=status,
        versions=versions,
    )


def _versions(lines: list[str]) -> dict[str, Version]:
    """The table between Versions: and the next empty line."""
    start = next((at for at, line in enumerate(lines) if line.startswith("Versions:")), len(lines))
    found = {}
    for line in lines[start + 1 :]:
        row = _VERSION.fullmatch(line)
        if row is None or row[1].endswith(":"):
            break
        current, available = (None if word == "N/A" else word for word in row.groups()[1:])
        found[row[1]] = Version(current=current, available=available)
    return found


def _flint(lines: list[str]) -> Firmware:
    values = _fields(lines)
    # Before the first reset of a new board only the running version is there.
    fw = values.get("FW Version") or values.get("FW Version(Running)")
    if fw is None or not _NUMBER.fullmatch(fw):
        raise ValueError(f"expected the FW version of flint, got {fw!r}")
    return Firmware(
        type=values.get("Image type"),
        part=values.get("Part Number"),
        psid=values.get("PSID"),
        base_guid=values.get("Base GUID", "").split(" ")[0] or None,
        base_mac=values.get("Base MAC", "").split(" ")[0] or None,
        fw=fw,
        fw_running=values.get("FW Version(Running)"),
        product_version=values.get("Product Version"),
        release_date=values.get("FW Release Date"),
        security=values.get("Security Attributes"),
        roms=tuple(Rom(type=rom[1], version=rom[2]) for rom in _ROM.finditer("\n".join(lines))),
    )
