"""What the files of a rail say, whichever network manager reads them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Interface
from typing import Literal

from railwright.model import Model
from railwright.rails import PlannedRail, Route

ManagerName = Literal["networkd", "netplan", "NetworkManager", "ifupdown"]


class Match(Model):
    """How a port is told from others.

    ``path`` is udev's ID_PATH, which follows from the PCI address; ``driver`` is given where
    several interfaces have that path; ``mac`` is permanent, for a port of which no path is known.
    """

    path: str | None = None
    driver: str | None = None
    mac: str | None = None


class RailConfig(Model):
    """One rail, as its files say it; ``name`` is that of its interface at boot."""

    key: str
    name: str | None
    match: Match
    is_infiniband: bool = False
    mtu: int | None = None
    address: IPv4Interface | None = None
    table: int
    rule_priority: int
    routes: tuple[Route, ...] = ()

    @classmethod
    def of(
        cls, plan: PlannedRail, match: Match, name: str | None, is_infiniband: bool
    ) -> "RailConfig":
        return cls(
            key=f"rail{plan.rail}",
            name=name,
            match=match,
            is_infiniband=is_infiniband,
            # IPoIB has at most 4092 bytes in datagram mode: the rails' common MTU is not its.
            mtu=plan.nic.mtu if is_infiniband else plan.mtu,
            address=plan.address,
            table=plan.table,
            rule_priority=plan.rule_priority,
            routes=plan.routes if plan.address else (),
        )

    @property
    def said(self) -> "Said":
        """What the files have to say, to be held against what they do say."""
        rule = None
        if self.address is not None:
            rule = rule_text(str(self.address.ip), self.table, self.rule_priority)
        return Said(
            mtu=None if self.mtu is None else str(self.mtu),
            address=None if self.address is None else str(self.address),
            rule=rule,
            routes=routes_text(
                (str(route.to), None if route.via is None else str(route.via), self.table)
                for route in self.routes
            ),
        )


class Said(Model):
    """What a file says of a rail, each part written as a setting's value; None where nothing."""

    mtu: str | None = None
    address: str | None = None
    rule: str | None = None
    routes: str | None = None


def rule_text(source: str, table: int | str, priority: int | str) -> str:
    """``from 10.64.0.2 table 100 priority 1000``"""
    return f"from {source.removesuffix('/32')} table {table} priority {priority}"


def routes_text(routes: Iterable[tuple[str, str | None, int | str]]) -> str | None:
    """``10.64.0.0/20 table 100, 10.64.0.0/12 via 10.64.0.1 table 100``"""
    found = [f"{to}{f' via {via}' if via else ''} table {table}" for to, via, table in routes]
    return ", ".join(found) or None


@dataclass(frozen=True)
class Writer:
    """How one network manager's file for a rail is written and read again.

    ``content`` is None where the file needs the interface's name, and that is not known.
    """

    path: Callable[[str], str]
    mode: str
    content: Callable[[RailConfig], str | None]
    read: Callable[[str], Said]
