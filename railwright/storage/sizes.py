"""How a mount is measured: block size and streams by its kind, and sizes that fit it. Pure."""

from typing import Literal

from railwright.model import Model
from railwright.schema.mounted import Throughput

Kind = Literal["lustre", "beegfs", "nvmeof", "nfs", "scratch"]

SHARE = 10
"""At most one part in so many of what is free is written, by all nodes at once."""
LEAST_MIB = 64
"""Less than that is no measurement: it is gone within caches of drives and servers."""
MEMORIES = 2
"""So many times the memory has to go through a page cache until it tells of the storage.
Source: BeeGFS documentation, benchmarking: twice the memory at least."""
_MIB_PER_GIB = 1024


class Profile(Model):
    """How fio loads a kind of mount; ``why`` has the sources of the numbers.

    ``shared`` is that nodes share the servers and the space of such a mount. ``file_systems`` are
    those that may be mounted, none where any may.
    """

    block_mib: int
    jobs: int
    depth: int
    engine: Literal["psync", "libaio"]
    shared: bool
    file_systems: frozenset[str] = frozenset()
    why: str


_SYNC = (
    "Each stream waits for its own IO (psync), as not each client takes it asynchronously (Lustre "
    "since 2.14, LU-4198); that 16 are enough is a guess."
)
_DRIVES = (
    "1 MiB, at least 8 streams, 64 blocks on their way: Google Cloud, benchmarking of disks, "
    "throughput test."
)

PROFILES: dict[Kind, Profile] = {
    "lustre": Profile(
        block_mib=16,
        jobs=16,
        depth=1,
        engine="psync",
        shared=True,
        file_systems=frozenset({"lustre"}),
        why="Four RPCs of 4 MiB (DT_DEF_BRW_SIZE of Lustre's dt_object.h), which direct IO sends "
        f"at once since 2.15 (LU-13798). {_SYNC}",
    ),
    "beegfs": Profile(
        block_mib=4,
        jobs=16,
        depth=1,
        engine="psync",
        shared=True,
        file_systems=frozenset({"beegfs"}),
        why=f"A chunk of 1 MiB on each of 4 targets: BeeGFS documentation, striping. {_SYNC}",
    ),
    "nfs": Profile(
        block_mib=1,
        jobs=16,
        depth=1,
        engine="psync",
        shared=True,
        file_systems=frozenset({"nfs", "nfs4"}),
        why="1 MiB is the most of one READ or WRITE: NFS_MAX_FILE_IO_SIZE of the kernel's "
        f"nfs_xdr.h. {_SYNC}",
    ),
    "nvmeof": Profile(
        block_mib=1,
        jobs=8,
        depth=8,
        engine="libaio",
        shared=False,
        why="1 MiB is the most of one command over RDMA: NVME_RDMA_MAX_SEGMENTS of 4 KiB, the "
        f"kernel's nvme/host/rdma.c. {_DRIVES}",
    ),
    "scratch": Profile(block_mib=1, jobs=8, depth=8, engine="libaio", shared=False, why=_DRIVES),
}


class Target(Model):
    """A mount to be measured, and the directory on it in which that is done."""

    mount: str
    directory: str
    kind: Kind
    expected: Throughput = Throughput()

    @property
    def profile(self) -> Profile:
        return PROFILES[self.kind]


class Wanted(Model):
    """What was asked for: seconds each way, the most that a node writes, and which way it goes.

    ``buffered`` is through the page cache, for file systems that refuse direct IO.
    """

    seconds: int = 10
    most_gib: int = 64
    buffered: bool = False


class Load(Model):
    """What fio is told: ``jobs`` files of ``file_mib`` each.

    ``seconds`` bounds the time, and files are gone through again until then; None is that each is
    gone through once. ``limit_s`` is when fio is given up.
    """

    block_mib: int
    jobs: int
    depth: int
    engine: Literal["psync", "libaio"]
    direct: bool
    file_mib: int
    seconds: int | None
    limit_s: int

    @property
    def size_mib(self) -> int:
        return self.jobs * self.file_mib

    def __str__(self) -> str:
        way = "direct" if self.direct else "through the page cache"
        depth = f", {self.depth} on their way each" if self.depth > 1 else ""
        return f"{self.jobs} streams of {self.block_mib} MiB blocks{depth}, {way}"


_LATE_S = 60
"""Seconds beyond its time that fio may take: IO on its way has to end, and the last fsync."""
_LEAST_MIB_S, _MOST_S = 100, 3600
"""What is gone through once is given up after an hour, or where it is slower than that in MiB/s."""


def load(target: Target, wanted: Wanted, free_mib: int, memory_mib: int, at_once: int) -> Load:
    """How ``target`` is measured where ``at_once`` nodes do so together.

    Raises ValueError where it has no room for that.
    """
    nodes = at_once if target.profile.shared else 1
    room = free_mib // SHARE // nodes
    if wanted.buffered:
        return _buffered(target.profile, wanted, room, memory_mib)
    size = min(room, wanted.most_gib * _MIB_PER_GIB)
    if size < LEAST_MIB:
        least = LEAST_MIB * SHARE * nodes
        each = f" for {nodes} hosts at once" if nodes > 1 else ""
        raise ValueError(f"expected {least} MiB free at least{each}, got {free_mib} MiB")
    profile = target.profile
    jobs, file_mib = _files(profile, profile.depth, size)
    return Load(
        block_mib=profile.block_mib,
        jobs=jobs,
        depth=profile.depth,
        engine=profile.engine,
        direct=True,
        file_mib=file_mib,
        seconds=wanted.seconds,
        limit_s=wanted.seconds + _LATE_S,
    )


def _buffered(profile: Profile, wanted: Wanted, room: int, memory_mib: int) -> Load:
    need = MEMORIES * memory_mib
    if need > room:
        raise ValueError(
            f"through the page cache it takes {need} MiB, {MEMORIES} times the memory, and may "
            f"take {room} MiB: a part in {SHARE} of what is free"
        )
    if need > wanted.most_gib * _MIB_PER_GIB:
        raise ValueError(
            f"through the page cache it takes {need} MiB, {MEMORIES} times the memory: "
            f"--max-gib {-(-need // _MIB_PER_GIB)} allows it"
        )
    jobs, file_mib = _files(profile, 1, need + profile.jobs * profile.block_mib)
    return Load(
        block_mib=profile.block_mib,
        jobs=jobs,
        depth=1,
        engine="psync",
        direct=False,
        file_mib=file_mib,
        seconds=None,
        limit_s=min(_MOST_S, _LATE_S + need // _LEAST_MIB_S),
    )


def _files(profile: Profile, depth: int, size_mib: int) -> tuple[int, int]:
    """How many files and how long, in whole blocks; each holds what is on its way at once."""
    jobs = max(1, min(profile.jobs, size_mib // (profile.block_mib * depth)))
    return jobs, size_mib // jobs // profile.block_mib * profile.block_mib
