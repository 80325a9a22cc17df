"""Which kernel boots next, and which others are installed.

The boot loader's choice is read by railwright.resolve.boot (GRUB's default, the saved entry and the
next entry of its environment block, entries of the Boot Loader Specification); here the file that
the chosen entry boots is made into a kernel version, and is held against what is on disk.
"""

import re
from collections.abc import Iterable
from typing import ClassVar

from facts.kernel import BOOT
from facts.probe import Section, SnapshotFact
from railwright.files import FileRecord
from railwright.model import Model
from railwright.resolve.boot import next_boot
from railwright.snapshot import Snapshot

INSTALLED = Section(
    name="kernels_installed",
    for_drivers=True,
    script="""
for image in /boot/vmlinuz-* /boot/vmlinux-*; do
    [ ! -e "$image" ] || echo "image ${image#/boot/vmlinu?-}"
done
for list in /lib/modules/*/modules.dep; do
    [ -r "$list" ] || continue
    list=${list%/modules.dep}
    echo "modules ${list##*/}"
done
true
""",
)

SECTIONS = (BOOT, INSTALLED)

# What kernels are called by GRUB's and by BLS' makers, and below a folder of systemd-boot.
_NAMED = re.compile(r"(?:.*/)?(?:vmlinu[xz]|kernel|Image)-([^/]+)")
_IN_FOLDER = re.compile(r".*/([^/]+)/linux(?:\.efi)?")
_LINUX = re.compile(r"^\s*linux(?:16|efi)?\s+(\S+)", re.MULTILINE)
_RESCUE = "0-rescue-"


class NextKernel(Model):
    """The kernel that boots next; ``problem`` says why ``version`` is not known.

    ``images`` are kernels in /boot, ``with_modules`` those with a modules.dep. ``unlisted`` are in
    /boot and not in the boot menu: they come into it when the menu is made anew, and may then be
    the default.
    """

    version: str | None
    problem: str | None = None
    title: str = ""
    origin: str = ""
    running: str = ""
    images: tuple[str, ...] = ()
    with_modules: frozenset[str] = frozenset()
    unlisted: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether a reboot brings another kernel than the one that runs."""
        return self.version is not None and self.version != self.running


def version_of(path: str) -> str:
    """The version in ``/boot/vmlinuz-6.1.0-57-amd64`` or ``/ID/6.1.0-57-amd64/linux``.

    Raises ValueError where the name does not tell it.
    """
    found = _NAMED.fullmatch(path) or _IN_FOLDER.fullmatch(path)
    if found is None:
        raise ValueError(f"expected a kernel file with its version in the name, got {path!r}")
    return found[1]


def read_next_kernel(snapshot: Snapshot) -> NextKernel:
    """What the snapshot tells of the next boot. Raises ValueError where it cannot be read."""
    running = snapshot.facts("identity").get("kernel", "")
    images, with_modules = parse_installed(snapshot.text(INSTALLED.name))
    return next_kernel(snapshot.files(BOOT.name), running, images, with_modules)


def parse_installed(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Kernels with an image in /boot, and those with modules. Raises ValueError for other lines."""
    images, with_modules = [], set()
    for line in text.splitlines():
        kind, _, version = line.partition(" ")
        if kind == "image" and version:
            images.append(version)
        elif kind == "modules" and version:
            with_modules.add(version)
        else:
            raise ValueError(f"expected an installed kernel, got {line[:80]!r}")
    return tuple(images), frozenset(with_modules)


def next_kernel(
    files: Iterable[FileRecord],
    running: str,
    images: tuple[str, ...],
    with_modules: frozenset[str],
) -> NextKernel:
    """The next kernel by the files of the boot loader; a version of None has its problem."""
    records = list(files)
    known = NextKernel(version=None, running=running, images=images, with_modules=with_modules)
    boot = next_boot(records)
    if boot is None:
        return _without(known, "no boot loader is known here: neither grub.cfg nor BLS entries")
    if boot.entry is None:
        return _without(known, boot.problem or f"{boot.path} names no default entry")
    path = _kernel_file(records, boot.entry.origin)
    try:
        version = version_of(path or "")
    except ValueError as error:
        return _without(known, f"{boot.entry.origin}: {error}")
    menu = _in_menu(records)
    return known.model_copy(
        update={
            "version": version,
            "title": boot.entry.title,
            "origin": boot.entry.origin,
            "unlisted": tuple(v for v in images if v not in menu and not v.startswith(_RESCUE)),
        }
    )


def _without(known: NextKernel, problem: str) -> NextKernel:
    return known.model_copy(update={"problem": problem})


def _kernel_file(records: Iterable[FileRecord], origin: str) -> str | None:
    """The kernel of the entry at ``origin`` (``path:line``, or the path of an entry's file)."""
    for record in records:
        if origin == record.path or origin.startswith(f"{record.path}:"):
            content = record.content or ""
            if record.path.endswith("/grub.cfg"):
                content = _line(content, origin.rpartition(":")[2])
            found = _LINUX.search(content)
            return found[1] if found else None
    return None


def _line(content: str, number: str) -> str:
    """Line ``number`` of a file whose lines may come with their numbers (``94:\\tlinux ...``)."""
    lines = content.splitlines()
    numbered = next((line for line in lines if line.startswith(f"{number}:")), None)
    if numbered is not None:
        return numbered.partition(":")[2]
    return lines[int(number) - 1] if int(number) <= len(lines) else ""


def _in_menu(records: Iterable[FileRecord]) -> frozenset[str]:
    found = set()
    for record in records:
        if record.path.endswith(("/grub.cfg", ".conf")):
            for line in (record.content or "").splitlines():
                matched = _LINUX.match(re.sub(r"^\d+:", "", line))
                named = matched and (
                    _NAMED.fullmatch(matched[1]) or _IN_FOLDER.fullmatch(matched[1])
                )
                if named:
                    found.add(named[1])
    return frozenset(found)


class NextBootFact(SnapshotFact):
    """The kernel that boots next: ``pyinfra INVENTORY fact facts.next_boot.NextBootFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> NextKernel:
        return read_next_kernel(snapshot)
