"""The rails' RDMA ports, read in sysfs and by the tools; IPoIB's rules and OpenSM's command."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from testinfra.host import Host

from railwright.schema import InfinibandFabric, Node, RoceFabric
from tests.verify.cases import for_each

RDMA = "/sys/class/infiniband"


def _each_rail(node: Node) -> Iterator[tuple[str, int]]:
    if node.fabric is not None:
        for rail in sorted(node.rails.nics):
            yield f"rail{rail}", rail


def _each_roce_rail(node: Node) -> Iterator[tuple[str, int]]:
    if isinstance(node.fabric, RoceFabric):
        for name, rail in _each_rail(node):
            if node.rails.nics[rail].address is not None or node.rails.plan.prefix is not None:
                yield name, rail


def _each_ipoib_rail(node: Node) -> Iterator[tuple[str, int]]:
    if isinstance(node.fabric, InfinibandFabric) and node.fabric.ipoib_mode is not None:
        yield from _each_rail(node)


def _each_opensm(node: Node) -> Iterator[tuple[str]]:
    if isinstance(node.fabric, InfinibandFabric) and node.fabric.opensm is not None:
        yield ("opensm",)


def _read(host: Host, path: str) -> str:
    return host.run("cat %s", path).stdout.strip()


def _devices(host: Host) -> list[list[str]]:
    """Of each port: its path in sysfs, its device's path and node GUID, the GID's interface."""
    look = (
        f'for port in {RDMA}/*/ports/*; do [ -e "$port" ] || continue; device=${{port%/ports/*}}; '
        'echo "$port $(readlink -f "$device/device") $(cat "$device/node_guid")'
        ' $(cat "$port/gid_attrs/ndevs/0" 2>/dev/null || echo -)"; done'
    )
    return [line.split() for line in host.check_output(look).splitlines()]


def _nets(host: Host) -> dict[str, tuple[str, str]]:
    """Each interface's MAC address and the path of its device."""
    look = (
        # The trailing slash leaves out files, such as bonding's own.
        "for net in /sys/class/net/*/; do net=${net%/}; mac=$(cat $net/address 2>/dev/null); "
        'echo "${net##*/} ${mac:--} $(readlink -f "$net/device")/"; done'
    )
    lines = (line.split() for line in host.check_output(look).splitlines())
    return {name: (mac, path) for name, mac, path in lines}


def _port(host: Host, node: Node, rail: int) -> str:
    """The port of the rail's NIC, as a path in sysfs."""
    nic, nets = node.rails.nics[rail], _nets(host)
    for port, device, guid, ndev in _devices(host):
        # A device on top of another one (rxe) has no device of its own: the GID's interface tells.
        macs = {mac for name, (mac, path) in nets.items() if path == f"{device}/" or name == ndev}
        below = f"{device}/ {nets.get(ndev, ('', ''))[1]}"
        if (
            port.split("/")[4] == nic.rdma_device
            or guid == nic.guid
            or nic.mac in macs
            or (nic.pci is not None and f"/{nic.pci}/" in below)
        ):
            return port
    raise AssertionError(f"no RDMA port for rail {rail}")


def _mtu(host: Host, node: Node, port: str) -> bool:
    """Whether RDMA has the MTU that is asked for, by its tool or, for RoCE, by the interface."""
    device, number = port.split("/")[4], port.rpartition("/")[2]
    said = host.run("ibv_devinfo -d %s -i %s", device, number)
    if said.rc == 127 and isinstance(node.fabric, RoceFabric):
        net = _read(host, f"{port}/gid_attrs/ndevs/0")
        return int(_read(host, f"/sys/class/net/{net}/mtu")) >= 4200
    mtu = node.fabric.mtu if isinstance(node.fabric, InfinibandFabric) else 4096
    return re.findall(r"active_mtu:\s+(\d+)", said.stdout) == [str(mtu)]


def _read_link(host: Host, path: str) -> str:
    return host.run("readlink -f %s", path).stdout.strip()


def _address(node: Node, rail: int) -> IPv4Address:
    """The rail's address: as given, or by the arithmetic of the plan done here once more."""
    plan, given = node.rails.plan, node.rails.nics[rail].address
    if given is not None:
        return given.ip
    assert plan.prefix is not None
    host_index = plan.host_index
    if host_index is None:
        digits = re.findall(r"[0-9]+$", node.name.split(".")[0])
        host_index = int(digits[0]) - 1
    first = 2 if plan.routed else 1
    start = int(plan.prefix.network_address)
    if plan.layout == "shared_subnet":
        per_host = max(node.rails.nics) + 1
        return IPv4Address(start + host_index * per_host + rail + first)
    assert plan.rail_prefix_length is not None
    return IPv4Address(start + rail * (1 << (32 - plan.rail_prefix_length)) + host_index + first)


@for_each(_each_rail)
def test_port(host: Host, node: Node, case: tuple[str, int], owns_kernel: bool) -> None:
    if not owns_kernel:
        return
    _, rail = case
    port = _port(host, node, rail)
    layer = "InfiniBand" if isinstance(node.fabric, InfinibandFabric) else "Ethernet"
    said = host.check_output(f"cat {port}/link_layer {port}/state").splitlines()
    assert said == [layer, "4: ACTIVE"]
    assert _mtu(host, node, port)
    if isinstance(node.fabric, InfinibandFabric):
        assert int(_read(host, f"{port}/sm_lid"), 16) != 0
        keys = {int(key, 16) & 0x7FFF for key in host.run(f"cat {port}/pkeys/*").stdout.split()}
        assert node.fabric.pkeys <= keys
        rate = node.rails.nics[rail].rate_gbps or node.rails.rate_gbps
        if rate is not None:
            assert float(_read(host, f"{port}/rate").split()[0]) == rate


@for_each(_each_roce_rail)
def test_gid(host: Host, node: Node, case: tuple[str, int], owns_kernel: bool) -> None:
    if not owns_kernel:
        return
    _, rail = case
    port = _port(host, node, rail)
    wanted = IPv6Address(b"\0" * 10 + b"\xff\xff" + _address(node, rail).packed)
    indices = []
    for line in host.run(f"grep -sH '' {port}/gids/*").stdout.splitlines():
        path, _, gid = line.partition(":")
        # A table has up to 1024 places.
        if IPv6Address(gid) != wanted:
            continue
        if _read(host, f"{port}/gid_attrs/types/{path.rpartition('/')[2]}") == "RoCE v2":
            indices.append(path)
    assert len(indices) == 1, indices


@for_each(_each_ipoib_rail)
def test_ipoib_mode(host: Host, node: Node, case: tuple[str, int], owns_kernel: bool) -> None:
    assert isinstance(node.fabric, InfinibandFabric)
    _, rail = case
    mode, pci = node.fabric.ipoib_mode, node.rails.nics[rail].pci
    rules = host.run("cat /etc/udev/rules.d/*.rules").stdout.splitlines()
    setting = [line for line in rules if "ATTR{mode}=" in line and not line.startswith("#")]
    if pci is not None:
        own = [line for line in setting if f'KERNELS=="{pci}"' in line]
        assert len(own) == 1, setting
        assert f'ATTR{{mode}}="{mode}"' in own[0]
    if owns_kernel:
        port = _port(host, node, rail)
        nets = host.run("ls %s", f"{_read_link(host, port.partition('/ports')[0])}/device/net")
        modes = {_read(host, f"/sys/class/net/{net}/mode") for net in nets.stdout.split()}
        assert modes == {mode}


@for_each(_each_opensm)
def test_opensm(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    assert isinstance(node.fabric, InfinibandFabric)
    spec = node.fabric.opensm
    assert spec is not None
    assert host.run("command -v opensm").rc == 0
    assert host.run("systemctl is-enabled opensm.service").stdout.strip() == "enabled"
    # The template has an instance for each port where there is one.
    units = host.run("systemctl cat opensm@0x1.service").stdout
    text = units or host.check_output("systemctl cat opensm.service")
    started = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert "ExecStart=" in started, started
    # An empty one takes back what was said before it; what then follows is what is run.
    last = started[len(started) - started[::-1].index("ExecStart=") :]
    assert len(last) == 1, started
    assert f"--priority {spec.priority} --routing_engine {spec.routing_engine}" in last[0]
    if owns_kernel:
        running = host.run("ps -C opensm -o args=").stdout.splitlines()
        assert running
        for line in running:
            assert f"--priority {spec.priority}" in line
            assert f"--routing_engine {spec.routing_engine}" in line
