"""Data Center Bridging of a port, as iproute2's ``dcb`` shows it.

Formats: dcb/dcb_pfc.c, dcb_app.c, dcb_ets.c, dcb_buffer.c and dcb_dcbx.c of iproute2. Its JSON
and its text hold the same; ``facts.dcb_text`` brings the text into the shape of the JSON.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from pydantic import Field

from facts.dcb_text import PCPS, Fields, text_fields
from facts.json_text import as_object, load_json
from railwright.model import Model

PRIORITIES = 8
TRAFFIC_CLASSES = 8
RECEIVE_BUFFERS = 8
DSCPS = 64
PORTS = ETHERTYPES = 1 << 16

Tsa = Literal["strict", "cbs", "ets", "vendor"]
DcbxFlag = Literal["host", "lld_managed", "cee", "ieee", "static"]
RefusalKind = Literal[
    "dcb_not_supported",
    "attribute_missing",
    "no_such_device",
    "not_permitted",
    "unknown_object",
    "not_installed",
    "failed",
]

T = TypeVar("T")


class Pfc(Model):
    """``dcb pfc show``; ``delay`` is in bit times, ``pfc_cap`` the classes that can have PFC.

    ``requests`` (pause frames sent) and ``indications`` (received) are by priority, None without
    ``-s``.
    """

    pfc_cap: int | None = None
    macsec_bypass: bool | None = None
    delay: int | None = None
    pfc_enabled: tuple[int, ...]
    requests: dict[int, int] | None = None
    indications: dict[int, int] | None = None


class App(Model):
    """``dcb app show``: what decides the priority of a frame.

    Of several priorities for one key the highest is kept, as drivers do. ``pcp2prio`` is keyed
    by the PCP and whether the frame may be dropped: ``3nd``, ``3de``.
    """

    dscp2prio: dict[int, int] = Field(default={})
    default_prio: tuple[int, ...] = ()
    pcp2prio: dict[str, int] = Field(default={})
    ethtype2prio: dict[int, int] = Field(default={})
    stream_port2prio: dict[int, int] = Field(default={})
    dgram_port2prio: dict[int, int] = Field(default={})
    port2prio: dict[int, int] = Field(default={})


class Ets(Model):
    """``dcb ets show``: bandwidth in percent and algorithm by traffic class.

    ``tc_tsa`` is None for an algorithm that dcb has no name for (``???``). ``willing`` is
    whether the switch may override all this through DCBX; ``reco_*`` is what the port recommends
    to its peer, which is not what it does.
    """

    willing: bool | None = None
    ets_cap: int | None = None
    cbs: bool | None = None
    tc_bw: dict[int, int]
    tc_tsa: dict[int, Tsa | None]
    prio_tc: dict[int, int]
    pg_bw: dict[int, int] | None = None
    reco_tc_bw: dict[int, int] | None = None
    reco_tc_tsa: dict[int, Tsa | None] | None = None
    reco_prio_tc: dict[int, int] | None = None


class Buffer(Model):
    """``dcb buffer show``: the receive buffer of each priority, and sizes in bytes by buffer.

    Sizes of the text are rounded by dcb where it writes Kb or Mb; those of the JSON are exact.
    """

    prio_buffer: dict[int, int]
    buffer_size: dict[int, int]
    total_size: int | None = None


class Dcbx(Model):
    """``dcb dcbx show``: who runs DCBX. Without ``host`` the firmware or an agent decides."""

    flags: tuple[DcbxFlag, ...]

    def to_json(self) -> dict[str, Any]:
        """The flags as dcb's own JSON has them too: each that is set is true."""
        return {**super().to_json(), **dict.fromkeys(self.flags, True)}


class Refusal(Model):
    """dcb showed nothing. ``dcb_not_supported``: the driver has no DCB operations at all.

    ``attribute_missing``: it has, and does not tell this object.
    """

    error: RefusalKind
    detail: str


Answer = Pfc | App | Ets | Buffer | Dcbx

# Said on stderr of an answer that is good for the rest.
_REMARK = re.compile(
    r"^(?:Unknown attribute in |Unknown DCBX bit |Wrong selector for type|"
    r"\S+ payload expected to have size ).*\n?",
    re.MULTILINE,
)
_REFUSALS: tuple[tuple[str, RefusalKind], ...] = (
    ("Attribute read: Operation not supported", "dcb_not_supported"),
    ("Attribute read: No such device", "no_such_device"),
    ("Attribute read: Operation not permitted", "not_permitted"),
    # After the colon is whatever errno was before: "Success" as often as not.
    ("Attribute not found:", "attribute_missing"),
    ("Attribute read:", "failed"),
    ("Wrong len ", "failed"),
    ("mnl_socket_sendto:", "failed"),
)


def refusal(text: str, rc: int = 0) -> Refusal | None:
    """What dcb says instead of an answer, mostly on stderr; None where it says no such thing."""
    if rc == 127 or "command not found" in text:
        return Refusal(error="not_installed", detail=text.strip()[:80])
    for start, kind in _REFUSALS:
        if line := re.search(f"^{re.escape(start)}.*$", text, re.MULTILINE):
            return Refusal(error=kind, detail=line[0].strip())
    if line := re.search(r'^Object "[^"]*" is unknown', text, re.MULTILINE):
        return Refusal(error="unknown_object", detail=line[0])
    return None


def parse_dcb(text: str, rc: int = 0) -> Answer | Refusal:
    """Read ``dcb OBJECT show dev PORT``, with or without ``-j``, of any object above.

    Raises ValueError where it is none of them. An APP table without entries is told by its JSON
    alone: its text is empty, as that of a dcb which never ran.
    """
    refused = refusal(text, rc)
    if refused is not None:
        return refused
    answer = _REMARK.sub("", text).strip()
    if rc != 0 or not answer:
        raise ValueError(f"dcb exited {rc} and showed {answer[:80]!r}")
    fields = _json_fields(answer) if answer.startswith("{") else text_fields(answer)
    for mark, read in _READERS.items():
        if mark in fields:
            return read(fields)
    return _dcbx(fields) if set(fields) & set(_DCBX_FLAGS) else _app(fields)


def parse_pfc(text: str) -> Pfc:
    """Read ``dcb -j pfc show``, with or without ``-s``. Raises ValueError."""
    return _pfc(_json_fields(text))


def parse_app(text: str) -> App:
    """Read ``dcb -j app show``. Raises ValueError."""
    return _app(_json_fields(text))


def parse_ets(text: str) -> Ets:
    """Read ``dcb -j ets show``. Raises ValueError."""
    return _ets(_json_fields(text))


def parse_buffer(text: str) -> Buffer:
    """Read ``dcb -j buffer show``. Raises ValueError."""
    return _buffer(_json_fields(text))


def parse_dcbx(text: str) -> Dcbx:
    """Read ``dcb -j dcbx show``. Raises ValueError."""
    return _dcbx(_json_fields(text))


def _json_fields(text: str) -> Fields:
    return as_object(load_json(text, "dcb"), "dcb")


def _pfc(fields: Fields) -> Pfc:
    enabled = _eight(fields, "prio_pfc", _toggle)
    if enabled is None:
        raise ValueError("dcb pfc: expected prio_pfc")
    return Pfc(
        pfc_cap=_optional(fields, "pfc_cap", _number),
        macsec_bypass=_optional(fields, "macsec_bypass", _toggle),
        delay=_optional(fields, "delay", _number),
        pfc_enabled=tuple(priority for priority, on in enabled.items() if on),
        requests=_eight(fields, "requests", _number),
        indications=_eight(fields, "indications", _number),
    )


def _app(fields: Fields) -> App:
    unknown = set(fields) - _APP_KEYS
    if unknown:
        raise ValueError(f"dcb app: expected mappings to priorities, got {sorted(unknown)}")
    default = _list(fields.get("default_prio", []), "default_prio")
    return App(
        dscp2prio=_mapping(fields, "dscp_prio", _below(DSCPS)),
        default_prio=tuple(_below(PRIORITIES)(entry, "default_prio") for entry in default),
        pcp2prio=_mapping(fields, "pcp_prio", _pcp),
        ethtype2prio=_mapping(fields, "ethtype_prio", _below(ETHERTYPES)),
        stream_port2prio=_mapping(fields, "stream_port_prio", _below(PORTS)),
        dgram_port2prio=_mapping(fields, "dgram_port_prio", _below(PORTS)),
        port2prio=_mapping(fields, "port_prio", _below(PORTS)),
    )


def _mapping(fields: Fields, key: str, read: Callable[[object, str], T]) -> dict[T, int]:
    found: dict[T, int] = {}
    for entry in _list(fields.get(key, []), key):
        # Some versions print the separator of the text as a third element.
        pair = _list(entry, key)[:2]
        if len(pair) != 2:
            raise ValueError(f"dcb {key}: expected a key and a priority, got {entry!r}")
        name, priority = read(pair[0], key), _below(PRIORITIES)(pair[1], key)
        found[name] = max(priority, found.get(name, 0))
    return found


def _ets(fields: Fields) -> Ets:
    tc_bw = _eight(fields, "tc_bw", _number)
    tc_tsa = _eight(fields, "tc_tsa", _tsa)
    prio_tc = _eight(fields, "prio_tc", _below(TRAFFIC_CLASSES))
    if tc_bw is None or tc_tsa is None or prio_tc is None:
        raise ValueError(f"dcb ets: expected tc_bw, tc_tsa and prio_tc, got {sorted(fields)}")
    return Ets(
        willing=_optional(fields, "willing", _toggle),
        ets_cap=_optional(fields, "ets_cap", _number),
        cbs=_optional(fields, "cbs", _toggle),
        tc_bw=tc_bw,
        tc_tsa=tc_tsa,
        prio_tc=prio_tc,
        pg_bw=_eight(fields, "pg_bw", _number),
        reco_tc_bw=_eight(fields, "reco_tc_bw", _number),
        reco_tc_tsa=_eight(fields, "reco_tc_tsa", _tsa),
        reco_prio_tc=_eight(fields, "reco_prio_tc", _below(TRAFFIC_CLASSES)),
    )


def _buffer(fields: Fields) -> Buffer:
    prio_buffer = _eight(fields, "prio_buffer", _below(RECEIVE_BUFFERS))
    buffer_size = _eight(fields, "buffer_size", _number)
    if prio_buffer is None or buffer_size is None:
        raise ValueError(f"dcb buffer: expected prio_buffer, buffer_size, got {sorted(fields)}")
    return Buffer(
        prio_buffer=prio_buffer,
        buffer_size=buffer_size,
        total_size=_optional(fields, "total_size", _number),
    )


def _dcbx(fields: Fields) -> Dcbx:
    if set(fields) - set(_DCBX_FLAGS):
        raise ValueError(f"dcb dcbx: expected {', '.join(_DCBX_FLAGS)}, got {sorted(fields)}")
    return Dcbx(flags=tuple(f for f in _DCBX_FLAGS if _optional(fields, f, _toggle)))


_DCBX_FLAGS: tuple[DcbxFlag, ...] = ("host", "lld_managed", "cee", "ieee", "static")
_APP_KEYS = frozenset(
    {"default_prio", "dscp_prio", "pcp_prio", "ethtype_prio"}
    | {"stream_port_prio", "dgram_port_prio", "port_prio"}
)
# The key by which an object is told from the others.
_READERS: Mapping[str, Callable[[Fields], Answer]] = {
    "prio_pfc": _pfc,
    "prio_tc": _ets,
    "prio_buffer": _buffer,
}


def _optional(fields: Fields, key: str, read: Callable[[object, str], T]) -> T | None:
    return read(fields[key], key) if key in fields else None


def _eight(fields: Fields, key: str, read: Callable[[object, str], T]) -> dict[int, T] | None:
    """An array by its index, of which dcb has 8 elements always; None where it is not there."""
    if key not in fields:
        return None
    entries = _list(fields[key], key)
    if len(entries) != PRIORITIES:
        raise ValueError(f"dcb {key}: expected {PRIORITIES} values, got {len(entries)}")
    return {index: read(entry, key) for index, entry in enumerate(entries)}


def _list(value: object, key: str) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"dcb {key}: expected a list, got {value!r}")
    return value


def _number(value: object, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"dcb {key}: expected a number, got {value!r}")
    return value


def _below(limit: int) -> Callable[[object, str], int]:
    def read(value: object, key: str) -> int:
        number = _number(value, key)
        if number >= limit:
            raise ValueError(f"dcb {key}: expected 0 to {limit - 1}, got {number}")
        return number

    return read


def _toggle(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"dcb {key}: expected true or false, got {value!r}")
    return value


def _tsa(value: object, key: str) -> Tsa | None:
    match value:
        case "strict" | "cbs" | "ets" | "vendor":
            return value
        case "???":
            return None
        case _:
            raise ValueError(f"dcb {key}: expected strict, cbs, ets or vendor, got {value!r}")


def _pcp(value: object, key: str) -> str:
    """By its name, or with ``-N`` by its number: 8 to 15 may be dropped."""
    if isinstance(value, str) and value in PCPS:
        return value
    return PCPS[_below(len(PCPS))(value, key)]
