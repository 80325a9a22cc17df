"""Reading many nodes at once over pyinfra's connectors: one connection, one command per node.

All that railwright uses of pyinfra's internals outside its documented API stands here and in
``deploys/``. Hosts are read side by side only where gevent has patched the standard library
before this is imported, as ``railwright.cli`` does.
"""

import logging
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import gevent  # type: ignore[import-untyped]
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments
from pyinfra.api.command import StringCommand
from pyinfra.api.config import Config
from pyinfra.api.exceptions import ConnectError, NoHostError, PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State
from pyinfra.connectors import util as connector_util
from pyinfra.context import ctx_host, ctx_state

from facts.probe import IDENTITY, Section, script
from railwright.component import Component, sections_of
from railwright.focus import focus_of
from railwright.reading import Reading, Unread
from railwright.schema import Node
from railwright.site import host_data
from railwright.snapshot import parse_probe

CONNECT_S = 10
"""Seconds to wait for a TCP connection."""
SLACK_S = 60
"""Seconds that connecting, and the probe beyond the deadlines of its sections, may take."""


class FleetError(ValueError):
    """The inventory asks for a way of connecting that pyinfra does not have."""


class _NoAnswerError(Exception):
    """A node that neither answers nor hangs up."""


@dataclass(frozen=True)
class Question:
    """Sections that one node is asked for, in their order."""

    node: Node
    sections: tuple[Section, ...]

    @property
    def limit_s(self) -> int:
        """Seconds after which the node counts as one that does not answer."""
        return SLACK_S + sum(part.deadline_s for part in (IDENTITY, *self.sections))


Ask = Callable[[Sequence[Question]], Mapping[str, Reading]]
"""What asks, ``ask`` or a stand-in of a test."""


def read(
    nodes: Sequence[Node],
    components: Iterable[Component],
    data: Callable[[Node], Mapping[str, Any]] = host_data,
) -> dict[str, Reading]:
    """What ``components`` look at, of each of ``nodes``, by name and in the same order.

    ``data`` gives pyinfra its data for a host. A node that cannot be reached, or does not answer
    as the probe does, is ``Unread``; the others are read all the same. Raises FleetError.
    """
    sections = sections_of(components)
    return ask([Question(node, sections) for node in nodes], data)


def ask(
    questions: Sequence[Question], data: Callable[[Node], Mapping[str, Any]] = host_data
) -> dict[str, Reading]:
    """The answers by node, in one command per node, all side by side; as ``read`` in all else.

    Questions that stand next to each other start together.
    """
    if not questions:
        return {}
    state = _state([question.node for question in questions], data)
    _quiet()
    with ctx_state.use(state), _never_asking():
        tasks = {
            question.node.name: state.pool.spawn(
                _read,
                state,
                question.node,
                script(question.sections, focus_of(question.node)),
                question.limit_s,
            )
            for question in questions
        }
        return {name: task.get() for name, task in tasks.items()}


def _state(nodes: Sequence[Node], data: Callable[[Node], Mapping[str, Any]]) -> State:
    try:
        inventory = Inventory(([(node.name, dict(data(node))) for node in nodes], {}))  # type: ignore[no-untyped-call]
    except PyinfraError as error:
        raise FleetError(str(error)) from error
    return State(inventory, Config(CONNECT_TIMEOUT=CONNECT_S))  # type: ignore[no-untyped-call]


def _read(state: State, node: Node, command: str, limit_s: int) -> Reading:
    """One node, from connecting to hanging up. Every failure of it is that node's alone."""
    try:
        host = state.inventory.get_host(node.name)
        with ctx_host.use(host), gevent.Timeout(limit_s, _NoAnswerError):
            _refuse_image(node.name)
            return parse_probe(_run(state, host, command), host=node.name)
    except _NoAnswerError:
        return Unread(host=node.name, error=f"gave no answer within {limit_s} s")
    except NoHostError:
        return Unread(host=node.name, error="its connector makes hosts of other names of it")
    except (PyinfraError, ValueError) as error:
        return Unread(host=node.name, error=str(error))
    except Exception as error:  # what a connector may raise is not documented
        return Unread(host=node.name, error=f"{type(error).__name__}: {error}")


def _run(state: State, host: Host, command: str) -> str:
    """What ``command`` prints on ``host``. Raises ConnectError where it does not run."""
    try:
        host.connect(show_errors=False, raise_exceptions=True)
        given, _ = pop_global_arguments(state, host, {})
        arguments = {key: given.get(key) for key in CONNECTOR_ARGUMENT_KEYS}
        done, output = host.run_shell_command(StringCommand(command), **arguments)
    finally:
        _hang_up(host)
    if not done:
        said = " / ".join(output.output_lines[-3:])
        raise ConnectError(f"the probe failed: {said or 'without a word'}")
    return "\n".join(output.stdout_lines)


def _hang_up(host: Host) -> None:
    """Close the connection, which pyinfra would keep: there may be more hosts than open files."""
    if host.connected:
        host.disconnect()
    client = getattr(host.connector, "client", None)
    if client is not None:
        client.close()


def _refuse_image(name: str) -> None:
    """Raise ConnectError where pyinfra would start a container: reading changes nothing."""
    connector, _, container = name.removeprefix("@").partition("/")
    if not name.startswith("@") or connector not in ("podman", "docker"):
        return
    inspect = [connector, "container", "inspect", "--format", "{{.State.Running}}", container]
    found = subprocess.run(inspect, capture_output=True, text=True, check=False)
    if found.stdout.strip() != "true":
        raise ConnectError(f"no container {container} is running ({connector})")


@contextmanager
def _never_asking() -> Iterator[None]:
    """pyinfra asks at the terminal for a sudo password; a check in CI has nobody to ask."""

    def refuse(*_: object) -> NoReturn:
        raise ConnectError("sudo asks for a password: allow it without one for this user")

    asking = vars(connector_util)["getpass"]
    vars(connector_util)["getpass"] = refuse
    try:
        yield
    finally:
        vars(connector_util)["getpass"] = asking


def _quiet() -> None:
    """Every reason goes into the report; the libraries would print it again, with tracebacks."""
    for name in ("pyinfra", "paramiko"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
