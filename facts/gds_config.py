"""GPUDirect Storage's configuration: /etc/cufile.json, what overrides it, and what it has to fit.

The file's bytes are read in base64, so that whatever is in its comments can be written back.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import ClassVar, Literal

from facts.nvidia_fs import parse_fs_modules
from facts.nvidia_proc import NvidiaModule, parse_nvidia_version
from facts.probe import Section, SnapshotFact
from railwright.files import FileRecord
from railwright.gds.choice import Platform, Storage
from railwright.model import Model
from railwright.snapshot import Snapshot, parse_files

CUFILE = "/etc/cufile.json"
VARIABLE = "CUFILE_ENV_PATH_JSON"
"""Takes a process to another file. Source: comments of the cufile.json that GDS installs."""

FILE = Section(
    name="gds_cufile",
    for_drivers=True,
    script=f"""
meta {CUFILE}
[ -f {CUFILE} ] && [ -r {CUFILE} ] || return 0
printf '%s base64\\n' "$N"
base64 <{CUFILE}
""",
)

ENVIRONMENT = Section(
    name="gds_environment",
    for_drivers=True,
    script=f"""
set -- /etc/environment /etc/environment.d/*.conf /etc/profile /etc/profile.d/*.sh \\
    /etc/bash.bashrc /etc/bashrc /etc/security/pam_env.conf \\
    /etc/systemd/system.conf /etc/systemd/system.conf.d/*.conf \\
    /etc/systemd/user.conf /etc/systemd/user.conf.d/*.conf
grep -sHn {VARIABLE} "$@"
grep -sh {VARIABLE} "$@" | grep -oE '/[^"'"'"' ;]+' | while IFS= read -r path; do
    [ ! -f "$path" ] || echo "there $path"
done
true
""",
)
"""The lines that set the variable for logins and services, and which of their files are there."""

PLATFORM = Section(
    name="gds_platform",
    for_drivers=True,
    script="""
[ -e /proc/driver/nvidia/version ] || return 0
echo "machine=$(uname -m)"
if grep -q ' p2pdma_pgmap_ops' /proc/kallsyms; then echo p2pdma=yes
elif [ -r /proc/kallsyms ]; then echo p2pdma=no; fi
virt=$(systemd-detect-virt --vm) || [ "$virt" = none ] && echo "virtual=$virt"
if [ -e /proc/driver/nvidia-fs/version ]; then echo nvidia_fs=yes; else echo nvidia_fs=no; fi
if [ -r /proc/driver/nvidia-fs/modules ]; then
    echo users=read
    sed 's/^/user /' /proc/driver/nvidia-fs/modules
fi
first /sys/module/nvme_core/parameters/multipath
echo "multipath=$first"
for link in /sys/class/nvme/nvme*; do
    first "$link/transport"
    [ "$first" = - ] || echo "nvme ${link##*/} $first"
done
for file in /sys/kernel/iommu_groups/*/type; do
    first "$file"
    [ "$first" = - ] || echo "iommu $first"
done | sort -u
grep -s ' raid0 ' /proc/mdstat
for lib in /usr/local/cuda/targets/*/lib/libcufile.so.*.*; do
    [ ! -e "$lib" ] || echo "libcufile ${lib##*/}"
done
cat /proc/driver/nvidia/gpus/*/information /proc/driver/nvidia/version
true
""",
)
"""What decides between nvidia-fs and P2PDMA; nothing where no GPU driver is loaded."""

SECTIONS = (FILE, ENVIRONMENT, PLATFORM)


class Override(Model):
    """A line that takes new processes to another file; ``is_there`` tells whether there is one."""

    decider: str
    path: str
    is_there: bool


class CufileSeen(Model):
    """/etc/cufile.json as it is there; ``record`` is None where it is not.

    ``text`` is None where there is none or it cannot be read, which ``error`` then tells;
    ``digest`` is the sha256 of its bytes.
    """

    record: FileRecord | None
    text: str | None = None
    digest: str | None = None
    error: str | None = None


class GdsConfig(Model):
    """What the probe can tell without the inventory."""

    cufile: CufileSeen
    overrides: tuple[Override, ...]
    platform: Platform
    storage: Storage


class GdsConfigFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.gds_config.GdsConfigFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> GdsConfig:
        return read_gds_config(snapshot)


def read_gds_config(snapshot: Snapshot) -> GdsConfig:
    """Everything. Raises ValueError where the node's answer cannot be read."""
    platform, storage = read_platform(snapshot)
    return GdsConfig(
        cufile=read_cufile(snapshot),
        overrides=read_overrides(snapshot),
        platform=platform,
        storage=storage,
    )


def read_cufile(snapshot: Snapshot) -> CufileSeen:
    """Section ``gds_cufile``. Raises ValueError where the probe failed."""
    text, section = snapshot.text(FILE.name), snapshot.section(FILE.name)
    if section.rc != 0:
        raise ValueError(f"{CUFILE}: {section.stderr or f'exit {section.rc}'}")
    head, has_content, body = text.partition(f"{snapshot.marker} base64\n")
    record = next(iter(parse_files(head, snapshot.marker)), None)
    if record is None:
        return CufileSeen(record=None)
    if not has_content:
        what = f"a link to {record.target or 'nothing'}" if record.kind == "link" else record.kind
        return CufileSeen(record=record, error=f"expected a file that can be read, got {what}")
    try:
        content = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"{CUFILE}: expected base64 of the probe, got {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    try:
        return CufileSeen(record=record, text=content.decode(), digest=digest)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return CufileSeen(record=record, digest=digest, error=f"line {line}: expected UTF-8")


# pam_env.conf has NAME DEFAULT=VALUE, systemd DefaultEnvironment="NAME=VALUE", shells NAME=VALUE.
_OVERRIDE = re.compile(
    rf"(/[^:]+):(\d+):[^#]*?{VARIABLE}(?:=|\s+(?:DEFAULT|OVERRIDE)=)[\"']?([^\"'\s;]+)"
)


def read_overrides(snapshot: Snapshot) -> tuple[Override, ...]:
    """Section ``gds_environment``, without lines that name our own file."""
    lines = snapshot.text(ENVIRONMENT.name).splitlines()
    there = {line.removeprefix("there ") for line in lines if line.startswith("there ")}
    return tuple(
        Override(decider=f"{row[1]}:{row[2]}", path=row[3], is_there=row[3] in there)
        for line in lines
        if (row := _OVERRIDE.match(line)) and row[3] != CUFILE
    )


_SWITCH = {"yes": True, "no": False, "Y": True, "N": False}


def read_platform(snapshot: Snapshot) -> tuple[Platform, Storage]:
    """Section ``gds_platform``; what it does not tell is None."""
    text = snapshot.text(PLATFORM.name)
    facts, identity = snapshot.facts(PLATFORM.name), snapshot.facts("identity")
    lines = [line.split() for line in text.splitlines()]
    drives = {words[1]: words[2] for words in lines if len(words) == 3 and words[0] == "nvme"}
    platform = Platform(
        machine=facts.get("machine"),
        distribution=identity.get("os"),
        release=identity.get("os_version"),
        kernel=_first_two(identity.get("kernel", "")),
        kernel_has_p2pdma=_SWITCH.get(facts.get("p2pdma", "")),
        driver=_driver(text),
        libcufile=max(_libraries(lines), default=None),
        gpus=tuple(re.findall(r"^Model:\s*(.*?)\s*$", text, re.MULTILINE)),
        virtual=_virtual(facts.get("virtual")),
        nvidia_fs_is_loaded=_SWITCH.get(facts.get("nvidia_fs", "")),
        nvidia_fs_users=_users(text) if facts.get("users") == "read" else None,
    )
    storage = Storage(
        nvme_multipath=_SWITCH.get(facts.get("multipath", "")),
        local=tuple(sorted(name for name, kind in drives.items() if kind == "pcie")),
        fabrics=tuple(sorted(name for name, kind in drives.items() if kind != "pcie")),
        raid0=tuple(
            words[0] for words in lines if "raid0" in words and any("nvme" in w for w in words)
        ),
        iommu=_iommu(lines),
    )
    return platform, storage


def _users(text: str) -> frozenset[str]:
    """Raises ValueError where nvidia-fs' list of its users is another than is known."""
    lines = (line.removeprefix("user ") for line in text.splitlines() if line.startswith("user "))
    return frozenset(parse_fs_modules("\n".join(lines)))


def _first_two(version: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _libraries(lines: list[list[str]]) -> Iterator[tuple[int, int]]:
    for words in lines:
        if len(words) == 2 and words[0] == "libcufile":
            version = _first_two(words[1].removeprefix("libcufile.so."))
            yield from [version] if version else []


def _driver(text: str) -> NvidiaModule | None:
    return parse_nvidia_version(text) if "NVRM version:" in text else None


def _virtual(told: str | None) -> str | None:
    return "" if told == "none" else told


def _iommu(lines: list[list[str]]) -> Literal["off", "passthrough", "translated"] | None:
    """By the default domain of the groups. Source: ABI sysfs-kernel-iommu_groups."""
    kinds = {words[1] for words in lines if len(words) == 2 and words[0] == "iommu"}
    if any(kind.startswith("DMA") for kind in kinds):
        return "translated"
    if "identity" in kinds:
        return "passthrough"
    return None if kinds or not lines else "off"
