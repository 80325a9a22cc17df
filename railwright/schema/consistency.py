"""What the parts of a merged node say of each other.

A group says a part of a node, so only the merged node can be held against itself; each finding
names both fields.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network

from railwright.schema.base import Finding
from railwright.schema.fabric import InfinibandFabric, RoceFabric, RoceQos
from railwright.schema.rails import IDENTITIES, Rail, RailsSpec
from railwright.schema.sysctl import SysctlSpec

RDMA_MTU_4096 = 4200
"""The least MTU of an interface over which RDMA has MTU 4096: payload and RoCE v2's headers.

Source: NVIDIA/nccl#1524; the headers are IPv4 20, UDP 8, BTH 12, extended up to 28, ICRC 4 bytes.
"""


def fabric_findings(
    fabric: RoceFabric | InfinibandFabric | None, rails: RailsSpec, sysctl: SysctlSpec
) -> list[Finding]:
    """All that does not fit together in a node's fabric, rails and sysctls."""
    found = [*_rail_findings(rails, fabric), *_plan_findings(rails)]
    if isinstance(fabric, RoceFabric):
        qos = [*_mapping_findings(fabric.qos), *_bandwidth_findings(fabric.qos)]
        qos += _buffer_findings(fabric.qos)
        found += [Finding(("fabric", "qos", *one.path), one.value, one.expected) for one in qos]
        found += _mtu_findings(rails)
        found += _arp_findings(rails, sysctl)
    return found


def _rail_findings(
    rails: RailsSpec, fabric: RoceFabric | InfinibandFabric | None
) -> Iterator[Finding]:
    for rail, nic in sorted(rails.nics.items()):
        given = [name for name in IDENTITIES if getattr(nic, name) is not None]
        path = ("rails", "nics", str(rail))
        if not given:
            yield Finding(path, _given(nic), f"one of {', '.join(IDENTITIES)}")
        if fabric is None:
            yield Finding(path, _given(nic), "a fabric beside it: roce or infiniband")
        if isinstance(fabric, RoceFabric) and nic.guid is not None:
            yield Finding((*path, "guid"), nic.guid, "pci or mac: fabric.kind is roce")
        if isinstance(fabric, InfinibandFabric) and nic.mac is not None:
            yield Finding((*path, "mac"), nic.mac, "pci or guid: fabric.kind is infiniband")
    served = {nic.gpu for nic in rails.nics.values() if isinstance(nic.gpu, int)}
    if rails.gpus is None or any(isinstance(nic.gpu, str) for nic in rails.nics.values()):
        return
    missing = [gpu for gpu in range(rails.gpus) if gpu not in served]
    if missing:
        yield Finding(
            ("rails", "gpus"),
            rails.gpus,
            f"a rail for each GPU: rails.nics names no NIC for GPU {', '.join(map(str, missing))}",
        )
    for rail, nic in sorted(rails.nics.items()):
        if isinstance(nic.gpu, int) and nic.gpu >= rails.gpus:
            yield Finding(
                ("rails", "nics", str(rail), "gpu"), nic.gpu, f"less than rails.gpus {rails.gpus}"
            )


def _given(nic: Rail) -> dict[str, object]:
    """What the inventory says of a NIC, as it would write it."""
    return nic.model_dump(mode="json", exclude_none=True)


def _plan_findings(rails: RailsSpec) -> Iterator[Finding]:
    plan = rails.plan
    if plan.prefix is None:
        return
    shared = plan.layout == "shared_subnet"
    length = plan.rail_prefix_length
    if shared and length is not None:
        yield Finding(
            ("rails", "plan", "rail_prefix_length"), length, "none with layout shared_subnet"
        )
    elif not shared and length is None:
        yield Finding(
            ("rails", "plan", "rail_prefix_length"),
            None,
            f"the prefix length of each rail's subnet in prefix {plan.prefix}",
        )
    elif length is not None:
        subnets = 2 ** max(0, length - plan.prefix.prefixlen)
        if length < plan.prefix.prefixlen or max(rails.nics, default=0) >= subnets:
            yield Finding(
                ("rails", "plan", "rail_prefix_length"),
                length,
                f"one that gives a subnet to each of the rails 0 to {max(rails.nics, default=0)} "
                f"in prefix {plan.prefix}",
            )
    if plan.table_base <= 253 <= plan.table_base + max(rails.nics, default=0):
        yield Finding(
            ("rails", "plan", "table_base"),
            plan.table_base,
            f"no table of the kernel's own (253 to 255) up to rail {max(rails.nics, default=0)}",
        )


def _mtu_findings(rails: RailsSpec) -> Iterator[Finding]:
    for rail, nic in sorted(rails.nics.items()):
        mtu, path = (
            (rails.mtu, ("rails", "mtu"))
            if nic.mtu is None
            else (nic.mtu, ("rails", "nics", str(rail), "mtu"))
        )
        if mtu < RDMA_MTU_4096:
            yield Finding(
                path, mtu, f"at least {RDMA_MTU_4096}: fabric.kind is roce, and RDMA has MTU 4096"
            )
            if nic.mtu is None:
                return


def _arp_findings(rails: RailsSpec, sysctl: SysctlSpec) -> Iterator[Finding]:
    """Rails of one subnet answer for each other unless ARP is bound to the port.

    The effective value is the larger of all and the interface's (kernel documentation,
    networking/ip-sysctl), so ``all`` decides here, which also holds before a rail is named.
    """
    values = sysctl.values
    if rails.nics and values.get("net.ipv4.conf.all.rp_filter") == 1:
        yield Finding(
            ("sysctl", "values", "net.ipv4.conf.all.rp_filter"),
            1,
            "2 or 0 with rails.nics: strict filtering drops what comes back on another rail",
        )
    shared = _shared_subnets(rails)
    if not shared:
        return
    one, other = shared[0]
    for key, least in (("arp_ignore", 1), ("arp_announce", 2)):
        name = f"net.ipv4.conf.all.{key}"
        value = values.get(name)
        if not isinstance(value, int) or value < least:
            yield Finding(
                ("sysctl", "values", name),
                value,
                f"at least {least}: rails.nics {one} and {other} share a subnet",
            )


def _shared_subnets(rails: RailsSpec) -> list[tuple[int, int]]:
    """Pairs of rails that lie in one subnet."""
    numbers = sorted(rails.nics)
    if rails.plan.prefix is not None and rails.plan.layout == "shared_subnet":
        planned = [rail for rail in numbers if rails.nics[rail].address is None]
        if len(planned) > 1:
            return [(planned[0], other) for other in planned[1:]]
    nets: list[tuple[int, IPv4Network]] = [
        (rail, address.network) for rail in numbers if (address := rails.nics[rail].address)
    ]
    return [
        (one, other)
        for index, (one, net) in enumerate(nets)
        for other, rival in nets[index + 1 :]
        if net.overlaps(rival)
    ]


def _mapping_findings(qos: RoceQos) -> list[Finding]:
    """Where DSCP, priority, PFC, ECN and traffic class do not fit together."""
    roce, cnp = qos.priority_of(qos.roce_dscp), qos.priority_of(qos.cnp_dscp)
    found = []
    if qos.trust == "dscp" and roce not in qos.lossless:
        found.append(
            Finding(
                ("roce_dscp",),
                qos.roce_dscp,
                f"a DSCP of a priority in lossless {_listed(qos.lossless)}: it has priority {roce}",
            )
        )
    if qos.cnp_priority in qos.lossless:
        found.append(
            Finding(
                ("cnp_priority",),
                qos.cnp_priority,
                f"none in lossless {_listed(qos.lossless)}: a paused CNP cannot slow anyone down",
            )
        )
    if qos.trust == "dscp" and cnp != qos.cnp_priority:
        found.append(
            Finding(
                ("cnp_dscp",),
                qos.cnp_dscp,
                f"a DSCP of cnp_priority {qos.cnp_priority}: it has priority {cnp}",
            )
        )
    if qos.cnp_dscp == qos.roce_dscp:
        found.append(Finding(("cnp_dscp",), qos.cnp_dscp, "another DSCP than roce_dscp"))
    if qos.traffic_class >> 2 != qos.roce_dscp:
        low = qos.roce_dscp << 2
        found.append(
            Finding(
                ("traffic_class",),
                qos.traffic_class,
                f"{low} to {low + 3}, which is roce_dscp {qos.roce_dscp} × 4 and two ECN bits "
                f"(as it is it carries DSCP {qos.traffic_class >> 2})",
            )
        )
    if qos.trust == "dscp" and roce not in qos.ecn:
        found.append(
            Finding(
                ("ecn",),
                sorted(qos.ecn),
                f"priority {roce} of roce_dscp {qos.roce_dscp} in it: without ECN, PFC is the "
                "only brake",
            )
        )
    if qos.trust == "pcp" and qos.dscp_to_priority:
        found.append(Finding(("dscp_to_priority",), qos.dscp_to_priority, "nothing: trust is pcp"))
    return found


def _bandwidth_findings(qos: RoceQos) -> list[Finding]:
    found = [
        Finding(
            ("ets_percent", str(priority)),
            qos.ets_percent[priority],
            f"none for a priority in strict {_listed(qos.strict)}",
        )
        for priority in sorted(qos.strict & qos.ets_percent.keys())
    ]
    total = sum(qos.ets_percent.values())
    if qos.ets_percent and total != 100:
        found.append(
            Finding(("ets_percent",), qos.ets_percent, f"shares of 100 in all, not {total}")
        )
    roce = qos.priority_of(qos.roce_dscp)
    if qos.ets_percent and roce not in qos.strict and not qos.ets_percent.get(roce):
        found.append(
            Finding(
                ("ets_percent",),
                qos.ets_percent,
                f"a share for priority {roce} of roce_dscp {qos.roce_dscp}",
            )
        )
    return found


def _buffer_findings(qos: RoceQos) -> list[Finding]:
    found = [
        Finding(
            ("priority_to_buffer", str(priority)),
            qos.priority_to_buffer.get(priority, 0),
            "a buffer of its own for a priority in lossless, apart from the lossy ones "
            f"{_listed(frozenset(range(8)) - qos.lossless)}",
        )
        for priority in sorted(qos.lossless)
        if qos.priority_to_buffer and _shares_with_lossy(qos, priority)
    ]
    found += [
        Finding(
            ("priority_to_buffer", str(priority)), buffer, "a buffer that has bytes in buffer_bytes"
        )
        for priority, buffer in sorted(qos.priority_to_buffer.items())
        if qos.buffer_bytes and not qos.buffer_bytes.get(buffer)
    ]
    if qos.buffer_bytes and qos.cable_length_m is not None:
        found.append(
            Finding(
                ("buffer_bytes",),
                qos.buffer_bytes,
                f"none beside cable_length_m {qos.cable_length_m}: the NIC sizes its buffers by "
                "one or the other",
            )
        )
    if qos.backend == "inbox" and qos.cable_length_m is not None:
        found.append(
            Finding(
                ("cable_length_m",),
                qos.cable_length_m,
                "buffer_bytes, or backend nvidia: the inbox backend has no cable length",
            )
        )
    return found


def _shares_with_lossy(qos: RoceQos, priority: int) -> bool:
    buffer = qos.priority_to_buffer.get(priority, 0)
    return any(
        qos.priority_to_buffer.get(other, 0) == buffer
        for other in range(8)
        if other not in qos.lossless
    )


def _listed(priorities: frozenset[int]) -> str:
    return "{" + ", ".join(map(str, sorted(priorities))) + "}"
