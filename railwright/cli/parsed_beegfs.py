"""What ``railwright parse`` prints of BeeGFS's tools: servers by their numbers."""

from collections.abc import Iterable

from facts.beegfs_nodes import (
    RDMA,
    Offer,
    ServerNode,
    parse_listnodes,
    parse_net,
    parse_node_list,
)

Json = dict[str, object]
_WORDS = {RDMA: "rdma", "TCP": "ethernet"}


def beegfs(text: str, rc: int, command: str) -> Json:
    """By the command that printed it, or by how it looks. Raises ValueError."""
    if "--listnodes" in command:
        return _listed(parse_listnodes(text, rc))
    if "node list" in command or text.startswith("ID "):
        return _nodes(parse_node_list(text, rc))
    return _net(text, rc)


def _net(text: str, rc: int) -> Json:
    """Connections by transport of each server, of one mount at the top and of several by number."""
    mounts = [
        {kind: _made(getattr(mount, kind)) for kind in ("management", "meta", "storage")}
        for mount in parse_net(text, rc)
    ]
    only: Json = dict(mounts[0]) if len(mounts) == 1 else {}
    return {**only, "mounts": mounts}


def _made(nodes: Iterable[ServerNode]) -> Json:
    found: Json = {}
    for node in nodes:
        made: Json = {one.transport: one.count for one in node.connections}
        if any(one.fallback for one in node.connections):
            made["fallback"] = True
        found[str(node.number)] = made
    return found


def _listed(offers: tuple[Offer, ...]) -> Json:
    """Of each server the interfaces that it offers RDMA on."""
    found = {
        str(offer.number): {
            "alias": offer.alias,
            "rdma": [nic.name for nic in offer.nics if nic.transport == RDMA],
            "interfaces": list(dict.fromkeys(nic.name for nic in offer.nics)),
        }
        for offer in offers
    }
    return {**found, "count": len(offers)}


def _nodes(offers: tuple[Offer, ...]) -> Json:
    """Of each node the transports of its interfaces, in the order of preference."""
    return {
        offer.id or str(offer.number): {
            "alias": offer.alias,
            "type": offer.kind,
            "nics": [_WORDS.get(nic.transport, nic.transport) for nic in offer.nics],
        }
        for offer in offers
    }
