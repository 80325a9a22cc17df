"""What the fields of a node's QoS say of each other; each finding names both."""

from collections.abc import Iterable, Iterator

from railwright.schema.base import Finding
from railwright.schema.fabric import RoceQos

_PRIORITIES = range(8)
_CONGESTED = 0b11
"""The ECN bits of a packet that has met congestion (CE). Source: RFC 3168, 5."""


def qos_findings(qos: RoceQos) -> list[Finding]:
    """All that does not fit together; the paths lead from ``qos``."""
    return [
        *_data_findings(qos),
        *_notification_findings(qos),
        *_bandwidth_findings(qos),
        *_buffer_findings(qos),
    ]


def listed(priorities: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, sorted(priorities))) + "}"


def _its_priority(qos: RoceQos, dscp: int) -> str:
    """``priority 2``, with the field that says so where it is not the NIC's own map."""
    by = " by dscp_to_priority" if dscp in qos.dscp_to_priority else ""
    return f"priority {qos.priority_of(dscp)}{by}"


def _data_findings(qos: RoceQos) -> Iterator[Finding]:
    """Where DSCP, priority, PFC, ECN and traffic class of RoCE's data do not fit together."""
    priority = qos.priority_of(qos.roce_dscp)
    its_priority = _its_priority(qos, qos.roce_dscp)
    if qos.trust == "dscp" and priority not in qos.lossless:
        yield Finding(
            ("roce_dscp",),
            qos.roce_dscp,
            f"a DSCP of a priority in lossless {listed(qos.lossless)}: it has {its_priority}",
        )
    if qos.trust == "dscp" and priority not in qos.ecn:
        yield Finding(
            ("ecn",),
            sorted(qos.ecn),
            f"priority {priority} of roce_dscp {qos.roce_dscp} in it: without ECN, PFC is the "
            "only brake",
        )
    low = qos.roce_dscp << 2
    if qos.traffic_class >> 2 != qos.roce_dscp:
        yield Finding(
            ("traffic_class",),
            qos.traffic_class,
            f"{low} to {low + 2}, which is roce_dscp {qos.roce_dscp} × 4 and two ECN bits "
            f"(as it is it carries DSCP {qos.traffic_class >> 2})",
        )
    elif qos.traffic_class & _CONGESTED == _CONGESTED:
        yield Finding(
            ("traffic_class",),
            qos.traffic_class,
            f"{low} to {low + 2}, roce_dscp {qos.roce_dscp} × 4 and ECN bits of 2 (ECT): with 3 "
            "every packet says that it met congestion",
        )
    if qos.trust == "pcp" and qos.dscp_to_priority:
        yield Finding(("dscp_to_priority",), qos.dscp_to_priority, "nothing: trust is pcp")


def _notification_findings(qos: RoceQos) -> Iterator[Finding]:
    priority = qos.priority_of(qos.cnp_dscp)
    if qos.cnp_priority in qos.lossless:
        yield Finding(
            ("cnp_priority",),
            qos.cnp_priority,
            f"none in lossless {listed(qos.lossless)}: a paused CNP cannot slow anyone down",
        )
    if qos.trust == "dscp" and priority != qos.cnp_priority:
        yield Finding(
            ("cnp_dscp",),
            qos.cnp_dscp,
            f"a DSCP of cnp_priority {qos.cnp_priority}: it has {_its_priority(qos, qos.cnp_dscp)}",
        )
    if qos.cnp_dscp == qos.roce_dscp:
        yield Finding(("cnp_dscp",), qos.cnp_dscp, f"another DSCP than roce_dscp {qos.roce_dscp}")


def _bandwidth_findings(qos: RoceQos) -> Iterator[Finding]:
    """Shares, and who has a traffic class of its own: all others have that of priority 0."""
    own = qos.ets_percent.keys() | qos.strict
    for priority in sorted(qos.strict & qos.ets_percent.keys()):
        yield Finding(
            ("ets_percent", str(priority)),
            qos.ets_percent[priority],
            f"none for a priority in strict {listed(qos.strict)}",
        )
    total = sum(qos.ets_percent.values())
    if qos.ets_percent and total != 100:
        yield Finding(("ets_percent",), qos.ets_percent, f"shares of 100 in all, not {total}")
    roce = qos.priority_of(qos.roce_dscp)
    if roce not in own:
        yield Finding(
            ("ets_percent",),
            qos.ets_percent,
            f"a share for priority {roce} of roce_dscp {qos.roce_dscp}",
        )
    shared = sorted(qos.lossless - own - {roce, 0})
    if shared:
        yield Finding(
            ("lossless",),
            sorted(qos.lossless),
            f"priorities in ets_percent or strict: {', '.join(map(str, shared))} would share the "
            "traffic class of priority 0",
        )
    if qos.ets_percent and 0 not in own:
        yield Finding(
            ("ets_percent",),
            qos.ets_percent,
            f"a share for priority 0, whose traffic class all that are not in strict "
            f"{listed(qos.strict)} or here have",
        )


def _buffer_findings(qos: RoceQos) -> Iterator[Finding]:
    buffers = {priority: qos.priority_to_buffer.get(priority, 0) for priority in _PRIORITIES}
    if qos.priority_to_buffer or qos.buffer_bytes:
        lossy = {buffers[priority] for priority in _PRIORITIES if priority not in qos.lossless}
        for priority in sorted(qos.lossless):
            if buffers[priority] in lossy:
                yield Finding(
                    ("priority_to_buffer", str(priority)),
                    buffers[priority],
                    "a buffer of its own for a priority in lossless, apart from the lossy ones "
                    f"{listed(frozenset(_PRIORITIES) - qos.lossless)}",
                )
    if qos.buffer_bytes:
        for priority, buffer in buffers.items():
            told = priority in qos.priority_to_buffer or priority == 0
            if told and not qos.buffer_bytes.get(buffer):
                yield Finding(
                    ("priority_to_buffer", str(priority)),
                    buffer,
                    "a buffer that has bytes in buffer_bytes",
                )
    elif qos.cable_length_m is not None:
        # Source: mlx5 en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc: only for buffers set by hand.
        yield Finding(
            ("cable_length_m",),
            qos.cable_length_m,
            "buffer_bytes beside it: the driver uses it for no buffers but those",
        )
