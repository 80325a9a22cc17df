"""Kernel modules: configuration files, what is loaded, what is on disk, and initramfs images."""

import re
from typing import ClassVar

from facts.nvidia_proc import parse_nvidia_params
from facts.probe import Section, SnapshotFact
from railwright.files import FileRecord
from railwright.model import Model
from railwright.modprobe import MODPROBE_PATH
from railwright.schema.base import module_name
from railwright.snapshot import Snapshot

SECTIONS = (
    Section(
        name="modules_config",
        script="""
for folder in /etc /run /usr/local/lib /usr/lib /lib; do
    # Where /lib is a link to /usr/lib, as it mostly is, its files have been read.
    [ "$folder" != /lib ] || [ ! -L /lib ] || continue
    files "$folder"/modprobe.d/*.conf "$folder"/modules-load.d/*.conf
done
""",
    ),
    Section(
        name="modules_kernel",
        script=rf"""
sed 's/^/loaded /' /proc/modules
rc=$?
sed 's/^/cmdline /' /proc/cmdline
for link in /sys/class/net/*/device/driver/module; do
    [ -e "$link" ] || continue
    interface=${{link#/sys/class/net/}}
    target=$(readlink -f "$link")
    echo "drives ${{interface%%/*}} ${{target##*/}}"
done
# Modules of the file that is there too: what is taken out of it may still be in an initramfs.
[ ! -r {MODPROBE_PATH} ] ||
    ours=$(sed -nE 's/^(options|blacklist) ([A-Za-z0-9_]+).*/\2/p' {MODPROBE_PATH})
[ -n "$RW_MODULES$ours" ] || return "$rc"
names=$(for name in $RW_MODULES $ours; do echo "$name"; done | sed 's/_/[-_]/g' | tr '\n' '|')
for folder in /lib/modules/*; do
    for kind in dep builtin; do
        [ -r "$folder/modules.$kind" ] || continue
        sed -nE "s#^(([^:]*/)?(${{names%|}})\.ko[^:]*).*#$kind ${{folder##*/}} \1#p" \
            "$folder/modules.$kind"
    done
done
return "$rc"
""",
    ),
    Section(
        name="modules_parameters",
        script=r"""
for module in $RW_MODULES; do
    for file in /sys/module/"$module"/parameters/*; do
        [ ! -r "$file" ] || grep -H '' "$file"
    done
    ! told=$(modinfo "$module" 2>/dev/null) ||
        { echo "declared $module"; printf '%s\n' "$told"; } |
            sed -nE -e '1p' -e "s/^parm: +(\w+):.*/declared $module \1/p"
done
[ ! -r /proc/driver/nvidia/params ] || sed 's/^/nvidia /' /proc/driver/nvidia/params
true
""",
    ),
    Section(
        name="modules_initramfs",
        script="""
for image in /boot/initrd.img-* /boot/initramfs-*.img; do
    meta "$image"
done
""",
    ),
)


class Loaded(Model):
    """A line of /proc/modules; ``users`` are modules that need it."""

    references: int
    users: tuple[str, ...]
    state: str


class KernelModules(Model):
    """Modules of the running kernel, and of the others on disk; names are with ``_``.

    Of files, parameters and declarations only those of the modules asked for are there.
    """

    cmdline: str
    loaded: dict[str, Loaded]
    interfaces: dict[str, tuple[str, ...]]
    """Module to the network interfaces that it drives."""
    files: dict[str, dict[str, str]]
    """Kernel version to module to its path under /lib/modules/VERSION."""
    builtin: dict[str, frozenset[str]]
    """Kernel version to modules that are part of it."""


class Parameters(Model):
    """Parameters of modules: ``values`` as sysfs shows them, ``declared`` as modinfo lists them.

    A module is not in ``declared`` where modinfo does not find it. A parameter that is declared
    and has no value has one that the kernel does not show; one that is set by a function of its
    own (nf_conntrack.hashsize) is not declared.
    """

    values: dict[str, dict[str, str]]
    declared: dict[str, frozenset[str]]


_LOADED = re.compile(r"^(\S+) \d+ (\d+|-) (\S+) (\S+)")
_VALUE = re.compile(r"^/sys/module/([^/]+)/parameters/([^:/]+):(.*)$")
_DECLARED = re.compile(r"^declared (\S+)(?: (\w+))?$")


def parse_kernel(text: str) -> KernelModules:
    """Read the section ``modules_kernel``. Raises ValueError for a line of another kind."""
    cmdline = ""
    loaded: dict[str, Loaded] = {}
    interfaces: dict[str, tuple[str, ...]] = {}
    files: dict[str, dict[str, str]] = {}
    builtin: dict[str, frozenset[str]] = {}
    for line in filter(None, text.splitlines()):
        kind, _, rest = line.partition(" ")
        if kind == "loaded":
            name, entry = _parse_loaded(rest)
            loaded[name] = entry
        elif kind == "cmdline":
            cmdline = rest
        elif kind == "drives":
            interface, module = rest.split(" ")
            interfaces[module] = (*interfaces.get(module, ()), interface)
        elif kind in ("dep", "builtin"):
            version, path = rest.split(" ", 1)
            name = _name_of(path)
            if kind == "dep":
                files.setdefault(version, {})[name] = path
            else:
                builtin[version] = builtin.get(version, frozenset()) | {name}
        else:
            raise ValueError(f"cannot make sense of {line!r}")
    return KernelModules(
        cmdline=cmdline, loaded=loaded, interfaces=interfaces, files=files, builtin=builtin
    )


def _parse_loaded(line: str) -> tuple[str, Loaded]:
    match = _LOADED.match(line)
    if match is None:
        raise ValueError(f"expected a line of /proc/modules, got {line!r}")
    users = tuple(user for user in match[3].split(",") if user not in ("", "-"))
    # A kernel without module unloading writes - for the references.
    references = 0 if match[2] == "-" else int(match[2])
    return match[1], Loaded(references=references, users=users, state=match[4])


def _name_of(path: str) -> str:
    """The module in ``kernel/drivers/nvme/host/nvme-core.ko.zst``."""
    return module_name(path.rpartition("/")[2].partition(".ko")[0])


def parse_parameters(text: str) -> Parameters:
    """Read the section ``modules_parameters``. Raises ValueError for an odd line of nvidia's."""
    values: dict[str, dict[str, str]] = {}
    declared: dict[str, frozenset[str]] = {}
    for line in text.splitlines():
        if match := _VALUE.match(line):
            values.setdefault(match[1], {}).setdefault(match[2], match[3])
        elif match := _DECLARED.match(line):
            known = declared.get(match[1], frozenset())
            declared[match[1]] = known | {match[2]} if match[2] else known
        elif line.startswith("nvidia "):
            # nvidia shows its parameters here and not in sysfs, without their prefix.
            shown = parse_nvidia_params(line.removeprefix("nvidia "))
            values.setdefault("nvidia", {}).update(shown)
    return Parameters(values=values, declared=declared)


_IMAGE = re.compile(r"^/boot/(?:initrd\.img-(.+)|initramfs-(.+)\.img)$")


def images_of(files: list[FileRecord]) -> dict[str, FileRecord]:
    """Initramfs images by kernel version. Source: initramfs-tools(7), dracut(8)."""
    found = {}
    for file in files:
        match = _IMAGE.match(file.path)
        if match:
            found[match[1] or match[2]] = file
    return found


def read_kernel(snapshot: Snapshot) -> KernelModules:
    """What the section ``modules_kernel`` says.

    Raises ValueError where /proc/modules could not be read, which a container may be without.
    """
    text, section = snapshot.text("modules_kernel"), snapshot.section("modules_kernel")
    if section.rc != 0 and not snapshot.is_container:
        raise ValueError(f"/proc/modules cannot be read: {section.stderr or 'no reason given'}")
    return parse_kernel(text)


class Modules(SnapshotFact):
    """``pyinfra INVENTORY fact facts.modules.Modules``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> KernelModules:
        return read_kernel(snapshot)
