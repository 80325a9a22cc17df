"""LNet's networks as ``lnetctl net show -v 2`` prints them, and as /etc/lnet.conf has them.

Both are YAML of one shape. Format: lnet/utils/lnetctl.c and lnet/utils/lnetconfig of Lustre 2.12 to
2.17. Until 2.15 the tunables of o2ib were listed among the common ones; since then they stand in
``lnd tunables``.
"""

import re

import yaml
from pydantic import Field, computed_field

from railwright.model import Model

_LOOPBACK = "lo"
_FIRST = re.compile(r"^(o2ib|tcp)0$")
_NET_IS_DOWN = -100
"""ENETDOWN: the module is loaded, and nobody has run ``lnetctl lnet configure``."""

SPELLINGS = {"peer_credits_hiw": "peercredits_hiw"}
"""Tunables that the YAML calls by another name than the module's parameter."""


class LnetNi(Model):
    """One interface of LNet; what is not told is None.

    ``fatal`` is 1 where the port has gone down under it. ``health`` is 1000 where all that was sent
    arrived, and falls with each failure.
    """

    nid: str | None = None
    iface: str | None = None
    status: str | None = None
    fatal: int | None = None
    health: int | None = None
    peer_credits: int | None = None
    credits: int | None = None
    peer_buffer_credits: int | None = None
    peer_timeout: int | None = None
    peer_credits_hiw: int | None = None
    concurrent_sends: int | None = None
    conns_per_peer: int | None = None
    ntx: int | None = None
    fmr_pool_size: int | None = None
    tos: int | None = None


_TUNABLES = tuple(LnetNi.model_fields)[5:]


class Lnet(Model):
    """Networks by name without the loopback; ``error`` says why they could not be told."""

    nets: dict[str, tuple[LnetNi, ...]] = Field(default={})
    error: str | None = None
    errno: int | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def down(self) -> list[str]:
        """NIDs of interfaces that are not up."""
        return [
            ni.nid or f"{ni.iface}@{net}"
            for net, listed in self.nets.items()
            for ni in listed
            if ni.status is not None and ni.status != "up"
        ]

    def ni(self, net: str, iface: str) -> LnetNi | None:
        return next((ni for ni in self.nets.get(net, ()) if ni.iface == iface), None)


def parse_net_show(text: str, rc: int = 0) -> Lnet:
    """Read ``lnetctl net show``, either stream. Its errors are YAML too, and read as such.

    Raises ValueError for what is neither.
    """
    data = _document(text, "lnetctl net show")
    if "show" in data:
        return _refusal(data["show"])
    if "net" not in data or rc != 0:
        raise ValueError(f"expected net: of lnetctl, got {text.strip()[:80]!r} (exit {rc})")
    return Lnet(nets=_nets(data["net"]))


def parse_lnet_conf(text: str) -> Lnet:
    """Read /etc/lnet.conf; one that is all comments has no networks. Raises ValueError."""
    return Lnet(nets=_nets(_document(text, "/etc/lnet.conf").get("net")))


def _document(text: str, what: str) -> dict[object, object]:
    try:
        found = yaml.safe_load(text)
    # A scalar that looks like a date, and is none, is a ValueError of its own.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{what}: expected YAML: {said[:120]}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{what}: expected keys and values, got {text.strip()[:60]!r}")
    return found


def _refusal(shown: object) -> Lnet:
    for entry in shown if isinstance(shown, list) else ():
        told = entry.get("net") if isinstance(entry, dict) else None
        if isinstance(told, dict) and isinstance(told.get("errno"), int):
            errno = told["errno"]
            down = errno == _NET_IS_DOWN
            return Lnet(error="lnet_down" if down else str(told.get("descr")), errno=errno)
    raise ValueError(f"expected an error of lnetctl with its errno, got {str(shown)[:80]!r}")


def _nets(listed: object) -> dict[str, tuple[LnetNi, ...]]:
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise ValueError(f"expected a list of networks, got {str(listed)[:60]!r}")
    found: dict[str, tuple[LnetNi, ...]] = {}
    for net in listed:
        if not isinstance(net, dict) or not isinstance(net.get("net type"), str):
            raise ValueError(f"expected a network with its net type, got {str(net)[:60]!r}")
        name = _FIRST.sub(r"\1", net["net type"])
        if name == _LOOPBACK:
            continue
        nis = net.get("local NI(s)") or []
        if not isinstance(nis, list):
            raise ValueError(f"expected the interfaces of {name}, got {str(nis)[:60]!r}")
        found[name] = (*found.get(name, ()), *(_ni(name, ni, net) for ni in nis))
    return found


def _ni(net: str, told: object, around: dict[object, object]) -> LnetNi:
    if not isinstance(told, dict):
        raise ValueError(f"expected an interface of {net}, got {str(told)[:60]!r}")
    # In a file tunables may stand once for the whole network.
    common = _section(told, "tunables") or _section(around, "tunables")
    own = _section(told, "lnd tunables") or _section(around, "lnd tunables")
    health = _section(told, "health stats")
    values = {name: _tunable(name, own, common) for name in _TUNABLES}
    return LnetNi(
        nid=_text(told.get("nid")),
        iface=_interface(told.get("interfaces")),
        status=_text(told.get("status")),
        fatal=_number(health.get("fatal_error"), "fatal_error"),
        health=_number(health.get("health value"), "health value"),
        **values,
    )


def _section(told: dict[object, object], key: str) -> dict[object, object]:
    found = told.get(key)
    if found is None or found == "":
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"expected {key} with keys and values, got {str(found)[:60]!r}")
    return found


def _tunable(name: str, own: dict[object, object], common: dict[object, object]) -> int | None:
    key = SPELLINGS.get(name, name)
    return _number(own[key] if key in own else common.get(key), key)


def _number(value: object, what: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a number of {what}, got {str(value)[:40]!r}")
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _interface(told: object) -> str | None:
    """The first of ``{0: ib0}``; CPTs may follow it in brackets."""
    if not isinstance(told, dict) or not told:
        return None
    return str(next(iter(told.values()))).partition("[")[0]
