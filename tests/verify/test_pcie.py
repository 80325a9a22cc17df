"""The PCIe path: registers of bridges and NICs as their config space has them, and the unit."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each
from tests.verify.units import assert_unit

UNIT = "railwright-pcie.service"
PLAN = "/etc/railwright/pcie/plan"
# ReqRedir, CmpltRedir, UpstreamFwd and EgressCtrl of the ACS control register.
REDIRECTING = 0x04 | 0x08 | 0x10 | 0x20


def _each_rail(node: Node) -> Iterator[tuple[str, str]]:
    for rail, nic in sorted(node.rails.nics.items()):
        if nic.pci is not None:
            yield f"rail{rail}", nic.pci


def _each_read_request(node: Node) -> Iterator[tuple[str, str, int]]:
    if node.pcie.max_read_request_bytes is not None:
        for name, address in _each_rail(node):
            yield f"{name} mrrs", address, node.pcie.max_read_request_bytes


def _each_acs(node: Node) -> Iterator[tuple[str]]:
    if node.rails.nics and node.pcie.acs == "clear":
        yield ("acs",)


def _each_link(node: Node) -> Iterator[tuple[str, str]]:
    if node.pcie.links is not None:
        yield from _each_rail(node)


def _config(host: Host, address: str) -> bytes:
    path = f"/sys/bus/pci/devices/{address}/config"
    return bytes.fromhex(host.check_output(f"od -An -v -tx1 {path}").replace("\n", ""))


def _word(space: bytes, offset: int) -> int:
    return int.from_bytes(space[offset : offset + 2], "little")


def _express(space: bytes) -> int | None:
    offset = space[0x34] & 0xFC
    for _ in range(48):
        if offset < 0x40:
            return None
        if space[offset] == 0x10:
            return offset
        offset = space[offset + 1] & 0xFC
    raise AssertionError("the capabilities have no end")


def _acs_control(space: bytes) -> int | None:
    assert len(space) > 64, "config space is shown to root alone"
    offset = 0x100
    for _ in range(256):
        if offset < 0x100 or len(space) < offset + 8 or _word(space, offset) == 0xFFFF:
            return None
        if _word(space, offset) == 0x0D:
            return _word(space, offset + 6)
        offset = _word(space, offset + 2) >> 4 & 0xFFC
    raise AssertionError("the extended capabilities have no end")


def _way(host: Host, address: str) -> list[str]:
    """The host bridge and the ports that lead to a function."""
    path = host.check_output(f"readlink -f /sys/bus/pci/devices/{address}")
    names: list[str] = re.findall(r"/(pci[0-9a-f:]+|[0-9a-f]+:[0-9a-f]{2}:[0-9a-f]{2}\.\d)", path)
    while len([name for name in names if name.startswith("pci")]) > 1:
        names.pop(0)
    return names[:-1]


def _of_class(host: Host, pattern: str) -> list[str]:
    found = host.run(f"grep -lE '{pattern}' /sys/bus/pci/devices/*/class").stdout.split()
    folders = [path.removesuffix("/class") for path in found]
    return [f.rsplit("/", 1)[1] for f in folders if not host.file(f"{f}/physfn").exists]


def _has_vendor(host: Host, address: str, vendor: str) -> bool:
    told = host.file(f"/sys/bus/pci/devices/{address}/vendor").content_string
    return bool(told.strip() == vendor)


def _ports_on_the_way(host: Host, node: Node) -> set[str]:
    """Ports between GPUs (or rails, without GPUs) and the NICs, drives and GPUs beside them."""
    gpus = [a for a in _of_class(host, "^0x03") if _has_vendor(host, a, "0x10de")]
    gpus += [a for a in _of_class(host, "^0x(0380|1200)") if _has_vendor(host, a, "0x1002")]
    rails = [address for _, address in _each_rail(node)]
    peers = {a: _way(host, a) for a in (*gpus, *rails, *_of_class(host, "^0x010802"))}
    ports: set[str] = set()
    for one in gpus or rails:
        for way in peers.values():
            here = peers[one]
            if here[0] == way[0]:
                shared = sum(1 for a, b in zip(here, way, strict=False) if a == b)
                ports.update((*here[shared:], *way[shared:]))
    return ports


@for_each(_each_acs)
def test_pcie_acs(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    guest = owns_kernel and host.run("systemd-detect-virt --vm").rc == 0
    if guest and not node.pcie.acs_in_vm:
        return
    words = [line.split()[:1] for line in host.file(PLAN).content_string.splitlines()]
    assert ["acs"] in words
    if owns_kernel:
        for port in _ports_on_the_way(host, node):
            control = _acs_control(_config(host, port))
            assert control is None or control & REDIRECTING == 0, f"{port}: {control:#x}"


@for_each(_each_read_request)
def test_pcie_read_request(
    host: Host, node: Node, case: tuple[str, str, int], owns_kernel: bool
) -> None:
    _, address, size = case
    express = _express(_config(host, address)) if owns_kernel else -1
    if express is None:
        return
    assert f"nic {address} {size}" in host.file(PLAN).content_string.splitlines()
    if owns_kernel:
        assert 128 << (_word(_config(host, address), express + 8) >> 12 & 7) == size


@for_each(_each_link)
def test_pcie_link(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    _, address = case
    express = _express(_config(host, address)) if owns_kernel else None
    if express is None:
        return
    # Link Capabilities and Link Status: the width is in bits 4 to 9 of both.
    space = _config(host, address)
    most, width = _word(space, express + 0xC) >> 4 & 0x3F, _word(space, express + 0x12) >> 4 & 0x3F
    slot = _way(host, address)[-1]
    if not slot.startswith("pci"):
        above = _config(host, slot)
        port = _express(above)
        assert port is not None
        most = min(most, _word(above, port + 0xC) >> 4 & 0x3F)
    assert width >= most


@for_each(_each_acs)
def test_pcie_unit(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    guest = owns_kernel and host.run("systemd-detect-virt --vm").rc == 0
    if guest and not node.pcie.acs_in_vm and node.pcie.max_read_request_bytes is None:
        return
    assert_unit(host, UNIT, owns_kernel)
