"""What makes up a component: what it reads, what it decides, what it does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from facts.probe import Section
from railwright.actions import Action
from railwright.schema import Node
from railwright.settings import Setting
from railwright.snapshot import Snapshot


@dataclass(frozen=True)
class Component:
    """One concern of a node. Its functions are pure.

    ``settings`` decides how each setting stands; ``actions`` yields what brings those that are
    not right (all settings of the component are given, right ones too) to what is desired, as far
    as the inventory allows the effect. Settings of other components must not be read.
    """

    name: str
    sections: tuple[Section, ...]
    settings: Callable[[Node, Snapshot], list[Setting]]
    actions: Callable[[Node, Snapshot, list[Setting]], Iterator[Action]]
