"""RDMA ports as ``ibstatus`` reads them from sysfs.

Formats: rdma-core infiniband-diags/scripts/ibstatus; the rate is that of the kernel's sysfs.c.
"""

import re
from typing import Literal

from railwright.model import Model

UNKNOWN = "unknown"
"""What the script prints for a file that it cannot read."""


class PortStatus(Model):
    """One port; None for what could not be read.

    ``rate_gbps`` is in Gb/s and means nothing on a port that is down. ``width`` is 4X, ``gen`` NDR.
    ``link`` is InfiniBand or Ethernet, IB where the kernel does not say.
    """

    gid: str | None = None
    lid: int | None = None
    sm_lid: int | None = None
    state: str | None = None
    phys: str | None = None
    rate_gbps: int | float | None = None
    width: str | None = None
    gen: str | None = None
    link: str | None = None


class IbStatus(Model):
    """Ports by DEVICE/PORT; ``error`` and ``message`` where the script gave up."""

    ports: dict[str, PortStatus]
    error: Literal["no_devices", "no_such_device", "failed"] | None = None
    message: str | None = None


_HEAD = re.compile(r"Infiniband device '([^']*)' port ([0-9]+) status:\s*")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) Gb/sec(?: \(([0-9]+X)(?: ([^)]+))?\))?")
_FATAL = re.compile(r"^Fatal error:\s*(.*)$", re.MULTILINE)


def parse_ibstatus(text: str) -> IbStatus:
    """Read ``ibstatus``. Raises ValueError for another text, and a value of another form."""
    sections: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for line in filter(str.strip, text.splitlines()):
        key, colon, value = line.partition(":")
        if head := _HEAD.fullmatch(line):
            current = sections.setdefault(f"{head[1]}/{head[2]}", {})
        elif line.startswith("Fatal error:"):
            current = None
        elif current is None or not colon:
            raise ValueError(f"expected a port of ibstatus, got {line.strip()[:80]!r}")
        else:
            current[key.strip()] = value.strip()
    ports = {name: _port(name, values) for name, values in sections.items()}
    fatal = _FATAL.search(text)
    if fatal is None and not ports:
        raise ValueError("expected a port of ibstatus, got nothing")
    return IbStatus(
        ports=ports,
        error=_error(fatal[1]) if fatal else None,
        message=fatal[1].strip() if fatal else None,
    )


def _error(message: str) -> Literal["no_devices", "no_such_device", "failed"]:
    # The script takes the * of an empty directory for a device.
    if "No devices" in message or "device '*'" in message:
        return "no_devices"
    return "no_such_device" if "not found" in message else "failed"


def _port(name: str, values: dict[str, str]) -> PortStatus:
    known = {key: value for key, value in values.items() if value not in (UNKNOWN, "")}
    rate = _RATE.fullmatch(known.get("rate", ""))
    if "rate" in known and rate is None:
        raise ValueError(f"{name}: expected a rate, got {known['rate'][:40]!r}")
    return PortStatus(
        gid=known.get("default gid"),
        lid=_lid(name, known.get("base lid")),
        sm_lid=_lid(name, known.get("sm lid")),
        state=_word(known.get("state")),
        phys=_word(known.get("phys state")),
        rate_gbps=(float(rate[1]) if "." in rate[1] else int(rate[1])) if rate else None,
        width=rate[2] if rate else None,
        gen=rate[3] if rate else None,
        link=known.get("link_layer"),
    )


def _word(value: str | None) -> str | None:
    """The word of ``4: ACTIVE``."""
    return value.partition(":")[2].strip() or value if value else None


def _lid(name: str, value: str | None) -> int | None:
    """A lid; the one that stands for none is none."""
    if value is None:
        return None
    try:
        lid = int(value, 16)
    except ValueError:
        raise ValueError(f"{name}: expected a lid, got {value[:40]!r}") from None
    return None if lid == 0xFFFF else lid
