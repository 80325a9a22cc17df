"""Time: what chronyd was told, that it runs, and that the clock follows."""

import re
from collections.abc import Iterator
from ipaddress import ip_address

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.time import TimeSource
from tests.verify.cases import for_each

# After a boot chronyd takes some seconds to choose; what it has not chosen by then, it will not.
WAIT_S = 20


def _each_source(node: Node) -> Iterator[tuple[str, TimeSource]]:
    yield from node.time.sources.items()


def _each_node(node: Node) -> Iterator[tuple[str]]:
    if node.time.sources:
        yield ("chrony",)


def _same(one: str, other: str) -> bool:
    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return one.lower() == other.lower()


def _sources(host: Host) -> list[list[str]]:
    """The source directives that chronyd reads, the first that counts first."""
    path = "/etc/chrony/chrony.conf"
    text = host.file(path if host.file(path).exists else "/etc/chrony.conf").content_string
    text += host.run("cat /etc/chrony/conf.d/*.conf").stdout
    if re.search(r"^\s*sourcedir\b.*/etc/chrony/sources\.d\b", text, re.MULTILINE):
        text += host.run("cat /etc/chrony/sources.d/*.sources").stdout
    lines = (line.split() for line in text.splitlines())
    return [w for w in lines if len(w) > 1 and w[0] in ("server", "pool", "peer")]


@for_each(_each_source)
def test_time_source(
    host: Host, node: Node, case: tuple[str, TimeSource], owns_kernel: bool
) -> None:
    address, source = case
    lines = _sources(host)
    # chronyd takes the first line for an address and refuses the others.
    first = next((line for line in lines if _same(line[1], address)), None)
    assert first is not None, lines
    assert first[0] == ("pool" if source.pool else "server")
    port = first[first.index("port") + 1] if "port" in first else "123"
    assert port == str(source.port)
    assert ("iburst" in first, "prefer" in first) == (source.iburst, source.prefer), first
    if owns_kernel:
        listed = host.check_output("chronyc -N -c sources -a").splitlines()
        assert any(_same(line.split(",")[2], address) for line in listed), listed


@for_each(_each_node)
def test_time_service(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    found = {
        unit: host.run(f"systemctl is-enabled {unit}").stdout.strip()
        for unit in ("chrony.service", "chronyd.service")
    }
    assert "enabled" in found.values(), found
    assert "masked" not in found.values(), found
    if owns_kernel:
        unit = next(unit for unit, state in found.items() if state == "enabled")
        assert host.check_output(f"systemctl show -p ActiveState --value {unit}") == "active"


@for_each(_each_node)
def test_time_synchronised(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    most_s = node.time.max_offset_ms / 1000
    if not owns_kernel:
        # The clock is the container host's: it is as right as that one keeps it.
        assert host.run("command -v chronyd").rc == 0
        return
    host.run(f"chronyc -n waitsync {WAIT_S} {most_s} 0 1")
    fields = host.check_output("chronyc -n -c tracking").split(",")
    assert len(fields) == 14, fields
    reference, leap = fields[0], fields[13]
    assert reference.strip("0"), fields
    assert reference != "7F7F0101", "chronyd follows its own clock"
    assert leap in ("Normal", "Insert second", "Delete second")
    assert abs(float(fields[4])) <= most_s, fields
    for rival in ("systemd-timesyncd", "ntpsec", "openntpd"):
        assert host.run(f"systemctl is-active --quiet {rival}").rc != 0, rival
