"""What the parts of a merged node say of each other.

A group says a part of a node, so only the merged node can be held against itself; each finding
names both fields.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network

from railwright.schema.base import Finding
from railwright.schema.fabric import InfinibandFabric, RoceFabric
from railwright.schema.firmware import FirmwareSpec, number_of, ports_with
from railwright.schema.qos_consistency import listed, qos_findings
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
        found += [
            Finding(("fabric", "qos", *one.path), one.value, one.expected)
            for one in qos_findings(fabric.qos)
        ]
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


def firmware_findings(
    fabric: RoceFabric | InfinibandFabric | None, firmware: FirmwareSpec
) -> list[Finding]:
    """Where the keys of the NICs' firmware do not fit together, or not the fabric."""
    found = _dependent(firmware, "NUM_OF_VFS", "SRIOV_EN", "without which there are none")
    found += _dependent(
        firmware, "MAX_ACC_OUT_READ", "ADVANCED_PCI_SETTINGS", "without which it is hidden"
    )
    if fabric is None:
        return found
    qos = fabric.qos if isinstance(fabric, RoceFabric) else None
    # The second port of a card may be of another network, a rail's first may not.
    found += _disagreeing(firmware, "LINK_TYPE_P1", 1 if qos is None else 2, "fabric.kind")
    if qos is None:
        return found
    for name, field, number in (
        ("CNP_DSCP", "cnp_dscp", qos.cnp_dscp),
        ("CNP_802P_PRIO", "cnp_priority", qos.cnp_priority),
    ):
        for key in ports_with(firmware.keys, name):
            found += _disagreeing(firmware, key, number, f"fabric.qos.{field}")
    mask = sum(1 << priority for priority in qos.ecn)
    for key, value in ports_with(firmware.keys, "ROCE_CC_PRIO_MASK").items():
        given = number_of(key, value)
        if given is not None and given & mask != mask:
            expected = f"a mask with the bits of fabric.qos.ecn {listed(qos.ecn)} ({mask})"
            found.append(Finding(("firmware", "keys", key), value, expected))
    return found


def _disagreeing(firmware: FirmwareSpec, key: str, number: int, field: str) -> list[Finding]:
    value = firmware.keys.get(key)
    if value is None or number_of(key, value) == number:
        return []
    return [Finding(("firmware", "keys", key), value, f"{number}, as {field} says")]


def _dependent(firmware: FirmwareSpec, key: str, needed: str, reason: str) -> list[Finding]:
    """``key`` without ``needed`` set to 1; no virtual functions need nothing."""
    value, other = firmware.keys.get(key), firmware.keys.get(needed, 0)
    none_asked = value is None or (key == "NUM_OF_VFS" and value == 0)
    if none_asked or number_of(needed, other) == 1:
        return []
    return [Finding(("firmware", "keys", key), value, f"{needed} 1 beside it, {reason}")]
