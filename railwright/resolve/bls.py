"""Entries of the Boot Loader Specification, as GRUB of RHEL reads them (blscfg).

RHEL 8 keeps the arguments of all kernels in ``kernelopts`` of the environment block and refers to
it; RHEL 9 has them in each entry. Not run here on a RHEL host, only on trees made after both.
"""

import re
from collections.abc import Iterable, Mapping

from railwright.files import FileRecord
from railwright.resolve.grub_cfg import BootEntry, expand, split_words

_DIRECTORY = re.compile(r"/(?:boot|efi|boot/efi)/loader/entries/[^/]+\.conf")


def is_entry(record: FileRecord) -> bool:
    return _DIRECTORY.fullmatch(record.path) is not None


def default_entry(
    files: Iterable[FileRecord], default: str, variables: Mapping[str, str]
) -> BootEntry:
    """The entry that ``default`` (an id, title or index) names among ``files``, else the newest.

    Raises ValueError where there is none, or it cannot be read.
    """
    records = sorted(filter(is_entry, files), key=lambda r: _version_key(r.name), reverse=True)
    if not records:
        raise ValueError("there is no boot loader entry")
    chosen = records[0]
    for place, record in enumerate(records):
        if default in (record.name.removesuffix(".conf"), _field(record, "title"), str(place)):
            chosen = record
            break
    return _entry(chosen, variables)


def _entry(record: FileRecord, variables: Mapping[str, str]) -> BootEntry:
    if record.content is None:
        raise ValueError(f"{record.path} cannot be read")
    options, origin = [], record.path
    for number, line in enumerate(record.content.splitlines(), start=1):
        key, _, value = line.strip().partition(" ")
        if key == "options":
            options.append(value)
            origin = f"{record.path}:{number}"
    words = split_words(expand(" ".join(options), variables))
    title = _field(record, "title") or record.name
    return BootEntry(title=title, origin=origin, arguments=tuple(words))


def _field(record: FileRecord, key: str) -> str | None:
    for line in (record.content or "").splitlines():
        found, _, value = line.strip().partition(" ")
        if found == key:
            return value.strip()
    return None


def _version_key(name: str) -> list[tuple[int, int, str]]:
    """Order of file names by the versions in them: numbers as numbers, and above letters.

    Source: rpmvercmp, by which blscfg sorts.
    """
    parts = re.findall(r"\d+|[A-Za-z]+|~", name.removesuffix(".conf"))
    return [
        (2, int(part), "") if part.isdigit() else (0 if part == "~" else 1, 0, part)
        for part in parts
    ]
