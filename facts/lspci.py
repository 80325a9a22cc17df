"""PCI devices as ``lspci -vvv`` shows them: links, transfer sizes, and access control (ACS).

Formats: pciutils lspci.c, ls-caps.c and ls-ecaps.c. Without root lspci shows no capability.
"""

import re
from typing import Literal

from railwright.model import Model
from railwright.pcie import AcsControl
from railwright.resolve.pcie import redirection


class Link(Model):
    """Speed of a link in GT/s, and its lanes; None where lspci says unknown."""

    speed: float | None
    width: int | None


class Acs(Model):
    """Access Control Services: ``capable`` is what a port could do, ``enabled`` what it does."""

    capable: dict[str, bool]
    enabled: dict[str, bool]

    @property
    def redirects(self) -> bool:
        """Whether traffic between devices below goes up to the root complex instead."""
        return redirection(AcsControl.of(self.enabled)) is not None


class PciDevice(Model):
    """One function. Sizes are in bytes; None for what is not shown or is not there.

    ``address`` is as printed, without its domain where all are in 0000. ``cap`` is what the link
    could be and ``sta`` what it is; ``remarks`` are lspci's words on the latter.
    """

    address: str
    class_name: str
    name: str
    class_id: str | None = None
    """Four hexadecimal digits, with ``-nn`` alone."""
    vendor_device: str | None = None
    """``15b3:1021``, with ``-nn`` alone."""
    numa: int | None = None
    driver: str | None = None
    cap: Link | None = None
    sta: Link | None = None
    remarks: tuple[Literal["ok", "downgraded", "strange", "overdriven"], ...] = ()
    max_payload: int | None = None
    max_payload_cap: int | None = None
    max_read_req: int | None = None
    relaxed_ordering: bool | None = None
    acs: Acs | None = None
    denied: bool = False
    """The capabilities could not be read for want of rights."""
    lost: bool = False
    """The device does not answer: its configuration space reads as ones."""

    @property
    def bdf(self) -> str:
        """The address with its domain, as sysfs has it."""
        return self.address if self.address.count(":") == 2 else f"0000:{self.address}"

    @property
    def speed_degraded(self) -> bool | None:
        """An idle device may slow its link down to save power; None where it is not known."""
        if self.cap is None or self.sta is None or not self.cap.speed or not self.sta.speed:
            return None
        return self.sta.speed < self.cap.speed

    @property
    def width_degraded(self) -> bool | None:
        """Of a port it says no more than that a smaller card is plugged in."""
        if self.cap is None or self.sta is None or self.cap.width is None:
            return None
        return None if self.sta.width is None else self.sta.width < self.cap.width

    @property
    def degraded(self) -> bool | None:
        """Whether the link is slower or narrower than it could be; None where neither is known."""
        known = [word for word in (self.speed_degraded, self.width_degraded) if word is not None]
        return any(known) if known else None


_HEAD = re.compile(
    r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.+?)(?: \[([0-9a-f]{4})\])?: (.*)"
)
_KEY = re.compile(r"\s+([A-Z][A-Za-z0-9 ]*?):\s*(.*)")
_IDS = re.compile(r"\[([0-9a-f]{4}:[0-9a-f]{4})\]")
_SPEED = re.compile(r"Speed ([0-9]+(?:\.[0-9]+)?)GT/s")
_WIDTH = re.compile(r"Width x([0-9]+)")
_REMARK = re.compile(r"\((ok|downgraded|strange|overdriven)\)")
_FLAG = re.compile(r"\b(\w+)([+-])(?=[\s,;]|$)")


def parse_lspci(text: str) -> tuple[PciDevice, ...]:
    """Read ``lspci -vvv``, of one device or of many. Raises ValueError for another text."""
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for line in filter(str.strip, text.splitlines()):
        if head := _HEAD.fullmatch(line):
            blocks.append((head, []))
        elif line.startswith(("lspci: ", "pcilib: ")):
            continue
        elif blocks and line[0] in "\t !":
            blocks[-1][1].append(line)
        else:
            raise ValueError(f"expected a device of lspci, got {line[:80]!r}")
    if not blocks:
        raise ValueError("expected a device of lspci, got none")
    return tuple(_device(head, lines) for head, lines in blocks)


def _fields(lines: list[str]) -> dict[str, str]:
    """Keys to values with their continuation lines; of a key that is repeated the first."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if pair := _KEY.fullmatch(line):
            current = [pair[2]]
            found.setdefault(pair[1], current)
        else:
            current.append(line.strip())
    return {key: " ".join(words) for key, words in found.items()}


def _device(head: re.Match[str], lines: list[str]) -> PciDevice:
    values = _fields(lines)
    control, state = values.get("DevCtl", ""), values.get("LnkSta", "")
    ids = _IDS.findall(head[4])
    flags = _flags(control)
    numa = re.match(r"[0-9]+", values.get("NUMA node", ""))
    return PciDevice(
        address=head[1],
        class_name=head[2],
        name=re.sub(r"( \[[0-9a-f]{4}:[0-9a-f]{4}\])?( \((rev|prog-if) [^)]*\))*$", "", head[4]),
        class_id=head[3],
        vendor_device=ids[-1] if ids else None,
        numa=int(numa[0]) if numa else None,
        driver=values.get("Kernel driver in use"),
        cap=_link(values.get("LnkCap")),
        sta=_link(values.get("LnkSta")),
        remarks=tuple(_REMARK.findall(state)),
        max_payload=_bytes("MaxPayload", control),
        max_payload_cap=_bytes("MaxPayload", values.get("DevCap", "")),
        max_read_req=_bytes("MaxReadReq", control),
        relaxed_ordering=flags.get("RlxdOrd"),
        acs=_acs(values),
        denied=any("<access denied>" in line for line in lines),
        lost=any("Unknown header type 7f" in line for line in lines) or "(rev ff)" in head[4],
    )


def _link(text: str | None) -> Link | None:
    if text is None:
        return None
    speed, width = _SPEED.search(text), _WIDTH.search(text)
    return Link(speed=float(speed[1]) if speed else None, width=int(width[1]) if width else None)


def _bytes(key: str, text: str) -> int | None:
    found = re.search(rf"\b{key} ([0-9]+) bytes", text)
    return int(found[1]) if found else None


def _flags(text: str) -> dict[str, bool]:
    return {name: sign == "+" for name, sign in _FLAG.findall(text)}


def _acs(values: dict[str, str]) -> Acs | None:
    if "ACSCtl" not in values:
        return None
    return Acs(capable=_flags(values.get("ACSCap", "")), enabled=_flags(values["ACSCtl"]))
