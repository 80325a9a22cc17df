"""How the kernel is started, and its knobs under /sys: THP and cpufreq."""

import re
from collections.abc import Iterable

from facts.cmdline import CMDLINE, Cmdline, parse_cmdline
from facts.probe import Section, SnapshotFact
from railwright.files import FileRecord
from railwright.model import Model
from railwright.resolve.boot import GRUBBY, MKCONFIG, UPDATE_GRUB, NextBoot, next_boot
from railwright.resolve.tmpfiles import DIRECTORIES, DROPIN
from railwright.snapshot import Snapshot

THP = "/sys/kernel/mm/transparent_hugepage"
GOVERNORS = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"

# Of grub.cfg only the lines that make up the menu are read: it may hold password hashes.
BOOT = Section(
    name="kernel_boot",
    script=rf"""
lines() {{
    meta "$1"
    [ -f "$1" ] && [ -r "$1" ] || return 0
    printf '%s content\n' "$N"
    grep -nE -- "$2" "$1"
    printf '\n'
}}
for cfg in /boot/grub/grub.cfg /boot/grub2/grub.cfg; do
    lines "$cfg" '^[[:space:]]*((menuentry|submenu|function|linux|linux16|linuxefi)[[:space:]]|[}}]|blscfg$|(set[[:space:]]+)?(default|kernelopts|tuned_params)=)'
done
for mkconfig in {" ".join(MKCONFIG)}; do
    lines "$mkconfig" 'default/grub'
done
for tool in {UPDATE_GRUB} {" ".join(GRUBBY)}; do
    meta "$tool"
done
files /etc/default/grub /etc/default/grub.d/*.cfg /boot/grub/grubenv /boot/grub2/grubenv \
    /boot/loader/entries/*.conf /boot/efi/loader/entries/*.conf /efi/loader/entries/*.conf \
    /etc/kernel/cmdline
:
""",  # noqa: E501
)

KNOBS = Section(
    name="kernel_knobs",
    script=f"""
grep -sH . {THP}/enabled {THP}/defrag {THP}/shmem_enabled {GOVERNORS}
:
""",
)

# Only files that write under /sys matter, and those of the same name that stand over them.
TMPFILES = Section(
    name="kernel_tmpfiles",
    script=f"""
set --
for dir in {" ".join(DIRECTORIES)}; do
    set -- "$@" "$dir"/*.conf
done
{{ grep -ls /sys/ "$@"; echo {DROPIN}; }} | sed 's|.*/||' | sort -u | while read -r name; do
    for dir in {" ".join(DIRECTORIES)}; do
        files "$dir/$name"
    done
done
:
""",
)

# The profile that was chosen comes before those that it includes; of several the last wins.
TUNED = Section(
    name="kernel_tuned",
    script="""
[ "$(systemctl is-active tuned 2>/dev/null)" = active ] || return 0
profiles=
read -r active </etc/tuned/active_profile
for profile in $active; do
    profiles="$profile $profiles"
done
depth=0
while [ -n "$profiles" ] && [ "$depth" -lt 8 ]; do
    included=
    for profile in $profiles; do
        for dir in /etc/tuned/profiles /etc/tuned /usr/lib/tuned/profiles /usr/lib/tuned; do
            [ -f "$dir/$profile/tuned.conf" ] || continue
            files "$dir/$profile/tuned.conf"
            more=$(sed -n 's/^include *= *//p' "$dir/$profile/tuned.conf" | tr ',' ' ')
            [ -z "$more" ] || included="$included $more"
            break
        done
    done
    profiles=$included
    depth=$((depth + 1))
done
:
""",
)

SECTIONS = (CMDLINE, BOOT, KNOBS, TMPFILES, TUNED)


class Knobs(Model):
    """Values of THP's files (``enabled`` to ``madvise``), and the governor file of each CPU."""

    thp: dict[str, str]
    governors: dict[str, str]


class KernelState(Model):
    """How a node's kernel was started and will be, and its knobs."""

    cmdline: Cmdline
    next_boot: NextBoot | None
    knobs: Knobs


class Kernel(SnapshotFact):
    """The kernel's arguments, running and of the next boot, THP and governors."""

    sections = SECTIONS

    def read(self, snapshot: Snapshot) -> KernelState:
        return KernelState(
            cmdline=parse_cmdline(snapshot.text("cmdline")),
            next_boot=next_boot(snapshot.files("kernel_boot")),
            knobs=knobs_of(snapshot),
        )


def parse_knobs(text: str) -> Knobs:
    """``path:value`` lines; of a choice in brackets the one in force.

    Raises ValueError where none of the choices is in brackets, and for any other line.
    """
    thp, governors = {}, {}
    for line in text.splitlines():
        path, found, value = line.partition(":")
        if not found:
            raise ValueError(f"expected path:value, got {line[:80]!r}")
        if path.startswith(THP):
            chosen = re.search(r"\[([^\]]+)\]", value)
            if chosen is None:
                raise ValueError(f"{path}: expected one choice in brackets, got {value!r}")
            thp[path.rpartition("/")[2]] = chosen[1]
        elif path.endswith("/scaling_governor"):
            governors[path] = value.strip()
    return Knobs(thp=thp, governors=governors)


def knobs_of(snapshot: Snapshot) -> Knobs:
    """The knobs of a node. Raises ValueError where they could not be read."""
    text, rc = snapshot.text("kernel_knobs"), snapshot.section("kernel_knobs").rc
    # grep exits 1 or 2 where a kernel has none of the files.
    if rc not in (0, 1, 2):
        raise ValueError(f"the kernel's knobs could not be read (exit {rc})")
    return parse_knobs(text)


class TunedOption(Model):
    """An option of the active tuned profile; ``origin`` is its ``path:line``."""

    value: str
    origin: str


def tuned_option(files: Iterable[FileRecord], *names: str) -> TunedOption | None:
    """What tuned's active profile says of an option, whichever of ``names`` it goes by.

    ``files`` are the profile and those that it includes, in that order. An option of a profile
    stands over that of an included one.
    """
    for record in files:
        for number, line in enumerate((record.content or "").splitlines(), start=1):
            key, found, value = line.partition("=")
            if found and key.strip() in names:
                return TunedOption(value=value.strip(), origin=f"{record.path}:{number}")
    return None
