"""One test per node and thing that is asked of it."""

import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from railwright.schema import Node

Test = TypeVar("Test", bound=Callable[..., None])


@cache
def nodes() -> dict[str, Node]:
    """The nodes to verify by name, as ``railwright verify`` writes them down."""
    listing = json.loads(Path(os.environ["RAILWRIGHT_NODES"]).read_text(encoding="utf-8"))
    found = [Node.model_validate(entry) for entry in listing]
    return {node.name: node for node in found}


def node_of(test: str) -> str:
    """The node that a test (``FILE::NAME[NODE-CASE]``) is of; names and cases may have dashes."""
    named = test.partition("[")[2]
    ends = (end for end, character in enumerate(named) if character == "-")
    return next(named[:end] for end in ends if named[:end] in nodes())


def for_each(select: Callable[[Node], Iterable[tuple[Any, ...]]]) -> Callable[[Test], Test]:
    """Run a test for each tuple that ``select`` finds in each node.

    The test takes ``host`` (a testinfra host), ``node``, and ``case`` (the tuple). The first of
    the tuple names the test.
    """
    params = [
        pytest.param(node.name, case, id=f"{node.name}-{case[0]}")
        for node in nodes().values()
        # Processes that share the tests must agree on their order, and sets have none.
        for case in sorted(select(node), key=lambda case: str(case[0]))
    ]

    def decorate(test: Test) -> Test:
        # A component that no node asks for has no tests, which is not a skip.
        if not params:
            test.__test__ = False  # type: ignore[attr-defined]
            return test
        return pytest.mark.parametrize(("target", "case"), params, scope="session")(test)

    return decorate
