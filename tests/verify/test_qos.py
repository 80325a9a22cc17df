"""Lossless RoCE, read by dcb, ethtool, sysfs and configfs; what keeps it, by systemd and udev."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node, Rail, RoceFabric, RoceQos
from tests.verify.cases import for_each

WATCH = "railwright-qos-watch.service"
RULES = "/etc/udev/rules.d/90-railwright-qos.rules"


def _each_rail(node: Node) -> Iterator[tuple[str, int]]:
    if isinstance(node.fabric, RoceFabric):
        for rail in sorted(node.rails.nics):
            yield f"rail{rail}", rail


def _each_node(node: Node) -> Iterator[tuple[str]]:
    if isinstance(node.fabric, RoceFabric) and node.rails.nics:
        yield ("qos",)


def _qos(node: Node) -> RoceQos:
    assert isinstance(node.fabric, RoceFabric)
    return node.fabric.qos


def _said(host: Host, command: str) -> str:
    done = host.run(command)
    assert done.rc == 0, f"{command}: {done.stderr}"
    return str(done.stdout)


def _pci(host: Host, nic: Rail) -> str:
    """The function that the rail's NIC is, by whichever identity it has."""
    if nic.pci is not None:
        return nic.pci
    if nic.mac is not None:
        device = f"$(dirname $(grep -lx {nic.mac} /sys/class/net/*/address | head -n 1))/device"
    else:
        device = f"/sys/class/infiniband/{nic.rdma_device}/device"
    found = re.findall(
        r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", _said(host, f"readlink -f {device}")
    )
    assert found
    return str(found[-1])


def _interface(host: Host, pci: str) -> str:
    at = f"/sys/bus/pci/devices/{pci}"
    return (
        _said(host, f"ls -d {at}/net/* {at}/*/net/* 2>/dev/null | head -n 1").strip().split("/")[-1]
    )


def _rdma(host: Host, interface: str) -> str:
    found = re.search(
        rf"link (\S+)/1 .*netdev {re.escape(interface)}\s*$", _said(host, "rdma link show"), re.M
    )
    assert found is not None, f"there is no RDMA device on {interface}"
    return found[1]


def _data(host: Host, node: Node, rail: int) -> dict[str, str]:
    path = f"/etc/railwright/qos/{_pci(host, node.rails.nics[rail])}.conf"
    lines = host.file(path).content_string.splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def _pairs(text: str, key: str) -> dict[int, str]:
    line = re.search(rf"^{key} (.*)$", text, re.M)
    return {int(k): v for k, v in re.findall(r"(\d+):(\S+)", line[1])} if line else {}


def _map(qos: RoceQos) -> dict[int, int]:
    if qos.trust == "pcp":
        return {}
    return {dscp: qos.dscp_to_priority.get(dscp, dscp // 8) for dscp in range(64)}


@for_each(_each_rail)
def test_qos_persists(host: Host, node: Node, case: tuple[str, int], owns_kernel: bool) -> None:
    name, rail = case
    qos, data = _qos(node), _data(host, node, rail)
    assert data["RAIL"] == name
    assert data["TRUST"] == qos.trust
    assert data["PFC"] == (" ".join(map(str, sorted(qos.lossless))) or "none")
    assert data["RDMA_CM_TOS"] == str(qos.traffic_class)
    assert data["CNP_DSCP"] == str(qos.cnp_dscp)
    said: dict[int, int] = {}
    for first, last, priority in re.findall(r"(\d+)(?:-(\d+))?:(\d)", data["DSCP_MAP"]):
        said |= dict.fromkeys(range(int(first), int(last or first) + 1), int(priority))
    assert said == _map(qos)
    for priority, percent in qos.ets_percent.items():
        assert re.search(rf"[ -]{priority}:{percent}%", data["ETS"])
    if owns_kernel:
        unit = f"railwright-qos@{_pci(host, node.rails.nics[rail])}.service"
        assert host.run(f"systemctl is-failed {unit}").stdout.strip() in ("inactive", "active")


@for_each(_each_node)
def test_qos_is_kept(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    rules = host.file(RULES).content_string
    for kind in ("net", "infiniband"):
        assert re.search(rf'^SUBSYSTEM=="{kind}",.*SYSTEMD_WANTS.*railwright-qos@%b', rules, re.M)
    unit = _said(host, "cat /etc/systemd/system/railwright-qos@.service")
    for started in re.findall(r"^ExecStart=(\S+)", unit, re.M):
        assert host.file(started).mode & 0o777 == 0o755
        assert host.run(f"sh -n {started}").rc == 0
    assert host.run(f"systemctl is-enabled {WATCH}").stdout.strip() == "enabled"
    if owns_kernel:
        assert host.run(f"systemctl is-active {WATCH}").stdout.strip() == "active"


@for_each(_each_rail)
def test_qos_bridging(host: Host, node: Node, case: tuple[str, int], owns_kernel: bool) -> None:
    if not owns_kernel:
        assert host.file(RULES).exists
        return
    qos = _qos(node)
    interface = _interface(host, _pci(host, node.rails.nics[case[1]]))
    shown = _said(
        host,
        f"dcb dcbx show dev {interface} && dcb -N app show dev {interface} dscp-prio && "
        f"dcb pfc show dev {interface} && dcb ets show dev {interface}",
    )
    assert "host" in shown.splitlines()[0].split()
    entries = _pairs(shown, "dscp-prio")
    assert {dscp: int(priority) for dscp, priority in entries.items()} == _map(qos)
    pfc = _pairs(shown, "prio-pfc")
    assert {priority for priority, state in pfc.items() if state == "on"} == set(qos.lossless)
    assert "willing off" in shown
    classes, served = _pairs(shown, "prio-tc"), _pairs(shown, "tc-tsa")
    shares = _pairs(shown, "tc-bw")
    for priority in range(8):
        own = priority in qos.ets_percent or priority in qos.strict
        assert classes[priority] == str(priority if own else 0)
        if priority in qos.ets_percent:
            assert served[priority] == "ets"
            assert shares[priority] == str(qos.ets_percent[priority])
        elif priority in qos.strict:
            assert served[priority] == "strict"
    pause = host.run(f"ethtool -a {interface}")
    assert "not supported" in pause.stderr or set(
        re.findall(r"^[RT]X:\s*(\S+)", pause.stdout, re.M)
    ) == {"off"}


@for_each(_each_rail)
def test_qos_of_queue_pairs(
    host: Host, node: Node, case: tuple[str, int], owns_kernel: bool
) -> None:
    if not owns_kernel:
        assert host.file(RULES).exists
        return
    qos = _qos(node)
    interface = _interface(host, _pci(host, node.rails.nics[case[1]]))
    rdma = _rdma(host, interface)
    port = f"/sys/kernel/config/rdma_cm/{rdma}/ports/1"
    assert host.file(f"{port}/default_roce_tos").content_string.strip() == str(qos.traffic_class)
    assert host.file(f"{port}/default_roce_mode").content_string.strip() == "RoCE v2"
    if qos.backend != "nvidia":
        return
    tree = f"/sys/class/net/{interface}/ecn"
    for priority in qos.ecn:
        for point in ("np", "rp"):
            assert host.file(f"{tree}/roce_{point}/enable/{priority}").content_string.strip() == "1"
    assert host.file(f"{tree}/roce_np/cnp_dscp").content_string.strip() == str(qos.cnp_dscp)
    forced = host.file(f"/sys/class/infiniband/{rdma}/tc/1/traffic_class").content_string
    assert forced.split("\n")[0] == f"Global tclass={qos.traffic_class}"
