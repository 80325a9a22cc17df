"""Neighbours on the wire, as lldpd's ``lldpctl`` lists them.

Formats: src/client/display.c and json_writer.c of lldpd. ``-f json`` drops lists of one element
and objects of one value, and makes a key of a name; ``-f json0`` keeps all of them.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from facts.json_text import as_object, load_json
from railwright.model import Model

WHAT = "lldpctl"


class Neighbour(Model):
    """One port at the other end. ``switch`` is the name of its system, None where it sends none.

    ``port`` is its port ID, whose kind is ``port_type`` (``ifname``, ``mac``, ``local``, ...).
    ``mfs`` is the largest frame in bytes that it takes, ``capabilities`` those that are enabled.
    """

    switch: str | None = None
    chassis_id: str | None = None
    mgmt: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    port: str | None = None
    port_type: str | None = None
    port_descr: str | None = None
    mfs: int | None = None
    via: str | None = None


class Neighbours(Model):
    """By our interface: several where a hub, or a switch that is deaf to LLDP, is between."""

    interfaces: dict[str, tuple[Neighbour, ...]] = Field(default={})

    def to_json(self) -> dict[str, Any]:
        """Interface to its neighbour, or to the list of them where there are several."""
        dumped = {
            name: [neighbour.to_json() for neighbour in neighbours]
            for name, neighbours in self.interfaces.items()
        }
        return {name: each if len(each) > 1 else each[0] for name, each in dumped.items()}


class Refusal(Model):
    """lldpctl did not reach lldpd, which is not to have no neighbours."""

    error: Literal["no_daemon", "not_permitted", "not_installed"]
    message: str


def parse_lldp(text: str, rc: int = 0) -> Neighbours | Refusal:
    """Read ``lldpctl -f json`` or ``-f json0``. Raises ValueError."""
    message = text.strip()[-120:]
    if rc == 127 or "command not found" in text:
        return Refusal(error="not_installed", message=message)
    if not text.lstrip().startswith("{"):
        if "permission denied" in text.lower():
            return Refusal(error="not_permitted", message=message)
        if "unable to connect to " in text:
            return Refusal(error="no_daemon", message=message)
    if rc != 0:
        raise ValueError(f"lldpctl exited {rc}: {message or 'it printed nothing'}")
    answer = as_object(load_json(text, WHAT, _members), WHAT)
    if "lldp" not in answer:
        raise ValueError(f"lldpctl: expected lldp, got {sorted(answer)}")
    found: dict[str, tuple[Neighbour, ...]] = {}
    for lldp in _each(answer["lldp"]):
        for entry in _each(as_object(lldp, WHAT).get("interface", [])):
            for name, neighbour in _named(as_object(entry, WHAT)):
                found[name] = (*found.get(name, ()), _neighbour(neighbour))
    return Neighbours(interfaces=found)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON; values that share a key become a list, so that none is lost."""
    found: dict[str, object] = {}
    for key, value in pairs:
        found[key] = [*_each(found[key]), *_each(value)] if key in found else value
    return found


def _each(value: object) -> list[object]:
    """A list of one element may have been dropped."""
    return value if isinstance(value, list) else [value]


def _named(entry: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Interfaces with their names: ``{"name": "eth0", ...}``, or ``{"eth0": {...}}``."""
    if isinstance(entry.get("name"), str):
        yield str(entry["name"]), entry
        return
    for name, value in entry.items():
        for neighbour in _each(value):
            yield name, as_object(neighbour, f"{WHAT}: {name}")


def _neighbour(entry: dict[str, object]) -> Neighbour:
    chassis, switch = _chassis(_object(entry, "chassis"))
    port = _object(entry, "port")
    mfs = _text(port, "mfs")
    if mfs is not None and not re.fullmatch(r"[0-9]{1,9}", mfs):
        raise ValueError(f"lldpctl: expected mfs as a number, got {mfs!r}")
    capabilities = [
        as_object(capability, WHAT) for capability in _each(chassis.get("capability", []))
    ]
    return Neighbour(
        switch=switch or None,
        chassis_id=_text(chassis, "id"),
        mgmt=tuple(_values(chassis, "mgmt-ip")),
        capabilities=tuple(str(c.get("type")) for c in capabilities if c.get("enabled") is True),
        port=_text(port, "id"),
        port_type=_type(port),
        port_descr=_text(port, "descr"),
        mfs=None if mfs is None else int(mfs),
        via=_text(entry, "via"),
    )


def _chassis(chassis: dict[str, object]) -> tuple[dict[str, object], str | None]:
    """What is told of the chassis, and its name. A switch may be called ``id``."""
    if len(chassis) == 1:
        ((name, inner),) = chassis.items()
        if isinstance(inner, dict) and "value" not in inner:
            return inner, name
    if chassis and "id" not in chassis:
        raise ValueError(f"lldpctl: expected the id of a chassis, got {sorted(chassis)}")
    return chassis, _text(chassis, "name")


def _object(entry: dict[str, object], key: str) -> dict[str, object]:
    found = _each(entry.get(key, {}))
    return as_object(found[0], f"{WHAT}: {key}") if found else {}


def _values(entry: dict[str, object], key: str) -> list[str]:
    """The texts under ``key``: a string, ``{"value": ...}``, or a list of either."""
    found = []
    for value in _each(entry.get(key, [])):
        text = value.get("value") if isinstance(value, dict) else value
        if not isinstance(text, str | int):
            raise ValueError(f"lldpctl: {key}: expected a text, got {value!r}")
        found.append(str(text))
    return found


def _text(entry: dict[str, object], key: str) -> str | None:
    found = _values(entry, key)
    return found[0] if found else None


def _type(port: dict[str, object]) -> str | None:
    """The kind of the port's ID."""
    return _text(_object(port, "id"), "type") if isinstance(port.get("id"), dict | list) else None
