"""What makes up a component: what it reads, what it decides, what it does."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from facts.probe import Section
from railwright.actions import Action
from railwright.reboots import after_reboot
from railwright.schema import Node
from railwright.settings import Setting, Standing, State, by_reboot
from railwright.snapshot import Snapshot

UNREAD = "probe"
"""The key of the one setting that a component has where its answer cannot be read."""


@dataclass(frozen=True)
class RebootGate:
    """What must hold before a run reboots a node. Its functions are pure.

    ``asked`` tells whether the node asks for anything that a reboot could take from it; ``refusal``
    says in words why it may not be rebooted as it now is, None where it may. ``sections`` are read
    for it alone, just before.
    """

    asked: Callable[[Node], bool]
    sections: tuple[Section, ...]
    refusal: Callable[[Node, Snapshot], str | None]


@dataclass(frozen=True)
class Component:
    """One concern of a node. Its functions are pure.

    ``settings`` decides how each setting stands; ``actions`` yields what brings those that are
    not right (all settings of the component are given, right ones too) to what is desired, as far
    as the inventory allows the effect. Settings of other components must not be read.

    ``upon`` names components that bring what this one decides upon (packages have the modules
    that are loaded, and the units that are started): where one of them has acted, the node is
    looked at again before this one acts.
    """

    name: str
    sections: tuple[Section, ...]
    settings: Callable[[Node, Snapshot], list[Setting]]
    actions: Callable[[Node, Snapshot, list[Setting]], Iterator[Action]]
    reboot_gate: RebootGate | None = None
    upon: frozenset[str] = frozenset()


def sections_of(components: Iterable[Component]) -> tuple[Section, ...]:
    """The sections that ``components`` read, each once."""
    return tuple({s.name: s for c in components for s in c.sections}.values())


def gates_of(components: Iterable[Component], node: Node) -> dict[str, RebootGate]:
    """What must hold before ``node`` is rebooted, by the name of the component that says so."""
    return {
        component.name: component.reboot_gate
        for component in components
        if component.reboot_gate and component.reboot_gate.asked(node)
    }


def refusals(gates: Mapping[str, RebootGate], node: Node, snapshot: Snapshot) -> list[str]:
    """Why the node may not be rebooted as ``snapshot`` has it, by component, in words."""
    return [
        f"{name} refuses the reboot: {said}"
        for name, gate in gates.items()
        if (said := gate.refusal(node, snapshot))
    ]


def settings_of(component: Component, node: Node, snapshot: Snapshot) -> list[Setting]:
    """The settings of ``component``, sorted by key so that every host lists them alike.

    What the node answered that cannot be made sense of is one unreadable setting, not an error
    of the run.
    """
    try:
        found = component.settings(node, snapshot)
    except (ValueError, LookupError) as error:
        unreadable = State(standing=Standing.UNREADABLE, detail=str(error))
        return [
            Setting(
                component=component.name,
                key=UNREAD,
                desired="readable",
                persisted=unreadable,
                running=unreadable,
            )
        ]
    allowed = node.effects.allow
    staged = [by_reboot(setting, allowed) for setting in after_reboot(found, snapshot)]
    return sorted(staged, key=lambda setting: setting.key)


def unread(settings: list[Setting]) -> bool:
    """Whether ``settings_of`` could make nothing of what the node answered."""
    return any(setting.key == UNREAD for setting in settings)
