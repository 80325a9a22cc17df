"""Lossless RoCE as one port must have it: plain values, one way to write each of them down.

The same text stands in the data of the unit on the node, in a setting, and is made of what the
port shows, so that the three compare as text. Maps are written by runs of equal values:
``0-2:0 3:3 4-7:0``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from railwright.model import Model
from railwright.schema import RoceQos

PRIORITIES = TRAFFIC_CLASSES = BUFFERS = 8
DSCPS = 64

Name = Literal[
    "dcbx",
    "trust",
    "dscp map",
    "pfc",
    "ets",
    "buffer",
    "cable",
    "pause",
    "ecn",
    "cnp dscp",
    "cnp priority",
    "rdma_cm tos",
    "rdma_cm mode",
    "traffic class",
]

CELL_BYTES = 256
"""A NIC keeps its receive buffers in whole cells and rounds down to them; theirs have 128 or 144
bytes. Source: mlx5 en_dcbnl.c, ``mlx5e_query_port_buffers_cell_size``.
"""

NONE = "none"
HOST = "host"
"""DCBX in the hands of the host, and willing to take nothing from the switch."""

WHY: Mapping[Name, str] = {
    "dcbx": "firmware or an agent that is willing takes PFC and ETS from the switch at any time",
    "trust": "routed RoCE v2 carries its class in the DSCP; a PCP needs a VLAN tag on every hop",
    "dscp map": "all 64 entries: what one tool leaves at 0 another sets to dscp >> 3 "
    "(mlx5 en_dcbnl.c, mlnx-tools dcbnetlink.py)",
    "pfc": "a lost packet costs RoCE a retransmission of all that follows; only the priority of "
    "RoCE, for a paused priority stops all that share it. The switch must have the same, which "
    "no host can see",
    "ets": "as NVIDIA Cumulus' roce lossless: half for RoCE, CNP before all, the rest together",
    "pause": "global pause stops the CNPs and TCP together with RoCE, and excludes PFC "
    "(802.1Q-2018, 36.1; the driver's default is on)",
    "ecn": "DCQCN keeps PFC from firing; it needs the notification point and the reaction point",
    "cnp dscp": "a CNP that waits behind the queue that it reports comes too late",
    "cnp priority": "a CNP that waits behind the queue that it reports comes too late",
    "rdma_cm tos": "what connects by rdma_cm (NVMe, NFS, Lustre, BeeGFS) has ToS 0 otherwise",
    "rdma_cm mode": "RoCE v1 is not routed and carries no DSCP",
    "traffic class": "queue pairs opened by hand (NCCL, UCX, perftest) have DSCP 0 otherwise",
}


class Ets(Model):
    """Which traffic class each priority has, and how each class is served.

    ``shares`` are ``50%`` of what the strict classes leave, or ``strict``: before all with a share,
    and before strict ones of lower number.
    """

    prio_tc: tuple[int, ...]
    shares: tuple[str, ...]

    def __str__(self) -> str:
        return f"{runs(self.prio_tc)} / {runs(self.shares)}"


class ReceiveBuffers(Model):
    """The receive buffer of each priority, and the bytes of each; None leaves those alone."""

    prio_buffer: tuple[int, ...]
    sizes: tuple[int, ...] | None

    def __str__(self) -> str:
        return f"{runs(self.prio_buffer)} / {NONE if self.sizes is None else runs(self.sizes)}"


def runs(values: Sequence[object]) -> str:
    """``0-2:0 3:3 4-7:0`` for 0, 0, 0, 3, 0, 0, 0, 0."""
    starts = [i for i in range(len(values)) if i == 0 or values[i] != values[i - 1]]
    ends = [*starts[1:], len(values)]
    return " ".join(
        f"{start}:{values[start]}" if end == start + 1 else f"{start}-{end - 1}:{values[start]}"
        for start, end in zip(starts, ends, strict=True)
    )


def mapped(values: Mapping[int, int]) -> str:
    """A map of which not every key has a value, as runs; ``none`` where it is empty."""
    parts = []
    keys = sorted(values)
    while keys:
        start = end = keys.pop(0)
        while keys and keys[0] == end + 1 and values[keys[0]] == values[start]:
            end = keys.pop(0)
        parts.append(
            f"{start}:{values[start]}" if start == end else f"{start}-{end}:{values[start]}"
        )
    return " ".join(parts) or NONE


def listed(priorities: Iterable[int]) -> str:
    """``3 5``, or ``none``."""
    return " ".join(map(str, sorted(priorities))) or NONE


def dscp_map(qos: RoceQos) -> dict[int, int]:
    """Every DSCP to its priority; empty with trust PCP, where mlx5 has no such entries.

    The driver derives its trust from them: the first entry sets trust to DSCP, the last one that
    goes sets it back to PCP. Source: mlx5 en_dcbnl.c, ``mlx5e_dcbnl_ieee_setapp``.
    """
    if qos.trust == "pcp":
        return {}
    return {dscp: qos.priority_of(dscp) for dscp in range(DSCPS)}


def ets(qos: RoceQos) -> Ets:
    """The traffic class of each priority: its own number where it has a share or is strict.

    All others go with priority 0, as in NVIDIA Cumulus' ``roce lossless``. In classes of their
    own they would be served before RoCE (strict, and vendor above all), or only when it has
    nothing to send (ets with 0 %). Classes that no priority has are strict: 0 % in an ets class
    makes mlx5 regroup the others. Source: mlx5 en_dcbnl.c, ``mlx5e_build_tc_group``.
    """
    return Ets(
        prio_tc=tuple(
            priority if priority in qos.ets_percent or priority in qos.strict else 0
            for priority in range(PRIORITIES)
        ),
        shares=tuple(
            f"{qos.ets_percent[tc]}%" if tc in qos.ets_percent else "strict"
            for tc in range(TRAFFIC_CLASSES)
        ),
    )


def receive_buffers(qos: RoceQos) -> ReceiveBuffers | None:
    """The receive buffers; None where the inventory leaves them to the NIC."""
    if not qos.buffer_bytes and not qos.priority_to_buffer:
        return None
    sizes = tuple(qos.buffer_bytes.get(buffer, 0) for buffer in range(BUFFERS))
    return ReceiveBuffers(
        prio_buffer=tuple(qos.priority_to_buffer.get(p, 0) for p in range(PRIORITIES)),
        sizes=sizes if qos.buffer_bytes else None,
    )


def same_sizes(asked: Sequence[int], found: Sequence[int]) -> bool:
    """Whether the NIC has what was asked, but for the rest that is no whole cell."""
    return all(0 <= a - f < CELL_BYTES for a, f in zip(asked, found, strict=True))


def both_points(np: Iterable[int], rp: Iterable[int]) -> str:
    """Priorities with ECN at the notification point and at the reaction point."""
    return f"np {listed(np)} rp {listed(rp)}"


def wanted(qos: RoceQos) -> dict[Name, str]:
    """What a port must have, in the order in which it is put in force.

    Pause comes before PFC, which it excludes; the map before PFC, so that no traffic is paused
    that does not belong there. The traffic class of all queue pairs is NVIDIA's driver's alone.
    """
    values: dict[Name, str] = {
        "dcbx": HOST,
        "pause": "off",
        "trust": qos.trust,
        "dscp map": mapped(dscp_map(qos)),
        "ets": str(ets(qos)),
    }
    buffers = receive_buffers(qos)
    if qos.cable_length_m is not None:
        values["cable"] = str(qos.cable_length_m)
    if buffers is not None:
        values["buffer"] = str(buffers)
    values |= {
        "pfc": listed(qos.lossless),
        "ecn": both_points(qos.ecn, qos.ecn),
        "cnp dscp": str(qos.cnp_dscp),
        "cnp priority": str(qos.cnp_priority),
        "rdma_cm tos": str(qos.traffic_class),
        "rdma_cm mode": "RoCE v2",
    }
    if qos.backend == "nvidia":
        values["traffic class"] = str(qos.traffic_class)
    return values


def key_of(name: Name) -> str:
    """What ``name`` is called in the unit's data: ``CNP_DSCP``."""
    return name.upper().replace(" ", "_")


def data_of(rail: str, qos: RoceQos) -> str:
    """The unit's data for one port: lines ``KEY=VALUE``, which it parses and never sources."""
    lines = {"RAIL": rail, "BACKEND": qos.backend}
    lines |= {key_of(name): value for name, value in wanted(qos).items()}
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def parse_data(text: str) -> dict[str, str]:
    """What the data of a port says, by key. Raises ValueError for a line of another kind."""
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Z_]+)=(.*)", line)
        if match is None:
            raise ValueError(f"expected KEY=VALUE, got {line[:60]!r}")
        found[match[1]] = match[2]
    return found


def landing(traffic_class: int, entries: Mapping[int, int], pfc: Iterable[int]) -> str | None:
    """What becomes of packets with that ToS byte where they do not land on a PFC priority.

    Source: NVIDIA/nccl#2383.
    """
    dscp = traffic_class >> 2
    priority = entries.get(dscp, 0)
    if priority in pfc:
        return None
    return f"DSCP {dscp} has priority {priority}, which is not lossless (PFC: {listed(pfc)})"
