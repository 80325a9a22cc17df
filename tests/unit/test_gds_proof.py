"""Which way IO took: by the counters of nvidia-fs, and by those of libcufile."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nvidia_fs import parse_stats
from railwright.gds.cufile import Cufile
from railwright.gds.proof import (
    IoDone,
    by_cufile,
    by_nvidia_fs,
    done_by,
    parse_gdsio,
    parse_gpu_stats,
    ways_through_host,
)

MIB = 1 << 20
GIB = 1 << 30

# As src/nvfs-stat.c of gds-nvidia-fs prints it.
STATS = """GDS Version: 1.13.1.3
NVFS statistics(ver: 4.0)
NVFS Driver(version: {driver})
IO stats: {io}, peer IO stats: Enabled
Logging level: warn

Active Shadow-Buffer (MiB): 0
Active Process: 1
{reads}
{writes}
Error\t\t\t\t: cpu-gpu-pages=0 sg-ext=0 dma-map=0 dma-ref=0
Ops\t\t\t\t: Read=0 Write=0 BatchIO=0
"""


def stats(read: int = 0, written: int = 0, driver: str = "2.24.2", on: bool = True) -> Any:
    """A reading at which so many MiB have been moved."""
    reads = f"Reads\t\t: n={read} ok={read} err=0 readMiB={read} io_state_err=0"
    writes = f"Writes\t\t: n={written} ok={written} err=0 writeMiB={written} io_state_err=0"
    if not on:
        reads, writes = "Reads\t\t: err=0 io_state_err=0", "Writes\t\t: err=0 io_state_err=0"
    switch = "Enabled" if on else "Disabled"
    return parse_stats(STATS.format(driver=driver, io=switch, reads=reads, writes=writes))


ABSENT = parse_stats("cat: /proc/driver/nvidia-fs/stats: No such file or directory", rc=1)


def test_io_that_nvidia_fs_counted_went_through_it() -> None:
    proof = by_nvidia_fs(stats(10, 5), stats(1034, 517), IoDone(read=GIB, written=GIB // 2))
    assert proof.way == "nvidia-fs"
    assert proof.shows == "nvidia-fs moved 1024 of 1024 MiB read, 512 of 512 MiB written"


def test_bug_44_io_that_nvidia_fs_did_not_count_went_through_the_host() -> None:
    proof = by_nvidia_fs(stats(10), stats(10), IoDone(read=GIB))
    assert (proof.way, proof.shows) == ("host", "nvidia-fs moved 0 of 1024 MiB read")
    healthy = by_nvidia_fs(stats(10), stats(1034), IoDone(read=GIB))
    assert healthy.way == "nvidia-fs"


def test_reads_that_went_through_do_not_speak_for_writes() -> None:
    proof = by_nvidia_fs(stats(0), stats(1024), IoDone(read=GIB, written=GIB))
    assert proof.way == "both"
    assert by_nvidia_fs(stats(0), stats(512), IoDone(read=GIB)).way == "both"


def test_counters_of_whole_mib_are_off_by_one_at_most() -> None:
    assert by_nvidia_fs(stats(10), stats(1033), IoDone(read=GIB)).way == "nvidia-fs"
    assert by_nvidia_fs(stats(10), stats(1032), IoDone(read=GIB)).way == "both"


@pytest.mark.parametrize(
    ("before", "after", "done", "said"),
    [
        (ABSENT, ABSENT, IoDone(read=GIB), "nvidia-fs is not loaded"),
        (stats(), ABSENT, IoDone(read=GIB), "nvidia-fs is not loaded"),
        (stats(on=False), stats(on=False), IoDone(read=GIB), "IO stats: Disabled"),
        (stats(on=False), stats(9999), IoDone(read=GIB), "IO stats: Disabled"),
        (stats(2000), stats(1024), IoDone(read=GIB), "began anew"),
        (stats(0), stats(1024, driver="2.25.7"), IoDone(read=GIB), "began anew"),
        (stats(0), stats(0), IoDone(), "less than 1 MiB"),
        (stats(0), stats(0), IoDone(read=MIB - 1), "less than 1 MiB"),
    ],
)
def test_what_the_counters_cannot_show_is_not_known(
    before: Any, after: Any, done: IoDone, said: str
) -> None:
    proof = by_nvidia_fs(before, after, done)
    assert proof.way == "unknown"
    assert said in proof.shows


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 2**40))
def test_it_went_through_only_where_as_much_was_counted_as_was_done(
    start: int, grown: int, done: int
) -> None:
    proof = by_nvidia_fs(stats(start), stats(start + grown), IoDone(read=done))
    assert (proof.way == "nvidia-fs") == (done >= MIB and grown + 1 >= done // MIB)
    assert (proof.way == "unknown") == (done < MIB)


# As gds_stats prints it: before GDS 1.14, and from then on (also at the end of cufile.log).
OLD = (
    "PER_GPU STATS:\n"
    "GPU 0 Read: bw=0 util(%)=0 n=0 posix=0 unalign=0 r_sparse=0 r_inline=0 err=0 MiB=0 "
    "Write: bw=0 util(%)=0 n=0 posix=0 unalign=0 err=0 MiB=0 "
    "BufRegister: n=0 err=0 free=0 MiB=0\n"
    "GPU 2 Read: bw=6.32129 util(%)=797 n=78193 posix={posix} unalign=0 r_sparse=0 r_inline=0 "
    "err=0 MiB=78193 Write: bw=0 util(%)=0 n=0 posix=0 unalign=0 err=0 MiB=0 "
    "BufRegister: n=8 err=0 free=0 MiB=8\n"
)
NEW = (
    " 29-04-2026 11:39:01:100 [pid=1 tid=1] INFO  0:42 "
    "GPU 0(UUID: 7d1a) Read: bw=0 util(%)=0 n=0 pcie p2pdma=0 nvfs=0 posix=0 unalign=0 dr=0 "
    "r_sparse=0 r_inline=0 err=0 MiB=0 Write: bw=5.66211 util(%)=778 n={n} pcie p2pdma={p2pdma} "
    "nvfs={nvfs} posix={posix} unalign=0 dr=0 err=0 MiB=28784 BufRegister: n=8 err=0 free=0 MiB=8\n"
)


def test_counts_of_each_gpu_and_direction_are_read() -> None:
    (one,) = parse_gpu_stats(NEW.format(n=10, p2pdma=7, nvfs=2, posix=1))
    assert (one.gpu, one.direction, one.ios, one.mib) == (0, "write", 10, 28784)
    assert (one.p2pdma, one.nvfs, one.posix, one.errors) == (7, 2, 1, 0)
    (old,) = parse_gpu_stats(OLD.format(posix=0))
    assert (old.gpu, old.direction, old.ios, old.nvfs, old.p2pdma) == (2, "read", 78193, None, None)


@pytest.mark.parametrize(
    ("text", "way"),
    [
        (NEW.format(n=9, p2pdma=0, nvfs=9, posix=0), "nvidia-fs"),
        (NEW.format(n=9, p2pdma=9, nvfs=0, posix=0), "p2pdma"),
        (NEW.format(n=9, p2pdma=0, nvfs=0, posix=9), "host"),
        (NEW.format(n=9, p2pdma=8, nvfs=0, posix=1), "both"),
        (NEW.format(n=0, p2pdma=0, nvfs=0, posix=0), "unknown"),
        (OLD.format(posix=0), "direct"),
        (OLD.format(posix=78193), "host"),
        (OLD.format(posix=1), "both"),
    ],
)
def test_libcufiles_own_counts_tell_the_way(text: str, way: str) -> None:
    assert by_cufile(parse_gpu_stats(text)).way == way


@pytest.mark.parametrize("text", ["", "cuFile STATS VERSION : 3\nGLOBAL STATS:\nTotal Files: 8\n"])
def test_statistics_without_gpus_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cufile_stats has to be 3"):
        parse_gpu_stats(text)


def test_a_line_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="expected posix="):
        parse_gpu_stats("GPU 0 Read: n=1 Write: n=1 posix=0\n")


GDSIO = (
    "IoType: READ XferType: GPUD Threads: 8 DataSetSize: 1048576/4096000(KiB) IOSize: 1024(KiB) "
    "Throughput: 6.524658 GiB/sec, Avg_Latency: 1197.37 usecs ops: 1024 total_time 119.67 secs\n"
    "IoType: RANDWRITE XferType: CPU_GPU Threads: 8 DataSetSize: 2048/4096000(KiB) IOSize: 4(KiB) "
    "Throughput: 0.1 GiB/sec, Avg_Latency: 1.5 usecs ops: 2 total_time 1.0 secs\n"
)


def test_what_gdsio_did_is_read_and_what_it_claims_is_no_proof() -> None:
    runs = parse_gdsio(GDSIO)
    assert [(r.direction, r.asked, r.gib_per_s) for r in runs] == [
        ("read", "GPUD", 6.524658),
        ("write", "CPU_GPU", 0.1),
    ]
    assert done_by(runs) == IoDone(read=GIB, written=2 * MIB)
    # It says GPUD, and nvidia-fs saw nothing of it.
    assert by_nvidia_fs(stats(), stats(), done_by(runs)).way == "host"
    with pytest.raises(ValueError, match="expected a line 'IoType"):
        parse_gdsio("file register error: GPUDirect Storage not supported")


@pytest.mark.parametrize(
    ("text", "file_system", "ways"),
    [
        ("{}", "ext4", ["properties.allow_compat_mode"]),
        ('{"properties": {"allow_compat_mode": false}}', "ext4", []),
        (
            '{"properties": {"allow_compat_mode": false}, "fs": {"lustre": '
            '{"posix_gds_min_kb": 4}}}',
            "lustre",
            ["fs.lustre.posix_gds_min_kb"],
        ),
        (
            '{"properties": {"allow_compat_mode": false}, "fs": {"lustre": '
            '{"posix_gds_min_kb": 4}}}',
            "ext4",
            [],
        ),
        (
            '{"properties": {"allow_compat_mode": false, "force_compat_mode": true}}',
            "weka",
            ["properties.force_compat_mode", "fs.weka.rdma_write_support"],
        ),
        (
            '{"properties": {"allow_compat_mode": false, "rdma_dynamic_routing": true, '
            '"rdma_dynamic_routing_order": ["SYS_MEM"]}}',
            "nfs",
            ["properties.rdma_dynamic_routing_order"],
        ),
    ],
)
def test_without_counters_a_configuration_that_allows_no_other_way_is_the_proof(
    text: str, file_system: str, ways: list[str]
) -> None:
    file = Cufile(text)

    def value_at(path: tuple[str, ...]) -> Any:
        found = file.find(path)
        return found.value if found else None

    assert list(ways_through_host(value_at, file_system)) == ways
