"""How pyinfra reaches a node."""

import socket
from typing import Any

from paramiko import Transport

from railwright.schema import Node


def prompt_transport(sock: Any, **options: Any) -> Transport:
    """A transport that sends at once.

    paramiko leaves Nagle's algorithm on, which costs about 44 ms a command against a peer that
    delays its acknowledgements: 60 commands on one host took 6.4 s, and 1.15 s without it.
    """
    if isinstance(sock, socket.socket):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
