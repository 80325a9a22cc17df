"""nvidia-fs, the module of GPUDirect Storage: /proc/driver/nvidia-fs/{version,modules,stats}.

Formats: src/nvfs-stat.c and src/nvfs-proc.c of gds-nvidia-fs. Of its peers see nvidia_fs_peers.
Read and write counters grow only while the module's rw_stats_enabled is 1, and only for IO by way
of nvidia-fs: compat mode and P2PDMA are not counted (GDS troubleshooting guide, 5.9).
"""

import re
from typing import TypeVar

from pydantic import Field

from railwright.model import Model

PROC = "/proc/driver/nvidia-fs"


class IoCounters(Model):
    """Reads, or writes, since the module was loaded or its counters were set to 0.

    All but the errors are None where IO statistics are off. ``pg_cache`` are writes that went to
    the page cache and so not straight from the GPU; reads have none.
    """

    n: int | None = None
    ok: int | None = None
    err: int
    mib: int | None = None
    io_state_err: int
    bandwidth_mibs: int | None = None
    latency_us: int | None = None
    pg_cache: int | None = None
    pg_cache_fail: int | None = None
    pg_cache_eio: int | None = None


class Mappings(Model):
    """Buffers registered (Mmap), or GPU memory pinned to BAR1 (Bar1-map); ``free`` also munmap."""

    n: int
    ok: int
    err: int
    free: int
    callbacks: int | None = None
    active: int | None = None
    delay_frees: int | None = None


class Batches(Model):
    """IO handed over in batches."""

    n: int
    ok: int
    err: int
    latency_us: int


class GpuMemory(Model):
    """Memory of a GPU that is pinned for IO; ``cross_root_port_pct`` is the share of its IO that
    crossed root ports, None where peer statistics are off."""

    uuid: str
    registered_mib: int
    cache_mib: int
    max_pinned_mib: int | None = None
    cross_root_port_pct: int | None = None


class NvidiaFsStats(Model):
    """The counters; all but ``loaded`` are of a module that is.

    ``driver`` is the module's version with its patch level, ``gds`` the release that it came with
    (None in builds that do not say), ``stats_version`` that of this report. ``errors`` are counts
    by the names of the line Error.
    """

    loaded: bool = True
    gds: str | None = None
    driver: str | None = None
    stats_version: str | None = None
    peerdirect: bool | None = None
    io_stats: bool | None = None
    peer_io_stats: bool | None = None
    logging: str | None = None
    shadow_buffer_mib: int | None = None
    processes: int | None = None
    batches: Batches | None = None
    reads: IoCounters | None = None
    writes: IoCounters | None = None
    mmap: Mappings | None = None
    bar1_map: Mappings | None = None
    errors: dict[str, int] = Field(default={})
    gpus: dict[str, GpuMemory] = Field(default={})
    """By PCI address."""


_HEADS = {
    "gds": re.compile(r"GDS Version: (\S+)"),
    "stats_version": re.compile(r"NVFS statistics\(ver: *([\w.]+)\)"),
    "driver": re.compile(r"NVFS Driver\(version: *([\w.:]+)\)"),
    "logging": re.compile(r"Logging level: (\w+)"),
}
_PEERDIRECT = re.compile(r"Mellanox PeerDirect Supported: (True|False)")
_SWITCHES = re.compile(r"IO stats: (Enabled|Disabled), peer IO stats: (Enabled|Disabled)")
_SHADOW = re.compile(r"Active Shadow-Buffer \(MiB\): ([0-9]+)")
_PROCESSES = re.compile(r"Active Process: ([0-9]+)")
_COUNTERS = re.compile(r"([A-Z][\w -]*?)\s*: ((?:[\w./()%-]+=[0-9]+\s*)+)")
_GPU = re.compile(
    r"GPU ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+uuid: ?([0-9a-f-]+) : (.*)"
)
_PAIR = re.compile(r"([\w./()%-]+)=([0-9]+)")
_FIELDS = {
    "readMiB": "mib",
    "writeMiB": "mib",
    "Bandwidth(MiB/s)": "bandwidth_mibs",
    "Avg-Latency(usec)": "latency_us",
    "Avg-Submit-Latency(usec)": "latency_us",
    "munmap": "free",
}


def parse_stats(text: str, rc: int = 0) -> NvidiaFsStats:
    """Read /proc/driver/nvidia-fs/stats. Raises ValueError for another text, and a cut one."""
    if "No such file" in text:
        return NvidiaFsStats(loaded=False)
    heads = {name: found[1] for name, at in _HEADS.items() if (found := at.search(text))}
    if rc != 0 or "driver" not in heads:
        raise ValueError(f"expected nvidia-fs' stats, got {text.strip()[:80]!r} (exit {rc})")
    switches, peerdirect = _SWITCHES.search(text), _PEERDIRECT.search(text)
    shadow, processes = _SHADOW.search(text), _PROCESSES.search(text)
    counters = _counters(text)
    for line in ("Reads", "Writes", "Error"):
        if line not in counters:
            raise ValueError(f"expected the line {line} of nvidia-fs' stats: it is cut off")
    return NvidiaFsStats(
        gds=heads.get("gds"),
        driver=heads["driver"],
        stats_version=heads.get("stats_version"),
        peerdirect=peerdirect[1] == "True" if peerdirect else None,
        io_stats=switches[1] == "Enabled" if switches else None,
        peer_io_stats=switches[2] == "Enabled" if switches else None,
        logging=heads.get("logging"),
        shadow_buffer_mib=int(shadow[1]) if shadow else None,
        processes=int(processes[1]) if processes else None,
        batches=_model(Batches, counters, "Batches"),
        reads=_model(IoCounters, counters, "Reads"),
        writes=_model(IoCounters, counters, "Writes"),
        mmap=_model(Mappings, counters, "Mmap"),
        bar1_map=_model(Mappings, counters, "Bar1-map"),
        errors=counters["Error"],
        gpus=_gpus(text),
    )


def _counters(text: str) -> dict[str, dict[str, int]]:
    """Pairs by what stands before the colon; Reads and Writes have two lines each."""
    found: dict[str, dict[str, int]] = {}
    for line in map(str.strip, text.splitlines()):
        if (row := _COUNTERS.fullmatch(line)) and not line.startswith("GPU "):
            pairs = {key: int(value) for key, value in _PAIR.findall(row[2])}
            found.setdefault(row[1], {}).update(pairs)
    return found


_Kind = TypeVar("_Kind", bound=Model)


def _model(kind: type[_Kind], counters: dict[str, dict[str, int]], line: str) -> _Kind | None:
    """The counters of a line; a newer module may have more than are known here."""
    if line not in counters:
        return None
    named = {_FIELDS.get(k, k.replace("-", "_")): value for k, value in counters[line].items()}
    return kind.model_validate({k: v for k, v in named.items() if k in kind.model_fields})


def _gpus(text: str) -> dict[str, GpuMemory]:
    found = {}
    for line in text.splitlines():
        if not line.startswith("GPU "):
            continue
        row = _GPU.fullmatch(line.strip())
        if row is None:
            raise ValueError(f"expected a GPU of nvidia-fs' stats, got {line[:80]!r}")
        pairs = {key: int(value) for key, value in _PAIR.findall(row[3])}
        # Older modules call them MB. Source: GDS troubleshooting guide, 6.6.
        registered = pairs.get("Registered_MiB", pairs.get("Registered_MB"))
        cache = pairs.get("Cache_MiB", pairs.get("Cache_MB"))
        if registered is None or cache is None:
            raise ValueError(f"expected Registered_MiB and Cache_MiB of a GPU, got {line[:120]!r}")
        found[row[1]] = GpuMemory(
            uuid=row[2],
            registered_mib=registered,
            cache_mib=cache,
            max_pinned_mib=pairs.get("max_pinned_MiB"),
            cross_root_port_pct=pairs.get("cross_root_port(%)"),
        )
    return found


def parse_fs_version(text: str) -> str:
    """Read /proc/driver/nvidia-fs/version (``version: 2.28``). Raises ValueError for another."""
    found = re.fullmatch(r"version: ([0-9]+\.[0-9]+)", text.strip())
    if found is None:
        raise ValueError(f"expected version: of nvidia-fs, got {text.strip()[:80]!r}")
    return found[1]


def parse_fs_modules(text: str) -> dict[str, str]:
    """Read /proc/driver/nvidia-fs/modules: the drivers that have registered, with their versions.

    A storage driver that is not there moves nothing to GPU memory itself: gdscheck calls it
    unsupported. Raises ValueError for a line of another kind.
    """
    found = {}
    for line in filter(str.strip, text.splitlines()):
        row = re.fullmatch(r"([\w-]+):\s*(.*)", line.strip())
        if row is None:
            raise ValueError(f"expected a driver that uses nvidia-fs, got {line[:80]!r}")
        found[row[1]] = row[2]
    return found
