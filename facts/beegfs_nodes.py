"""Servers of a BeeGFS: which connections its client has to them, and which interfaces they offer.

The client of both majors tells its connections under /proc/fs/beegfs, which beegfs-net (7) prints
as they are; beegfs-ctl (7) and beegfs (8) ask the management service. Formats:
__ProcFsHelper_printNodeConnsV2 in ProcFsHelper.c, ModeGetNodes.cpp (ThinkParQ/beegfs) and
ctl/internal/cmd/node/list.go (ThinkParQ/beegfs-go).
"""

import re
from collections.abc import Iterator
from typing import Literal

from railwright.model import Model

Kind = Literal["management", "meta", "storage", "client"]
TCP = "TCP"
RDMA = "RDMA"


class Connections(Model):
    """What a client has established to one server by one transport.

    ``peer`` is the address and port of one of them; ``fallback`` tells that it is not the route
    that the client prefers.
    """

    transport: Literal["TCP", "RDMA", "SDP"]
    count: int
    peer: str | None = None
    fallback: bool = False


class ServerNode(Model):
    """A server as a client knows it; without connections it is idle, which is no fault."""

    alias: str
    number: int
    connections: tuple[Connections, ...] = ()


class ClientNodes(Model):
    """The servers of one mount."""

    management: tuple[ServerNode, ...] = ()
    meta: tuple[ServerNode, ...] = ()
    storage: tuple[ServerNode, ...] = ()


class Nic(Model):
    """An interface that a server offers; ``address`` is None where it was not asked for."""

    transport: str
    name: str
    address: str | None = None


class Offer(Model):
    """A server as the management service knows it.

    ``kind`` is None where that is not told, or is one that a client has nothing to do with. ``id``
    is how 8 writes it (``s:1``).
    """

    kind: Kind | None
    number: int
    alias: str
    id: str | None = None
    nics: tuple[Nic, ...] = ()

    @property
    def has_rdma(self) -> bool:
        return any(nic.transport == RDMA for nic in self.nics)


_NODE = re.compile(r"(\S+) \[ID: (\d+)\]")
_CONNECTIONS = re.compile(r"(TCP|RDMA|SDP): (\d+)(?: \((.*?)( \[fallback route\])?\))?")
_FILES = {"mgmt_nodes": "management", "meta_nodes": "meta", "storage_nodes": "storage"}


def parse_nodes(text: str) -> tuple[ServerNode, ...]:
    """Read a file of servers under /proc/fs/beegfs/ID. Raises ValueError."""
    found: list[ServerNode] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        key, _, rest = line.partition(":")
        if node := _NODE.fullmatch(line):
            found.append(ServerNode(alias=node[1], number=int(node[2])))
        elif found and key == "Connections":
            made = tuple(_connections(rest))
            found[-1] = found[-1].model_copy(update={"connections": made})
        elif not (found and key == "Root"):
            raise ValueError(f"expected a server or its connections, got {line[:80]!r}")
    return tuple(found)


def _connections(text: str) -> Iterator[Connections]:
    for part in filter(None, map(str.strip, text.split(";"))):
        if part == "<none>":
            continue
        row = _CONNECTIONS.fullmatch(part)
        if row is None:
            raise ValueError(f"expected connections such as RDMA: 4 (PEER), got {part[:60]!r}")
        yield Connections.model_validate(
            {
                "transport": row[1],
                "count": int(row[2]),
                "peer": row[3],
                "fallback": row[4] is not None,
            }
        )


def parse_net(text: str, rc: int = 0) -> tuple[ClientNodes, ...]:
    """Read ``beegfs-net``, one entry a mount. Raises ValueError, also where nothing is mounted."""
    if rc != 0:
        raise ValueError(f"beegfs-net exited {rc}: {text.strip()[:80] or 'no output'}")
    mounts: list[dict[str, tuple[ServerNode, ...]]] = []
    for part in re.split(rf"^({'|'.join(_FILES)})\n=+\n", text, flags=re.MULTILINE)[1:]:
        if part in _FILES:
            kind = _FILES[part]
            if not mounts or kind in mounts[-1]:
                mounts.append({})
        else:
            # A row of # stands between two mounts.
            mounts[-1][kind] = parse_nodes(re.sub(r"^\s*#+\s*$", "", part, flags=re.MULTILINE))
    if not mounts:
        raise ValueError(f"expected the servers of beegfs-net, got {text.strip()[:60]!r}")
    return tuple(ClientNodes.model_validate(mount) for mount in mounts)


_LISTED = re.compile(r"(\S+)\((\w+)\)")
_DETAILED = re.compile(r"\+ (\S+?)\[ip addr: (\S+); type: (\w+)\]")
_OTHER = ("Ports:", "Reachable:", "Route:", "Root:")


def parse_listnodes(text: str, rc: int = 0, kind: Kind | None = None) -> tuple[Offer, ...]:
    """Read ``beegfs-ctl --listnodes`` with --details or --nicdetails. Raises ValueError."""
    if rc != 0:
        raise ValueError(f"beegfs-ctl exited {rc}: {' '.join(text.split())[:120] or 'no output'}")
    found: list[Offer] = []
    count = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if node := _NODE.fullmatch(line):
            found.append(Offer(kind=kind, number=int(node[2]), alias=node[1]))
        elif line.startswith("Number of nodes: "):
            count = line.rpartition(" ")[2]
        elif found and (nics := _nics(line)) is not None:
            found[-1] = found[-1].model_copy(update={"nics": (*found[-1].nics, *nics)})
        elif not line.startswith(_OTHER):
            raise ValueError(f"expected a node of beegfs-ctl, got {line[:80]!r}")
    if count != str(len(found)):
        raise ValueError(f"expected {count or 'a number of'} nodes, got {len(found)}")
    return tuple(found)


def _nics(line: str) -> tuple[Nic, ...] | None:
    """The interfaces of a line; None where it is about something else."""
    if line.startswith("Interfaces:"):
        return tuple(Nic(transport=kind, name=name) for name, kind in _LISTED.findall(line))
    if row := _DETAILED.fullmatch(line):
        return (Nic(transport=row[3], name=row[1], address=row[2]),)
    return None


_CELL_NIC = re.compile(r"(\w+):(\S+) \((\S+)\)")
_ID = re.compile(r"([a-z]+):(\d+)")
_TYPES: dict[str, Kind | None] = {
    "management": "management", "meta": "meta", "storage": "storage", "client": "client",
    "remote": None, "sync": None,
}  # fmt: skip
_TRANSPORTS = {"rdma": RDMA, "ethernet": TCP, "tcp": TCP}
"""Releases of the tool call TCP by either name (NicType in common/beegfs/node.go)."""


def parse_node_list(text: str, rc: int = 0) -> tuple[Offer, ...]:
    """Read ``beegfs node list`` of BeeGFS 8, with or without --with-nics. Raises ValueError.

    A node with several interfaces goes on in lines of which the other columns are blank.
    """
    if rc != 0:
        raise ValueError(f"beegfs exited {rc}: {' '.join(text.split())[:120] or 'no output'}")
    header, *lines = [line for line in text.splitlines() if line.strip()] or [""]
    starts = {name: header.find(name) for name in ("ID", "TYPE", "ALIAS", "NICS")}
    if starts["ID"] != 0 or min(starts["TYPE"], starts["ALIAS"]) < 0:
        raise ValueError(f"expected the header ID TYPE ALIAS, got {header[:60]!r}")
    found: list[Offer] = []
    for line in lines:
        if line.split() == header.split():
            continue
        cut = starts["NICS"] if starts["NICS"] > 0 else len(line)
        if words := line[:cut].split():
            found.append(_offer(words))
        elif not found:
            raise ValueError(f"expected a node, got {line[:80]!r}")
        if cell := line[cut:].strip():
            found[-1] = found[-1].model_copy(update={"nics": (*found[-1].nics, _cell(cell))})
    return tuple(found)


def _offer(words: list[str]) -> Offer:
    ids = _ID.fullmatch(words[0])
    if ids is None or len(words) != 3 or words[1] not in _TYPES:
        raise ValueError(f"expected an ID, a type and an alias, got {' '.join(words)[:80]!r}")
    return Offer(kind=_TYPES[words[1]], number=int(ids[2]), alias=words[2], id=words[0])


def _cell(text: str) -> Nic:
    row = _CELL_NIC.fullmatch(text)
    if row is None:
        raise ValueError(f"expected TRANSPORT:INTERFACE (ADDRESS), got {text[:60]!r}")
    return Nic(transport=_TRANSPORTS.get(row[1], row[1]), name=row[2], address=row[3])
