"""Whether IO between storage and GPUs took the direct path, or went through the host.

With nvidia-fs its counters tell, as soon as they are on. In P2PDMA mode there is no module that
counts, so that what libcufile says of the process is all there is: ``gds_stats -p PID -l 3``, or
the same lines at the end of cufile.log, with ``profile.cufile_stats`` 3. What gdsio prints
(``XferType: GPUD``) only says what it was asked for: it stands there in compatibility mode too.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal

from facts.cufile_log import CufileLog
from facts.nvidia_fs import NvidiaFsStats
from railwright.gds.cufile import Path
from railwright.gds.jsonc import Json
from railwright.model import Model

Way = Literal["nvidia-fs", "p2pdma", "direct", "host", "both", "unknown"]
"""``direct`` is nvidia-fs or P2PDMA, where libcufile is too old to say which; ``both`` is that
part of it went through the host."""

_MIB = 1 << 20
# Read and written bytes are summed and then cut to whole MiB, so a difference is off by up to one.
_ROUNDING_MIB = 1


class IoDone(Model):
    """The IO between two readings, in bytes."""

    read: int = 0
    written: int = 0


class Proof(Model):
    """The way that IO took, and what shows it."""

    way: Way
    shows: str


class GpuIo(Model):
    """What libcufile counted of one GPU in one process and one direction; bytes in MiB.

    ``nvfs`` and ``p2pdma`` are None before GDS 1.14, which tells only what went through the host.
    """

    gpu: int
    direction: Literal["read", "write"]
    ios: int
    posix: int
    nvfs: int | None = None
    p2pdma: int | None = None
    errors: int = 0
    mib: int = 0


class GdsioRun(Model):
    """One line of results of gdsio; ``asked`` is its XferType."""

    direction: Literal["read", "write"]
    asked: str
    moved_kib: int
    gib_per_s: float


def by_nvidia_fs(before: NvidiaFsStats, after: NvidiaFsStats, done: IoDone) -> Proof:
    """What two readings of nvidia-fs show of the IO between them."""
    if not (before.loaded and after.loaded):
        return Proof(way="unknown", shows="nvidia-fs is not loaded: nothing went through it")
    asked = {"read": done.read // _MIB, "written": done.written // _MIB}
    if not any(asked.values()):
        return Proof(way="unknown", shows="less than 1 MiB of IO: the counters are in whole MiB")
    first, last = _moved(before), _moved(after)
    if first is None or last is None:
        how = "echo 1 > /sys/module/nvidia_fs/parameters/rw_stats_enabled"
        return Proof(way="unknown", shows=f"nvidia-fs counts no IO (IO stats: Disabled): {how}")
    grown = {name: last[name] - first[name] for name in first}
    if before.driver != after.driver or min(grown.values()) < 0:
        return Proof(way="unknown", shows="the counters began anew between the readings")
    asked = {name: mib for name, mib in asked.items() if mib}
    told = ", ".join(f"{grown[name]} of {mib} MiB {name}" for name, mib in asked.items())
    shows = f"nvidia-fs moved {told}"
    if all(grown[name] + _ROUNDING_MIB >= mib for name, mib in asked.items()):
        return Proof(way="nvidia-fs", shows=shows)
    return Proof(way="both" if any(grown[name] for name in asked) else "host", shows=shows)


def _moved(stats: NvidiaFsStats) -> dict[str, int] | None:
    """MiB that went through nvidia-fs since it began to count, None where it counts no IO."""
    reads, writes = stats.reads, stats.writes
    if not stats.io_stats or reads is None or writes is None:
        return None
    if reads.mib is None or writes.mib is None:
        return None
    return {"read": reads.mib, "written": writes.mib}


_GPU = re.compile(r"^.*?\bGPU (\d+)(?:\([^)]*\))?\s+Read: (.*?) Write: (.*?)(?: BufRegister:.*)?$")
_COUNT = re.compile(r"(?<!\S)((?:pcie )?[A-Za-z]\w*)=(\d+)(?!\S)")


def parse_gpu_stats(text: str) -> tuple[GpuIo, ...]:
    """The PER_GPU STATS of ``gds_stats -l 3`` or of cufile.log, without GPUs that did no IO.

    Raises ValueError where there are none: ``profile.cufile_stats`` is less than 3.
    """
    rows = [row for line in text.splitlines() if (row := _GPU.match(line.rstrip()))]
    if not rows:
        raise ValueError(
            "expected PER_GPU STATS, got none: profile.cufile_stats has to be 3 for the process"
        )
    found = [_gpu_io(int(row[1]), way, row[at]) for row in rows for way, at in _DIRECTIONS]
    return tuple(one for one in found if one.ios or one.errors)


_DIRECTIONS: tuple[tuple[Literal["read", "write"], int], ...] = (("read", 2), ("write", 3))


def _gpu_io(gpu: int, direction: Literal["read", "write"], text: str) -> GpuIo:
    counts = {name.lower(): int(value) for name, value in _COUNT.findall(text)}
    if missing := [name for name in ("n", "posix") if name not in counts]:
        raise ValueError(f"GPU {gpu} {direction}: expected {missing[0]}=, got {text[:60]!r}")
    return GpuIo(
        gpu=gpu,
        direction=direction,
        ios=counts["n"],
        posix=counts["posix"],
        nvfs=counts.get("nvfs"),
        p2pdma=counts.get("pcie p2pdma", counts.get("p2pdma")),
        errors=counts.get("err", 0),
        mib=counts.get("mib", 0),
    )


def by_cufile(stats: tuple[GpuIo, ...]) -> Proof:
    """What libcufile's own counters show of one process."""
    ios, posix = sum(one.ios for one in stats), sum(one.posix for one in stats)
    told = f"{ios} IO, {posix} of them through the host"
    if not ios:
        return Proof(way="unknown", shows="the process did no IO with GPU memory")
    if posix:
        return Proof(way="host" if posix >= ios else "both", shows=told)
    nvfs = sum(one.nvfs or 0 for one in stats)
    p2pdma = sum(one.p2pdma or 0 for one in stats)
    if nvfs and not p2pdma:
        return Proof(way="nvidia-fs", shows=f"{told}, {nvfs} through nvidia-fs")
    if p2pdma and not nvfs:
        return Proof(way="p2pdma", shows=f"{told}, {p2pdma} by P2PDMA")
    return Proof(way="direct", shows=told)


def by_log(log: CufileLog, stats: tuple[GpuIo, ...] | None) -> Proof:
    """What a process' cufile.log shows; ``stats`` is None where the log has no counters.

    Lines of compatibility mode tell of files, and counters of IO: these count more.
    """
    if stats is not None:
        return by_cufile(stats)
    if log.compat:
        places = ", ".join(dict.fromkeys(line.place for line in log.compat))
        told = f"lines of compatibility mode: {len(log.compat)} ({places})"
        return Proof(way="host", shows=told)
    how = "profile.cufile_stats has to be 3 for the process"
    return Proof(way="unknown", shows=f"no line of compatibility mode, and no counters: {how}")


_GDSIO = re.compile(
    r"IoType: (?:RAND)?(READ|WRITE) XferType: (\S+) .*?DataSetSize: (\d+)/\d+\(KiB\)"
    r".*?Throughput: ([0-9.]+) GiB/sec",
    re.DOTALL,
)


def parse_gdsio(text: str) -> tuple[GdsioRun, ...]:
    """The results in what gdsio printed. Raises ValueError where there are none."""
    found = tuple(
        GdsioRun.model_validate(
            {
                "direction": row[1].lower(),
                "asked": row[2],
                "moved_kib": row[3],
                "gib_per_s": row[4],
            }
        )
        for row in _GDSIO.finditer(text)
    )
    if not found:
        raise ValueError(f"expected a line 'IoType: ...' of gdsio, got {text.strip()[-60:]!r}")
    return found


def done_by(runs: tuple[GdsioRun, ...]) -> IoDone:
    """How much IO the runs of gdsio did."""
    moved = {way: sum(r.moved_kib for r in runs if r.direction == way) for way in ("read", "write")}
    return IoDone(read=moved["read"] * 1024, written=moved["write"] * 1024)


# What sends IO through the host even with allow_compat_mode false.
# Source: NVIDIA cuFile API reference, compatibility mode.
_THROUGH_HOST: tuple[tuple[Path, Callable[[Json], bool]], ...] = (
    (("properties", "allow_compat_mode"), lambda value: value is not False),
    (("properties", "force_compat_mode"), lambda value: value is True),
    (("properties", "gds_rdma_write_support"), lambda value: value is False),
    (("fs", "generic", "posix_unaligned_writes"), lambda value: value is True),
    (("fs", "lustre", "posix_gds_min_kb"), bool),
    (("fs", "beegfs", "posix_gds_min_kb"), bool),
    (("fs", "gpfs", "gds_write_support"), lambda value: value is False),
    (("fs", "weka", "rdma_write_support"), lambda value: value is not True),
)


def ways_through_host(value_at: Callable[[Path], Json], file_system: str) -> Iterator[str]:
    """Keys by which a configuration lets IO on ``file_system`` go through the host.

    ``value_at`` is None where a key is not there. Where there are none, IO that succeeds took the
    direct path: that is the proof without any counters.
    """
    for path, lets in _THROUGH_HOST:
        counts = path[0] != "fs" or path[1] in ("generic", file_system)
        if counts and lets(value_at(path)):
            yield ".".join(path)
    routes = value_at(("properties", "rdma_dynamic_routing_order"))
    if value_at(("properties", "rdma_dynamic_routing")) is True and routes == ["SYS_MEM"]:
        yield "properties.rdma_dynamic_routing_order"
