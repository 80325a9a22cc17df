"""NetworkManager's keyfiles, one profile for each rail.

Source: nm-settings-keyfile(5) of NetworkManager 1.42, whose ``nmcli --offline`` wrote the form of
routes and rules.
"""

from collections.abc import Iterator
from uuid import UUID, uuid5

from railwright.netconfig.ini import IniSection, ini_sections, section_of
from railwright.netconfig.plan import RailConfig, Said, Writer, routes_text, rule_text
from railwright.owned import HEADER

PRIORITY = 900
"""Of the profiles that fit a device the one with the highest is activated; 999 is the most."""

_NAMESPACE = UUID("3c9a4f0e-52f8-5b7e-9d55-0d5f2f0b8a61")


def path_of(key: str) -> str:
    return f"/etc/NetworkManager/system-connections/{profile_of(key)}.nmconnection"


def profile_of(key: str) -> str:
    """What the profile is called."""
    return f"railwright-{key}"


def _content(config: RailConfig) -> str:
    return HEADER + "\n".join(_lines(config)) + "\n"


def _lines(config: RailConfig) -> Iterator[str]:
    kind = "infiniband" if config.is_infiniband else "ethernet"
    yield "[connection]"
    yield f"id={profile_of(config.key)}"
    # The same at each run, and on each node: profiles of two nodes never meet.
    yield f"uuid={uuid5(_NAMESPACE, config.key)}"
    yield f"type={kind}"
    yield "autoconnect=true"
    yield f"autoconnect-priority={PRIORITY}"
    yield from ("", f"[{kind}]")
    if config.is_infiniband:
        yield "transport-mode=datagram"
    if config.mtu is not None:
        yield f"mtu={config.mtu}"
    if config.match.mac:
        yield f"mac-address={config.match.mac}"
    if config.match.path:
        yield from ("", "[match]")
        if config.match.driver:
            yield f"driver={config.match.driver};"
        yield f"path={config.match.path};"
    yield from ("", "[ipv4]")
    yield from _addresses(config)
    yield from ("", "[ipv6]", "method=link-local")


def _addresses(config: RailConfig) -> Iterator[str]:
    if config.address is None:
        yield "method=disabled"
        return
    yield "method=manual"
    yield f"address1={config.address}"
    yield "never-default=true"
    for number, route in enumerate(config.routes, start=1):
        yield f"route{number}={route.to}{'' if route.via is None else f',{route.via}'}"
        # Scope 253 is that of a link.
        scope = "scope=253," if route.via is None else ""
        yield f"route{number}_options={scope}table={config.table}"
    source = f"from {config.address.ip} table {config.table}"
    yield f"routing-rule1=priority {config.rule_priority} {source}"


def _read(text: str) -> Said:
    sections = ini_sections(text)
    ipv4 = section_of(sections, "ipv4")
    kind = section_of(sections, "connection").last("type") or "ethernet"
    addresses = [ipv4.last(f"address{n}") for n in range(1, 10)]
    rules = [words.split() for n in range(1, 10) if (words := ipv4.last(f"routing-rule{n}"))]
    return Said(
        mtu=section_of(sections, kind).last("mtu"),
        address=" ".join(filter(None, addresses)) or None,
        rule=", ".join(
            rule_text(_after(r, "from"), _after(r, "table"), _after(r, "priority")) for r in rules
        )
        or None,
        routes=routes_text(_routes(ipv4)),
    )


def _after(words: list[str], word: str) -> str:
    return words[words.index(word) + 1] if word in words[:-1] else "-"


def _routes(ipv4: IniSection) -> Iterator[tuple[str, str | None, str]]:
    for number in range(1, 100):
        route = ipv4.last(f"route{number}")
        if route is None:
            return
        to, _, via = route.partition(",")
        options = (ipv4.last(f"route{number}_options") or "").split(",")
        table = next((x.partition("=")[2] for x in options if x.startswith("table=")), "-")
        yield to, via or None, table


WRITER = Writer(path=path_of, mode="600", content=_content, read=_read)
