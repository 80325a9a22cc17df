"""How far the peers of each GPU are, and which did its IO: nvidia-fs' peer_distance, peer_affinity.

Formats: src/nvfs-pci.c of gds-nvidia-fs; older modules have five columns of distances and no head
(GDS troubleshooting guide, 9.8).
"""

import re

from pydantic import computed_field

from railwright.model import Model

# BASE_PCI_DISTANCE_CROSSRP (S8_MAX): added once where root ports differ, and twice where the
# peer is of another NUMA node too. Source: nvfs-pci.h, nvfs_get_gpu2peer_distance.
_CROSS_ROOT = 0x7F
_UNKNOWN_NUMA = 0xFFFFFFFF


class Peer(Model):
    """A GPU and a device that may reach its memory; ``kind`` is network or nvme.

    ``distance`` counts the bridges between them; ``link_width`` (lanes) and ``link_gen`` are of
    the peer's link, ``numa`` is its node, ``np2p`` the operations so far. Old modules tell the
    distance, the operations and the kind alone.
    """

    gpu: str
    peer: str
    kind: str
    distance: int
    np2p: int
    link_width: int | None = None
    link_gen: int | None = None
    numa: int | None = None

    @computed_field
    def cross_root(self) -> bool:
        """Whether IO between them crosses root ports."""
        return self.distance >= _CROSS_ROOT

    @computed_field
    def cross_socket(self) -> bool:
        return self.distance >= 2 * _CROSS_ROOT


class PeerDistances(Model):
    """Every GPU with every peer."""

    peers: tuple[Peer, ...]


class Affinity(Model):
    """Operations of a GPU by distance: ``near[0]`` are those at distance 1, ``cross_root`` those
    by way of the root complex."""

    near: tuple[int, ...]
    cross_root: int


_PCI = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_HEX = "(0x[0-9a-f]+)"
_ROW = re.compile(
    rf"({_PCI})\s+({_PCI})\s+{_HEX}\s+{_HEX}\s+{_HEX}\s+{_HEX}\s+{_HEX}\s+([0-9]+)\s+(\w+)"
)
_OLD_ROW = re.compile(rf"({_PCI})\s+({_PCI})\s+([0-9]+)\s+([0-9]+)\s+(\w+)")
_AFFINITY = re.compile(rf"GPU :({_PCI}) ?:\s*([0-9]+(?:\s+[0-9]+)*)")


def parse_peer_distance(text: str) -> PeerDistances:
    """Read peer_distance. Raises ValueError for a row of another kind, and for no text at all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError("expected nvidia-fs' peer_distance, got nothing")
    return PeerDistances(peers=tuple(_peer(line) for line in lines if not _is_head(line)))


def _is_head(line: str) -> bool:
    return line.startswith("gpu") and "peerrank" in line


def _peer(line: str) -> Peer:
    if row := _ROW.fullmatch(line):
        _, distance, width, gen, numa = (int(word, 16) for word in row.groups()[2:7])
        return Peer(
            gpu=row[1],
            peer=row[2],
            kind=row[9],
            distance=distance,
            np2p=int(row[8]),
            link_width=width,
            link_gen=gen,
            numa=None if numa == _UNKNOWN_NUMA else numa,
        )
    if row := _OLD_ROW.fullmatch(line):
        return Peer(gpu=row[1], peer=row[2], kind=row[5], distance=int(row[3]), np2p=int(row[4]))
    raise ValueError(f"expected a row of nvidia-fs' peer_distance, got {line[:80]!r}")


def parse_peer_affinity(text: str) -> dict[str, Affinity]:
    """Read peer_affinity: GPUs by PCI address. It is empty while peer statistics are off.

    Raises ValueError for a line of another kind.
    """
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        if row := _AFFINITY.fullmatch(line):
            *near, cross = map(int, row[2].split())
            found[row[1]] = Affinity(near=tuple(near), cross_root=cross)
        elif "distribution based on pci-distance" not in line and not line.startswith("(last"):
            raise ValueError(f"expected a GPU of nvidia-fs' peer_affinity, got {line[:80]!r}")
    return found
