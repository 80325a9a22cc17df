"""Links of an InfiniBand fabric as ``iblinkinfo -l`` lists them: each from both of its ends.

Formats: rdma-core infiniband-diags/iblinkinfo.c, line mode.
"""

import re

from railwright.model import Model

# Signalling rate of a lane in Gb/s to the rate that people call it by: the rest is coding.
# Source: IBTA, link speeds SDR to XDR.
_LANES = {
    2.5: 2.5,
    5.0: 5.0,
    10.0: 10.0,
    10.3125: 10.0,
    14.0625: 14.0,
    25.78125: 25.0,
    53.125: 50.0,
    106.25: 100.0,
    212.5: 200.0,
}


class LinkEnd(Model):
    """One end of a link; ``name`` is the node's description, the guid that of its port."""

    guid: str
    name: str
    lid: int | None
    port: int

    def __str__(self) -> str:
        return f"{self.name}/{self.port}"


class FabricLink(Model):
    """A port and what it is linked to; ``far`` is None where the link is down.

    ``lane_gbps`` is the signalling rate of each of the ``lanes``. ``could_be`` is what both ends
    have in common and do not use.
    """

    near: LinkEnd
    far: LinkEnd | None
    state: str
    physical: str
    lanes: int | None = None
    lane_gbps: float | None = None
    could_be: str = ""

    @property
    def rate_gbps(self) -> float | None:
        """The rate as people call it (400 for 4X NDR); None where the link is down."""
        if self.lanes is None or self.lane_gbps is None:
            return None
        return self.lanes * _LANES.get(self.lane_gbps, self.lane_gbps)


_LINE = re.compile(
    r'(?P<guid>0x[0-9a-f]+)\s+"(?P<name>[^"]*)"\s+(?P<lid>[0-9]+)\s+(?P<port>[0-9]+)\[[^\]]*\]'
    r"\s+==\(\s*(?:(?P<lanes>[0-9]+)X\s+(?P<lane>[0-9.]+) Gbps\s+(?:\(FDR10\)\s+)?)?"
    r"(?P<state>[A-Za-z]+)/\s*(?P<physical>[A-Za-z]+)\s*\)==>"
    r"\s+(?:(?P<far_guid>0x[0-9a-f]+)\s+(?P<far_lid>[0-9]+)\s+(?P<far_port>[0-9]+))?\s*\[[^\]]*\]"
    r'\s+"(?P<far_name>[^"]*)"\s+\((?P<could>.*)\)\s*'
)


def parse_iblinkinfo(text: str) -> tuple[FabricLink, ...]:
    """Read ``iblinkinfo -l``. Raises ValueError for a line of another kind."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"expected a link of iblinkinfo -l, got {line.strip()[:80]!r}")
        found.append(_link(match))
    return tuple(found)


def _link(match: re.Match[str]) -> FabricLink:
    near = LinkEnd(
        guid=match["guid"],
        name=match["name"].strip(),
        lid=int(match["lid"]) or None,
        port=int(match["port"]),
    )
    far = None
    if match["far_guid"]:
        far = LinkEnd(
            guid=match["far_guid"],
            name=match["far_name"].strip(),
            lid=int(match["far_lid"]) or None,
            port=int(match["far_port"]),
        )
    return FabricLink(
        near=near,
        far=far,
        state=match["state"],
        physical=match["physical"],
        lanes=int(match["lanes"]) if match["lanes"] else None,
        lane_gbps=float(match["lane"]) if match["lane"] else None,
        could_be=" ".join(match["could"].split()),
    )
