"""QoS of a ConnectX port as mlnx_qos reports it.

Format: ``pretty_print`` of python/mlnx_qos and ``DcbAppTable`` of dcbnetlink.py in mlnx-tools.
"""

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from railwright.model import Model

PRIORITIES = 8
DSCPS = 64

Trust = Literal["dscp", "pcp", "none"]
Tsa = Literal["strict", "ets", "vendor"]
Part = Literal["trust", "buffers", "rate_limit"]


class Report(Model):
    """The settings of one port; None where the version or the driver does not tell.

    ``dcbx`` is who may change them: ``os``, or ``fw`` for the firmware, which may do so at any
    time. ``dscp2prio`` is printed for trust dscp alone. Of a traffic class, ``tc`` has the
    priorities that it carries, ``tc_bw`` its share in percent (ets only), ``tc_tsa`` None for an
    algorithm that mlnx_qos has no name for, ``tc_rate_gbps`` its limit where it has one; all four
    are None where the driver has no rate limits, since the classes are not numbered then.
    ``buffers`` and ``max_buffer`` are in bytes, ``cable_len`` is in metres. ``unsupported`` is
    what the driver refused to tell.
    """

    dcbx: Literal["os", "fw"] | None = None
    trust: Trust | None = None
    dscp2prio: dict[int, int] = Field(default={})
    default_prio: tuple[int, ...] = ()
    buffers: tuple[int, ...] | None = None
    max_buffer: int | None = None
    cable_len: int | None = None
    pfc_enabled: tuple[int, ...]
    prio2buffer: tuple[int, ...] | None = None
    tc: dict[int, tuple[int, ...]] | None = None
    tc_bw: dict[int, int] | None = None
    tc_tsa: dict[int, Tsa | None] | None = None
    tc_rate_gbps: dict[int, float] | None = None
    unsupported: tuple[Part, ...] = ()
    warning: Literal["lldpad_running"] | None = None


class Refusal(Model):
    """mlnx_qos told nothing: the argument is no port with DCB (an RDMA name, a bond, a VF)."""

    error: Literal["unsupported_interface", "not_installed"]


_LLDPAD = "lldpad service is running"
_NO_ETS = "ETS features are not supported on your system"
_UNSUPPORTED: dict[str, Part] = {
    "Priority trust state is not supported": "trust",
    "Buffers commands are not supported": "buffers",
    "Rate limit is not supported": "rate_limit",
}
_TRUSTS: dict[str, Trust] = {"dscp": "dscp", "pcp": "pcp", "none": "none"}
_TSAS: dict[str, Tsa] = {"strict": "strict", "ets": "ets", "vendor": "vendor"}
_DCBX = re.compile(r"^DCBX mode: (OS|Firmware) controlled", re.MULTILINE)
_TRUST = re.compile(r"^Priority trust state: (\S+)", re.MULTILINE)
_DSCPS = re.compile(r"^[ \t]+prio:(\d+) dscp:([\d,]*)", re.MULTILINE)
_DEFAULT = re.compile(r"^[ \t]+prio:(\d+)[ \t]*$", re.MULTILINE)
# The label of the total was total_size before it became max_buffer_size.
_BUFFERS = re.compile(
    r"^Receive buffer size \(bytes\): *([\d,]+)(?:(?:max_buffer|total)_size=(\d+))?", re.MULTILINE
)
_CABLE = re.compile(r"^Cable len: (\d+)", re.MULTILINE)
_ROW = r"^[ \t]+%s((?:[ \t]+\d+)+)[ \t]*$"
_TC = re.compile(
    r"tc: (\d+) ratelimit: (?:unlimited|(\d+(?:\.\d+)?) Gbps), tsa: (\w+)(?:, bw: (\d+)%)?\s*$"
)
_UNNUMBERED = re.compile(r"(strict|vendor|unknown|ets, bw: \d+%)\s*$")
_PRIORITY = re.compile(r"[ \t]+priority: +(\d+)\s*$")


def parse_mlnx_qos(text: str, rc: int = 0) -> Report | Refusal:
    """Read ``mlnx_qos -i PORT``, with or without ``-a``.

    Raises ValueError where it is not that, or where the tool broke off.
    """
    refused = _refusal(text, rc)
    if refused is not None:
        return refused
    if rc != 0:
        last = text.strip().rpartition("\n")[2]
        raise ValueError(f"mlnx_qos exited {rc}: {last[:80] or 'it printed nothing'}")
    enabled = _row(text, "enabled")
    if enabled is None or set(enabled) - {0, 1}:
        raise ValueError(f"expected mlnx_qos' PFC row of 8 bits, got {text.strip()[:80]!r}")
    dcbx, trust, cable = _DCBX.search(text), _TRUST.search(text), _CABLE.search(text)
    buffers = _BUFFERS.search(text)
    classes = _classes(text)
    return Report(
        dcbx=None if dcbx is None else "os" if dcbx[1] == "OS" else "fw",
        trust=_trust(trust[1]) if trust else None,
        dscp2prio=_dscp2prio(text),
        default_prio=tuple(_priority(word) for word in _DEFAULT.findall(text)),
        buffers=_eight(buffers[1].strip(",").split(",")) if buffers else None,
        max_buffer=int(buffers[2]) if buffers and buffers[2] else None,
        cable_len=int(cable[1]) if cable else None,
        pfc_enabled=tuple(priority for priority, bit in enumerate(enabled) if bit),
        prio2buffer=_row(text, "buffer"),
        tc=None if classes is None else {c.number: tuple(c.priorities) for c in classes},
        tc_bw=None
        if classes is None
        else {c.number: c.percent for c in classes if c.percent is not None},
        tc_tsa=None if classes is None else {c.number: c.tsa for c in classes},
        tc_rate_gbps=None
        if classes is None
        else {c.number: c.gbps for c in classes if c.gbps is not None},
        unsupported=tuple(part for words, part in _UNSUPPORTED.items() if words in text),
        warning="lldpad_running" if _LLDPAD in text else None,
    )


def _refusal(text: str, rc: int) -> Refusal | None:
    if _NO_ETS in text:
        return Refusal(error="unsupported_interface")
    if rc == 127 or "command not found" in text:
        return Refusal(error="not_installed")
    return None


@dataclass
class _Class:
    """A traffic class with the lines below it."""

    number: int
    tsa: Tsa | None
    percent: int | None
    gbps: float | None
    priorities: list[int]


def _classes(text: str) -> list[_Class] | None:
    """None where their numbers are left out, as they are without rate limits."""
    found: list[_Class] = []
    for line in text.splitlines():
        if head := _TC.match(line):
            found.append(
                _Class(
                    number=_below(PRIORITIES, head[1], "traffic class"),
                    tsa=_TSAS.get(head[3]),
                    percent=int(head[4]) if head[4] else None,
                    gbps=float(head[2]) if head[2] else None,
                    priorities=[],
                )
            )
        elif _UNNUMBERED.match(line):
            return None
        elif below := _PRIORITY.match(line):
            if not found:
                raise ValueError(f"expected a traffic class of mlnx_qos before {line.strip()!r}")
            found[-1].priorities.append(_priority(below[1]))
    if not found:
        raise ValueError("expected the traffic classes of mlnx_qos: the report is cut off")
    return found


def _dscp2prio(text: str) -> dict[int, int]:
    # A long list goes on in a line of its own, with the priority written again.
    return {
        _below(DSCPS, dscp, "DSCP"): _priority(priority)
        for priority, listed in _DSCPS.findall(text)
        for dscp in listed.split(",")
        if dscp
    }


def _trust(word: str) -> Trust:
    if word not in _TRUSTS:
        raise ValueError(f"expected the trust state dscp, pcp or none, got {word!r}")
    return _TRUSTS[word]


def _row(text: str, name: str) -> tuple[int, ...] | None:
    """A row of the PFC table, by priority; the row ``buffer`` is not always there."""
    row = re.search(_ROW % name, text, re.MULTILINE)
    return _eight(row[1].split()) if row else None


def _eight(words: list[str]) -> tuple[int, ...]:
    if len(words) != PRIORITIES or not all(words):
        raise ValueError(f"expected {PRIORITIES} numbers of mlnx_qos, got {words!r}")
    return tuple(int(word) for word in words)


def _priority(word: str) -> int:
    return _below(PRIORITIES, word, "priority")


def _below(limit: int, word: str, what: str) -> int:
    if int(word) >= limit:
        raise ValueError(f"expected a {what} from 0 to {limit - 1}, got {word}")
    return int(word)
