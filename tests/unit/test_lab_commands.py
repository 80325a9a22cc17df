"""What the lab's tests read from pyinfra's output."""

import pytest

from deploys.components import COMPONENTS
from railwright.settings import Change
from tests.lab.commands import announced


@pytest.mark.parametrize("name", [component.name for component in COMPONENTS])
def test_announcements_of_each_component_are_read(name: str) -> None:
    change = Change(component=name, key="some key", state="running", before=None, after="on")
    output = f"--> Preparing operations\n    [gpu001] {change}\n    [gpu001] now also {change}\n"
    assert announced(output) == {("gpu001", str(change))}
