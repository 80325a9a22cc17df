"""Fixtures: the host over one shared connection, its node, whether it has a kernel of its own."""

import os
from functools import cache

import pytest
import testinfra
from testinfra.host import Host
from xdist.scheduler import LoadScopeScheduling

from railwright.schema import Node
from tests.verify.cases import node_of, nodes


class ByNode(LoadScopeScheduling):
    """All tests of a node run in one process, over its one connection; nodes run side by side."""

    def _split_scope(self, nodeid: str) -> str:
        return node_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByNode:
    return ByNode(config, log)


@cache
def _connect(name: str) -> Host:
    if name.startswith("@podman/"):
        host = testinfra.get_host(f"podman://{name.removeprefix('@podman/')}")
    else:
        config = os.environ["RAILWRIGHT_SSH_CONFIG"]
        host = testinfra.get_host(f"ssh://{name}", ssh_config=config)
    # Nothing here changes the host: what it has answered once is not asked again.
    host.backend.run = cache(host.backend.run)
    return host


@pytest.fixture
def node(target: str) -> Node:
    return nodes()[target]


@pytest.fixture
def host(target: str) -> Host:
    return _connect(target)


@pytest.fixture
def owns_kernel(host: Host, target: str) -> bool:
    """False in a container, which has only persisted state: there nothing running is its own."""
    return _owns_kernel(target)


@cache
def _owns_kernel(name: str) -> bool:
    found = _connect(name).run("systemd-detect-virt --container")
    return found.rc != 0 or found.stdout.strip() == "none"
