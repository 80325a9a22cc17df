"""netplan's YAML, one file for each rail.

netplan matches by name, MAC address or driver, not by path; the name is what udev gives by the
PCI path. Source: netplan(5) of netplan 0.106, whose ``generate`` was run on these files with both
renderers. ``ignore-carrier`` and ``accept-ra`` are of no effect with NetworkManager.
"""

import yaml

from railwright.netconfig.plan import RailConfig, Said, Writer, routes_text, rule_text
from railwright.owned import HEADER


def path_of(key: str) -> str:
    return f"/etc/netplan/90-railwright-{key}.yaml"


def _content(config: RailConfig) -> str | None:
    if config.name is None:
        return None
    entry: dict[str, object] = {
        "dhcp4": False,
        "dhcp6": False,
        "accept-ra": False,
        "link-local": ["ipv6"],
        # A rail that is down must not hold up the boot.
        "optional": True,
        "ignore-carrier": True,
    }
    if config.mtu is not None:
        entry["mtu"] = config.mtu
    if config.address is not None:
        entry["addresses"] = [str(config.address)]
        entry["routes"] = [
            {
                "to": str(route.to),
                **({"scope": "link"} if route.via is None else {"via": str(route.via)}),
                "table": config.table,
            }
            for route in config.routes
        ]
        entry["routing-policy"] = [
            {
                "from": str(config.address.ip),
                "table": config.table,
                "priority": config.rule_priority,
            }
        ]
    document = {"network": {"version": 2, "ethernets": {config.name: entry}}}
    return HEADER + yaml.safe_dump(document, sort_keys=False)


def interfaces_of(text: str) -> dict[str, dict[str, object]]:
    """The entries for network ports by their id. Raises ValueError where it is no such file."""
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"expected YAML: {' '.join(str(error).split())[:200]}") from None
    network = document.get("network") if isinstance(document, dict) else None
    ports = network.get("ethernets") if isinstance(network, dict) else None
    entries = ports if isinstance(ports, dict) else {}
    return {str(name): entry for name, entry in entries.items() if isinstance(entry, dict)}


def renderer_of(text: str) -> str | None:
    """The renderer that a file names for all its interfaces. Raises ValueError."""
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"expected YAML: {' '.join(str(error).split())[:200]}") from None
    network = document.get("network") if isinstance(document, dict) else None
    renderer = network.get("renderer") if isinstance(network, dict) else None
    return None if renderer is None else str(renderer)


def _read(text: str) -> Said:
    entry = next(iter(interfaces_of(text).values()), {})
    mtu = entry.get("mtu")
    return Said(
        mtu=None if mtu is None else str(mtu),
        address=" ".join(map(str, _list(entry.get("addresses")))) or None,
        rule=", ".join(
            rule_text(str(rule.get("from")), str(rule.get("table")), str(rule.get("priority")))
            for rule in _list(entry.get("routing-policy"))
            if isinstance(rule, dict)
        )
        or None,
        routes=routes_text(
            (str(route.get("to")), route.get("via"), str(route.get("table")))
            for route in _list(entry.get("routes"))
            if isinstance(route, dict)
        ),
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


WRITER = Writer(path=path_of, mode="600", content=_content, read=_read)
