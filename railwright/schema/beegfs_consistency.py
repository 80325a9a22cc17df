"""What BeeGFS's client, its mounts, the rails and the drivers of a node say of each other."""

import re
from collections.abc import Iterator, Mapping

from railwright.schema.base import Finding
from railwright.schema.beegfs import BeegfsMount, BeegfsSpec
from railwright.schema.beegfs_keys import KEYS, Major, majors_of
from railwright.schema.drivers import DriverSet
from railwright.schema.rails import RailsSpec

_OFED = ("doca_ofed", "mlnx_ofed")
_CLIENTS = {"dkms": "beegfs-client-dkms", "autobuild": "beegfs-client"}
HELPER = "beegfs-helperd"
_MAJOR = re.compile(r"(?:[0-9]+:)?([0-9]+)\.")


def beegfs_findings(
    beegfs: BeegfsSpec,
    mounts: Mapping[str, BeegfsMount],
    rails: RailsSpec,
    drivers: DriverSet,
) -> list[Finding]:
    """``mounts`` are those of storage.mounts that are BeeGFS, by their directory."""
    found = [*_package_findings(beegfs), *_build_findings(beegfs, mounts, drivers)]
    if mounts and beegfs.major is None:
        first = next(iter(mounts))
        expected = f"7 or 8: storage.mounts {first} is a BeeGFS"
        found.append(Finding(("beegfs", "major"), None, expected))
    for where, mount in mounts.items():
        path = ("storage", "mounts", where)
        found += _rdma_findings(path, mount, rails)
        found += _gds_findings(path, mount, beegfs, drivers)
        if beegfs.major is not None:
            found += _major_findings(path, mount, beegfs.major)
    found += _several(mounts, beegfs.major)
    return found


def _package_findings(beegfs: BeegfsSpec) -> Iterator[Finding]:
    given = beegfs.packages
    if beegfs.major is None or not given:
        return
    for name, version in given.items():
        major = _MAJOR.match(version)
        if name.startswith(("beegfs-", "libbeegfs-")) and major and int(major[1]) != beegfs.major:
            expected = f"a version of {beegfs.major}, as beegfs.major says"
            yield Finding(("beegfs", "packages", name), version, expected)
    wanted, other = _CLIENTS[beegfs.build], set(_CLIENTS.values()) - {_CLIENTS[beegfs.build]}
    for name in other & given.keys():
        expected = f"{wanted}: beegfs.build is {beegfs.build}, and the two exclude each other"
        yield Finding(("beegfs", "packages", name), given[name], expected)
    if not given.keys() & _CLIENTS.values():
        names = ", ".join(given)
        yield Finding(("beegfs", "packages"), names, f"{wanted} among them")
    if beegfs.major == 7 and HELPER not in given:
        expected = f"{HELPER} among them: the client of 7 resolves names and logs by it"
        yield Finding(("beegfs", "packages"), ", ".join(given), expected)
    if beegfs.major == 8 and HELPER in given:
        yield Finding(("beegfs", "packages", HELPER), given[HELPER], "none: 8 has no such daemon")


def _build_findings(
    beegfs: BeegfsSpec, mounts: Mapping[str, BeegfsMount], drivers: DriverSet
) -> Iterator[Finding]:
    kind = drivers.ofed.kind
    path = ("beegfs", "ofed_headers")
    if beegfs.ofed_headers and kind == "inbox":
        yield Finding(path, True, "false: ofed.kind is inbox")
    rdma = any(mount.rdma for mount in mounts.values())
    if rdma and beegfs.ofed_headers is not True and kind in _OFED:
        expected = (
            f"true: ofed.kind is {kind}, whose modules refuse one that is built against "
            "the kernel's own headers (ThinkParQ/beegfs#64)"
        )
        yield Finding(path, beegfs.ofed_headers, expected)
    if not beegfs.gds:
        if beegfs.nvidia_source is not None:
            yield Finding(("beegfs", "nvidia_source"), beegfs.nvidia_source, "beegfs.gds beside it")
        return
    if drivers.gds.version is None:
        yield Finding(("beegfs", "gds"), True, "gds.version beside it: nvidia-fs' sources")
    if drivers.gpu_driver.version is None and beegfs.nvidia_source is None:
        yield Finding(("beegfs", "gds"), True, "gpu_driver.version or nvidia_source beside it")
    if not beegfs.ofed_headers:
        # Comments of beegfs-client-autobuild.conf on GPUDirect Storage.
        yield Finding(("beegfs", "gds"), True, "ofed_headers beside it")


def _rdma_findings(
    path: tuple[str, ...], mount: BeegfsMount, rails: RailsSpec
) -> Iterator[Finding]:
    if mount.rdma:
        if not rails.nics:
            yield Finding((*path, "rdma"), True, "rails.nics: there is no NIC for it")
        elif mount.rails is None:
            expected = "all, or the numbers of rails: without, RDMA takes any interface"
            yield Finding((*path, "rails"), None, expected)
    if isinstance(mount.rails, tuple):
        if not mount.rails:
            yield Finding((*path, "rails"), (), "one at least")
        for number in mount.rails:
            if number not in rails.nics:
                yield Finding((*path, "rails"), number, "a rail of rails.nics")
    elif mount.rails == "all" and not rails.nics:
        yield Finding((*path, "rails"), "all", "rails.nics: the node has no rails")
    if mount.tcp_fallback is False and mount.rdma is not True:
        yield Finding((*path, "tcp_fallback"), False, "rdma true beside it")


def _gds_findings(
    path: tuple[str, ...], mount: BeegfsMount, beegfs: BeegfsSpec, drivers: DriverSet
) -> Iterator[Finding]:
    if mount.rdma_key_type == "register" and (beegfs.gds or drivers.gds.mode is not None):
        field = "beegfs.gds" if beegfs.gds else "gds.mode"
        expected = f"global or dma: register does not go together with {field}"
        yield Finding((*path, "rdma_key_type"), "register", expected)


def _major_findings(path: tuple[str, ...], mount: BeegfsMount, major: Major) -> Iterator[Finding]:
    for key, value in mount.other.items():
        if key not in KEYS[major]:
            has = " and ".join(map(str, majors_of(key)))
            does = "refuses to mount" if major == 7 else "passes it over"
            expected = f"a key of {major}: {key} is one of {has}, and {major} {does}"
            yield Finding((*path, "other", key), value, expected)
    if major == 7 and mount.tls_certificate is not None:
        expected = "none: the tools of 7 have no TLS"
        yield Finding((*path, "tls_certificate"), str(mount.tls_certificate), expected)
    if major == 7 and ":" in mount.management:
        expected = "a name or an IPv4 address: 7 has no IPv6"
        yield Finding((*path, "management"), mount.management, expected)


def _several(mounts: Mapping[str, BeegfsMount], major: Major | None) -> Iterator[Finding]:
    """Mounts of one node that get into each other's way."""
    first: dict[tuple[str, object], str] = {}
    for where, mount in mounts.items():
        path = ("storage", "mounts", where)
        for field in ("config", "client_port"):
            value = getattr(mount, field)
            other = first.setdefault((field, value), where)
            if other != where:
                yield Finding((*path, field), value, f"another one than {other} has")
    certificates = {m.tls_certificate for m in mounts.values() if m.tls_certificate is not None}
    if len(certificates) > 1:
        where = list(mounts)[-1]
        expected = "the one of all mounts: the tools have one certificate"
        yield Finding(("storage", "mounts", where, "tls_certificate"), "another", expected)
    if major == 7 and len({mount.auth for mount in mounts.values()}) > 1:
        # connAuthFile of beegfs-helperd.conf is one for all clients of the node.
        where = list(mounts)[-1]
        expected = f"the one of all mounts: their {HELPER} has one secret"
        yield Finding(("storage", "mounts", where, "auth"), "another", expected)
