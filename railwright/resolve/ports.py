"""How one RDMA port stands to what is asked of it. Pure; nothing here is ever acted on."""

from ipaddress import IPv4Address

from facts.gids import Gid
from facts.ibstatus import PortStatus
from facts.ibv_devinfo import VerbsPort
from facts.ports import v2_indices
from railwright.settings import Standing, State

_UNREAD = "sysfs does not say"
_NO_VERBS = "ibv_devinfo is not installed (package ibverbs-utils, libibverbs-utils)"
_MEMBERSHIP = 0x8000

ROCE_MTU = 4096
"""What a RoCE port must have as active MTU: NCCL has not taken the lesser of two since 2.23.

Source: NVIDIA/nccl#1524.
"""

# IBTA: a port comes up physically, is configured by a subnet manager (Ethernet: by its driver),
# and then activated.
_PHYSICAL = {
    "Polling": "the port looks for a peer: cable, module, or the other end is off",
    "Disabled": "the port is switched off",
    "Sleep": "the port sleeps",
    "LinkErrorRecovery": "the link recovers from errors: cable or module",
}


def link_layer(status: PortStatus, desired: str) -> State:
    """Whether the port speaks ``desired``, InfiniBand or Ethernet."""
    if status.link in (None, "IB"):
        return State(standing=Standing.UNREADABLE, detail=_UNREAD)
    standing = Standing.RIGHT if status.link == desired else Standing.WRONG
    return State(standing=standing, value=status.link)


def port_state(status: PortStatus) -> State:
    """Whether traffic can pass; a link that is down is in place and does not work."""
    if status.state is None:
        return State(standing=Standing.UNREADABLE, detail=_UNREAD)
    if status.state == "ACTIVE":
        return State(standing=Standing.RIGHT, value=status.state)
    physical = status.phys or "not told"
    detail = f"physical state {physical}"
    if physical in _PHYSICAL:
        detail += f": {_PHYSICAL[physical]}"
    elif status.state == "INIT" and status.link != "Ethernet":
        detail += ": the cable is right, and no subnet manager has configured the port"
    return State(standing=Standing.DEGRADED, value=status.state, detail=detail)


def rate(status: PortStatus, desired_gbps: int, ethernet_mbps: int | None) -> State:
    """Whether the link came up at its rate, which means nothing on a port that is down.

    ``ethernet_mbps`` is the speed of an Ethernet interface on the port, which is exact where
    RDMA's table of rates is not.
    """
    if status.state is None:
        return State(standing=Standing.UNREADABLE, detail=_UNREAD)
    if status.state != "ACTIVE":
        return State(standing=Standing.NOT_APPLICABLE, detail=f"the port is {status.state}")
    shape = " ".join(filter(None, (status.width, status.gen)))
    found = status.rate_gbps if ethernet_mbps is None else ethernet_mbps / 1000
    if found is None:
        return State(standing=Standing.UNREADABLE, detail=_UNREAD)
    right = found == desired_gbps
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=rate_text(found),
        detail=shape or None,
    )


def rate_text(gbps: float) -> str:
    return f"{gbps:g} Gb/s"


def mtu(
    status: PortStatus, verbs: VerbsPort | None, interface_mtu: int | None, desired: int
) -> State:
    """Whether RDMA has the MTU ``desired`` (bytes); two ends that differ hang or corrupt.

    ``interface_mtu`` is that of an Ethernet interface on the port, from which RDMA's follows where
    no verbs tool is installed. Source: NVIDIA/nccl#1524.
    """
    if status.state is not None and status.state != "ACTIVE":
        return State(standing=Standing.NOT_APPLICABLE, detail=f"the port is {status.state}")
    found, detail = (None, None) if verbs is None else (verbs.active_mtu, None)
    if found is None and verbs is None and interface_mtu is not None:
        found = roce_mtu(interface_mtu)
        detail = f"from the interface's MTU {interface_mtu}; {_NO_VERBS}"
    if found is None:
        detail = _NO_VERBS if verbs is None else "ibv_devinfo does not say"
        return State(standing=Standing.UNREADABLE, detail=detail)
    standing = Standing.RIGHT if found == desired else Standing.WRONG
    return State(standing=standing, value=str(found), detail=detail)


# What RoCE v2 may need beside its payload: GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4 bytes.
# Source: Linux, include/rdma/ib_addr.h, iboe_get_mtu.
_HEADERS = 96


def roce_mtu(interface_mtu: int) -> int | None:
    """The MTU of RDMA over an interface with ``interface_mtu`` bytes; None where there is none."""
    room = interface_mtu - _HEADERS
    return next((size for size in (4096, 2048, 1024, 512, 256) if size <= room), None)


def pkeys(found: tuple[int, ...], desired: frozenset[int]) -> State:
    """Whether the port is in each of the partitions, as a full or a limited member."""
    members = {pkey & ~_MEMBERSHIP for pkey in found}
    table = " ".join(f"0x{pkey:04x}" for pkey in found) or "empty"
    missing = desired - members
    if missing:
        detail = f"not in {pkeys_text(missing)}; the subnet manager gives: {table}"
        value = pkeys_text(desired & members) or None
        standing = Standing.WRONG if value else Standing.ABSENT
        return State(standing=standing, value=value, detail=detail)
    return State(standing=Standing.RIGHT, value=pkeys_text(desired), detail=table)


def pkeys_text(keys: frozenset[int] | set[int]) -> str:
    return " ".join(f"0x{key:04x}" for key in sorted(keys))


def subnet_manager(status: PortStatus) -> State:
    """Whether a subnet manager has reached the port."""
    if status.sm_lid is None and status.state is None:
        return State(standing=Standing.UNREADABLE, detail=_UNREAD)
    if not status.sm_lid:
        return State(standing=Standing.ABSENT, detail="no subnet manager has reached the port")
    return State(standing=Standing.RIGHT, value="seen", detail=f"at lid {status.sm_lid}")


def gid(gids: tuple[Gid, ...], address: IPv4Address, interface: str | None) -> State:
    """Where the RoCE v2 GID of ``address`` stands; the index is reported and never asked for.

    Whoever names an index by number takes another GID after the next change of an address:
    NVIDIA/nccl#426.
    """
    indices = v2_indices(gids, address)
    text = gid_text(address)
    if len(indices) > 1:
        listed = ", ".join(map(str, indices))
        detail = "which of them a program takes depends on the program"
        return State(standing=Standing.WRONG, value=f"{text} at indices {listed}", detail=detail)
    if indices:
        (index,) = indices
        owner = next(entry.netdev for entry in gids if entry.index == index)
        if owner is not None and interface is not None and owner != interface:
            detail = f"it comes from {owner}, not from {interface}"
            return State(standing=Standing.WRONG, value=f"{text} at index {index}", detail=detail)
        return State(standing=Standing.RIGHT, value=f"{text} at index {index}")
    only_v1 = [entry.index for entry in gids if entry.ipv4 == str(address)]
    others = sorted({entry.ipv4 for entry in gids if entry.version == "v2" and entry.ipv4})
    if only_v1:
        return State(standing=Standing.WRONG, value=f"RoCE v1 {address} at index {only_v1[0]}")
    if others:
        return State(standing=Standing.WRONG, value=f"RoCE v2 {', '.join(others)}")
    detail = "no address, no GID" if not gids else "link-local GIDs only"
    return State(standing=Standing.ABSENT, detail=detail)


def gid_text(address: IPv4Address) -> str:
    return f"RoCE v2 {address}"
