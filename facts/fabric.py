"""What a test of the fabric has to know of a node's ports: GIDs, traffic classes and PFC."""

import re
from collections.abc import Iterator
from ipaddress import IPv6Address

from facts.dcb import Pfc, Refusal, parse_dcb
from facts.gids import Gid
from facts.probe import Section
from railwright.model import Model
from railwright.snapshot import Snapshot

SECTIONS = (
    Section(
        name="fabric_ports",
        # An entry of the GID table that is not in use cannot be read (EINVAL), or is all zeros.
        script=r"""
cd /sys/class/infiniband 2>/dev/null || return 0
grep -sH -e '' -- */ports/*/gid_attrs/types/* */ports/*/gid_attrs/ndevs/* */tc/*/traffic_class
grep -sH -e '' -- */ports/*/gids/* | grep -v '0000:0000:0000:0000:0000:0000:0000:0000$'
cd /sys/kernel/config/rdma_cm 2>/dev/null && grep -sH -e '' -- */ports/*/default_roce_tos
true
""",
    ),
    Section(
        name="fabric_pfc",
        script=r"""
for link in /sys/class/net/*; do
    [ -e "$link/device" ] || continue
    [ "$(cat "$link/type")" = 1 ] || continue
    printf '\n%s port %s\n' "$N" "${link##*/}"
    dcb -j pfc show dev "${link##*/}" 2>&1
    printf '\n%s exit %s\n' "$N" "$?"
done
true
""",
    ),
)


class PfcState(Model):
    """Priorities that PFC is on for; None where ``error`` says why that is not known."""

    enabled: frozenset[int] | None
    error: str | None = None


class FabricPorts(Model):
    """Ports by ``DEVICE/PORT``, as the rdma tool names them, and PFC by interface.

    ``forced_class`` is the traffic class that NVIDIA's driver gives all packets of a port, whatever
    the application asks for; ``cma_tos`` the ToS byte of connections of rdma_cm. A port is in
    neither where it has none.
    """

    gids: tuple[Gid, ...]
    forced_class: dict[str, int]
    cma_tos: dict[str, int]
    pfc: dict[str, PfcState]

    def gids_of(self, port: str) -> tuple[Gid, ...]:
        return tuple(gid for gid in self.gids if f"{gid.device}/{gid.port}" == port)


_GID = re.compile(r"([^/]+)/ports/(\d+)/(gids|gid_attrs/types|gid_attrs/ndevs)/(\d+):(.*)")
_FORCED = re.compile(r"([^/]+)/tc/(\d+)/traffic_class:(.*)")
_TOS = re.compile(r"([^/]+)/ports/(\d+)/default_roce_tos:(\d+)")
# "Tclass=106" is one rule of several, for single addresses; "Global tclass=106" is for all.
_GLOBAL = re.compile(r"Global tclass=(\d+)")
_VERSIONS = {"RoCE v2": "v2", "IB/RoCE v1": "v1"}
_PORT = re.compile(r"(\S+)\n(.*)\n\S+ exit (\d+)\s*", re.DOTALL)


def read_fabric(snapshot: Snapshot) -> FabricPorts:
    """What the snapshot says. Raises ValueError where it cannot be read."""
    entries: dict[tuple[str, int, int], dict[str, str]] = {}
    forced: dict[str, int] = {}
    tos: dict[str, int] = {}
    for line in filter(None, snapshot.text("fabric_ports").splitlines()):
        if found := _GID.fullmatch(line):
            key = (found[1], int(found[2]), int(found[4]))
            entries.setdefault(key, {})[found[3]] = found[5].strip()
        elif found := _FORCED.fullmatch(line):
            if value := _GLOBAL.search(found[3]):
                forced[f"{found[1]}/{found[2]}"] = int(value[1])
        elif found := _TOS.fullmatch(line):
            tos[f"{found[1]}/{found[2]}"] = int(found[3])
        else:
            raise ValueError(f"expected a value of an RDMA port, got {line[:80]!r}")
    return FabricPorts(
        gids=tuple(_gids(entries)),
        forced_class=forced,
        cma_tos=tos,
        pfc=dict(_pfc(part) for part in _ports(snapshot)),
    )


def _gids(entries: dict[tuple[str, int, int], dict[str, str]]) -> Iterator[Gid]:
    for (device, port, index), entry in sorted(entries.items()):
        if "gids" not in entry:
            continue
        mapped = IPv6Address(entry["gids"]).ipv4_mapped
        yield Gid(
            device=device,
            port=port,
            index=index,
            gid=entry["gids"],
            ipv4=str(mapped) if mapped else None,
            version=_VERSIONS.get(entry.get("gid_attrs/types", "")),
            netdev=entry.get("gid_attrs/ndevs"),
        )


def _ports(snapshot: Snapshot) -> list[str]:
    return f"\n{snapshot.text('fabric_pfc')}".split(f"\n{snapshot.marker} port ")[1:]


def _pfc(text: str) -> tuple[str, PfcState]:
    found = _PORT.fullmatch(text)
    if found is None:
        raise ValueError(f"what dcb says of a port breaks off: {text[:60]!r}")
    try:
        told = parse_dcb(found[2], int(found[3]))
    except ValueError as error:
        return found[1], PfcState(enabled=None, error=str(error))
    if isinstance(told, Pfc):
        return found[1], PfcState(enabled=frozenset(told.pfc_enabled))
    what = f"{told.error}: {told.detail}" if isinstance(told, Refusal) else "dcb showed no PFC"
    return found[1], PfcState(enabled=None, error=what)
