"""NVMe over Fabrics on a node: host identity, controllers, subsystems, namespaces, and our files.

By sysfs, which is the same for all releases of nvme-cli. Nothing here touches a namespace: IO on
one whose target is away waits for as long as the target does. What a namespace holds is what udev
has noted of it.
"""

import re
from typing import ClassVar

from pydantic import Field

from facts.nvme_cli import fields_of
from facts.probe import Section, SnapshotFact
from railwright.files import FileRecord
from railwright.model import Model
from railwright.snapshot import Snapshot

FOLDER = "/etc/railwright/nvmeof"
SCRIPT_PATH = "/usr/local/sbin/railwright-nvmeof"
RULES_PATH = "/etc/udev/rules.d/90-railwright-nvmeof.rules"
UNIT_PREFIX = "railwright-nvmeof-"
HOSTNQN, HOSTID = "/etc/nvme/hostnqn", "/etc/nvme/hostid"
LINKS = "/dev/railwright"
NOTES = "/run/railwright/nvmeof"
"""A file for each controller that our script connected: its inode in sysfs, which no later one of
the same name has, and the options that it was given."""
AUTOCONNECT = "nvmf-autoconnect.service"

# Keys are in files of their own, of which no more is read than that they are there.
FILES = Section(
    name="nvmeof_files",
    for_storage=True,
    script=f"""
files {HOSTNQN} {HOSTID} {SCRIPT_PATH} {RULES_PATH}
for path in {FOLDER}/*.conf /etc/systemd/system/{UNIT_PREFIX}*.service; do
    [ ! -e "$path" ] || files "$path"
done
for path in {FOLDER}/*.keys /etc/systemd/system/*.wants/{UNIT_PREFIX}*.service; do
    meta "$path"
done
true
""",
)

UNITS = Section(
    name="nvmeof_units",
    for_storage=True,
    script=f"""
set -- {AUTOCONNECT}
for path in /etc/systemd/system/{UNIT_PREFIX}*.service; do
    [ ! -e "$path" ] || set -- "$@" "${{path##*/}}"
done
units "$@"
""",
)

# The values of a NQN may have blanks, hence tabs. Of /dev/nvme-fabrics the kernel lists the options
# that it knows (Linux 5.17); opening it where it is not there yet would load a module.
SYSFS = Section(
    name="nvmeof_sysfs",
    for_storage=True,
    deadline_s=8,
    script=rf"""
tab=$(printf '\t')
row() {{ line=$1; shift; for file in "$@"; do first "$file"; line="$line$tab$first"; done; }}
said=
for dir in /sys/class/nvme/nvme*; do
    [ -e "$dir/transport" ] || continue
    first "$dir/transport"
    [ "$first" != pcie ] || continue
    row "ctrl$tab${{dir##*/}}" "$dir/transport" "$dir/state" "$dir/subsysnqn" "$dir/hostnqn" \
        "$dir/hostid" "$dir/queue_count" "$dir/kato" "$dir/reconnect_delay" \
        "$dir/ctrl_loss_tmo" "$dir/numa_node" "$dir/address"
    first "{NOTES}/${{dir##*/}}"
    case $first in "$(stat -L -c %i "$dir") "*) first=${{first#* }} ;; *) first=- ;; esac
    printf '%s\n' "$line$tab$first"
    first "$dir/subsysnqn"
    said="$said$tab$first$tab"
done
for dir in /sys/class/nvme-subsystem/nvme-subsys*; do
    [ -e "$dir/subsysnqn" ] || continue
    row "subsys$tab${{dir##*/}}" "$dir/subsysnqn" "$dir/iopolicy"
    printf '%s\n' "$line"
done
for dir in /sys/class/block/nvme*; do
    [ -e "$dir/nsid" ] && [ ! -e "$dir/partition" ] || continue
    first "$dir/hidden"
    [ "$first" != 1 ] || continue
    first "$dir/device/subsysnqn"
    case $said in *"$tab$first$tab"*) ;; *) continue ;; esac
    row "ns$tab${{dir##*/}}" "$dir/device/subsysnqn" "$dir/nsid" "$dir/uuid" "$dir/nguid" \
        "$dir/eui" "$dir/size"
    printf '%s\n' "$line"
    udevadm info --query=property --name="/dev/${{dir##*/}}" | sed -nE \
        "s/^(USEC_INITIALIZED|ID_FS_TYPE|ID_FS_AMBIVALENT|ID_PART_TABLE_TYPE)=(.*)/holds$tab${{dir##*/}}$tab\1$tab\2/p"
done
for link in {LINKS}/*; do
    [ ! -L "$link" ] || {{ to=$(readlink -f "$link"); printf '%s\n' "link$tab$link$tab${{to##*/}}"; }}
done
first /sys/module/nvme_core/parameters/multipath
printf '%s\n' "multipath$tab$first"
first /sys/devices/system/cpu/online
printf '%s\n' "cpus$tab$first"
[ ! -d /sys/class/nvme-fabrics ] || {{ first /dev/nvme-fabrics; printf '%s\n' "options$tab$first"; }}
true
""",  # noqa: E501
)

# Of configuration that is not ours only addresses and names come back, never a key.
FOREIGN = Section(
    name="nvmeof_foreign",
    for_storage=True,
    script=r"""
! command -v nvme >/dev/null || nvme version 2>&1 | sed -n 's/^nvme version/version &/p'
for file in /etc/nvme/config.json /etc/nvme/discovery.conf /etc/nvme/nvme-fabrics.conf \
    /etc/nvme/nvme-fabrics.conf.d/*.conf; do
    [ -r "$file" ] || continue
    echo "file $file"
    sed 's/^[[:space:]]*#.*//' "$file" |
        grep -noE 'nqn[.][A-Za-z0-9.:_-]+|(traddr|-a)"?[ =:]+"?[0-9A-Fa-f.:]+' |
        sed -E 's/^([0-9]+):((traddr|-a)"?[ =:]+"?)?/\1 /'
done
true
""",
)

SECTIONS = (FILES, UNITS, SYSFS, FOREIGN)


class FabricController(Model):
    """A controller over a fabric.

    ``io_queues`` is without the admin queue; times are in seconds. ``ctrl_loss`` is None where it
    never gives up, ``keep_alive`` where the kernel does not tell. ``given`` are the options that
    our script connected it with, None where it was another that connected it.
    """

    name: str
    transport: str
    state: str
    nqn: str
    hostnqn: str
    hostid: str
    io_queues: int | None
    keep_alive: int | None
    reconnect_delay: int | None
    ctrl_loss: int | None
    numa_node: int | None
    address: str
    given: str | None = None

    @property
    def portal(self) -> tuple[str, str]:
        """Address and port of the other end."""
        fields = fields_of(self.address)
        return fields.get("traddr", ""), fields.get("trsvcid", "")

    @property
    def host_traddr(self) -> str | None:
        return fields_of(self.address).get("host_traddr")

    @property
    def is_live(self) -> bool:
        return self.state == "live"


class Namespace(Model):
    """A namespace over a fabric; identifiers are lower-case hexadecimal without any marks.

    ``holds`` is what udev found on it: ``ext4``, ``LVM2_member``, ``partition table gpt``; "" of
    one that is blank, None where udev has not looked yet.
    """

    device: str
    nqn: str
    nsid: int | None
    uuid: str
    nguid: str
    eui64: str
    sectors: int
    holds: str | None = None

    def is_named(self, kind: str, value: str) -> bool:
        found = {"uuid": self.uuid, "nguid": self.nguid, "eui64": self.eui64, "nsid": self.nsid}
        return str(found[kind]) == value.replace("-", "")


class NvmeofSeen(Model):
    """``options`` are what the kernel's /dev/nvme-fabrics takes, None where it does not tell.

    ``iopolicies`` are subsystem (by its name in sysfs) to NQN and policy; ``links`` ours under
    /dev/railwright to the device. ``multipath`` is None where nvme_core does not show it.
    """

    controllers: tuple[FabricController, ...] = ()
    iopolicies: dict[str, tuple[str, str]] = Field(default={})
    namespaces: tuple[Namespace, ...] = ()
    links: dict[str, str] = Field(default={})
    multipath: bool | None = None
    cpus: int | None = None
    options: frozenset[str] | None = None

    def of(self, nqn: str) -> list[FabricController]:
        return [one for one in self.controllers if one.nqn == nqn]


class Mention(Model):
    """A subsystem's name or a target's address in a file of nvme-cli's."""

    place: str
    word: str


class Foreign(Model):
    """What nvme-cli would connect by itself, and its version; None where it is not installed."""

    version: str | None = None
    mentions: tuple[Mention, ...] = ()


def _hex(text: str) -> str:
    return "" if text == "-" else re.sub(r"[\s-]", "", text).lower()


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]+", text) else None


def _controller(words: list[str]) -> FabricController:
    name, transport, state, nqn, hostnqn, hostid, *shown, address, given = words
    queues, kato, delay, loss, numa = shown
    count = _count(queues)
    return FabricController(
        name=name,
        transport=transport,
        state=state,
        nqn=nqn,
        hostnqn=hostnqn,
        hostid=hostid.lower(),
        io_queues=None if count is None else count - 1,
        keep_alive=_count(kato),
        reconnect_delay=_count(delay),
        ctrl_loss=_count(loss),
        numa_node=_count(numa),
        address=address,
        given=None if given == "-" else given,
    )


def _holds(told: dict[str, str]) -> str | None:
    if "USEC_INITIALIZED" not in told:
        return None
    if "ID_FS_AMBIVALENT" in told:
        return f"several signatures ({told['ID_FS_AMBIVALENT']})"
    if "ID_FS_TYPE" in told:
        return told["ID_FS_TYPE"]
    table = told.get("ID_PART_TABLE_TYPE")
    return f"partition table {table}" if table else ""


def cpu_count(text: str) -> int | None:
    """How many processors ``0-3,8`` are; None for another text."""
    total = 0
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
        if found is None:
            return None
        total += int(found[2] or found[1]) - int(found[1]) + 1
    return total


_WIDTHS = {"ctrl": 13, "subsys": 3, "ns": 7, "holds": 3, "link": 2}


def parse_sysfs(text: str) -> NvmeofSeen:
    """Read section ``nvmeof_sysfs``. Raises ValueError for a line of another kind."""
    rows: dict[str, list[list[str]]] = {kind: [] for kind in _WIDTHS}
    single = {"multipath": "-", "cpus": "-", "options": "-"}
    for line in filter(None, text.splitlines()):
        kind, *words = line.split("\t")
        if kind in rows and len(words) == _WIDTHS[kind]:
            rows[kind].append(words)
        elif kind in single and len(words) == 1:
            single[kind] = words[0]
        else:
            raise ValueError(f"expected a controller or namespace of NVMe, got {line[:80]!r}")
    held: dict[str, dict[str, str]] = {}
    for device, key, value in rows["holds"]:
        held.setdefault(device, {})[key] = value
    options = re.findall(r"(?:^|,)([a-z_]+)", single["options"])
    return NvmeofSeen(
        controllers=tuple(map(_controller, rows["ctrl"])),
        iopolicies={name: (nqn, policy) for name, nqn, policy in rows["subsys"]},
        namespaces=tuple(
            Namespace(
                device=device,
                nqn=nqn,
                nsid=_count(nsid),
                uuid=_hex(uuid),
                nguid=_hex(nguid),
                eui64=_hex(eui),
                sectors=_count(size) or 0,
                holds=_holds(held.get(device, {})),
            )
            for device, nqn, nsid, uuid, nguid, eui, size in rows["ns"]
        ),
        links=dict(rows["link"]),
        multipath={"Y": True, "N": False}.get(single["multipath"]),
        cpus=cpu_count(single["cpus"]),
        options=frozenset(options) or None,
    )


def parse_foreign(text: str) -> Foreign:
    """Read section ``nvmeof_foreign``. Raises ValueError for a line of another kind."""
    version, file = None, ""
    mentions = []
    for line in filter(None, text.splitlines()):
        if found := re.fullmatch(r"version nvme version ([0-9.]+).*", line):
            version = found[1]
        elif line.startswith("file /"):
            file = line.removeprefix("file ")
        elif file and (found := re.fullmatch(r"([0-9]+) (\S+)", line)):
            mentions.append(Mention(place=f"{file}:{found[1]}", word=found[2]))
        else:
            raise ValueError(f"expected what nvme-cli is to connect, got {line[:80]!r}")
    return Foreign(version=version, mentions=tuple(mentions))


def read_nvmeof(snapshot: Snapshot) -> NvmeofSeen:
    """Raises ValueError where it cannot be read."""
    return parse_sysfs(snapshot.text(SYSFS.name))


def read_foreign(snapshot: Snapshot) -> Foreign:
    """Raises ValueError where it cannot be read."""
    return parse_foreign(snapshot.text(FOREIGN.name))


def names_on_node(files: list[FileRecord]) -> set[str]:
    """Volumes that files of ours on the node are for."""
    found = set()
    for file in files:
        if file.directory == FOLDER:
            found.add(file.name.rpartition(".")[0])
        elif file.name.startswith(UNIT_PREFIX):
            found.add(file.name.removeprefix(UNIT_PREFIX).removesuffix(".service"))
    return found


class NvmeofFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.nvme.NvmeofFact``."""

    sections: ClassVar[tuple[Section, ...]] = (SYSFS,)

    def read(self, snapshot: Snapshot) -> NvmeofSeen:
        return read_nvmeof(snapshot)
