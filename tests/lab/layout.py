"""Where the lab keeps its files, and which loopback ports it uses."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Distro = Literal["bookworm", "trixie"]
DISTROS: tuple[Distro, ...] = get_args(Distro)

Kind = Literal["bare", "storage"]
"""What a node's image holds: a base system, or clients and servers of storage beside it."""

# Each distribution has ports of its own, so that both labs can run at once.
_PORTS = "RAILWRIGHT_LAB_PORTS"
_PORTS_A_LAB = 100

RAILS = 8
"""Simulated NICs of a node."""

HOST_SEEN_FROM_NODE = "10.0.2.2"
"""The machine that runs the lab, as QEMU's user-mode network shows it to a node."""

_REPOSITORY = Path(__file__).resolve().parents[2]


class LabError(Exception):
    """The lab could not do what was asked; the message says what failed and where to look."""


@dataclass(frozen=True)
class Node:
    """One virtual node, counted from 1: the port of its sshd on loopback, its files, its peer's."""

    number: int
    port: int
    folder: Path
    peer_folder: Path

    @property
    def name(self) -> str:
        """gpu001, gpu002, ..."""
        return _name(self.number)

    @property
    def console(self) -> Path:
        """All that the node's serial console has printed since its disk was bare."""
        return self.folder / "console.log"

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def spares(self) -> list[Path]:
        """The node's spare disks, which it has beside its own where they were asked for."""
        return sorted(self.folder.glob("spare*.qcow2"))

    def spare(self, number: int) -> Path:
        return self.folder / f"spare{number}.qcow2"

    @property
    def host_key(self) -> Path:
        return self.folder / "host_key"

    @property
    def log(self) -> Path:
        """What QEMU itself has to say."""
        return self.folder / "qemu.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / "qemu.pid"

    def rail(self, rail: int) -> Path:
        """The socket on which the node receives what its peer sends on ``rail``."""
        return self.folder / f"rail{rail}"

    def peer_rail(self, rail: int) -> Path:
        """The socket on which the peer receives; it need not be there."""
        return self.peer_folder / f"rail{rail}"


@dataclass(frozen=True)
class Layout:
    """Files and ports of one distribution's lab."""

    distro: Distro
    state: Path
    cache: Path
    kind: Kind = "bare"

    @property
    def time_port(self) -> int:
        """UDP port of the lab's chronyd, on this machine's loopback interface."""
        return _first_port(self.distro)

    @property
    def mirror_port(self) -> int:
        """TCP port of the lab's package mirror, on this machine's loopback interface."""
        return _first_port(self.distro) + _PORTS_A_LAB - 1

    @property
    def ssh_config(self) -> Path:
        return self.state / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        return self.state / "known_hosts"

    @property
    def login_key(self) -> Path:
        return self.state / "login_key"

    def node(self, number: int) -> Node:
        """Node ``number``, counted from 1. Rails join 1 and 2, 3 and 4, and so on."""
        port = _first_port(self.distro) + number
        peer = (number - 1 ^ 1) + 1
        nodes = self.state / "nodes"
        return Node(number, port, nodes / _name(number), nodes / _name(peer))

    def known_nodes(self) -> list[Node]:
        """The nodes that have a folder, running or not, in the order of their numbers."""
        folders = sorted((self.state / "nodes").glob("gpu*"))
        return [self.node(int(folder.name.removeprefix("gpu"))) for folder in folders]


def _name(number: int) -> str:
    return f"gpu{number:03}"


def _first_port(distro: Distro) -> int:
    """The time source's port; those of the nodes' sshd follow. inventories/lab.py has them too."""
    return int(os.environ.get(_PORTS, "2200")) + _PORTS_A_LAB * DISTROS.index(distro)


def layout(distro: Distro, kind: Kind = "bare") -> Layout:
    """The lab of ``distro``, under RAILWRIGHT_LAB_STATE and RAILWRIGHT_LAB_CACHE where set."""
    state = Path(os.environ.get("RAILWRIGHT_LAB_STATE", _REPOSITORY / ".lab"))
    cache = Path(os.environ.get("RAILWRIGHT_LAB_CACHE", Path.home() / ".cache" / "railwright-lab"))
    return Layout(distro, (state / distro).absolute(), cache.absolute(), kind)
