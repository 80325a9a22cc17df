"""Files of a node as the probe saw them."""

from collections.abc import Iterable
from typing import Literal

from railwright.model import Model


class FileRecord(Model):
    """One path on a node; ``content`` is None where only its metadata was read.

    ``target`` is the resolved path of a symbolic link ("" where it leads nowhere); ``content`` is
    then that of the target. A link to /dev/null masks the file of that name in the other
    directories. ``mtime`` is in whole seconds since the epoch, ``mode`` the octal permission
    bits as text ("644"), both of the link's target.
    """

    path: str
    kind: Literal["file", "link", "directory", "other", "unreadable"]
    content: str | None = None
    target: str | None = None
    mode: str | None = None
    owner: str | None = None
    mtime: int | None = None
    size: int | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0] or "/"

    @property
    def masks(self) -> bool:
        """Whether the file stands for nothing: a link to /dev/null, or an empty file."""
        return self.target == "/dev/null" or (self.kind == "file" and self.size == 0)


def effective_files(files: Iterable[FileRecord], directories: Iterable[str]) -> list[FileRecord]:
    """The drop-ins that count, in the order in which systemd reads them.

    Of files with one name only that in the first of ``directories`` counts (highest priority
    first); those that remain are sorted by name over all directories; a mask hides its name and
    is itself left out. Source: sysctl.d(5), modules-load.d(5), tmpfiles.d(5), systemd.unit(5).
    """
    by_name: dict[str, FileRecord] = {}
    records = list(files)
    for directory in directories:
        for record in records:
            if record.directory == directory:
                by_name.setdefault(record.name, record)
    return [record for _, record in sorted(by_name.items()) if not record.masks]
