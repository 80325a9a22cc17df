"""RDMA devices as ``ibv_devinfo`` shows them, with and without ``-v``, and its list (``-l``).

Formats: rdma-core libibverbs/examples/devinfo.c.
"""

import re
from typing import Literal

from pydantic import Field

from railwright.model import Model

NO_LID = 0xFFFF
"""What an InfiniBand port that no subnet manager has reached has as its lid."""

Problem = Literal["no_devices", "no_such_device", "open_failed", "query_failed"]


class VerbsPort(Model):
    """One port; None for what is not shown, is invalid, or needs ``-v``.

    ``state`` is without its PORT_. The MTUs are those of RDMA, in bytes, and mean nothing on a port
    that is down. ``speed_gbps`` is lane speed times ``width`` (lanes), in Gb/s. ``gids`` are index
    to the address and, where the tool tells it, v1 or v2.
    """

    state: str | None = None
    phys: str | None = None
    link: str | None = None
    max_mtu: int | None = None
    active_mtu: int | None = None
    lid: int | None = None
    sm_lid: int | None = None
    width: int | None = None
    lane_gbps: float | None = None
    speed_gbps: float | None = None
    gids: dict[int, tuple[str, ...]] = Field(default_factory=dict)


class VerbsDevice(Model):
    """One device; of a listing (``-l``) there is only its name."""

    transport: str | None = None
    fw: str | None = None
    node_guid: str | None = None
    sys_image_guid: str | None = None
    vendor_id: str | None = None
    part_id: int | None = None
    board: str | None = None
    ports: dict[int, VerbsPort] = Field(default_factory=dict)


class Devinfo(Model):
    """Devices by name; ``error`` and ``message`` are the first complaint of the tool."""

    devices: dict[str, VerbsDevice]
    error: Problem | None = None
    message: str | None = None


_COMPLAINTS: tuple[tuple[str, Problem], ...] = (
    (r"No IB devices found", "no_devices"),
    (r"Failed to get IB devices list", "no_devices"),
    (r"IB device '.*' wasn't found", "no_such_device"),
    (r"Failed to open device", "open_failed"),
    (r"Failed to query ", "query_failed"),
    (r"Invalid port requested for device", "query_failed"),
)
_LIST = re.compile(r"[0-9]+ HCAs? found:\s*")
_GID = re.compile(r"GID\[\s*([0-9]+)\]:\s*([0-9a-fA-F:.]+)(?:,\s*(.*))?")
_WARNING = re.compile(r"libibverbs: |libmlx\d: |mlx\d: ")


def parse_ibv_devinfo(text: str) -> Devinfo:
    """Read ``ibv_devinfo`` with its complaints. Raises ValueError for another text."""
    devices: dict[str, VerbsDevice] = {}
    blocks: list[list[str]] = []
    error: Problem | None = None
    message: str | None = None
    listing = False
    for line in filter(None, map(str.strip, text.splitlines())):
        problem = _complaint(line)
        if problem:
            error, message = (error, message) if error else (problem, line)
        elif line.startswith("hca_id:"):
            blocks.append([line])
        elif _LIST.fullmatch(line):
            listing = True
        elif blocks:
            blocks[-1].append(line)
        elif listing and " " not in line:
            devices[line] = VerbsDevice()
        elif not _WARNING.match(line):
            raise ValueError(f"expected ibv_devinfo, got {line[:80]!r}")
    for block in blocks:
        devices[_value(block[0])] = _device(block[1:])
    if not (devices or error or listing):
        raise ValueError("expected ibv_devinfo, got nothing")
    return Devinfo(devices=devices, error=error, message=message)


def _complaint(line: str) -> Problem | None:
    return next((problem for start, problem in _COMPLAINTS if re.match(start, line)), None)


def _value(line: str) -> str:
    return line.partition(":")[2].strip()


def _device(lines: list[str]) -> VerbsDevice:
    own: list[str] = []
    ports: dict[int, list[str]] = {}
    current = own
    for line in lines:
        if port := re.fullmatch(r"port:\s*([0-9]+)", line):
            current = ports.setdefault(int(port[1]), [])
        else:
            current.append(line)
    values = _values(own)
    part = values.get("vendor_part_id", "")
    return VerbsDevice(
        transport=_word(values.get("transport")),
        fw=values.get("fw_ver"),
        node_guid=values.get("node_guid"),
        sys_image_guid=values.get("sys_image_guid"),
        vendor_id=values.get("vendor_id"),
        part_id=int(part) if part.isdecimal() else None,
        board=values.get("board_id"),
        ports={number: _port(number, port) for number, port in ports.items()},
    )


def _values(lines: list[str]) -> dict[str, str]:
    """Keys to values; names of capabilities, which stand alone on their lines, are left out."""
    parts = [line.partition(":") for line in lines]
    return {key.strip(): value.strip() for key, colon, value in parts if colon}


def _port(number: int, lines: list[str]) -> VerbsPort:
    values = _values(lines)
    if "state" not in values:
        raise ValueError(f"port {number}: expected its state")
    state = _word(values["state"])
    lid = _number(values.get("port_lid"))
    width = _number((_word(values.get("active_width")) or "").removesuffix("X"))
    lane = re.match(r"([0-9]+(?:\.[0-9]+)?) Gbps", values.get("active_speed", ""))
    return VerbsPort(
        state=state.removeprefix("PORT_") if state else None,
        phys=_word(values.get("phys_state")),
        link=values.get("link_layer"),
        max_mtu=_number(_word(values.get("max_mtu"))),
        active_mtu=_number(_word(values.get("active_mtu"))),
        lid=None if lid == NO_LID else lid,
        sm_lid=_number(values.get("sm_lid")),
        width=width,
        lane_gbps=float(lane[1]) if lane else None,
        speed_gbps=float(lane[1]) * width if lane and width else None,
        gids=dict(_gid(gid) for gid in filter(None, map(_GID.fullmatch, lines))),
    )


def _gid(gid: re.Match[str]) -> tuple[int, tuple[str, ...]]:
    version = re.search(r"v[0-9]$", gid[3] or "")
    return int(gid[1]), (gid[2], version[0]) if version else (gid[2],)


def _word(value: str | None) -> str | None:
    """The word of ``PORT_ACTIVE (4)``; None for ``invalid state (9)``."""
    word = re.sub(r"\s*\([0-9]+\)$", "", value or "")
    return None if not word or word.startswith("invalid") else word


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() else None
