"""ifupdown's stanzas, one file for each rail.

ifupdown knows an interface by its name. Source: interfaces(5) of ifupdown 0.8.41, whose
``ifquery`` read these files.
"""

import re
from collections.abc import Iterator

from railwright.netconfig.plan import RailConfig, Said, Writer, routes_text, rule_text
from railwright.owned import HEADER

INTERFACES = "/etc/network/interfaces"
DIRECTORY = "/etc/network/interfaces.d"


def path_of(key: str) -> str:
    # No dot: source-directory passes over names with other signs than letters, digits, - and _.
    return f"{DIRECTORY}/railwright-{key}"


def _content(config: RailConfig) -> str | None:
    if config.name is None:
        return None
    return HEADER + "\n".join(_lines(config, config.name)) + "\n"


def _lines(config: RailConfig, name: str) -> Iterator[str]:
    yield f"auto {name}"
    if config.address is None:
        yield f"iface {name} inet manual"
        yield "    up ip link set dev $IFACE up"
        if config.mtu is not None:
            yield f"    pre-up ip link set dev $IFACE mtu {config.mtu}"
        return
    source = config.address.ip
    rule = f"from {source} lookup {config.table} priority {config.rule_priority}"
    yield f"iface {name} inet static"
    yield f"    address {config.address}"
    if config.mtu is not None:
        yield f"    mtu {config.mtu}"
    yield "    pre-up sysctl -q -w net.ipv6.conf.$IFACE.accept_ra=0 || true"
    # A rule that is there already would fail the whole interface.
    yield f"    up ip -4 rule del {rule} || true"
    yield f"    up ip -4 rule add {rule}"
    for route in config.routes:
        via = "" if route.via is None else f" via {route.via}"
        yield f"    up ip -4 route replace {route.to}{via} dev $IFACE table {config.table}"
    yield f"    down ip -4 rule del {rule} || true"


_STANZA = re.compile(r"^\s*iface\s+(\S+)\s+inet\s+(\S+)")
_SOURCES = re.compile(r"^\s*(source|source-directory)\s+(\S+)")
_RULE = re.compile(r"^\s*up ip -4 rule add from (\S+) lookup (\S+) priority (\S+)$", re.MULTILINE)
_ROUTE = re.compile(
    r"^\s*up ip -4 route replace (\S+)(?: via (\S+))? dev \$IFACE table (\S+)$", re.MULTILINE
)


def stanzas_of(text: str) -> list[tuple[int, str]]:
    """Each IPv4 stanza of a file: its line and the interface that it is for."""
    lines = enumerate(text.split("\n"), start=1)
    return [(number, match[1]) for number, line in lines if (match := _STANZA.match(line))]


def sources_directory(text: str) -> bool:
    """Whether /etc/network/interfaces, as it is, reads the files of interfaces.d."""
    for line in text.split("\n"):
        match = _SOURCES.match(line)
        if match is None:
            continue
        what = match[2].removeprefix("/etc/network/").rstrip("/")
        if what == ("interfaces.d/*" if match[1] == "source" else "interfaces.d"):
            return True
    return False


def _read(text: str) -> Said:
    address = re.search(r"^\s*address (\S+)$", text, re.MULTILINE)
    mtu = re.search(r"^\s*(?:mtu|pre-up ip link set dev \$IFACE mtu) (\d+)$", text, re.MULTILINE)
    rules = [rule_text(*match.groups()) for match in _RULE.finditer(text)]
    return Said(
        mtu=mtu[1] if mtu else None,
        address=address[1] if address else None,
        rule=", ".join(rules) or None,
        routes=routes_text((m[1], m[2], m[3]) for m in _ROUTE.finditer(text)),
    )


WRITER = Writer(path=path_of, mode="644", content=_content, read=_read)
