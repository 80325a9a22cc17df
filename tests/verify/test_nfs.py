"""NFS over RDMA: the unit, and what the kernel says of the mount."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.nfs import NfsRdmaMount
from tests.verify.cases import for_each


def _mounts(node: Node) -> Iterator[tuple[str, NfsRdmaMount]]:
    for where, mount in node.storage.mounts.items():
        if isinstance(mount, NfsRdmaMount):
            yield where, mount


def _proto(mount: NfsRdmaMount) -> str:
    """By the family of the server's address."""
    return "proto=rdma6" if ":" in mount.server else "proto=rdma"


@for_each(_mounts)
def test_unit(host: Host, node: Node, case: tuple[str, NfsRdmaMount]) -> None:
    where, mount = case
    unit = host.check_output("systemd-escape -p --suffix=mount %s", where)
    assert host.run("systemctl is-enabled %s", unit).stdout.strip() == "enabled"
    text = host.file(f"/etc/systemd/system/{unit}").content_string
    options = re.search(r"^Options=(.*)$", text, re.M)
    assert options is not None
    given = set(options[1].split(","))
    assert {_proto(mount), f"port={mount.port}", f"vers={mount.version}", "nofail"} <= given
    assert ("hard" if mount.hard else "soft") in given
    for name in ("nconnect", "rsize", "wsize"):
        value = getattr(mount, name)
        assert (f"{name}={value}" in given) == (value is not None)
    assert f"What={mount.server}:{mount.export}\n" in text


@for_each(_mounts)
def test_mount(host: Host, node: Node, case: tuple[str, NfsRdmaMount], owns_kernel: bool) -> None:
    """Over RDMA as mountstats has it, which is the transport's own count of what it has sent."""
    if not owns_kernel:
        return
    where, mount = case
    lines = host.check_output("cat /proc/self/mountstats").split("\ndevice ")
    (told,) = [text for text in lines if f" mounted on {where} with fstype nfs" in text]
    assert re.search(r"^\s*xprt:\s+rdma ", told, re.M), told[:2000]
    options = re.search(r"^\s*opts:\s+(\S+)$", told, re.M)
    assert options is not None
    shown = set(options[1].split(","))
    assert {_proto(mount), f"vers={mount.version}", "hard" if mount.hard else "soft"} <= shown
    assert told.removeprefix("device ").startswith(f"{mount.server}:{mount.export} ")
    assert host.run("timeout 10 stat -f %s", where).rc == 0


@for_each(_mounts)
def test_module(host: Host, node: Node, case: tuple[str, NfsRdmaMount], owns_kernel: bool) -> None:
    """rpcrdma comes from where mlx5_core does: with the kernel, or with NVIDIA's stack."""
    if not owns_kernel:
        return

    def with_kernel(module: str) -> bool | None:
        found = host.run("modinfo -F filename %s", module)
        if found.rc != 0:
            return None
        path = found.stdout.strip()
        return "(builtin)" in path or re.search(r"/lib/modules/[^/]+/kernel/", path) is not None

    own = with_kernel("rpcrdma")
    assert own is not None
    assert with_kernel("mlx5_core") in (own, None)
