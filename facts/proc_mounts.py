"""What the mounts of /proc/mounts mean: the server and network of a Lustre, how NFS goes there."""

import re

from pydantic import Field

from facts.mounts import MountEntry, parse_mounts
from railwright.model import Model


class Mounted(Model):
    """One mounted file system.

    ``proto``, ``port``, ``nconnect`` and ``version`` are NFS's: of its options ``mountproto`` is
    that of the mount protocol, and tells nothing of the data. ``nids``, ``net`` (the network of
    the first), ``fsname``, ``subdir`` and ``flock`` are Lustre's. ``data`` is ext4's journal mode;
    None where it is not shown, which tells nothing, for the default is left out.
    """

    fstype: str
    source: str
    options: tuple[str, ...]
    proto: str | None = None
    port: int | None = None
    nconnect: int | None = None
    version: str | None = None
    nids: tuple[str, ...] = Field(default=())
    net: str | None = None
    fsname: str | None = None
    subdir: str | None = None
    flock: bool | None = None
    data: str | None = None


_LUSTRE = re.compile(r"(?P<nids>\S+@\S+?):/(?P<fsname>[^/\s]{1,8})(?P<subdir>/\S*)?")


def parse_proc_mounts(text: str, rc: int = 0) -> dict[str, Mounted]:
    """Mounts by their directory; of several on one the last lies on top. Raises ValueError."""
    if rc != 0:
        raise ValueError(f"/proc/mounts could not be read (exit {rc})")
    entries = parse_mounts(text)
    if not entries:
        raise ValueError("expected a mount at least, got none")
    return {entry.target: _mounted(entry) for entry in entries}


def _mounted(entry: MountEntry) -> Mounted:
    given = dict(option.partition("=")[::2] for option in entry.options)
    base = Mounted(fstype=entry.fstype, source=entry.source, options=entry.options)
    if entry.fstype in ("nfs", "nfs4"):
        return base.model_copy(
            update={
                "proto": given.get("proto"),
                "port": _number(given.get("port")),
                "nconnect": _number(given.get("nconnect")),
                "version": given.get("vers"),
            }
        )
    if entry.fstype == "lustre" and (found := _LUSTRE.fullmatch(entry.source)):
        nids = tuple(re.split("[:,]", found["nids"]))
        return base.model_copy(
            update={
                "nids": nids,
                "net": nids[0].partition("@")[2],
                "fsname": found["fsname"],
                "subdir": found["subdir"],
                "flock": "flock" in given or "localflock" in given,
            }
        )
    return base.model_copy(update={"data": given.get("data")})


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch("[0-9]{1,9}", text) else None
