"""Files as the probe prints them, for snapshots built by hand."""

from collections.abc import Mapping

from railwright.owned_unit import OwnedUnit

MARKER = "m-0"
MTIME = 1_700_000_000


def record(path: str, content: str, *, mode: str = "", mtime: int = MTIME) -> str:
    """One file; without a ``mode`` it has the one that files of ours have at such a place."""
    mode = mode or ("755" if path.startswith("/usr/local/sbin/") else "644")
    head = f"\n{MARKER} file file {mode} root {mtime} {len(content)} {path}\n"
    return f"{head}{MARKER} content\n{content}\n"


def records(files: Mapping[str, str], mtime: int = MTIME) -> str:
    return "".join(record(path, content, mtime=mtime) for path, content in files.items())


def metadata(path: str, mode: str = "644", mtime: int = MTIME) -> str:
    """A file whose content is not read."""
    return f"\n{MARKER} file file {mode} root {mtime} 64 {path}\n"


def enablement(unit: OwnedUnit) -> str:
    """The link by which ``unit`` is enabled."""
    return f"\n{MARKER} file link 644 root {MTIME} 64 {unit.link}\n{MARKER} target {unit.path}\n"
