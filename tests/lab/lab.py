"""The lab as tests use it."""

import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import clock, qemu, ssh
from .image import ensure_image
from .layout import Distro, Kind, LabError, Layout, Node, layout

_BOOT_SECONDS = 300.0

Say = Callable[[str], None]


def _silent(_: str) -> None:
    return None


class Lab:
    """Virtual nodes of one distribution, found by their files: any process can attach to them."""

    def __init__(self, distro: Distro = "bookworm", kind: Kind = "bare") -> None:
        self.layout: Layout = layout(distro, kind)

    @classmethod
    def up(
        cls,
        distro: Distro = "bookworm",
        nodes: int = 2,
        say: Say = _silent,
        *,
        kind: Kind = "bare",
        spares: int = 0,
    ) -> "Lab":
        """Have nodes 1 to ``nodes`` running and reachable; a node that is not running starts from
        the image of its ``kind``, with ``spares`` empty disks beside its own.

        :raises LabError: the image, the time source or a node did not come up.
        """
        lab = cls(distro, kind)
        wanted = [lab.layout.node(number) for number in range(1, nodes + 1)]
        lab.layout.state.mkdir(parents=True, exist_ok=True)
        clock.start(lab.layout)
        lab._start(wanted, say, spares)
        return lab

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are running."""
        return [node for node in self.layout.known_nodes() if qemu.is_running(node)]

    @property
    def ssh_config(self) -> Path:
        """Configuration for ``ssh -F``, with one Host block a node."""
        return self.layout.ssh_config

    def node(self, name: str) -> Node:
        """:raises LabError: no running node has this name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise LabError(f"{name} is not running; running: {[node.name for node in self.nodes]}")

    def run(
        self, name: str, script: str, *, stdin: str = "", timeout: float | None = 600
    ) -> "subprocess.CompletedProcess[str]":
        """Run ``script`` as root on a node, over the shared connection; the caller judges rc.

        ``timeout`` is in seconds. ssh itself answers 255 where the connection failed.
        """
        return ssh.run(self.layout, self.node(name), script, stdin=stdin, timeout=timeout)

    def boot_id(self, name: str) -> str:
        """:raises LabError: the node does not answer."""
        found = ssh.boot_id(self.layout, self.node(name))
        if found is None:
            raise LabError(f"{name} does not answer: see {self.node(name).console}")
        return found

    def reboot(self, name: str) -> None:
        """Reboot through systemd and the node's own GRUB; back when the new boot has finished.

        A unit that fails in the new boot is the caller's to judge.

        :raises LabError: no new boot within five minutes.
        """
        node = self.node(name)
        last = self.boot_id(name)
        ssh.run(self.layout, node, "systemctl reboot")
        ssh.hang_up(self.layout, node)
        ssh.wait_for_boot(self.layout, node, last, _BOOT_SECONDS)

    def reset(self, name: str, say: Say = _silent) -> None:
        """Throw the node's disk away and boot it bare."""
        node = self.node(name)
        spares = len(node.spares)
        self._discard(node)
        self._start([node], say, spares)

    def pull_plug(self, name: str) -> None:
        """End the node as a power cut does, and boot what its disk then holds."""
        node = self.node(name)
        self._off(node)
        self._power(node)
        ssh.wait_for_boot(self.layout, node, None, _BOOT_SECONDS)

    def down(self) -> list[Node]:
        """Stop the nodes, which ends their disks, and the time source; gives what was stopped."""
        stopped = self.nodes
        for node in self.layout.known_nodes():
            self._discard(node)
        clock.stop(self.layout)
        return stopped

    def _start(self, wanted: Iterable[Node], say: Say, spares: int) -> None:
        image = ensure_image(self.layout, say)
        new = []
        for node in wanted:
            if qemu.is_running(node):
                say(f"{node.name} already running, port {node.port}")
            else:
                new.append(node)
        known = {node.name: node for node in [*self.layout.known_nodes(), *new]}
        ssh.prepare(self.layout, known.values())
        for node in new:
            qemu.create_overlay(node.disk, image.disk)
            for number in range(spares):
                qemu.create_spare(node.spare(number))
            self._power(node)
        with ThreadPoolExecutor() as pool:
            for line in pool.map(self._await_first_boot, new):
                say(f"{line} ({self._accelerator()})")

    def _power(self, node: Node) -> None:
        key = ssh.public_key(self.layout.login_key)
        qemu.start(node, qemu.node_command(self._accelerator(), node, key))

    def _accelerator(self) -> qemu.Accelerator:
        kernel = ensure_image(self.layout, _silent).kernel
        return qemu.accelerator(self.layout.state / "accelerator", kernel)

    def _off(self, node: Node) -> None:
        ssh.hang_up(self.layout, node)
        qemu.stop(node)

    def _await_first_boot(self, node: Node) -> str:
        outcome = ssh.wait_for_boot(self.layout, node, None, _BOOT_SECONDS)
        if outcome != "running":
            failed = ssh.run(self.layout, node, "systemctl --failed --plain --no-legend").stdout
            raise LabError(f"{node.name} is {outcome}: {failed.strip()}; see {node.console}")
        return f"{node.name} up, port {node.port}"

    def _discard(self, node: Node) -> None:
        self._off(node)
        for disk in (node.disk, *node.spares):
            disk.unlink(missing_ok=True)
