"""RDMA adapters and their ports as ``ibstat`` shows them.

Formats: rdma-core infiniband-diags/ibstat.c (all, ``-s``, and one port of one adapter).
"""

import re
from typing import Literal

from pydantic import Field, computed_field

from railwright.model import Model

NO_LID = 0xFFFF
"""What an InfiniBand port that no subnet manager has reached has as its lid."""


class IbPort(Model):
    """A port; ``rate`` in Gb/s is what the link could do and means nothing unless Active.

    ``note`` is what stands in brackets behind the rate (FDR10). ``link`` is InfiniBand or Ethernet;
    the lids are of InfiniBand, None where no subnet manager gave one.
    """

    state: str
    physical_state: str
    rate: int | float | None = None
    note: str | None = None
    lid: int | None = None
    lmc: int | None = None
    sm_lid: int | None = None
    capability_mask: str | None = None
    guid: str | None = None
    link: str | None = None

    @computed_field
    def usable(self) -> bool:
        """Whether traffic can pass; Initializing, for one, waits for a subnet manager."""
        return self.state == "Active" and self.physical_state == "LinkUp"


class IbAdapter(Model):
    """An adapter; ``kind`` is CA mostly. Without ports where they were not asked for (``-s``)."""

    kind: str
    type: str | None = None
    firmware: str | None = None
    hardware: str | None = None
    node_guid: str | None = None
    system_image_guid: str | None = None
    ports: dict[int, IbPort] = Field(default_factory=dict)


class IbStat(Model):
    """Adapters by name; ``error`` and ``message`` where ibstat gave up."""

    adapters: dict[str, IbAdapter]
    error: Literal["no_devices", "no_such_device", "failed"] | None = None
    message: str | None = None


_HEAD = re.compile(r"([A-Za-z? ]+):? '([^']*)'\s*")
_PORT = re.compile(r"Port ([0-9]+):\s*")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:\s+\(([^)]*)\))?")
_PANIC = re.compile(r"ibpanic: \[[0-9]+\] \w+: (.*)", re.MULTILINE)


def parse_ibstat(text: str) -> IbStat:
    """Read ``ibstat``; it says nothing where there is no adapter. Raises ValueError."""
    adapters: dict[str, IbAdapter] = {}
    panic = _PANIC.search(text)
    for head, lines in _blocks(text):
        adapters[head[2]] = _adapter(head, lines)
    if panic:
        return IbStat(adapters=adapters, error=_error(panic[1]), message=panic[1].strip())
    return IbStat(adapters=adapters, error=None if adapters else "no_devices")


def _error(message: str) -> Literal["no_devices", "no_such_device", "failed"]:
    if "can't list" in message or "can't init UMAD" in message:
        return "no_devices"
    return "no_such_device" if "can't be found" in message else "failed"


def _blocks(text: str) -> list[tuple[re.Match[str], list[str]]]:
    """The first line of each adapter and the others; what libibumad logs is left out."""
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for line in filter(str.strip, text.splitlines()):
        if re.match(r"ib(?:warn|panic): \[|src/\w+\.c:", line):
            continue
        if head := _HEAD.fullmatch(line):
            blocks.append((head, []))
        elif blocks:
            blocks[-1][1].append(line)
        else:
            raise ValueError(f"expected an adapter of ibstat, got {line[:80]!r}")
    return blocks


def _adapter(head: re.Match[str], lines: list[str]) -> IbAdapter:
    sections: dict[int | None, dict[str, str]] = {None: {}}
    current: int | None = None
    for line in lines:
        if port := _PORT.fullmatch(line.strip()):
            current = int(port[1])
            sections[current] = {}
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"{head[2]}: expected a value of ibstat, got {line.strip()[:80]!r}")
        sections[current][key.strip()] = value.strip()
    own = sections.pop(None)
    return IbAdapter(
        kind=head[1].strip(),
        type=own.get(f"{head[1].strip()} type"),
        firmware=own.get("Firmware version") or None,
        hardware=own.get("Hardware version") or None,
        node_guid=own.get("Node GUID"),
        system_image_guid=own.get("System image GUID"),
        ports={
            number: _port(f"{head[2]} port {number}", values)
            for number, values in sections.items()
            if number is not None
        },
    )


def _port(where: str, values: dict[str, str]) -> IbPort:
    for key in ("State", "Physical state"):
        if not values.get(key):
            raise ValueError(f"{where}: expected its {key}")
    rate = _RATE.fullmatch(values.get("Rate", ""))
    if "Rate" in values and rate is None:
        raise ValueError(f"{where}: expected a rate, got {values['Rate'][:40]!r}")
    lid = _number(where, "Base lid", values)
    return IbPort(
        state=values["State"],
        physical_state=values["Physical state"],
        rate=(float(rate[1]) if "." in rate[1] else int(rate[1])) if rate else None,
        note=rate[2] if rate else None,
        lid=None if lid == NO_LID else lid,
        lmc=_number(where, "LMC", values),
        sm_lid=_number(where, "SM lid", values),
        capability_mask=values.get("Capability mask"),
        guid=values.get("Port GUID"),
        link=values.get("Link layer") or None,
    )


def _number(where: str, key: str, values: dict[str, str]) -> int | None:
    value = values.get(key)
    if value is None:
        return None
    if not value.isdecimal():
        raise ValueError(f"{where}: expected a number as {key}, got {value[:40]!r}")
    return int(value)
