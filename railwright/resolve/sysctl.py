"""Which file decides a kernel parameter at boot, by the rules of systemd-sysctl.

Source: sysctl.d(5) and systemd's src/sysctl/sysctl.c. What systemd 252 does with each form of a
line, and which module brings which key, was tried on Debian 12 (kernel 6.1).
"""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from railwright.files import FileRecord, effective_files
from railwright.model import Model
from railwright.schema.sysctl import EXCLUSIVE, normal_key

DIRECTORIES = (
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)
SYSCTL_CONF = "/etc/sysctl.conf"
"""systemd reads it only through a link in sysctl.d; ``sysctl --system`` reads it last of all."""

READ_BYTES = 65536
"""How much of a file the probe brings; of a longer one nothing certain can be said."""

_MODULES = (
    ("net.netfilter.nf_conntrack_", "nf_conntrack"),
    ("net.nf_conntrack_max", "nf_conntrack"),
    ("net.bridge.bridge-nf-", "br_netfilter"),
    ("sunrpc.svc_rdma.", "rpcrdma"),
    ("sunrpc.rdma_", "rpcrdma"),
    ("sunrpc.", "sunrpc"),
    ("fs.nfs.nlm_", "lockd"),
    ("fs.nfs.nsm_", "lockd"),
    ("fs.nfs.idmap_cache_timeout", "nfsv4"),
    ("fs.nfs.nfs_callback_tcpport", "nfsv4"),
    ("fs.nfs.", "nfs"),
    ("net.ipv4.vs.", "ip_vs"),
    ("net.iw_cm.", "iw_cm"),
    ("net.rdma_ucm.", "rdma_ucm"),
    ("net.rds.", "rds"),
    ("net.sctp.", "sctp"),
    ("net.smc.", "smc"),
    ("dev.raid.", "md_mod"),
)
_PER_INTERFACE = re.compile(r"^(net\.ipv[46]\.(?:conf|neigh))\.([^.]+)\.([^.]+)$")
_SWAP = str.maketrans("./", "/.")


class Assignment(Model):
    """A line that says something of a key, or of all keys that match a pattern.

    ``key`` is written as ``sysctl -a`` does; ``value`` is None for ``-key``, which keeps patterns
    off the key and cancels what was said of it before. ``path`` is where a link leads to, ``name``
    the name under which the file is sorted.
    """

    key: str
    value: str | None
    path: str
    line: int
    name: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def is_pattern(self) -> bool:
        return any(sign in self.key for sign in "*?[")

    def covers(self, key: str) -> bool:
        """Whether the line speaks of ``key``, by its name or by a pattern (as glob(7) does)."""
        if not self.is_pattern:
            return self.key == key
        ours, theirs = self.key.split("."), key.split(".")
        return len(ours) == len(theirs) and all(
            fnmatchcase(part, pattern) for part, pattern in zip(theirs, ours, strict=True)
        )


class BadLine(Model):
    """A line that is no assignment; ``fatal`` where systemd-sysctl.service fails because of it."""

    path: str
    line: int
    text: str
    reason: str
    fatal: bool


class SysctlFiles(Model):
    """What a node's files say of its kernel parameters.

    ``read`` has the lines that systemd reads, in its order; ``applied`` those that remain, in the
    order in which it writes them; ``conf`` those of /etc/sysctl.conf; ``unread`` the paths that
    could not be read, so that no decision is certain.
    """

    read: tuple[Assignment, ...] = ()
    applied: tuple[Assignment, ...] = ()
    conf: tuple[Assignment, ...] = ()
    bad: tuple[BadLine, ...] = ()
    unread: tuple[str, ...] = ()


class Decision(Model):
    """Who decides a key at boot.

    ``rival`` is a line, applied after the winner, that sets the other of an exclusive pair and so
    zeroes the key; ``reload`` is the line of /etc/sysctl.conf, which wins when somebody runs
    ``sysctl --system``; ``others`` are all further lines that set the key.
    """

    winner: Assignment | None = None
    rival: Assignment | None = None
    reload: Assignment | None = None
    others: tuple[Assignment, ...] = ()


def proc_path(key: str) -> str:
    """The file of a key: ``net.ipv4.conf.eth0/100.forwarding`` is that of ``eth0.100``."""
    return f"/proc/sys/{key.translate(_SWAP)}"


def module_of(key: str) -> str | None:
    """The module that brings ``key`` into being, where that is known for certain."""
    return next((module for prefix, module in _MODULES if key.startswith(prefix)), None)


def waits_for_interface(key: str, known: Iterable[str]) -> str | None:
    """The network interface that ``key`` waits for, judged by the keys that are ``known``.

    None where the interface is there, or where no interface has such a key.
    """
    found = _PER_INTERFACE.match(key)
    if found is None:
        return None
    family, interface, leaf = found.groups()
    keys = set(known)
    is_here = any(other.startswith(f"{family}.{interface}.") for other in keys)
    return interface if f"{family}.default.{leaf}" in keys and not is_here else None


def normal_value(value: object) -> str:
    """A value as text with single blanks, hexadecimal numbers as decimal ones."""
    words = value if isinstance(value, tuple | list) else str(value).split()
    return " ".join(
        str(int(word, 16)) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", word) else word
        for word in map(str, words)
    )


def read_sysctl_files(records: Iterable[FileRecord]) -> SysctlFiles:
    """Read the drop-ins that count, and /etc/sysctl.conf, of all files of a node."""
    files = list(records)
    read: list[Assignment] = []
    bad: list[BadLine] = []
    unread: list[str] = []
    for record in effective_files(files, DIRECTORIES):
        _read(record, read, bad, unread)
    conf: list[Assignment] = []
    for record in files:
        if record.path == SYSCTL_CONF:
            bad_here: list[BadLine] = []
            _read(record, conf, bad_here, unread)
            # Nobody but a person who runs sysctl reads it where no link leads to it.
            linked = {assignment.path for assignment in read} | {line.path for line in bad}
            if SYSCTL_CONF not in linked:
                bad.extend(line.model_copy(update={"fatal": False}) for line in bad_here)
    return SysctlFiles(
        read=tuple(read),
        applied=tuple(_applied(read)),
        conf=tuple(conf),
        bad=tuple(bad),
        unread=tuple(dict.fromkeys(unread)),
    )


def decide(files: SysctlFiles, key: str) -> Decision:
    """Who decides ``key``: the last line that names it, else the last pattern that matches it."""
    index, winner = _winner(files, key)
    rival = None
    for other in (a if key == b else b for a, b in EXCLUSIVE if key in (a, b)):
        position, line = _winner(files, other)
        # A zero that is written to a zero changes nothing, so the key keeps its value.
        if line is not None and line.value not in (None, "0") and (position or 0) >= (index or 0):
            rival = line
    return Decision(
        winner=winner,
        rival=rival,
        reload=next((x for x in reversed(files.conf) if x.key == key and x.value), None),
        others=tuple(line for line in files.read if line.covers(key) and line != winner),
    )


def _winner(files: SysctlFiles, key: str) -> tuple[int | None, Assignment | None]:
    covering = [(n, line) for n, line in enumerate(files.applied) if line.covers(key)]
    named = [(n, line) for n, line in covering if not line.is_pattern]
    patterns = [(n, line) for n, line in covering if line.value is not None]
    return next(iter(named or reversed(patterns)), (None, None))


def _applied(read: Iterable[Assignment]) -> list[Assignment]:
    """The lines that remain; one that repeats a value keeps the place of the first."""
    remaining: dict[str, Assignment] = {}
    for line in read:
        before = remaining.get(line.key)
        if before is not None and before.value != line.value:
            del remaining[line.key]
        remaining[line.key] = line
    return list(remaining.values())


def _read(
    record: FileRecord, read: list[Assignment], bad: list[BadLine], unread: list[str]
) -> None:
    if record.kind == "link" and not record.target:
        return
    path = record.target or record.path
    if record.content is None or (record.size or 0) > READ_BYTES:
        unread.append(path)
        return
    for found in _lines(record.content, path, record.name):
        if isinstance(found, Assignment):
            read.append(found)
        else:
            bad.append(found)


def _lines(content: str, path: str, name: str) -> Iterator[Assignment | BadLine]:
    for number, raw in enumerate(content.split("\n"), start=1):
        text = raw.strip(" \t\r")
        if not text or text[0] in "#;":
            continue
        left, sets, value = text.partition("=")
        problem = _problem(left.strip(), bool(sets))
        if problem is not None:
            reason, fatal = problem
            yield BadLine(path=path, line=number, text=text, reason=reason, fatal=fatal)
            continue
        yield Assignment(
            key=_key(left.strip().removeprefix("-")),
            value=value.strip() if sets else None,
            path=path,
            line=number,
            name=name,
        )


def _problem(left: str, sets: bool) -> tuple[str, bool] | None:
    """What is wrong with a line of which ``left`` is what stands before ``=``, and if fatally."""
    key = left.removeprefix("-")
    if not sets and not left.startswith("-"):
        return "is not an assignment", True
    if key.startswith("//"):
        # An assignment to /proc/sys itself fails, one to a file that is not there does not.
        return "is no comment: only # and ; begin one", sets and not _key(key)
    if not _key(key):
        return "names no key", sets
    if re.search(r"\s", key):
        return "has blanks in its key", False
    return None


def _key(text: str) -> str:
    return ".".join(part for part in normal_key(text.strip()).split(".") if part)
