"""What BeeGFS's client has in force: its keys, its interfaces, and how it reaches its servers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address

from facts.beegfs import BeegfsClient
from facts.beegfs_nodes import RDMA, TCP, Connections, Offer, ServerNode
from railwright.model import Model
from railwright.owned import OwnedFile
from railwright.resolve.beegfs_wanted import Lists, rdma_path, same, told_path
from railwright.schema.beegfs import BeegfsMount
from railwright.schema.beegfs_keys import CLIENT_PORT, MANAGEMENT_PORT
from railwright.settings import (
    HOSTS_KERNEL,
    Effect,
    Setting,
    Standing,
    State,
    looked_at,
)

_WHEN_MOUNTED = State(
    standing=Standing.NOT_APPLICABLE, detail="the client reads it when it is mounted"
)
_RESOLVED = frozenset({"page", "none", "default"})
_OTHERWISE = frozenset(
    {
        *(*CLIENT_PORT[7], *CLIENT_PORT[8], *MANAGEMENT_PORT[7], *MANAGEMENT_PORT[8]),
        *("connTCPRcvBufSize", "connUDPRcvBufSize", "tuneMsgBufNum", "tuneFileCacheBufNum"),
        *("sysFileEventLogMask", "sysXAttrsEnabled", "tuneUseBufferedAppend"),
    }
)
"""Keys that the client does not show as they are written: it adds connPortShift to ports, works
buffers out where they are 0, orders words, and switches some by others. Source:
__Config_initImplicitVals and Config.h in client_module/source/app/config."""
_AT_LEAST_A_PAGE = frozenset({"connRDMABufSize", "connRDMAFragmentSize"})
"""Raised to the size of a page, which is 64 KiB on some Arm systems (same place)."""


class Clients(Model):
    """The mounts as the kernel tells of them; ``error`` says why it did not."""

    found: tuple[BeegfsClient, ...] = ()
    error: str | None = None
    in_container: bool = False

    def of(self, mount: BeegfsMount) -> BeegfsClient | None:
        """The client with the configuration of ``mount``."""
        return next((c for c in self.found if c.config.get("cfgFile") == mount.config), None)

    def unknown(self, client: BeegfsClient | None) -> State | None:
        """What is known where there is nothing to compare with."""
        if self.in_container:
            return HOSTS_KERNEL
        if self.error is not None:
            return State(standing=Standing.DEGRADED, detail=self.error)
        return _WHEN_MOUNTED if client is None else None


def running_keys(mount: BeegfsMount, clients: Clients) -> Callable[[str, str], State]:
    """How each key is in force."""
    client = clients.of(mount)
    unknown = clients.unknown(client)

    def state(name: str, value: str) -> State:
        if unknown is not None or client is None:
            return unknown or _WHEN_MOUNTED
        shown = client.config.get(name)
        if shown is None or not _comparable(name, value, shown):
            detail = "the client does not show it as it is written"
            return State(standing=Standing.NOT_APPLICABLE, detail=detail)
        if same(shown, value):
            return State(standing=Standing.RIGHT, value=value or "(empty)")
        return State(standing=Standing.WRONG, value=shown or "(empty)")

    return state


def _comparable(name: str, value: str, shown: str) -> bool:
    if name == "sysMgmtdHost":
        # 8 is given the address that mount.beegfs has found.
        return _is_address(value)
    if name in _AT_LEAST_A_PAGE and value.isdigit() and shown in ("16384", "65536"):
        return int(value) >= int(shown)
    if name.startswith("connRDMA") and value in _RESOLVED:
        return False
    return name not in _OTHERWISE


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def list_setting(
    setting: Setting, owned: OwnedFile, mount: BeegfsMount, lists: Lists, clients: Clients
) -> Setting:
    """The setting of a list of interfaces, with what the client has made of it.

    The client passes over an interface that has no address, or no RDMA, when it is mounted: that
    is degraded, for it is mounted anew only where the list itself has changed.
    """
    client = clients.of(mount)
    known = None
    wanted: tuple[str, ...] = ()
    if owned.path == told_path(mount):
        wanted, known = lists.told or (), client.interfaces if client else None
    elif owned.path == rdma_path(mount):
        wanted, known = lists.rdma or (), client.rdma_interfaces if client else None
    running = clients.unknown(client) or _interfaces(setting, wanted, known)
    return setting.model_copy(update={"running": running, "effect": Effect.REMOUNT})


def _interfaces(setting: Setting, wanted: Sequence[str], known: tuple[str, ...] | None) -> State:
    if known is None:
        detail = "the client does not show them"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    value = " ".join(known) or "any"
    missing = [name for name in wanted if name not in known]
    if not known or set(known) - set(wanted):
        return State(standing=Standing.WRONG, value=value)
    if missing:
        listed = setting.persisted.standing is Standing.RIGHT
        return State(
            standing=Standing.DEGRADED if listed else Standing.WRONG,
            value=value,
            detail=f"{', '.join(missing)} had no address or no RDMA when it was mounted",
        )
    return State(standing=Standing.RIGHT, value=setting.desired)


def transport_settings(
    component: str,
    mounts: Mapping[str, BeegfsMount],
    clients: Clients,
    offers: Mapping[str, tuple[Offer, ...]],
) -> Iterator[Setting]:
    """Whether the servers of each mount that uses RDMA are reached by it."""
    for where, mount in mounts.items():
        if not mount.rdma:
            continue
        client = clients.of(mount)
        running = clients.unknown(client)
        if running is None and client is not None:
            running = transport(client, offers.get(client.id, ()), mount)
        degraded = running is not None and running.standing is Standing.DEGRADED
        yield looked_at(
            component,
            f"transport {where}",
            RDMA,
            running or _WHEN_MOUNTED,
            remedy="set storage.mounts tcp_fallback to false, so that it cannot be hidden"
            if degraded and mount.tcp_fallback is not False
            else None,
            why="TCP in place of RDMA is slow, and nothing tells of it (ThinkParQ/beegfs#100)",
        )


def transport(client: BeegfsClient, offers: Iterable[Offer], mount: BeegfsMount) -> State:
    """How metadata and storage servers are reached; the management service is always by TCP.

    A server without connections is idle: they are made when they are needed.
    """
    by_kind = {(offer.kind, offer.number): offer for offer in offers}
    servers = [("meta", node) for node in client.nodes.meta]
    servers += [("storage", node) for node in client.nodes.storage]
    faults, reached = [], 0
    for kind, node in servers:
        reached += sum(made.count for made in node.connections if made.transport == RDMA)
        wrong = [made for made in node.connections if _is_fallback(made, mount)]
        if wrong:
            offer = next(
                (o for (k, number), o in by_kind.items() if k == kind and number == node.number),
                None,
            )
            faults.append(_fault(kind, node, wrong, offer))
    if faults:
        return State(standing=Standing.DEGRADED, value="TCP fallback", detail="; ".join(faults))
    detail = None if reached else "no server has a connection at the moment"
    return State(standing=Standing.RIGHT, value=RDMA, detail=detail)


def _is_fallback(made: Connections, mount: BeegfsMount) -> bool:
    # Servers of connTcpOnlyFilterFile are reached by TCP as they should be.
    by_wish = made.transport == TCP and "connTcpOnlyFilterFile" in mount.other
    return made.fallback or (made.transport != RDMA and not by_wish)


def _fault(kind: str, node: ServerNode, wrong: Sequence[Connections], offer: Offer | None) -> str:
    ways = ", ".join(
        f"{made.transport} {made.count}" + (" by a fallback route" if made.fallback else "")
        for made in wrong
    )
    reason = ""
    if offer is not None and not offer.has_rdma:
        reason = ", and it offers no RDMA"
    return f"{kind} {node.alias} [{node.number}]: {ways}{reason}"
