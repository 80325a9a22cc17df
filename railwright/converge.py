"""How the components are run on a host by pyinfra: one probe, decide, act, look again, report.

On a converged host a run costs the one probe. Where something is to be done each component costs
one command, and one more probe for all of them proves what was done.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, StateStage
from pyinfra.api.state import State as Pyinfra
from pyinfra.context import ctx_host

from facts.probe import Probe, Section
from railwright.actions import render
from railwright.component import Component, gates_of, refusals, sections_of, settings_of, unread
from railwright.focus import focus_of
from railwright.schema import Node
from railwright.secret_files import sent
from railwright.secrets import SecretError
from railwright.settings import (
    Change,
    Effect,
    Setting,
    Standing,
    Verdict,
    changes,
    enforces,
    verdict,
)
from railwright.snapshot import Snapshot

Place = tuple[str, str, str]
"""Component, key and state (persisted or running) of a change."""


@dataclass
class Run:
    """One host's run: the node, the components, and what was last seen of the host.

    ``promised`` is what was announced before anything was done. ``acted`` names the components that
    have acted since the host was last looked at; ``settled`` tells that packages have been dealt
    with, so that nothing arrives any more. ``unannounced`` is what came to light when the host was
    looked at again in the middle of the run. ``before_reboot`` is the last look before a reboot:
    what is built for the kernel that is left is not to be seen after it. ``waits`` tells whether
    what a reboot was announced for still waits for it.
    """

    host: Host
    node: Node
    components: Sequence[Component]
    seen: Snapshot
    stale: bool = False
    settled: bool = False
    failures: list[str] = field(default_factory=list)
    promised: frozenset[Place] = frozenset()
    acted: set[str] = field(default_factory=set)
    waits: bool = True
    before_reboot: Snapshot | None = None
    unannounced: list[tuple[Component, Change]] = field(default_factory=list)
    _judged: dict[str, list[Setting]] = field(default_factory=dict)
    _judged_of: Snapshot | None = None

    @property
    def allowed(self) -> frozenset[Effect]:
        return self.node.effects.allow

    def settings(self, component: Component) -> list[Setting]:
        """The settings of ``component`` as the host was last seen, judged once for each look."""
        if self._judged_of is not self.seen:
            self._judged_of, self._judged = self.seen, {}
        if component.name not in self._judged:
            self._judged[component.name] = settings_of(component, self.node, self.seen)
        return self._judged[component.name]

    def look(self) -> Snapshot:
        """The host as it is now: what was last seen, or another probe where it was changed since.

        Raises PyinfraError where the host does not answer.
        """
        if self.stale:
            with ctx_host.use(self.host):
                self.seen = _probe(self.host, self.node, self.components)
            self.stale = False
            self.acted.clear()
        if self.settled and not self.seen.settled:
            self.seen = self.seen.model_copy(update={"settled": True})
        return self.seen

    def pending(self) -> list[Setting]:
        """What was persisted and waits for an effect that is not allowed."""
        return [
            setting
            for component in self.components
            for setting in self.settings(component)
            if verdict(setting, self.allowed) is Verdict.PENDING
        ]


_runs: WeakKeyDictionary[Host, Run] = WeakKeyDictionary()


def _probe(
    host: Host, node: Node, components: Sequence[Component], more: Sequence[Section] = ()
) -> Snapshot:
    sections = (*sections_of(components), *more)
    found = host.get_fact(Probe, focus=focus_of(node), sections=sections)
    if found is None:
        raise PyinfraError(f"{host.name}: the probe brought nothing back")
    return found.model_copy(update={"host": node.name})


def start(host: Host, components: Sequence[Component]) -> Run | None:
    """Probe ``host``; None where it could not be probed."""
    node = host.data.node
    try:
        seen = _probe(host, node, components)
    except PyinfraError:
        # pyinfra has reported the host and goes on without it.
        return None
    run = Run(host=host, node=node, components=components, seen=seen)
    _runs[host] = run
    # pyinfra takes the class itself: its callbacks are static methods.
    handlers: list[Any] = list(host.state.callback_handlers)
    if _Reporter not in handlers:
        host.state.callback_handlers.append(_Reporter)  # type: ignore[arg-type]
    for line in unreadable(run):
        logger.error(f"{host.print_prefix}{line}")
    return run


def announce(run: Run) -> None:
    """Say what will be done to the host."""
    listed = [change for _, _, found in announced(run) for change in found]
    for change in listed:
        logger.info(f"{run.host.print_prefix}{change}")
    run.promised = frozenset(map(_place, listed))


def _place(change: Change) -> Place:
    return change.component, change.key, change.state


def apply(run: Run, component: Component) -> Generator[StringCommand | FunctionCommand, None, None]:
    """The body of a component's operation: one command for all that is not right."""
    if run.host.state.is_executing:
        try:
            if component.upon & run.acted:
                run.settled = True
                run.look()
        except PyinfraError as error:
            yield _failed(run, str(error))
            return
        if run.settled:
            _tell(run, component)
    settings = run.settings(component)
    if unread(settings):
        # Nothing is done where it is not known what is there; settle() fails the host.
        run.host.noop(f"{component.name} could not be read")
        return
    actions = list(component.actions(run.node, run.seen, settings))
    if not actions:
        run.host.noop(f"{component.name} is as it should be")
        return
    lines: list[str] = []
    if run.host.state.is_executing:
        try:
            lines = sent(actions)
        except SecretError as error:
            yield _failed(run, f"{component.name}: {error}")
            return
        run.stale = True
        run.acted.add(component.name)
    yield StringCommand(render(actions), _stdin=lines)


def _tell(run: Run, component: Component) -> None:
    """Tell what came to light since the run began, and nobody could announce."""
    told = run.promised | {_place(change) for _, change in run.unannounced}
    for setting in run.settings(component):
        for change in changes(setting, run.allowed):
            if _place(change) not in told:
                logger.info(f"{run.host.print_prefix}now also {change}")
                run.unannounced.append((component, change))


def _failed(run: Run, reason: str) -> FunctionCommand:
    def fail(state: Pyinfra, host: Host) -> bool:  # noqa: ARG001 pyinfra asks for both
        logger.error(f"{host.print_prefix}{reason}")
        run.failures.append(reason)
        return False

    return FunctionCommand(fail, (), {})


def announced(run: Run) -> list[tuple[Component, Setting, list[Change]]]:
    """Every setting of the host with what will be done to it, in an order that all hosts share."""
    return [
        (component, setting, changes(setting, run.allowed))
        for component in run.components
        for setting in run.settings(component)
    ]


def unreadable(run: Run) -> list[str]:
    """What could not be read of the host as it was last seen, in words.

    A run that did not see how a setting stands has not shown that it is right.
    """
    lines = []
    for component in run.components:
        for setting in run.settings(component):
            if verdict(setting, run.allowed) is not Verdict.UNREADABLE:
                continue
            states = {state.detail for state in (setting.persisted, setting.running)}
            reason = "; ".join(sorted(filter(None, states))) or "no reason is known"
            key = component.name if unread([setting]) else f"{component.name} {setting.key}"
            lines.append(f"{key} could not be read: {reason}")
    return lines


def reboots_for(run: Run) -> list[Setting]:
    """The settings that wait for a reboot that the inventory allows."""
    return [
        setting
        for _, setting, _ in announced(run)
        if setting.effect is Effect.REBOOT
        and enforces(setting, run.allowed)
        # A reboot brings into force what is persisted, and nothing else.
        and setting.persisted.standing is not Standing.NOT_APPLICABLE
    ]


def prove_reboot(run: Run, reason: Sequence[Setting]) -> FunctionCommand:
    """A command that fails where a component refuses the reboot of the host as it now is.

    Where nothing of ``reason`` waits for a reboot any more, none is made. It looks again: what was
    seen at the start does not tell what the run has made of the next kernel. Where no component
    has anything to ask it costs no round trip.
    """
    gates = gates_of(run.components, run.node)

    def check(state: Pyinfra, host: Host) -> bool:  # noqa: ARG001 pyinfra asks for both
        if not gates:
            return True
        try:
            with ctx_host.use(host):
                more = [section for gate in gates.values() for section in gate.sections]
                run.seen = _probe(host, run.node, run.components, more)
        except PyinfraError as error:
            run.failures.append(str(error))
            return False
        run.stale = False
        run.before_reboot = run.seen
        left = {(setting.component, setting.key) for setting in reboots_for(run)}
        run.waits = any((setting.component, setting.key) in left for setting in reason)
        if not run.waits:
            logger.info(f"{host.print_prefix}no reboot: nothing waits for it any more")
            return True
        refused = refusals(gates, run.node, run.seen)
        run.failures.extend(refused)
        for line in refused:
            logger.error(f"{host.print_prefix}{line}")
        return not refused

    return FunctionCommand(check, (), {})


def prove(run: Run, component: Component, key: str, expected: list[Change]) -> FunctionCommand:
    """A command that fails where ``expected`` did not come true; it costs no round trip."""

    def check(state: Pyinfra, host: Host) -> bool:  # noqa: ARG001 pyinfra asks for both
        try:
            run.look()
            settings = run.settings(component)
        except PyinfraError as error:
            run.failures.append(str(error))
            return False
        persisted = all(change.state == "persisted" for change in expected)
        if run.before_reboot and persisted and all(s.key != key for s in settings):
            settings = settings_of(component, run.node, run.before_reboot)
        wrong = unmet(settings, key, expected)
        run.failures.extend(wrong)
        for line in wrong:
            logger.error(f"{host.print_prefix}{line}")
        return not wrong

    return FunctionCommand(check, (), {})


def unmet(settings: Iterable[Setting], key: str, expected: Iterable[Change]) -> list[str]:
    """What did not come true of ``expected`` for the setting ``key``, in words."""
    setting = next((setting for setting in settings if setting.key == key), None)
    if setting is None:
        # A file of ours that had to go and is gone has no setting any more.
        return [f"{c}: cannot be seen any more" for c in expected if c.after != "absent"]
    lines = []
    for change in expected:
        found = setting.persisted if change.state == "persisted" else setting.running
        if found.standing not in (Standing.RIGHT, Standing.OVERRIDDEN, Standing.LATE):
            what = found.value or found.standing.value
            lines.append(f"{change}: is {what}" + (f" ({found.detail})" if found.detail else ""))
    return lines


class _Reporter(BaseStateCallback):
    """Says at the end of a run what is still pending, and what it waits for."""

    @staticmethod
    def host_disconnect(state: Pyinfra, host: Host) -> None:
        run = _runs.get(host)
        # A reboot disconnects too; the end is when nothing is being executed.
        if run is None or state.current_stage is StateStage.Execute or run.stale:
            return
        for setting in run.pending():
            waits = setting.effect.value
            if setting.running.standing is Standing.LATE:
                waits = setting.running.detail or "what brings it into being"
            logger.warning(
                f"{host.print_prefix}pending: {setting.component} {setting.key} → "
                f"{setting.desired} waits for: {waits}"
            )
