"""Keys, known hosts and connections of the lab; nothing under ~/.ssh is read or written."""

import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import qemu
from .layout import LabError, Layout, Node

_COMMON = """\
Host *
  User root
  HostName 127.0.0.1
  IdentityFile {login_key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PreferredAuthentications publickey
  ControlMaster auto
  ControlPath {state}/cm-%n
  ControlPersist 10m
  ServerAliveInterval 10
  ServerAliveCountMax 6
  LogLevel ERROR
"""
# A connection of its own, given up soon: for a node that may not be up yet.
_TRY = ("-o", "ControlPath=none", "-o", "ConnectTimeout=4")


def prepare(layout: Layout, nodes: Iterable[Node]) -> None:
    """Make what is missing of the login key and the host keys; write known_hosts and ssh_config."""
    nodes = list(nodes)
    _make_key(layout.login_key, "railwright-lab")
    hosts, known = [], []
    for node in nodes:
        node.folder.mkdir(parents=True, exist_ok=True)
        _make_key(node.host_key, node.name)
        kind, key, _ = public_key(node.host_key).read_text().split()
        known.append(f"[127.0.0.1]:{node.port} {kind} {key}\n")
        hosts.append(f"Host {node.name}\n  Port {node.port}\n\n")
    layout.known_hosts.write_text("".join(known))
    common = _COMMON.format(
        login_key=layout.login_key, known_hosts=layout.known_hosts, state=layout.state
    )
    layout.ssh_config.write_text("".join(hosts) + common)


def public_key(key: Path) -> Path:
    return key.with_suffix(".pub")


def command(layout: Layout, node: Node, words: Sequence[str], *options: str) -> list[str]:
    """The ssh command line that runs ``words`` on ``node``; no words: a login shell."""
    return ["ssh", "-F", str(layout.ssh_config), *options, node.name, *words]


def run(
    layout: Layout, node: Node, script: str, *, stdin: str = "", timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``script`` by the node's login shell, over the connection shared with earlier calls."""
    return subprocess.run(
        command(layout, node, [script]),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def hang_up(layout: Layout, node: Node) -> None:
    """Close the shared connection, if there is one."""
    subprocess.run(command(layout, node, [], "-O", "exit"), capture_output=True)


def boot_id(layout: Layout, node: Node) -> str | None:
    """The running boot's id, over a connection of its own; None where the node does not answer."""
    read = ["cat", "/proc/sys/kernel/random/boot_id"]
    done = subprocess.run(command(layout, node, read, *_TRY), capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def wait_for_boot(layout: Layout, node: Node, last: str | None, seconds: float) -> str:
    """Wait until ``node`` runs another boot than ``last`` and systemd has finished starting it.

    Gives systemd's word for the outcome: ``running``, or ``degraded`` where a unit failed.

    :raises LabError: QEMU ended, or not within ``seconds``; the message names the node's console.
    """
    deadline = time.monotonic() + seconds
    while (current := boot_id(layout, node)) is None or current == last:
        if not qemu.is_running(node):
            raise LabError(f"{node.name} stopped: {node.log.read_text().strip()}")
        if time.monotonic() > deadline:
            raise LabError(f"{node.name} does not answer after {seconds:.0f} s: see {node.console}")
        time.sleep(0.5)
    return run(layout, node, "systemctl is-system-running --wait").stdout.strip()


def _make_key(path: Path, comment: str) -> None:
    if not path.exists():
        generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
        subprocess.run(generate, check=True)
