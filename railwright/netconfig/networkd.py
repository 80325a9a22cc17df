"""systemd-networkd's .network files, and udev's .link files, which give names on every host.

Source: systemd.network(5) and systemd.link(5) of systemd 252.
"""

from collections.abc import Iterator

from railwright.netconfig.ini import IniSection, ini_sections, section_of
from railwright.netconfig.plan import Match, RailConfig, Said, Writer, routes_text, rule_text
from railwright.owned import HEADER

DIRECTORY = "/etc/systemd/network"


def network_path(key: str) -> str:
    # The first file by name that matches an interface decides.
    return f"{DIRECTORY}/00-railwright-{key}.network"


def link_path(key: str) -> str:
    return f"{DIRECTORY}/00-railwright-{key}.link"


def link_content(config: RailConfig) -> str:
    """The file that names the interface. The names it would have had stay as alternative ones."""
    lines = [
        *_match(config.match),
        "",
        "[Link]",
        f"Name={config.name}",
        "AlternativeNamesPolicy=database onboard slot path",
    ]
    return HEADER + "\n".join(lines) + "\n"


def name_of(link: str) -> str | None:
    """The name that a .link file gives."""
    return section_of(ini_sections(link), "Link").last("Name")


def _match(match: Match) -> Iterator[str]:
    yield "[Match]"
    if match.path:
        yield f"Path={match.path}"
    if match.driver:
        yield f"Driver={match.driver}"
    if match.mac:
        yield f"PermanentMACAddress={match.mac}"


def _content(config: RailConfig) -> str:
    return HEADER + "\n".join(_lines(config)) + "\n"


def _lines(config: RailConfig) -> Iterator[str]:
    yield from _match(config.match)
    yield from ("", "[Link]", "# A rail that is down must not hold up the boot.")
    yield "RequiredForOnline=no"
    if config.mtu is not None:
        yield f"MTUBytes={config.mtu}"
    yield from ("", "[Network]", "DHCP=no", "IPv6AcceptRA=no", "LinkLocalAddressing=ipv6")
    yield from ("# The address, and with it the index of its GID, outlasts a loss of the link.",)
    yield "ConfigureWithoutCarrier=yes"
    if config.address is None:
        return
    yield f"Address={config.address}"
    yield from ("", "[RoutingPolicyRule]", f"From={config.address.ip}")
    yield from (f"Table={config.table}", f"Priority={config.rule_priority}")
    for route in config.routes:
        yield from ("", "[Route]", f"Destination={route.to}")
        yield "Scope=link" if route.via is None else f"Gateway={route.via}"
        yield f"Table={config.table}"


def _read(text: str) -> Said:
    sections = ini_sections(text)
    addresses = section_of(sections, "Network").values.get("Address", ())
    addresses += section_of(sections, "Address").values.get("Address", ())
    rules = [
        rule_text(_of(one, "From"), _of(one, "Table"), _of(one, "Priority"))
        for one in sections
        if one.name == "RoutingPolicyRule"
    ]
    return Said(
        mtu=section_of(sections, "Link").last("MTUBytes"),
        address=" ".join(addresses) or None,
        rule=", ".join(rules) or None,
        routes=routes_text(
            (_of(one, "Destination"), one.last("Gateway"), _of(one, "Table"))
            for one in sections
            if one.name == "Route"
        ),
    )


def _of(section: IniSection, key: str) -> str:
    return section.last(key) or "-"


WRITER = Writer(path=network_path, mode="644", content=_content, read=_read)
