"""Command line of the lab: python -m tests.lab up|down|status|ssh|reboot|reset."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from . import ssh
from .lab import Lab
from .layout import DISTROS, LabError


def _say(line: str) -> None:
    print(line, flush=True)


def _up(options: argparse.Namespace) -> None:
    began = time.monotonic()
    lab = Lab.up(options.distro, options.nodes, _say)
    _say(f"{len(lab.nodes)} nodes in {time.monotonic() - began:.0f} s; ssh -F {lab.ssh_config}")


def _down(options: argparse.Namespace) -> None:
    for node in Lab(options.distro).down():
        _say(f"{node.name} stopped")


def _status(options: argparse.Namespace) -> None:
    nodes = Lab(options.distro).nodes
    for node in nodes:
        _say(f"{node.name} running, port {node.port}")
    if not nodes:
        _say(f"no {options.distro} node is running")


def _ssh(options: argparse.Namespace) -> None:
    lab = Lab(options.distro)
    words = ssh.command(lab.layout, lab.node(options.node), options.words)
    os.execvp(words[0], words)


def _reboot(options: argparse.Namespace) -> None:
    lab = Lab(options.distro)
    lab.reboot(options.node)
    _say(f"{options.node} rebooted, boot {lab.boot_id(options.node)}")


def _reset(options: argparse.Namespace) -> None:
    Lab(options.distro).reset(options.node, _say)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--distro", choices=DISTROS, default="bookworm")
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, action: object, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, parents=[common], help=text)
        command.set_defaults(action=action)
        return command

    up = add("up", _up, "build the image if need be, boot the nodes, wait for them")
    up.add_argument("--nodes", type=int, default=2, help="how many (default: 2)")
    add("down", _down, "stop the nodes and the time source; the image cache stays")
    add("status", _status, "the nodes that run, with port and memory")
    shell = add("ssh", _ssh, "a shell or a command on a node")
    add("reboot", _reboot, "reboot a node and wait for its new boot").add_argument("node")
    add("reset", _reset, "boot a node from a bare disk").add_argument("node")
    shell.add_argument("node")
    shell.add_argument("words", nargs="*", metavar="COMMAND")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.action(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
