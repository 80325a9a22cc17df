"""The order of a run on one host: probe, each component's operation, reboot, proof."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TypeVar

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.operation import OperationMeta, operation
from pyinfra.api.state import State
from pyinfra.operations import server

from railwright.actions import render
from railwright.component import Component
from railwright.converge import (
    Run,
    announce,
    announced,
    apply,
    prove,
    prove_reboot,
    reboots_for,
    start,
    unreadable,
)
from railwright.drivers.known_sets import refusal
from railwright.reboots import note
from railwright.settings import Change, Setting

Item = TypeVar("Item")


def converge(host: Host, components: Sequence[Component]) -> None:
    """Bring ``host`` to what its node asks for.

    Nothing of it stops the other components or the other hosts; what did not come true fails
    the host in the last operation.
    """
    run = start(host, components)
    if run is None:
        return
    refused = refusal(run.node, run.seen)
    if refused:
        refuse(run=run, reasons=refused, name="the set of drivers is known to work")
        return
    announce(run)
    done: list[OperationMeta] = []
    for component in _loop(host, components):
        done.append(act(run=run, component=component, name=component.name, _ignore_errors=True))
    reason = reboots_for(run)

    def whole() -> bool:
        # Never into what could not be written whole.
        return all(operation.did_succeed() for operation in done)

    if reason:
        # Asked also where something failed: which module the next kernel lacks is told.
        proven = allow_reboot(
            run=run, reason=reason, name="the next boot is safe", _ignore_errors=True
        )

        def safe() -> bool:
            return whole() and proven.did_succeed() and run.waits

        remember(run=run, reason=reason, name="note what the reboot is for", _if=safe)
        server.reboot(name="reboot", delay=30, _ignore_errors=True, _if=safe)
        outdate(run=run, name="look again after the reboot")
    for component, setting, expected in _loop(host, announced(run)):
        if expected:
            confirm(
                run=run,
                component=component,
                key=setting.key,
                expected=expected,
                name=f"{component.name} {setting.key} → {setting.desired}",
                _ignore_errors=True,
            )
    if run.node.drivers.is_asked_for:
        confirm_unannounced(run=run, name="what came to light in the run", _ignore_errors=True)
    settle(run=run, done=done, name="all is as announced")


def _loop(host: Host, items: Iterable[Item]) -> Iterator[Item]:
    """Items in an order that pyinfra can tell apart on hosts that have different ones."""
    yield from host.loop(items)  # type: ignore[no-untyped-call]


@operation()
def refuse(run: Run, reasons: list[str]) -> Generator[FunctionCommand, None, None]:
    """Fail the host before anything is done to it."""
    for reason in reasons:
        logger.error(f"{run.host.print_prefix}refused: {reason}")

    def fail(state: State, host: Host) -> bool:  # noqa: ARG001 pyinfra asks for both
        return False

    yield FunctionCommand(fail, (), {})


@operation()
def act(run: Run, component: Component) -> Generator[StringCommand | FunctionCommand, None, None]:
    """Put right what is not, by one command for the whole component."""
    yield from apply(run, component)


@operation()
def confirm(
    run: Run, component: Component, key: str, expected: list[Change]
) -> Generator[FunctionCommand, None, None]:
    """Look whether a setting became what was announced."""
    yield prove(run, component, key, expected)


@operation()
def allow_reboot(run: Run, reason: list[Setting]) -> Generator[FunctionCommand, None, None]:
    """Ask the components whether the host may be rebooted as it now is."""
    yield prove_reboot(run, reason)


@operation()
def remember(run: Run, reason: list[Setting]) -> Generator[StringCommand, None, None]:
    """Write down what a reboot is made for: it is not made for that again."""
    yield StringCommand(render([note(reason, run.seen)]))


@operation()
def outdate(run: Run) -> Generator[FunctionCommand, None, None]:
    """Forget what was seen before the reboot: it proves nothing."""

    def forget(state: State, host: Host) -> bool:  # noqa: ARG001 pyinfra asks for both
        run.stale = True
        return True

    yield FunctionCommand(forget, (), {})


@operation()
def confirm_unannounced(run: Run) -> Generator[FunctionCommand, None, None]:
    """Look whether what came to light in the middle of the run became what was told then."""
    if run.host.state.is_executing:
        for component, change in run.unannounced:
            yield prove(run, component, change.key, [change])


@operation()
def settle(run: Run, done: list[OperationMeta]) -> Generator[FunctionCommand, None, None]:
    """Fail the host where something failed, did not come true, or could not be read."""
    failed = run.host.state.is_executing and (
        any(operation.did_error() for operation in done) or bool(unreadable(run))
    )
    if not run.failures and not failed:
        run.host.noop("all is as announced")
        return

    def fail(state: State, host: Host) -> bool:  # noqa: ARG001 pyinfra asks for both
        return False

    yield FunctionCommand(fail, (), {})
