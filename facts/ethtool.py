"""Counters, pause, driver and module of a network port, as ethtool prints them.

Formats: ethtool.c, netlink/pause.c, netlink/nlsock.c, sfpid.c, sfpdiag.c, qsfp.c and cmis.c of
ethtool. What it says on stderr is looked at whatever its exit code is: ``ethtool -m`` exited 0
over a module that could not be read (kernel commit d1c94bc5b90c).
"""

import re
from typing import Any, Literal

from pydantic import Field

from facts.json_text import as_object, load_json
from railwright.model import Model

RefusalKind = Literal[
    "no_such_device",
    "not_supported",
    "not_permitted",
    "no_stats",
    "module_unreadable",
    "not_installed",
]


class Refusal(Model):
    """ethtool read nothing. ``errno`` is negative, as the kernel returns it.

    ``module_unreadable`` is an empty cage or a module that the NIC refuses: the words are the
    same for both.
    """

    error: RefusalKind
    errno: int | None = None
    message: str


class Statistics(Model):
    """``ethtool -S``: every counter by its name, which may hold ``: `` (``[0]: rx_bytes``)."""

    counters: dict[str, int]

    @property
    def active_prios(self) -> tuple[int, ...] | None:
        """Priorities that have carried traffic; None where the driver does not count by them."""
        by_priority = [
            (int(match[1]), count)
            for name, count in self.counters.items()
            if (match := _PRIORITY.fullmatch(name))
        ]
        if not by_priority:
            return None
        return tuple(sorted({priority for priority, count in by_priority if count}))

    def to_json(self) -> dict[str, Any]:
        prios = self.active_prios
        return {**self.counters, **({} if prios is None else {"active_prios": list(prios)})}


class Pause(Model):
    """``ethtool -a``: pause of the whole link, which excludes PFC.

    None is ``n/a``. ``rx_negotiated`` and ``tx_negotiated`` are told with autonegotiation on,
    ``statistics`` with ``-I``.
    """

    iface: str
    autoneg: bool | None = None
    rx: bool | None = None
    tx: bool | None = None
    rx_negotiated: bool | None = None
    tx_negotiated: bool | None = None
    statistics: dict[str, int] = Field(default={})


class Driver(Model):
    """``ethtool -i``. ``fw`` is without the PSID that mlx4 and mlx5 print behind it.

    ``mode`` is what the driver's name carries in brackets (``ipoib``). ``ofed`` is whether the
    driver is NVIDIA's own and not the kernel's, for mlx4 and mlx5 alone: theirs has the version
    of the release (24.07-0.6.1), the kernel's that of the kernel, or 5.0-0 before 5.11.
    """

    driver: str
    mode: str | None = None
    version: str | None = None
    ofed: bool | None = None
    fw: str | None = None
    psid: str | None = None
    expansion_rom: str | None = None
    bus: str | None = None
    supports: tuple[str, ...] = ()


class Module(Model):
    """``ethtool -m``: the transceiver or cable in the cage.

    Powers are in dBm and currents in mA, by lane; a power is None where no light at all was
    measured (``-inf``). A cage without light reads as low as -40 dBm, which is no error.
    ``cable_m`` is the length of a copper or active cable, None for a module that is none.
    ``alarms`` and ``warnings`` are the flags that are on, by ethtool's names for them.
    """

    identifier: str
    connector: str | None = None
    transceiver: str | None = None
    vendor: str | None = None
    part_number: str | None = None
    serial: str | None = None
    cable_m: float | None = None
    temp_c: float | None = None
    voltage_v: float | None = None
    rx_power_dbm: tuple[float | None, ...] = ()
    tx_power_dbm: tuple[float | None, ...] = ()
    bias_ma: tuple[float | None, ...] = ()
    alarms: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Of a module with one lane the values of that lane, of others lists."""
        found = super().to_json()
        for key in ("rx_power_dbm", "tx_power_dbm", "bias_ma"):
            if len(found[key]) < 2:
                found[key] = found[key][0] if found[key] else None
        return found


_PRIORITY = re.compile(r"[rt]x_prio(\d)_(?:bytes|packets)")
_COUNTER = re.compile(r"\s*(\S.*?)\s*: (\d+)\s*")
_STATISTICS = re.compile(r"(?:NIC statistics|Standard stats for \S+):\s*")

# strerror() of Linux.
_ERRNOS = {
    "Operation not permitted": -1,
    "Input/output error": -5,
    "No such device or address": -6,
    "No such device": -19,
    "Invalid argument": -22,
    "Operation not supported": -95,
    "Connection timed out": -110,
    "Remote I/O error": -121,
}
_ERROR = re.compile(r"^(?:netlink error|Cannot get [^:]+): .+$|^no stats available", re.MULTILINE)
_TROUBLE = re.compile(r"^netlink warning: .+$|" + _ERROR.pattern, re.MULTILINE)
_KINDS: tuple[tuple[str, RefusalKind], ...] = (
    (r"no device matches name|No such device$", "no_such_device"),
    (r"Operation not supported$", "not_supported"),
    (r"Operation not permitted$", "not_permitted"),
    (r"^no stats available", "no_stats"),
)


def _refusal(
    text: str, rc: int, *, said: re.Pattern[str] = _ERROR, otherwise: RefusalKind | None = None
) -> Refusal | None:
    """What ethtool says it could not do; ``otherwise`` is for an error of no kind above.

    Raises ValueError where such an error has no ``otherwise``.
    """
    if rc == 127 or "command not found" in text:
        return Refusal(error="not_installed", message=text.strip()[:80])
    lines = [match[0].strip() for match in said.finditer(text)]
    if not lines:
        return None
    whole = "\n".join(lines)
    kinds = [kind for words, kind in _KINDS if re.search(words, whole, re.MULTILINE)]
    kind = kinds[0] if kinds else otherwise
    if kind is None:
        raise ValueError(f"ethtool: {lines[-1]}")
    return Refusal(error=kind, errno=_errno(whole), message=lines[-1])


def _errno(said: str) -> int | None:
    if number := re.search(r"\berr (-\d+)", said):
        return int(number[1])
    named = [errno for words, errno in _ERRNOS.items() if said.endswith(f": {words}")]
    return named[0] if named else None


def _read_all(text: str, rc: int, what: str) -> None:
    """Raises ValueError where ethtool broke off, whatever it printed before."""
    if rc != 0:
        raise ValueError(f"{what} exited {rc}: {text.strip()[-80:] or 'it printed nothing'}")


def parse_statistics(text: str, rc: int = 0) -> Statistics | Refusal:
    """Read ``ethtool -S``, with or without ``--groups``. Raises ValueError."""
    refused = _refusal(text, rc)
    if refused is not None:
        return refused
    _read_all(text, rc, "ethtool -S")
    lines = [line for line in text.splitlines() if line.strip()]
    heads = [line for line in lines if _STATISTICS.fullmatch(line)]
    if not heads:
        raise ValueError(f"expected 'NIC statistics:' of ethtool -S, got {text.strip()[:80]!r}")
    counters = {}
    for line in lines:
        if line not in heads:
            counter = _COUNTER.fullmatch(line)
            if counter is None:
                raise ValueError(f"expected a counter of ethtool -S, got {line.strip()[:80]!r}")
            counters[counter[1]] = int(counter[2])
    return Statistics(counters=counters)


def parse_pause(text: str, rc: int = 0) -> Pause | Refusal:
    """Read ``ethtool -a`` or ``ethtool --json -a``, with or without ``-I``. Raises ValueError."""
    refused = _refusal(text, rc)
    if refused is not None:
        return refused
    _read_all(text, rc, "ethtool -a")
    if text.lstrip().startswith("["):
        return _pause_json(text)
    fields = _fields(text)
    head = re.search(r"^Pause parameters for (.+):[ \t]*$", text, re.MULTILINE)
    if head is None or not fields.keys() >= {"Autonegotiate", "RX", "TX"}:
        raise ValueError(f"expected 'Pause parameters for ...', got {text.strip()[:80]!r}")
    return Pause(
        iface=head[1],
        autoneg=_on_off(fields["Autonegotiate"]),
        rx=_on_off(fields["RX"]),
        tx=_on_off(fields["TX"]),
        rx_negotiated=_on_off(fields.get("RX negotiated", "n/a")),
        tx_negotiated=_on_off(fields.get("TX negotiated", "n/a")),
        statistics={
            name: int(value)
            for name, value in fields.items()
            if re.fullmatch(r"\w+_frames", name) and re.fullmatch(r"[0-9]+", value)
        },
    )


def _pause_json(text: str) -> Pause:
    what = "ethtool --json -a"
    entries = load_json(text, what)
    if not isinstance(entries, list) or len(entries) != 1:
        raise ValueError(f"{what}: expected a list of one port, got {text.strip()[:80]!r}")
    port = as_object(entries[0], what)
    negotiated = as_object(port.get("negotiated", {}), what)
    iface = port.get("ifname")
    if not isinstance(iface, str):
        raise ValueError(f"{what}: expected ifname, got {sorted(port)}")
    counted = as_object(port.get("statistics", {}), what)
    return Pause(
        iface=iface,
        autoneg=_true_false(port, "autonegotiate"),
        rx=_true_false(port, "rx"),
        tx=_true_false(port, "tx"),
        rx_negotiated=_true_false(negotiated, "rx"),
        tx_negotiated=_true_false(negotiated, "tx"),
        statistics={name: count for name, count in counted.items() if isinstance(count, int)},
    )


def _on_off(word: str) -> bool | None:
    if word not in ("on", "off", "n/a"):
        raise ValueError(f"ethtool -a: expected on, off or n/a, got {word!r}")
    return None if word == "n/a" else word == "on"


def _true_false(entry: dict[str, object], key: str) -> bool | None:
    value = entry.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"ethtool --json -a: {key}: expected true or false, got {value!r}")
    return value


def parse_driver(text: str, rc: int = 0) -> Driver | Refusal:
    """Read ``ethtool -i``. Raises ValueError."""
    refused = _refusal(text, rc)
    if refused is not None:
        return refused
    _read_all(text, rc, "ethtool -i")
    fields = _fields(text)
    name = re.fullmatch(r"([^\s\[]+)(?:\[(?:ib_)?(\w+)\])?", fields.get("driver", ""))
    if name is None:
        raise ValueError(f"expected 'driver: ...' of ethtool -i, got {text.strip()[:80]!r}")
    version, firmware = fields.get("version"), fields.get("firmware-version")
    with_psid = re.fullmatch(r"(.*\S) \(([A-Z0-9_]+)\)", firmware or "")
    ours = name[1].startswith(("mlx4", "mlx5")) and version is not None
    return Driver(
        driver=name[1],
        mode=name[2],
        version=version,
        ofed=bool(_OFED.fullmatch(version or "")) if ours else None,
        fw=with_psid[1] if with_psid else firmware,
        psid=with_psid[2] if with_psid else None,
        expansion_rom=fields.get("expansion-rom-version"),
        bus=fields.get("bus-info"),
        supports=tuple(
            key.removeprefix("supports-")
            for key, value in fields.items()
            if key.startswith("supports-") and value == "yes"
        ),
    )


# A release and what is behind its dash, which has a dot: 5.8-2.0.3, 24.07-0.6.1.
_OFED = re.compile(r"\d+\.\d+-\d+(?:\.\d+)+")


def _fields(text: str) -> dict[str, str]:
    """Lines ``NAME: VALUE``; the first of a name counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


# Names differ by the kind of module (SFP, QSFP, CMIS) and by the version of ethtool.
_RX_POWER = r"(?:receiver|rcvr) signal (?:average optical power|avg optical power|oma)"
_TX_POWER = r"laser output power|transmit avg optical power"
_BIAS = r"laser (?:tx )?bias current"
_CABLE = r"length \(copper(?: or active cable)?\)|cable assembly length"
_LANE = r" ?\(chan(?:nel)? \d+\)"


def parse_module_eeprom(text: str, rc: int = 0) -> Module | Refusal:
    """Read ``ethtool -m``. Any netlink error or warning makes the module unreadable, whatever
    ethtool dumped besides and however it exited.

    Raises ValueError where it is not that, and for a dump in hex that ethtool did not decode.
    """
    refused = _refusal(text, rc, said=_TROUBLE, otherwise="module_unreadable")
    if refused is not None:
        return refused
    _read_all(text, rc, "ethtool -m")
    parts = [line.partition(":") for line in text.splitlines() if ":" in line]
    lines = [(" ".join(name.split()), value.strip()) for name, _, value in parts]
    first = dict(reversed(lines))
    if "Identifier" not in first:
        raise ValueError(f"expected 'Identifier : ...' of ethtool -m, got {text.strip()[:80]!r}")
    temperature = _values(lines, "module temperature", "degrees C")
    voltage = _values(lines, "module voltage", "V")
    cable = _values(lines, _CABLE, "m")
    return Module(
        identifier=_named(first["Identifier"]),
        connector=_named(first["Connector"]) if "Connector" in first else None,
        transceiver=first.get("Transceiver type"),
        vendor=first.get("Vendor name"),
        part_number=first.get("Vendor PN"),
        serial=first.get("Vendor SN"),
        # 0 is how a module says that it has no cable.
        cable_m=cable[0] or None if cable else None,
        temp_c=temperature[0] if temperature else None,
        voltage_v=voltage[0] if voltage else None,
        rx_power_dbm=_values(lines, _RX_POWER, "dBm"),
        tx_power_dbm=_values(lines, _TX_POWER, "dBm"),
        bias_ma=_values(lines, _BIAS, "mA"),
        alarms=_flags(lines, "alarm"),
        warnings=_flags(lines, "warning"),
    )


def _named(value: str) -> str:
    """``0x11 (QSFP28)``: the name of the code."""
    match = re.fullmatch(r"0x[0-9a-f]+ \((.*)\)", value)
    return match[1] if match else value


def _values(lines: list[tuple[str, str]], names: str, unit: str) -> tuple[float | None, ...]:
    """What is measured under ``names``, by lane where it has lanes; None for ``-inf``."""
    found: list[float | None] = []
    for name, value in lines:
        if re.fullmatch(f"(?:{names})(?:{_LANE})?", name.casefold()):
            number = re.search(rf"(-inf|-?[0-9]{{1,9}}(?:\.[0-9]+)?) ?{unit}\b", value)
            if number:
                found.append(None if number[1] == "-inf" else float(number[1]))
    return tuple(found)


def _flags(lines: list[tuple[str, str]], kind: str) -> tuple[str, ...]:
    name_of_flag = re.compile(f".* {kind}(?:{_LANE})?", re.IGNORECASE)
    return tuple(name for name, value in lines if value == "On" and name_of_flag.fullmatch(name))
