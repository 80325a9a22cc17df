"""NVMe over Fabrics: connections as the kernel shows them, the file system, and where it lies."""

import json
import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.nvmeof import NvmeofVolume
from tests.verify.cases import for_each
from tests.verify.test_rails import _address
from tests.verify.units import assert_unit


def _volumes(node: Node) -> Iterator[tuple[str, NvmeofVolume]]:
    for where, mount in node.storage.mounts.items():
        if isinstance(mount, NvmeofVolume):
            yield where, mount


def _each_portal(node: Node) -> Iterator[tuple[str, NvmeofVolume, int]]:
    for where, volume in _volumes(node):
        for number, portal in enumerate(volume.portals):
            yield f"{where}-{portal.address}", volume, number


def _each_host(node: Node) -> Iterator[tuple[str]]:
    if any(_volumes(node)):
        yield ("identity",)


def _unit(where: str) -> str:
    return f"railwright-nvmeof-{where[1:].replace('/', ':')}.service"


def _read(host: Host, path: str) -> str:
    return str(host.run("cat %s", path).stdout).strip()


def _controllers(host: Host, nqn: str) -> list[str]:
    """The folders of a subsystem's controllers in sysfs, without those on PCI."""
    found = host.run("grep -lxF -- %s /sys/class/nvme/*/subsysnqn", nqn).stdout.split()
    folders = [path.removesuffix("/subsysnqn") for path in found]
    return [folder for folder in folders if _read(host, f"{folder}/transport") != "pcie"]


@for_each(_volumes)
def test_unit(host: Host, node: Node, case: tuple[str, NvmeofVolume], owns_kernel: bool) -> None:
    """It starts at boot, connects what is asked for, and the boot does not wait for it."""
    where, volume = case
    assert_unit(host, _unit(where), owns_kernel)
    text = host.check_output("systemctl cat %s", _unit(where))
    assert not re.search(r"^(Before|RequiredBy)=|Type=oneshot", text, re.M)
    data = _read(host, f"/etc/railwright/nvmeof/{where[1:].replace('/', ':')}.conf").splitlines()
    assert f"nqn {volume.nqn}" in data
    assert f"transport {volume.transport}" in data
    portals = [line.split()[1:] for line in data if line.startswith("portal ")]
    expected = []
    for portal in volume.portals:
        address = None
        if portal.rail is not None:
            address = _address(node, portal.rail, node.rails.nics[portal.rail])
        expected.append(
            [str(portal.address), str(portal.port), str(address.ip) if address else "-"]
        )
    assert portals == expected


@for_each(_each_portal)
def test_path(
    host: Host, node: Node, case: tuple[str, NvmeofVolume, int], owns_kernel: bool
) -> None:
    if not owns_kernel:
        return
    _, volume, number = case
    portal = volume.portals[number]
    words = {f"traddr={portal.address}", f"trsvcid={portal.port}"}
    if portal.rail is not None:
        address = _address(node, portal.rail, node.rails.nics[portal.rail])
        assert address is not None
        words.add(f"host_traddr={address.ip}")
    folders = [
        folder
        for folder in _controllers(host, volume.nqn)
        if words <= set(_read(host, f"{folder}/address").split(","))
    ]
    assert len(folders) == 1
    (folder,) = folders
    assert _read(host, f"{folder}/state") == "live"
    assert _read(host, f"{folder}/transport") == volume.transport
    assert _read(host, f"{folder}/hostnqn") == _read(host, "/etc/nvme/hostnqn")
    assert _read(host, f"{folder}/hostid") == _read(host, "/etc/nvme/hostid").lower()
    assert _read(host, f"{folder}/reconnect_delay") == str(volume.reconnect_delay_s)
    loss = _read(host, f"{folder}/ctrl_loss_tmo")
    if volume.ctrl_loss_s == "never":
        assert loss == "off"
    else:
        assert 0 <= int(loss) - volume.ctrl_loss_s < volume.reconnect_delay_s
    if volume.keep_alive_s is not None:
        assert _read(host, f"{folder}/kato") == str(volume.keep_alive_s)
    if volume.io_queues is not None:
        processors = int(host.check_output("getconf _NPROCESSORS_ONLN"))
        queues = int(_read(host, f"{folder}/queue_count")) - 1
        assert queues == min(volume.io_queues, processors)


@for_each(_volumes)
def test_mount(host: Host, node: Node, case: tuple[str, NvmeofVolume], owns_kernel: bool) -> None:
    """What is mounted is the namespace asked for, by what the kernel and blkid tell of it."""
    where, volume = case
    unit = host.check_output("systemd-escape -p --suffix=mount %s", where)
    assert host.run("systemctl is-enabled %s", unit).stdout.strip() == "enabled"
    options = re.search(r"^Options=(.*)$", _read(host, f"/etc/systemd/system/{unit}"), re.M)
    assert options is not None
    assert {"nofail", "_netdev"} <= set(options[1].split(","))
    if not owns_kernel:
        return
    (found,) = json.loads(host.check_output("findmnt -J --mountpoint %s", where))["filesystems"]
    assert found["fstype"] == volume.filesystem
    device = found["source"].removeprefix("/dev/")
    assert _read(host, f"/sys/class/block/{device}/device/subsysnqn") == volume.nqn
    given = volume.namespace.model_dump(exclude_none=True)
    attribute = {"eui64": "eui"}
    for kind, value in given.items():
        shown = _read(host, f"/sys/class/block/{device}/{attribute.get(kind, kind)}")
        assert re.sub(r"[\s-]", "", shown) == str(value).replace("-", "")
    told = host.check_output("blkid -p -o value -s TYPE %s", f"/dev/{device}")
    assert told == volume.filesystem
    assert host.run("timeout 10 stat -f %s", where).rc == 0


@for_each(_volumes)
def test_keys(host: Host, node: Node, case: tuple[str, NvmeofVolume], owns_kernel: bool) -> None:
    """Keys are root's alone, and there where one is asked for."""
    where, volume = case
    file = host.file(f"/etc/railwright/nvmeof/{where[1:].replace('/', ':')}.keys")
    assert file.exists == (volume.host_key is not None)
    if volume.host_key is not None:
        assert (file.user, file.mode & 0o777) == ("root", 0o600)
        lines = file.content_string.splitlines()
        assert [line.partition("=")[0] for line in lines] == [
            "dhchap_secret",
            *(["dhchap_ctrl_secret"] if volume.controller_key else []),
        ]
        for folder in _controllers(host, volume.nqn) if owns_kernel else []:
            assert host.file(f"{folder}/dhchap_secret").mode & 0o777 == 0o600


@for_each(_each_host)
def test_identity(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    spec = node.nvmeof
    for path, wanted, form in (
        ("/etc/nvme/hostnqn", spec.host_nqn, r"nqn\.\d{4}-\d{2}\.\S+"),
        ("/etc/nvme/hostid", spec.host_id, r"[0-9a-fA-F-]{36}"),
    ):
        if wanted is not None:
            assert _read(host, path) == wanted
        elif owns_kernel:
            assert re.fullmatch(form, _read(host, path))
    if not owns_kernel:
        return
    if spec.multipath is not None:
        shown = _read(host, "/sys/module/nvme_core/parameters/multipath")
        assert shown == ("Y" if spec.multipath else "N")
    if spec.iopolicy is not None and spec.multipath is not False:
        for _, volume in _volumes(node):
            paths = host.run(
                "grep -lxF -- %s /sys/class/nvme-subsystem/*/subsysnqn", volume.nqn
            ).stdout.split()
            assert paths
            for path in paths:
                policy = _read(host, path.removesuffix("subsysnqn") + "iopolicy")
                assert policy == spec.iopolicy
