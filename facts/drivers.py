"""The drivers of a node: OFED, GPU driver, peer memory, nvidia-fs and storage clients.

What is loaded (/sys/module, /proc), what is on disk for each kernel (driver_kernels), what dkms
built, and what the drivers' own tools say, each with a deadline of its own: nvidia-smi hangs where
a GPU does not answer.
"""

import re
from typing import ClassVar

from pydantic import Field

from facts.dkms import Dkms, parse_dkms
from facts.driver_kernels import DISK, MODULES, DriversOnDisk, read_kernels, sources_kernel
from facts.driver_kernels import SECTIONS as KERNELS
from facts.modinfo import LoadedModule
from facts.next_boot import SECTIONS as NEXT_BOOT
from facts.next_boot import NextKernel, read_next_kernel
from facts.nvidia_fs import PROC, parse_fs_modules, parse_fs_version
from facts.nvidia_proc import NvidiaModule, parse_nvidia_version
from facts.nvidia_smi import SmiReport, parse_query
from facts.nvidia_smi_problem import NO_ANSWER
from facts.ofed import Ofed, parse_ofed_info
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

NVIDIA_VERSION = "/proc/driver/nvidia/version"
_FS_FILES = (f"{PROC}/version", f"{PROC}/modules")

QUERY = (
    "index",
    "uuid",
    "name",
    "pci.bus_id",
    "driver_version",
    "persistence_mode",
    "compute_mode",
    "mig.mode.current",
    "mig.mode.pending",
    "ecc.mode.current",
    "ecc.mode.pending",
    "power.limit",
    "power.default_limit",
    "power.min_limit",
    "power.max_limit",
    "clocks.max.sm",
)
"""Fields that each release since R450 knows: one that it does not know fails the whole query."""

# No process: the shell reads the files itself, and follows holders to their holders. Versions may
# have blanks in them.
LOADED = Section(
    name="drivers_loaded",
    for_drivers=True,
    script=rf"""
[ -d /sys/module ] || return 1
tab=$(printf '\t')
queue='{" ".join(MODULES)} nouveau '
seen=' '
while [ -n "$queue" ]; do
    name=${{queue%% *}}
    queue=${{queue#* }}
    case $seen in *" $name "*) continue ;; esac
    seen="$seen$name "
    # A folder without initstate is of a module that is built in.
    [ -e "/sys/module/$name/initstate" ] || continue
    line="loaded$tab$name"
    for file in srcversion version refcnt initstate; do
        first "/sys/module/$name/$file"
        line="$line$tab$first"
    done
    holders=
    for holder in "/sys/module/$name/holders"/*; do
        [ -e "$holder" ] || continue
        holders="$holders,${{holder##*/}}"
        queue="$queue${{holder##*/}} "
    done
    printf '%s\n' "$line$tab${{holders:--}}"
done
for library in /usr/lib/*/libnvidia-ml.so.*.* /usr/lib64/libnvidia-ml.so.*.*; do
    [ ! -e "$library" ] || printf '%s\n' "library$tab$library"
done
true
""",
)
FILES = Section(
    name="drivers_files", for_drivers=True, script=f"files {NVIDIA_VERSION} {' '.join(_FS_FILES)}"
)
OFED = Section(
    name="drivers_ofed",
    for_drivers=True,
    deadline_s=10,
    script="command -v ofed_info >/dev/null || return 127\nofed_info -s",
)
DKMS = Section(
    name="drivers_dkms",
    for_drivers=True,
    # It runs modinfo for each module and kernel, on a node that may be busy.
    deadline_s=180,
    # A power cut can take a module out of dkms' tree, which is not written through to the disk, and
    # leave its package installed, which is: its sources are as good as added, for dkms adds them.
    # So are those whose link alone is gone, which dkms calls broken: the run puts it back.
    script=r"""
command -v dkms >/dev/null || return 127
dkms status || return
for conf in /usr/src/*/dkms.conf; do
    [ -r "$conf" ] || continue
    name=$(sed -nE 's/^PACKAGE_NAME="?([A-Za-z0-9._+-]+)"?$/\1/p' "$conf")
    version=$(sed -nE 's/^PACKAGE_VERSION="?([A-Za-z0-9._+-]+)"?$/\1/p' "$conf")
    if [ -z "$name" ] || [ -z "$version" ]; then continue; fi
    for source in "/var/lib/dkms/$name"/*/source; do
        [ ! -e "$source" ] || continue 2
    done
    echo "$name/$version: added"
done
true
""",
)
FABRIC_MANAGER = Section(
    name="drivers_fabric_manager",
    for_drivers=True,
    deadline_s=10,
    script="command -v nv-fabricmanager >/dev/null || return 127\nnv-fabricmanager --version",
)
# Without the module nvidia-smi would load it, and a probe changes nothing.
SMI = Section(
    name="drivers_smi",
    for_drivers=True,
    deadline_s=30,
    script=f"""
[ -r {NVIDIA_VERSION} ] || return 0
command -v nvidia-smi >/dev/null || return 127
timeout -k 2 25 nvidia-smi --query-gpu={",".join(QUERY)} --format=csv,noheader,nounits
""",
)

SECTIONS = (*NEXT_BOOT, LOADED, FILES, OFED, DKMS, FABRIC_MANAGER, SMI, *KERNELS)


class Drivers(Model):
    """The drivers of a node.

    ``loaded`` are driver modules, nouveau, and all that hold them, by name. ``kernels`` is what
    is on disk by kernel, the running one and that of the next boot among them; ``ofa_sources``
    is the kernel that /usr/src/ofa_kernel/default is for ("" without one). ``libraries`` are
    versions of libnvidia-ml on disk. ``nvidia`` and ``nvidia_fs`` are the loaded modules,
    ``nvidia_fs_modules`` the storage drivers that use the latter. ``gpus`` is None where the
    module nvidia is not loaded, and so nobody was asked.
    """

    next_boot: NextKernel
    loaded: dict[str, LoadedModule]
    kernels: dict[str, DriversOnDisk]
    ofa_sources: str = ""
    ofed: Ofed
    dkms: Dkms
    nvidia: NvidiaModule | None = None
    libraries: tuple[str, ...] = ()
    fabric_manager: str | None = None
    nvidia_fs: str | None = None
    nvidia_fs_modules: dict[str, str] | None = None
    gpus: SmiReport | None = None

    @property
    def running(self) -> DriversOnDisk | None:
        """What is on disk for the kernel that runs; None where it has no modules."""
        return self.kernels.get(self.next_boot.running)

    @property
    def coming(self) -> DriversOnDisk | None:
        """What is on disk for the kernel of the next boot; None where it is not known."""
        return self.kernels.get(self.next_boot.version or "")


class _Loaded(Model):
    modules: dict[str, LoadedModule] = Field(default={})
    libraries: tuple[str, ...] = ()


_LIBRARY = re.compile(r"/\S*/libnvidia-ml\.so\.([0-9]+(?:\.[0-9]+)+)")
_FABRIC_MANAGER = re.compile(r"Fabric Manager version is\s*:\s*([0-9.]+)")


def parse_loaded(text: str) -> _Loaded:
    """Read section ``drivers_loaded``. Raises ValueError for a line of another kind."""
    modules, libraries = {}, []
    for line in filter(None, text.splitlines()):
        kind, *words = line.split("\t")
        if kind == "loaded" and len(words) == 6:
            modules[words[0]] = _loaded(*words)
        elif kind == "library" and (library := _LIBRARY.fullmatch(words[0] if words else "")):
            libraries.append(library[1])
        else:
            raise ValueError(f"expected a loaded module, got {line[:80]!r}")
    return _Loaded(modules=modules, libraries=tuple(dict.fromkeys(libraries)))


def _loaded(
    name: str, srcversion: str, version: str, refcnt: str, initstate: str, holders: str
) -> LoadedModule:
    if refcnt != "-" and not re.fullmatch("-?[0-9]+", refcnt):
        raise ValueError(f"expected the references of {name}, got {refcnt[:40]!r}")
    return LoadedModule(
        srcversion=None if srcversion == "-" else srcversion,
        version=None if version == "-" else version,
        refcnt=None if refcnt == "-" else int(refcnt),
        initstate=None if initstate == "-" else initstate,
        holders=() if holders == "-" else tuple(filter(None, holders.split(","))),
    )


def read_drivers(snapshot: Snapshot) -> Drivers:
    """What the snapshot says of drivers. Raises ValueError where a part cannot be read.

    A tool that is not there is told apart from one that failed; nvidia-smi that hangs is a
    problem of its own and keeps nothing else from being read.
    """
    text = snapshot.text(LOADED.name)
    if snapshot.section(LOADED.name).rc != 0:
        raise ValueError("/sys/module cannot be read")
    loaded = parse_loaded(text)
    files = {record.path: record.content or "" for record in snapshot.files(FILES.name)}
    nvidia, version, modules = (files.get(path) for path in (NVIDIA_VERSION, *_FS_FILES))
    return Drivers(
        next_boot=read_next_kernel(snapshot),
        loaded=loaded.modules,
        kernels=read_kernels(snapshot),
        ofa_sources=sources_kernel(snapshot.text(DISK.name)),
        ofed=read_ofed(snapshot),
        dkms=read_dkms(snapshot),
        nvidia=None if nvidia is None else parse_nvidia_version(nvidia),
        libraries=loaded.libraries,
        fabric_manager=_fabric_manager(*_said(snapshot, FABRIC_MANAGER)),
        nvidia_fs=None if version is None else parse_fs_version(version),
        nvidia_fs_modules=None if modules is None else parse_fs_modules(modules),
        gpus=None if nvidia is None else read_gpus(snapshot),
    )


def read_ofed(snapshot: Snapshot) -> Ofed:
    """What ofed_info says. Raises ValueError where that cannot be read."""
    return parse_ofed_info(*_said(snapshot, OFED))


def read_dkms(snapshot: Snapshot) -> Dkms:
    """What dkms says. Raises ValueError where that cannot be read."""
    return parse_dkms(*_said(snapshot, DKMS))


def read_gpus(snapshot: Snapshot) -> SmiReport:
    """What nvidia-smi says. Raises ValueError where that is neither GPUs nor a known problem."""
    section = snapshot.section(SMI.name)
    if section.ended == "deadline" or section.rc in (124, 137):
        return SmiReport(problem=NO_ANSWER)
    # On the other stream a warning would be one more row.
    return parse_query(snapshot.text(SMI.name) or section.stderr, QUERY, section.rc or 0)


def _said(snapshot: Snapshot, section: Section) -> tuple[str, int]:
    """What a tool said on both streams, and its exit code."""
    text, found = snapshot.text(section.name), snapshot.section(section.name)
    return f"{text}\n{found.stderr}".strip("\n"), found.rc or 0


def _fabric_manager(text: str, rc: int) -> str | None:
    if rc == 127:
        return None
    found = _FABRIC_MANAGER.search(text)
    if found is None:
        raise ValueError(f"expected Fabric Manager's version, got {text[:80]!r} (exit {rc})")
    return found[1]


class DriversFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.drivers.DriversFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Drivers:
        return read_drivers(snapshot)
