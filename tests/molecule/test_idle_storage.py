"""The scenario of storage proves something: what only an idle component puts right stays wrong."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.molecule.scenario import STORAGE, assert_verify_fails_where_idle, molecule

ALL, CLASSIC = "railwright-storage", "railwright-beegfs7"
BREAKS = {
    "scratch": {ALL: "rm -f /etc/systemd/system/fstrim.service.d/railwright-scratch.conf"},
    "nvmeof": {ALL: "rm -f '/etc/railwright/nvmeof/mnt:volume.keys'"},
    "nfs": {ALL: "sed -i 's/proto=rdma/proto=tcp/' /etc/systemd/system/mnt-nfs.mount"},
    "lustre": {ALL: "systemctl disable lnet.service"},
    "beegfs": {
        ALL: "echo 'connTCPFallbackEnabled = true' >>/etc/beegfs/beegfs-client.conf",
        CLASSIC: "echo '/mnt/beegfs /etc/beegfs/any.conf' >>/etc/beegfs/beegfs-mounts.conf",
    },
}
"""One thing of each component that its own operation alone puts right, by container."""


@pytest.fixture(scope="module", autouse=True)
def _converged_containers() -> Iterator[None]:
    molecule("storage", "destroy")
    converged = molecule("storage", "converge")
    assert converged.returncode == 0, converged.stdout
    yield
    molecule("storage", "destroy")


@pytest.mark.parametrize("idle", [{"lustre", "nfs"}, {"scratch", "nvmeof"}, {"beegfs"}])
def test_verify_fails_for_the_components_that_are_idle_and_for_no_other(idle: set[str]) -> None:
    assert BREAKS.keys() == set(STORAGE)
    for commands in BREAKS.values():
        for container, command in commands.items():
            subprocess.run(
                ("podman", "exec", container, "sh", "-c", command), check=True, capture_output=True
            )
    assert_verify_fails_where_idle("storage", idle)
