"""The GID tables of RDMA ports, as ``show_gids`` lists them.

Formats: mlnx-tools sbin/show_gids. Its IPv4 column is computed from the GID, so the GID decides.
"""

import re
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address

from railwright.model import Model


class Gid(Model):
    """One entry of a port's GID table.

    ``version`` is v1 (RoCE v1, and InfiniBand as well) or v2, None where the kernel does not say;
    ``netdev`` the interface that it came from, None for InfiniBand.
    """

    device: str
    port: int
    index: int
    gid: str
    ipv4: str | None = None
    version: str | None = None
    netdev: str | None = None

    @property
    def is_link_local(self) -> bool:
        return IPv6Address(self.gid).is_link_local


class GidTable(Model):
    """GIDs of all ports; ``found`` is the tool's own count, None where its last line is missing."""

    gids: tuple[Gid, ...]
    found: int | None = None

    def ports(self) -> dict[tuple[str, int], tuple[Gid, ...]]:
        """(device, port) to its GIDs, in the order listed."""
        ports: dict[tuple[str, int], tuple[Gid, ...]] = {}
        for gid in self.gids:
            key = (gid.device, gid.port)
            ports[key] = (*ports.get(key, ()), gid)
        return ports


_ROW = re.compile(
    r"(\S+)\s+([0-9]+)\s+([0-9]+)\s+([0-9a-fA-F:]{39})"
    r"(?:\s+[0-9]+(?:\.[0-9]+){3})?(?:\s+([vV][0-9]))?(?:\s+(\S+))?\s*"
)
_FOUND = re.compile(r"n_gids_found=([0-9]+)\s*")
# Headings, and what ls, cat and the script itself say on stderr of files that are not there.
_NOISE = re.compile(r"DEV\s+PORT\s+INDEX|---\s+----|ls: |cat: |\S*show_gids: line |tput: ")


def parse_show_gids(text: str) -> GidTable:
    """Read ``show_gids``. Raises ValueError for another text, and where GIDs are missing."""
    gids = []
    found: int | None = None
    known = False
    for line in filter(str.strip, text.splitlines()):
        if row := _ROW.fullmatch(line):
            gids.append(_gid(row))
        elif count := _FOUND.fullmatch(line):
            found = int(count[1])
        elif not _NOISE.match(line):
            raise ValueError(f"expected a line of show_gids, got {line[:80]!r}")
        known = known or not line.startswith(("ls: ", "cat: "))
    if not known:
        raise ValueError("expected show_gids, got no line of it")
    if found is not None and found != len(gids):
        raise ValueError(f"show_gids found {found} GIDs, but {len(gids)} are listed")
    return GidTable(gids=tuple(gids), found=found)


def _gid(row: re.Match[str]) -> Gid:
    # IPv6Address raises a ValueError.
    mapped = IPv6Address(row[4]).ipv4_mapped
    return Gid(
        device=row[1],
        port=int(row[2]),
        index=int(row[3]),
        gid=row[4].lower(),
        ipv4=str(mapped) if mapped else None,
        version=row[5].lower() if row[5] else None,
        netdev=row[6],
    )


def roce_v2_ipv4_index(gids: Iterable[Gid]) -> int | None:
    """The index of the RoCE v2 GID with the port's IPv4 address; None where there is none.

    ``gids`` are those of one port. An address of the port's own interface (that of the first GID)
    comes before those of VLANs on it. It is for reports: adding an address can move the index, so
    nothing may be pinned to it.
    """
    return _best(gids, lambda gid: gid.ipv4 is not None)


def roce_v2_ipv6_index(gids: Iterable[Gid]) -> int | None:
    """The same for an IPv6 address that is routed, that is not link-local."""
    return _best(gids, lambda gid: gid.ipv4 is None and not gid.is_link_local)


def _best(gids: Iterable[Gid], usable: Callable[[Gid], bool]) -> int | None:
    listed = sorted(gids, key=lambda gid: gid.index)
    fitting = [gid for gid in listed if gid.version == "v2" and usable(gid)]
    return min(
        ((gid.netdev != listed[0].netdev, gid.index) for gid in fitting), default=(False, None)
    )[1]
