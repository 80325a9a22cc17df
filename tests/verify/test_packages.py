"""Drivers' packages and their repositories, as dpkg, apt, rpm and dnf have them."""

import base64
import hashlib
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.repositories import Repository
from tests.verify.cases import for_each


def _each_package(node: Node) -> Iterator[tuple[str, str]]:
    for _, spec in node.drivers.packaged():
        yield from spec.packages.items()


def _each_repository(node: Node) -> Iterator[tuple[str, Repository]]:
    yield from node.drivers.repositories.items()


def _each_pin(node: Node) -> Iterator[tuple[str, str, Repository]]:
    yield from (
        (f"{name}-{package}", package, repository)
        for name, repository in node.drivers.repositories.items()
        for package in repository.never
    )


def _has_dpkg(host: Host) -> bool:
    return host.file("/var/lib/dpkg/status").exists


@for_each(_each_package)
def test_package(host: Host, node: Node, case: tuple[str, str]) -> None:
    name, version = case
    if _has_dpkg(host):
        form = "${db:Status-Abbrev}\\t${Version}\\n"
        rows = host.check_output("dpkg-query -W -f %s %s", form, name).splitlines()
        found = {tuple(row.split("\t")) for row in rows}
        # Held, installed, and nothing left to do.
        assert found == {("hi ", version)}, found
        return
    form = "%%{EPOCHNUM}:%%{VERSION}-%%{RELEASE}\\n"
    # One version: two are there where rpm ended in the middle.
    assert host.check_output(f"rpm -q --qf '{form}' %s", name).split() == [_with_epoch(version)]


def _with_epoch(version: str) -> str:
    return version if ":" in version else f"0:{version}"


@for_each(_each_package)
def test_package_has_no_rival(host: Host, node: Node, case: tuple[str, str]) -> None:
    name, version = case
    # An upgrade of everything, only told: the driver stays.
    if not _has_dpkg(host):
        locks = host.file("/etc/dnf/plugins/versionlock.list").content_string.split()
        assert f"{name}-{_with_epoch(version)}.*" in locks
        told = host.run("dnf -C --assumeno upgrade").stdout.splitlines()
        assert not [line for line in told if line.startswith(f" {name} ")]
        return
    told = host.run("apt-get -s -qq -o Debug::NoLocking=1 dist-upgrade").stdout.splitlines()
    assert not [line for line in told if line.startswith((f"Inst {name} ", f"Remv {name} "))]


@for_each(_each_repository)
def test_repository_key(host: Host, node: Node, case: tuple[str, Repository]) -> None:
    name, repository = case
    if repository.kind == "apt":
        path = f"/etc/apt/keyrings/railwright-{name}.asc"
        source = host.file(f"/etc/apt/sources.list.d/railwright-{name}.sources")
        fields = dict(
            line.split(": ", 1) for line in source.content_string.splitlines() if ": " in line
        )
        assert (fields["URIs"], fields["Signed-By"]) == (repository.url, path)
        assert fields["Suites"] == repository.suite
    else:
        path = f"/etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-{name}"
        lines = host.file(f"/etc/yum.repos.d/railwright-{name}.repo").content_string.splitlines()
        assert {f"baseurl={repository.url}", "gpgcheck=1", f"gpgkey=file://{path}"} <= set(lines)
    file = host.file(path)
    assert (file.user, file.mode) == ("root", 0o644)
    assert _fingerprint(file.content_string) == repository.fingerprint


def _fingerprint(armoured: str) -> str:
    """That of the first key in it (OpenPGP version 4), which is one of less than 8 KiB."""
    lines = armoured.split("\n\n", 1)[1].splitlines()
    text = "".join(line for line in lines if line[:1] not in "=-")
    data = base64.b64decode(text)
    short, two = data[1], int.from_bytes(data[1:3], "big")
    start, size = {
        0x98: (2, short),
        0x99: (3, two),
        0xC6: (2, short) if short < 192 else (3, two - (192 << 8) + 192),
    }[data[0]]
    body = data[start : start + size]
    assert body[0] == 4
    return hashlib.sha1(b"\x99" + size.to_bytes(2, "big") + body).hexdigest().upper()


def _as_apt_has_it(repository: Repository) -> str:
    return repository.url.rstrip("/").replace("file:///", "file:/")


@for_each(_each_repository)
def test_repository_is_known(host: Host, node: Node, case: tuple[str, Repository]) -> None:
    name, repository = case
    if repository.kind == "apt":
        # apt took the index, and has found it signed by the source's own key.
        indexes = host.check_output("apt-get indextargets --format %s", "$(REPO_URI) $(TRUSTED)")
        assert f"{_as_apt_has_it(repository)}/ yes" in indexes.splitlines()
    else:
        assert f"railwright-{name}" in host.check_output("dnf -q -C repolist --enabled")


@for_each(_each_pin)
def test_repository_is_not_used_for(
    host: Host, node: Node, case: tuple[str, str, Repository]
) -> None:
    _, package, repository = case
    if repository.kind == "dnf":
        return
    policy = host.check_output("apt-cache policy %s", package).splitlines()
    at = [n for n, line in enumerate(policy) if _as_apt_has_it(repository) in line]
    # The line before a place is the version with its priority, which is never above that pin.
    assert all(policy[n - 1].split()[-1] == "-1" for n in at), policy
