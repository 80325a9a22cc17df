"""gpu_node.py where the components that IDLE names neither decide nor do anything.

A deploy for tests: whatever proves the component must fail after it.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

from pyinfra.context import ctx_host

from deploys.components import COMPONENTS
from deploys.node import converge
from railwright.actions import Action
from railwright.component import Component
from railwright.schema import Node
from railwright.settings import Setting
from railwright.snapshot import Snapshot


def _no_settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    return []


def _no_actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    yield from ()


def _idle(component: Component) -> Component:
    if component.name not in os.environ["IDLE"].split():
        return component
    return replace(component, settings=_no_settings, actions=_no_actions)


converge(ctx_host.get(), [_idle(component) for component in COMPONENTS])
