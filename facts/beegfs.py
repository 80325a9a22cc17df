"""BeeGFS's client: its configuration, its kernel module, and what each mount tells of itself.

Configuration is read in base64, so that whatever is in its comments can be written back. What the
kernel tells under /proc/fs/beegfs asks no server; the tools that do have a section of their own.
"""

import base64
import binascii
import hashlib
import re
from typing import ClassVar

from facts.answers import parse_answers
from facts.beegfs_nodes import (
    ClientNodes,
    Kind,
    Offer,
    parse_listnodes,
    parse_node_list,
    parse_nodes,
)
from facts.dkms import Dkms, parse_dkms
from facts.probe import Section, SnapshotFact
from facts.units import Unit, read_units
from railwright.files import FileRecord
from railwright.model import Model
from railwright.snapshot import Snapshot, SnapshotError, parse_files

HELPERD = "beegfs-helperd.service"
CLIENT = "beegfs-client.service"
FORCED = "/var/lib/beegfs/client/force-auto-build"
"""Is there while beegfs-client.service has a build to make: after an installation, and after its
configuration has changed (beegfs-client.init, beegfs-client.postinst)."""
OURS = "/etc/railwright/beegfs"

FILES = Section(
    name="beegfs_files",
    for_storage=True,
    script=r"""
for file in /etc/beegfs/*.conf /etc/beegfs/*.mk; do
    meta "$file"
    [ -f "$file" ] && [ -r "$file" ] || continue
    printf '%s base64\n' "$N"
    base64 <"$file"
done
true
""",
)

STATE = Section(
    name="beegfs_state",
    for_storage=True,
    script=rf"""
files {OURS}/*
for path in /lib/modules/*/updates/dkms/beegfs.ko* /lib/modules/*/extra/beegfs.ko* \
    /lib/modules/*/extra/*/beegfs.ko* /lib/modules/*/kernel/fs/beegfs/beegfs.ko* \
    /lib/modules/*/updates/fs/beegfs*/beegfs.ko* \
    /lib/modules/*/build /usr/src/nvidia-fs-*/config-host.h /usr/src/nvidia-fs-*/nvfs-dma.h \
    {FORCED}; do
    meta "$path"
done
true
""",
)

MODULE = Section(
    name="beegfs_module",
    for_storage=True,
    script=r"""
for name in version srcversion; do
    first "/sys/module/beegfs/$name"
    [ "$first" = - ] || echo "loaded_$name=$first"
    found=$(modinfo -F "$name" beegfs 2>/dev/null) && echo "disk_$name=$found"
done
if command -v dkms >/dev/null; then
    told=$(dkms status -m beegfs 2>&1)
    echo "dkms_rc=$?"
    [ -z "$told" ] || printf '%s\n' "$told" | sed 's/^/dkms /'
fi
true
""",
)

UNITS = Section(name="beegfs_units", for_storage=True, script=f"units {HELPERD} {CLIENT}")

# The kernel answers by itself; a client that is stuck in its teardown may hold its locks.
PROC = Section(
    name="beegfs_proc",
    for_storage=True,
    deadline_s=5,
    script=r"""
for folder in /proc/fs/beegfs/*/; do
    [ -r "${folder}config" ] || continue
    folder=${folder%/}
    for name in config client_info mgmt_nodes meta_nodes storage_nodes; do
        answer "${folder##*/}" "$name" cat "$folder/$name"
    done
done
true
""",
)

# Servers are asked only where one that should be reached by RDMA is reached by TCP: why is then
# what they offer. The tools wait for servers that do not answer.
SERVERS = Section(
    name="beegfs_servers",
    for_storage=True,
    deadline_s=5,
    script=r"""
value() { sed -n "s/^$1 = //p" "$folder/config"; }
for folder in /proc/fs/beegfs/*/; do
    folder=${folder%/}
    grep -qs ' TCP: ' "$folder/meta_nodes" "$folder/storage_nodes" || continue
    id=${folder##*/}
    if command -v beegfs-ctl >/dev/null; then
        for kind in meta storage; do
            answer "$id" "$kind" timeout -s KILL 2 beegfs-ctl --cfgFile="$(value cfgFile)" \
                --listnodes --nodetype="$kind" --nicdetails
        done
    elif command -v beegfs >/dev/null; then
        set -- --mgmtd-addr "$(value sysMgmtdHost):$(value connMgmtdGrpcPort)" \
            --auth-file "$(value connAuthFile)"
        [ "$(value connDisableAuthentication)" = false ] || set -- "$@" --auth-disable
        [ -e /etc/beegfs/cert.pem ] || set -- "$@" --tls-disable
        answer "$id" list timeout -s KILL 4 beegfs "$@" node list --with-nics
    fi
done
true
""",
)

SECTIONS = (FILES, STATE, MODULE, UNITS, PROC, SERVERS)


class ConfFile(Model):
    """A file of /etc/beegfs; ``text`` is None where ``error`` says why it cannot be read.

    ``digest`` is the sha256 of its bytes; bytes that are no UTF-8 are kept as they are.
    """

    record: FileRecord
    text: str | None = None
    digest: str | None = None
    error: str | None = None

    @property
    def path(self) -> str:
        return self.record.path


def encoded(text: str) -> bytes:
    """The bytes of a text that was read by ``read_files``."""
    return text.encode("utf-8", "surrogateescape")


class BeegfsClient(Model):
    """One mount: what is in force there, its interfaces, and its servers.

    ``interfaces`` are those that servers are told of, ``rdma_interfaces`` those that it takes for
    RDMA: none where any will do. Both are None where the client does not tell.
    """

    id: str
    config: dict[str, str]
    nodes: ClientNodes
    interfaces: tuple[str, ...] | None = None
    rdma_interfaces: tuple[str, ...] | None = None


class BeegfsModule(Model):
    """The kernel module as it is loaded, and as it lies on disk for the running kernel."""

    loaded_version: str | None = None
    loaded_srcversion: str | None = None
    disk_version: str | None = None
    disk_srcversion: str | None = None
    dkms: Dkms

    @property
    def is_outdated(self) -> bool:
        """Whether another build is loaded than the one on disk."""
        loaded, disk = self.loaded_srcversion, self.disk_srcversion
        return loaded is not None and disk is not None and loaded != disk


class Beegfs(Model):
    """What the probe can tell without the inventory."""

    files: dict[str, ConfFile]
    module: BeegfsModule
    units: dict[str, Unit]
    clients: tuple[BeegfsClient, ...]


class BeegfsFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.beegfs.BeegfsFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Beegfs:
        return Beegfs(
            files=read_files(snapshot),
            module=read_module(snapshot),
            units=read_units(snapshot, UNITS.name),
            clients=read_clients(snapshot),
        )


def read_files(snapshot: Snapshot) -> dict[str, ConfFile]:
    """Section ``beegfs_files``, by path. Raises ValueError where the probe failed."""
    text, section, marker = snapshot.text(FILES.name), snapshot.section(FILES.name), snapshot.marker
    if section.rc != 0:
        raise SnapshotError(f"/etc/beegfs: {section.stderr or f'exit {section.rc}'}")
    found = {}
    for part in f"\n{text}".split(f"\n{marker} file ")[1:]:
        head, has_content, body = part.partition(f"{marker} base64\n")
        (record,) = parse_files(f"{marker} file {head.rstrip()}\n", marker)
        found[record.path] = _file(record, body if has_content else None)
    return found


def _file(record: FileRecord, body: str | None) -> ConfFile:
    if body is None:
        return ConfFile(record=record, error=f"expected a file that can be read, got {record.kind}")
    try:
        content = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"{record.path}: expected base64 of the probe, got {error}") from error
    return ConfFile(
        record=record,
        text=content.decode("utf-8", "surrogateescape"),
        digest=hashlib.sha256(content).hexdigest(),
    )


def read_module(snapshot: Snapshot) -> BeegfsModule:
    """Section ``beegfs_module``. Raises ValueError where dkms says what cannot be read."""
    facts = snapshot.facts(MODULE.name)
    told = [
        line.removeprefix("dkms ")
        for line in snapshot.text(MODULE.name).splitlines()
        if line.startswith("dkms ")
    ]
    dkms = Dkms(installed=False)
    if "dkms_rc" in facts:
        dkms = parse_dkms("\n".join(told), int(facts["dkms_rc"]))
    names = ("loaded_version", "loaded_srcversion", "disk_version", "disk_srcversion")
    return BeegfsModule.model_validate({"dkms": dkms, **{name: facts.get(name) for name in names}})


_CONFIG = re.compile(r"(\w+) =(?: (.*))?")


def parse_client_config(text: str) -> dict[str, str]:
    """Read /proc/fs/beegfs/ID/config. Raises ValueError for a line of another kind."""
    found = {}
    for line in filter(str.strip, text.splitlines()):
        row = _CONFIG.fullmatch(line.rstrip())
        if row is None:
            raise ValueError(f"expected KEY = VALUE of the client, got {line[:80]!r}")
        found[row[1]] = row[2] or ""
    return found


def parse_client_info(text: str) -> dict[str, tuple[str, ...]]:
    """Read /proc/fs/beegfs/ID/client_info: interfaces by the heading that they stand under."""
    found: dict[str, tuple[str, ...]] = {}
    heading = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("+ ") and heading is not None:
            name = line[2:].partition("[")[0]
            # One interface stands there once for each transport, and each of its addresses.
            known = found[heading]
            found[heading] = known if name in known else (*known, name)
        elif line.endswith(":"):
            heading = line.removesuffix(":")
            found[heading] = ()
        elif not line.startswith("ClientID: "):
            raise ValueError(f"expected interfaces of the client, got {line[:80]!r}")
    return found


_ANY = ("Any",)


def read_clients(snapshot: Snapshot) -> tuple[BeegfsClient, ...]:
    """Section ``beegfs_proc``. Raises ValueError where the client did not answer in time."""
    section = snapshot.section(PROC.name)
    if not section.complete:
        raise SnapshotError(f"/proc/fs/beegfs did not answer within {PROC.deadline_s} s")
    told: dict[str, dict[str, str]] = {}
    for answer in parse_answers(section.stdout, snapshot.marker):
        if answer.rc != 0:
            raise SnapshotError(f"/proc/fs/beegfs/{answer.port}/{answer.what}: {answer.text[:80]}")
        told.setdefault(answer.port, {})[answer.what] = answer.text
    return tuple(_client(name, files) for name, files in told.items())


def _client(name: str, files: dict[str, str]) -> BeegfsClient:
    info = parse_client_info(files.get("client_info", ""))
    rdma = info.get("Outbound RDMA Interfaces")
    return BeegfsClient(
        id=name,
        config=parse_client_config(files.get("config", "")),
        nodes=ClientNodes(
            management=parse_nodes(files.get("mgmt_nodes", "")),
            meta=parse_nodes(files.get("meta_nodes", "")),
            storage=parse_nodes(files.get("storage_nodes", "")),
        ),
        interfaces=info.get("Interfaces"),
        rdma_interfaces=() if rdma == _ANY else rdma,
    )


def read_offers(snapshot: Snapshot) -> dict[str, tuple[Offer, ...]]:
    """What servers offer, by the client's ID; none of those that did not answer, or not in time.

    It explains what the kernel tells, and decides nothing.
    """
    found: dict[str, tuple[Offer, ...]] = {}
    try:
        answers = parse_answers(snapshot.section(SERVERS.name).stdout, snapshot.marker)
    except ValueError:
        return {}
    for answer in answers:
        try:
            if answer.what == "list":
                offers = parse_node_list(answer.text, answer.rc)
            else:
                kind: Kind = "meta" if answer.what == "meta" else "storage"
                offers = parse_listnodes(answer.text, answer.rc, kind)
        except ValueError:
            continue
        found[answer.port] = (*found.get(answer.port, ()), *offers)
    return found
