"""Firmware keys of the rails' NICs, asked of each NIC by the tool on the node."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each


def _each_key(node: Node) -> Iterator[tuple[str, int, str, int | str]]:
    for rail in sorted(node.rails.nics):
        for key, value in sorted(node.firmware.keys.items()):
            yield f"rail{rail} {key}", rail, key, value


def _pci(host: Host, node: Node, rail: int) -> str:
    nic = node.rails.nics[rail]
    if nic.pci is not None:
        return nic.pci
    for device in host.check_output("ls /sys/class/infiniband").split():
        base = f"/sys/class/infiniband/{device}"
        guid = host.run("cat %s", f"{base}/node_guid").stdout.strip()
        nets = host.run(f"cat {base}/device/net/*/address").stdout.split()
        if device == nic.rdma_device or guid == nic.guid or nic.mac in nets:
            return host.check_output("readlink -f %s", f"{base}/device").rpartition("/")[2]
    raise AssertionError(f"no NIC for rail {rail}")


def _tool(host: Host, node: Node) -> str:
    names = ("mlxconfig", "mstconfig") if node.firmware.tool == "auto" else (node.firmware.tool,)
    found = [name for name in names if host.run(f"command -v {name}").rc == 0]
    assert found, names
    return found[0]


def _is(shown: str, value: int | str) -> bool:
    """Whether ``ETH(2)`` or ``16`` is ``value``."""
    name, _, number = shown.rstrip(")").rpartition("(")
    return str(value).lower() in (name.lower(), number)


@for_each(_each_key)
def test_firmware_key(
    host: Host, node: Node, case: tuple[str, int, str, int | str], owns_kernel: bool
) -> None:
    # The NICs that a container sees are its host's.
    if not owns_kernel:
        return
    _, rail, key, value = case
    pci = _pci(host, node, rail)
    if host.run("cat %s", f"/sys/bus/pci/devices/{pci}/vendor").stdout.strip() != "0x15b3":
        return
    told = host.run(f"{_tool(host, node)} -d {pci} -e q {key}").stdout
    if "doesn't support" in told:
        return
    row = re.search(rf"^\W*{re.escape(key)} +(\S+) +(\S+) +(\S+) *$", told, re.MULTILINE)
    assert row is not None, told
    _, current, following = row.groups()
    assert _is(following, value), told
    assert _is(current, value), told
