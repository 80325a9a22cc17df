"""Lustre's client: LNet by lctl list_nids and lnet.conf's own text, mounts by findmnt."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.lustre import LustreMount
from tests.verify.cases import for_each
from tests.verify.test_rails import _address

CONF = "/etc/lnet.conf"
PARAMETERS = "/etc/railwright/lustre/parameters"
_IN_FILE = {"peer_credits_hiw": "peercredits_hiw"}


def _each_interface(node: Node) -> Iterator[tuple[str, str, str | None, str | None]]:
    """Network, interface and address, as far as the inventory alone tells them."""
    for net, network in node.lustre.networks.items():
        for interface in network.interfaces:
            yield f"{net}-{interface}", net, interface, None
        numbers = sorted(node.rails.nics) if network.rails == "all" else network.rails or ()
        for rail in numbers:
            name = node.rails.name.format(rail=rail) if node.rails.name else None
            address = _address(node, rail, node.rails.nics[rail])
            yield f"{net}-rail{rail}", net, name, str(address.ip) if address else None


def _each_tunable(node: Node) -> Iterator[tuple[str, str, str, int]]:
    for net, network in node.lustre.networks.items():
        for name, value in network.tunables.model_dump(exclude_none=True).items():
            yield f"{net}-{name}", net, name, value


def _each_lnet(node: Node) -> Iterator[tuple[str]]:
    if node.lustre.networks:
        yield ("lnet",)


def _each_mount(node: Node) -> Iterator[tuple[str, LustreMount]]:
    for where, mount in node.storage.mounts.items():
        if isinstance(mount, LustreMount):
            yield where, mount


def _each_parameter(node: Node) -> Iterator[tuple[str, int | str]]:
    yield from node.lustre.parameters.items()


def _each_version(node: Node) -> Iterator[tuple[str, str]]:
    if node.lustre.version is not None:
        yield "version", node.lustre.version


def _sections(host: Host) -> dict[str, str]:
    """The text of lnet.conf, network by network."""
    text = host.check_output(f"cat {CONF}")
    _, *parts = re.split(r"^ *- +net type: *", text, flags=re.MULTILINE)
    return {part.split("\n")[0].strip(): part for part in parts}


def _nids(host: Host) -> set[str]:
    return set(host.check_output("lctl list_nids").split())


@for_each(_each_interface)
def test_interface(
    host: Host,
    node: Node,
    case: tuple[str, str, str | None, str | None],
    owns_kernel: bool,
) -> None:
    _, net, name, address = case
    listed = re.findall(r"^ +0: *(\S+)$", _sections(host)[net], re.MULTILINE)
    if name is not None:
        assert listed.count(name) == 1
    if owns_kernel:
        if address is None:
            assert name is not None
            said = host.check_output(f"ip -4 -o addr show dev {name}")
            found = re.search(r" inet ([0-9.]+)/", said)
            assert found is not None
            address = found[1]
        assert f"{address}@{net}" in _nids(host)


@for_each(_each_tunable)
def test_tunable(
    host: Host, node: Node, case: tuple[str, str, str, int], owns_kernel: bool
) -> None:
    _, net, name, value = case
    key = _IN_FILE.get(name, name)
    interfaces = _sections(host)[net].count("- interfaces:")
    written = re.findall(rf"^ +{key}: *(-?\d+)$", _sections(host)[net], re.MULTILINE)
    assert written == [str(value)] * interfaces
    if owns_kernel:
        shown = host.check_output(f"lnetctl net show -v --net {net}")
        told = re.findall(rf"^ +{key}: *(-?\d+)$", shown, re.MULTILINE)
        assert told
        assert set(told) == {str(value)}


@for_each(_each_lnet)
def test_lnet(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    """It comes up at boot, from one file alone, and has no network that nobody asked for."""
    assert host.run("systemctl is-enabled lnet.service").stdout.strip() == "enabled"
    said = host.run("systemctl cat lnet.service").stdout
    started = re.findall(r"^ExecStart=(.*)$", said, re.MULTILINE)[-1].split()
    assert host.file(started[0]).mode & 0o777 == 0o755
    assert host.run(f"sh -n {started[0]}").rc == 0
    conditions = re.findall(r"^ConditionPathExists=(.*)$", said, re.MULTILINE)
    assert conditions[-1:] in ([], [""])
    lines = host.run("grep -rhE '^ *options +lnet +.*(networks|ip2nets)=' /etc/modprobe.d").stdout
    assert lines == ""
    if owns_kernel:
        assert host.run("systemctl is-active lnet.service").stdout.strip() == "active"
        assert {nid.partition("@")[2] for nid in _nids(host)} == set(node.lustre.networks)
        asked = list(_each_interface(node))
        assert len(_nids(host)) == len(asked)


@for_each(_each_mount)
def test_mount(host: Host, node: Node, case: tuple[str, LustreMount], owns_kernel: bool) -> None:
    where, mount = case
    unit = host.check_output(f"systemd-escape -p --suffix=mount {where}")
    assert host.run(f"systemctl is-enabled '{unit}'").stdout.strip() == "enabled"
    said = host.check_output(f"systemctl cat '{unit}'")
    options = re.findall(r"^Options=(.*)$", said, re.MULTILINE)[-1].split(",")
    assert {"nofail", "_netdev", mount.flock, *mount.options} <= set(options)
    assert re.search(r"^Requires=lnet\.service$", said, re.MULTILINE)
    device = ":".join(",".join(nids) for nids in mount.mgs)
    device += f":/{mount.fsname}{mount.subdirectory or ''}"
    assert re.findall(r"^What=(.*)$", said, re.MULTILINE)[-1] == device
    if owns_kernel:
        found = host.check_output(f"findmnt -n -o FSTYPE,SOURCE --mountpoint {where}").split()
        assert found == ["lustre", device]
        # What hangs there can be killed, and does not end by itself.
        assert host.run(f"timeout -s KILL 10 stat -f {where}").rc == 0


@for_each(_each_parameter)
def test_parameter(host: Host, node: Node, case: tuple[str, int | str], owns_kernel: bool) -> None:
    name, value = case
    assert f"{name}={value}" in host.check_output(f"cat {PARAMETERS}").splitlines()
    for where, _ in _each_mount(node):
        unit = host.check_output(f"systemd-escape -p --suffix=mount {where}")
        link = f"/etc/systemd/system/{unit}.wants/railwright-lustre.service"
        assert host.file(link).is_symlink
    if owns_kernel and not (value == 0 and name.endswith("lru_size")):
        shown = host.check_output(f"lctl get_param -n '{name}'").split("\n")
        for line in filter(None, shown):
            chosen = re.search(r"\[(\S+)\]", line)
            told = chosen[1] if chosen else line.rpartition(": ")[2]
            assert told == str(value) or float(told) == float(value)


@for_each(_each_version)
def test_version(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    if owns_kernel:
        for said in ("modinfo -F version lustre", "cat /sys/module/lustre/version"):
            found = host.check_output(said).strip()
            assert re.match(rf"{re.escape(case[1])}(?![0-9])", found)
