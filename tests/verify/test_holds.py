"""Holds, read from dpkg and apt (rpm and dnf's versionlock on RHEL)."""

import json
import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each


def _each_package(node: Node) -> Iterator[tuple[str, str | None]]:
    yield from node.holds.packages.items()


def _has_dpkg(host: Host) -> bool:
    return host.file("/var/lib/dpkg/status").exists


def _versions(host: Host, name: str) -> set[str]:
    """The installed version, in each architecture; none where it is not installed."""
    if _has_dpkg(host):
        form = "${db:Status-Abbrev}\\t${Version}\\n"
        lines = host.run("dpkg-query -W -f %s %s", form, name).stdout.splitlines()
        return {line.split("\t")[1] for line in lines if line[1:2] == "i"}
    asked = host.run("rpm -q --qf '%%{EPOCHNUM}:%%{VERSION}-%%{RELEASE}\\n' %s", name)
    return set(asked.stdout.split()) if asked.rc == 0 else set()


def _same(one: str, other: str) -> bool:
    return one.removeprefix("0:") == other.removeprefix("0:")


@for_each(_each_package)
def test_hold(host: Host, node: Node, case: tuple[str, str | None]) -> None:
    name, _ = case
    if _has_dpkg(host):
        held = {package.partition(":")[0] for package in _words(host, "apt-mark showhold")}
    else:
        locks = host.file("/etc/dnf/plugins/versionlock.list").content_string
        held = {name} if re.search(rf"^{re.escape(name)}-", locks, re.MULTILINE) else set()
    # What is not installed cannot be held.
    assert name in held or not _versions(host, name), held


@for_each(_each_package)
def test_hold_version(host: Host, node: Node, case: tuple[str, str | None]) -> None:
    name, wanted = case
    ledger = host.file("/var/lib/railwright/ledger.json")
    if wanted is None and ledger.exists:
        wanted = json.loads(ledger.content_string)["held"].get(name)
    found = _versions(host, name)
    assert all(wanted is None or _same(one, wanted) for one in found), (wanted, found)


@for_each(_each_package)
def test_hold_from_unattended_upgrades(
    host: Host, node: Node, case: tuple[str, str | None]
) -> None:
    name, _ = case
    if not _has_dpkg(host):
        conf = host.file("/etc/dnf/plugins/versionlock.conf").content_string
        assert re.search(r"^enabled\s*=\s*(1|true)", conf, re.MULTILINE)
        return
    dump = host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    entries = re.findall(r'::Package-Blacklist:: "(.*)";', dump)
    assert any(re.match(entry, name) for entry in entries), entries


def _words(host: Host, command: str) -> list[str]:
    return str(host.check_output(command)).split()
