"""BeeGFS: its files as the client reads them, its units, and what the kernel has in force."""

import re
from collections.abc import Iterator
from typing import Any

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each

BUILD = {
    "dkms": "/etc/beegfs/beegfs-client-build.mk",
    "autobuild": "/etc/beegfs/beegfs-client-autobuild.conf",
}
NAMES = {
    "rdma": "connUseRDMA",
    "tcp_fallback": "connTCPFallbackEnabled",
    "rdma_buf_num": "connRDMABufNum",
    "rdma_buf_size": "connRDMABufSize",
    "rdma_fragment_size": "connRDMAFragmentSize",
    "rdma_key_type": "connRDMAKeyType",
    "rdma_type_of_service": "connRDMATypeOfService",
    "max_internode_num": "connMaxInternodeNum",
    "file_cache_type": "tuneFileCacheType",
}


def _mounts(node: Node) -> dict[str, Any]:
    return {where: m for where, m in node.storage.mounts.items() if m.kind == "beegfs"}


def _word(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _each_key(node: Node) -> Iterator[tuple[str, Any, str, str]]:
    for where, mount in _mounts(node).items():
        ports = {
            7: ("connMgmtdPortUDP", "connMgmtdPortTCP", "connClientPortUDP"),
            8: ("connMgmtdPort", "connMgmtdPort", "connClientPort"),
        }[node.beegfs.major or 8]
        values = (mount.management_port, mount.management_port, mount.client_port)
        keys = dict(zip(ports, map(str, values), strict=True))
        keys["sysMgmtdHost"] = mount.management
        keys["connDisableAuthentication"] = _word(mount.auth == "disabled")
        for field, name in NAMES.items():
            if getattr(mount, field) is not None:
                keys[name] = _word(getattr(mount, field))
        keys |= {name: _word(value) for name, value in mount.other.items()}
        for name, value in keys.items():
            yield f"{where} {name}", mount, name, value


def _each_mount(node: Node) -> Iterator[tuple[str, Any]]:
    yield from _mounts(node).items()


def _each_list(node: Node) -> Iterator[tuple[str, Any, str, list[str]]]:
    for where, mount in _mounts(node).items():
        numbers = node.rails.nics if mount.rails == "all" else mount.rails or ()
        if node.rails.name is None:
            continue
        names = [node.rails.name.format(rail=number) for number in sorted(numbers)]
        if names and mount.rdma is not False:
            yield f"{where} RDMA", mount, "connRDMAInterfacesFile", names
        if names or mount.interfaces:
            told = [*names, *(name for name in mount.interfaces if name not in names)]
            yield f"{where} told", mount, "connInterfacesFile", told


def _each_build(node: Node) -> Iterator[tuple[str, str | None]]:
    beegfs = node.beegfs
    if _mounts(node) and beegfs.ofed_headers is not None:
        path = "/usr/src/ofa_kernel/default/include" if beegfs.ofed_headers else None
        yield "OFED_INCLUDE_PATH", path
    if _mounts(node) and beegfs.gds:
        yield "NVFS_INCLUDE_PATH", f"/usr/src/nvidia-fs-{node.gds.version}"


def _each_service(node: Node) -> Iterator[tuple[str]]:
    if _mounts(node) and node.beegfs.major == 7:
        yield ("beegfs-helperd.service",)
    if _mounts(node) and node.beegfs.build == "autobuild":
        yield ("beegfs-client.service",)


def _conf(host: Host, path: str) -> dict[str, list[str]]:
    """Keys with all their values; the kernel passes over a last line that does not end."""
    found: dict[str, list[str]] = {}
    for line in host.check_output(f"cat {path}; echo x").split("\n")[:-1]:
        if "=" in line and not line.strip().startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key.strip(), []).append(value.strip())
    return found


def _in_force(host: Host, config: str) -> dict[str, str]:
    """What the client that was mounted with ``config`` shows."""
    for path in host.run("ls -d /proc/fs/beegfs/*/config").stdout.split():
        lines = host.check_output(f"cat {path}").splitlines()
        told = {key.strip(): value.strip() for key, _, value in (x.partition("=") for x in lines)}
        if told.get("cfgFile") == config:
            return told
    raise AssertionError(f"no client has {config}")


@for_each(_each_key)
def test_key(host: Host, node: Node, case: tuple[str, Any, str, str], owns_kernel: bool) -> None:
    _, mount, name, value = case
    assert _conf(host, mount.config).get(name) == [value]
    if owns_kernel and name != "sysMgmtdHost":
        shown = _in_force(host, mount.config).get(name)
        words = {"true": ("1", "true"), "false": ("0", "false")}.get(value, (value,))
        assert shown is None or shown in words or value in ("page", "none", "default")


@for_each(_each_mount)
def test_authentication(host: Host, node: Node, case: tuple[str, Any]) -> None:
    mount = case[1]
    found = _conf(host, mount.config)
    if mount.auth == "disabled":
        assert found["connAuthFile"] == [""]
        return
    file = host.file(found["connAuthFile"][0])
    assert (file.user, file.group, file.mode & 0o777) == ("root", "root", 0o400)
    assert file.size >= 4
    if node.beegfs.major == 7:
        helper = _conf(host, "/etc/beegfs/beegfs-helperd.conf")
        assert helper["connAuthFile"] == found["connAuthFile"]


@for_each(_each_mount)
def test_ports_have_no_name_of_the_other_major(
    host: Host, node: Node, case: tuple[str, Any]
) -> None:
    gone = {7: ("connMgmtdPort", "connClientPort")}.get(
        node.beegfs.major or 8, ("connMgmtdPortUDP", "connMgmtdPortTCP", "connClientPortUDP")
    )
    found = _conf(host, case[1].config)
    assert [name for name in gone if name in found] == []


@for_each(_each_list)
def test_interfaces(host: Host, node: Node, case: tuple[str, Any, str, list[str]]) -> None:
    _, mount, key, names = case
    (path,) = _conf(host, mount.config)[key]
    lines = host.check_output(f"cat {path}").splitlines()
    assert [line for line in lines if not line.startswith("#")] == names


@for_each(_each_build)
def test_what_it_is_built_against(host: Host, node: Node, case: tuple[str, str | None]) -> None:
    name, value = case
    lines = host.check_output(f"cat {BUILD[node.beegfs.build]}").splitlines()
    told = [line for line in lines if not line.lstrip().startswith("#")]
    found = re.findall(rf"\b{name}=(\S+)", "\n".join(told))
    assert found == ([] if value is None else [value])


@for_each(_each_service)
def test_service(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    assert host.run(f"systemctl is-enabled {case[0]}").stdout.strip() == "enabled"
    if owns_kernel:
        assert host.run(f"systemctl is-active {case[0]}").stdout.strip() == "active"


@for_each(_each_mount)
def test_mount(host: Host, node: Node, case: tuple[str, Any], owns_kernel: bool) -> None:
    where, mount = case
    unit = host.check_output(f"systemd-escape -p --suffix=mount {where}").strip()
    assert host.run(f"systemctl is-enabled {unit}").stdout.strip() == "enabled"
    text = host.check_output(f"cat /etc/systemd/system/{unit}")
    assert re.search(r"^Type=beegfs$", text, re.M)
    options = re.search(r"^Options=(.*)$", text, re.M)
    assert options is not None
    assert {f"cfgFile={mount.config}", "_netdev", "nofail"} <= set(options[1].split(","))
    if node.beegfs.build == "autobuild":
        rows = host.check_output("cat /etc/beegfs/beegfs-mounts.conf").splitlines()
        assert not any(row.split()[:1] == [where] for row in rows)
    if owns_kernel:
        rows = host.check_output("cat /proc/self/mounts").splitlines()
        shown = [row.split() for row in rows if row.split()[1] == where]
        assert [row[2] for row in shown] == ["beegfs"]
        assert f"cfgFile={mount.config}" in shown[0][3].split(",")
        assert host.run(f"timeout -s KILL 10 stat -f {where}").rc == 0


@for_each(_each_mount)
def test_no_server_is_reached_by_tcp_in_place_of_rdma(
    host: Host, node: Node, case: tuple[str, Any], owns_kernel: bool
) -> None:
    mount = case[1]
    if not (owns_kernel and mount.rdma) or "connTcpOnlyFilterFile" in mount.other:
        return
    folders = host.run("grep -l '' /proc/fs/beegfs/*/config").stdout.split()
    for path in folders:
        if f"cfgFile = {mount.config}" not in host.check_output(f"cat {path}").splitlines():
            continue
        folder = path.removesuffix("/config")
        told = host.check_output(f"cat {folder}/meta_nodes {folder}/storage_nodes")
        assert "TCP:" not in told
        assert "fallback" not in told
