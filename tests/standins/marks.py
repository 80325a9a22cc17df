"""Marks in the payload's files and names: ``@VERSION@`` and ``@SHORT@``."""

import shutil
from pathlib import Path
from typing import NamedTuple

PAYLOAD = Path(__file__).parent / "payload"


class Marks(NamedTuple):
    """What the marks of one part stand for in one release.

    OFED: ``25.10.OFED.25.10.1.7.1.1`` and ``25.10-1.7.1``; GPU driver ``580.95.05`` and ``580``;
    nvidia-fs ``2.27.3`` and ``2.27``; cuFile ``1.15.1.6`` and ``13.0``.
    """

    version: str
    short: str

    def fill(self, text: str) -> str:
        return text.replace("@VERSION@", self.version).replace("@SHORT@", self.short)


def copy(part: str, target: Path, marks: Marks) -> None:
    """Payload ``part`` into ``target``, marks filled in, modes and links as they are there."""
    root = PAYLOAD / part
    for path in sorted(root.rglob("*")):
        to = target / marks.fill(str(path.relative_to(root)))
        if path.is_symlink():
            to.parent.mkdir(parents=True, exist_ok=True)
            to.symlink_to(marks.fill(str(path.readlink())))
        elif path.is_file():
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(marks.fill(path.read_text()))
            shutil.copymode(path, to)
