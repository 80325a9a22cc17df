"""Where the kernel's arguments for the next boot come from, and what leads there."""

from collections.abc import Iterable
from typing import Literal

from railwright.files import FileRecord
from railwright.model import Model
from railwright.resolve import bls, grub_cfg
from railwright.resolve.grub_cfg import BootEntry

_GRUB_CFG = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
_GRUBENV = ("/boot/grub/grubenv", "/boot/grub2/grubenv")
MKCONFIG = ("/usr/sbin/grub-mkconfig", "/usr/sbin/grub2-mkconfig")
UPDATE_GRUB = "/usr/sbin/update-grub"
GRUBBY = ("/usr/sbin/grubby", "/sbin/grubby")


class NextBoot(Model):
    """What the boot loader will start, ``problem`` where that cannot be read.

    ``kind`` is ``grub`` where drop-ins of /etc/default/grub.d lead to it, ``bls`` where grubby
    writes it, ``foreign`` where nothing that railwright may write leads to it; ``path`` is the
    file or directory that the boot loader reads.
    """

    kind: Literal["grub", "bls", "foreign"]
    path: str
    entry: BootEntry | None = None
    problem: str | None = None
    command: tuple[str, ...] = ()
    """What writes it: update-grub or the like; grubby."""
    remedy: str | None = None


def next_boot(files: Iterable[FileRecord]) -> NextBoot | None:
    """The next boot by the files of /boot; None where they tell of no boot loader."""
    by_path = {record.path: record for record in files}
    grub = next((by_path[path] for path in _GRUB_CFG if path in by_path), None)
    entries = [record for record in by_path.values() if bls.is_entry(record)]
    grubenv = next((by_path[path].content or "" for path in _GRUBENV if path in by_path), "")
    if grub is not None:
        if grub.content is None:
            return NextBoot(
                kind="foreign", path=grub.path, problem=f"{grub.path} cannot be read (not root?)"
            )
        variables = grub_cfg.parse_grubenv(grubenv)
        if grub_cfg.uses_blscfg(grub.content):
            return _by_bls(grub, entries, by_path, variables)
        return _by_grub(grub, by_path, variables)
    if entries:
        return _by_systemd_boot(entries)
    return None


def _by_grub(grub: FileRecord, by_path: dict[str, FileRecord], grubenv: dict[str, str]) -> NextBoot:
    entry, problem = None, None
    try:
        entry = grub_cfg.default_entry(grub.content or "", grub.path, grubenv)
    except ValueError as error:
        problem = str(error)
    script = next((by_path[path] for path in MKCONFIG if path in by_path), None)
    if script is None or "default/grub.d" not in (script.content or ""):
        return NextBoot(
            kind="foreign",
            path=grub.path,
            entry=entry,
            problem=problem,
            remedy="set it in GRUB_CMDLINE_LINUX of /etc/default/grub and run grub2-mkconfig -o "
            f"{grub.path}: grub-mkconfig reads no drop-ins here",
        )
    command = (UPDATE_GRUB,) if UPDATE_GRUB in by_path else (script.path, "-o", grub.path)
    return NextBoot(kind="grub", path=grub.path, entry=entry, problem=problem, command=command)


def _by_bls(
    grub: FileRecord,
    entries: list[FileRecord],
    by_path: dict[str, FileRecord],
    grubenv: dict[str, str],
) -> NextBoot:
    content = grub.content or ""
    entry, problem = None, None
    try:
        entry = bls.default_entry(
            entries,
            grub_cfg.default_of(content, grubenv),
            grub_cfg.variables_of(content, grubenv),
        )
    except ValueError as error:
        problem = str(error)
    grubby = next((path for path in GRUBBY if path in by_path), None)
    return NextBoot(
        kind="bls" if grubby else "foreign",
        path=entries[0].directory if entries else grub.path,
        entry=entry,
        problem=problem,
        command=(grubby,) if grubby else (),
        remedy=None if grubby else "install grubby, which writes the boot loader's entries",
    )


def _by_systemd_boot(entries: list[FileRecord]) -> NextBoot:
    entry, problem = None, None
    try:
        entry = bls.default_entry(entries, "", {})
    except ValueError as error:
        problem = str(error)
    return NextBoot(
        kind="foreign",
        path=entries[0].directory,
        entry=entry,
        problem=problem,
        remedy="set it in /etc/kernel/cmdline and run kernel-install (systemd-boot has no "
        "drop-ins)",
    )
