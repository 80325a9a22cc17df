"""How pyinfra reaches a node."""

import socket
from typing import Any

from paramiko import Transport

from railwright.schema import Node

_KEEPALIVE = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,
}
"""A lost host is noticed after about a minute: seconds, and for the last milliseconds."""


def prompt_transport(sock: Any, **options: Any) -> Transport:
    """A transport that sends at once.

    paramiko leaves Nagle's algorithm on, which costs about 44 ms a command against a peer that
    delays its acknowledgements: 60 commands on one host took 6.4 s, and 1.15 s without it.
    """
    if isinstance(sock, socket.socket):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # pyinfra waits for ever: a host that went away without a word must not hold up the others.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return Transport(sock, **options)


def host_data(node: Node) -> dict[str, Any]:
    """The data that pyinfra is given for ``node``: the node, and how to connect."""
    data: dict[str, Any] = {"node": node}
    if node.ssh.sudo:
        data["_sudo"] = True
    if node.name.startswith("@"):
        # Another connector's host: podman, fake, local.
        return data
    ssh = node.ssh
    data |= {
        "ssh_hostname": ssh.address or node.name,
        # A host whose key is not known is not connected to: pyinfra's default learns it.
        "ssh_strict_host_key_checking": "yes",
        "ssh_paramiko_connect_kwargs": {"transport_factory": prompt_transport},
    }
    given = {
        "ssh_port": ssh.port,
        "ssh_user": ssh.user,
        "ssh_key": ssh.key_file,
        "ssh_known_hosts_file": ssh.known_hosts_file,
        "ssh_config_file": ssh.config_file,
    }
    return data | {key: value for key, value in given.items() if value is not None}
