"""nvidia-fs by its files under /proc. The recorded corpus is read in test_parse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nvidia_fs import NvidiaFsStats, parse_fs_modules, parse_fs_version, parse_stats
from facts.nvidia_fs_peers import Affinity, parse_peer_affinity, parse_peer_distance

# As nvfs_stats_show prints it with rw_stats_enabled 0.
QUIET = """\
GDS Version: 1.17.1.22 
NVFS statistics(ver: 4.0)
NVFS Driver(version: 2.28.4)
Mellanox PeerDirect Supported: False
IO stats: Disabled, peer IO stats: Disabled
Logging level: info

Active Shadow-Buffer (MiB): 0
Active Process: 0
Reads\t\t\t\t: err=0 io_state_err=0
Sparse Reads\t\t        : n=0 io=0 holes=0 pages=0 
Writes\t\t\t\t: err=2 io_state_err=1 pg-cache=3 pg-cache-fail=4 pg-cache-eio=5
Mmap\t\t\t\t: n=64 ok=64 err=0 munmap=56
Bar1-map\t\t\t: n=64 ok=63 err=1 free=56 callbacks=0 active=8 delay-frees=0
Error\t\t\t\t: cpu-gpu-pages=0 sg-ext=0 dma-map=2 dma-ref=0
Ops\t\t\t\t: Read=4 Write=0 BatchIO=0
GPU 0000:18:00.0  uuid:0a0b0c0d-1111-2222-3333-000000000001 : Registered_MiB=512 Cache_MiB=0 max_pinned_MiB=1024 
"""  # noqa: E501, W291
COUNTED = QUIET.replace("IO stats: Disabled", "IO stats: Enabled", 1).replace(
    "Reads\t\t\t\t: err=0 io_state_err=0",
    "Reads\t\t\t\t: n=18446744073709551615 ok=9 err=0 readMiB=7 io_state_err=0\n"
    "Reads\t\t\t\t: Bandwidth(MiB/s)=11890 Avg-Latency(usec)=688",
)
DISTANCE = """\
gpu\t\tpeer\t\tpeerrank\tp2pdist\tlink\tgen\tnuma\tnp2p\tclass
0000:1b:00.0 \t0000:1c:00.0 \t0x00030050\t0x0003\t0x10\t0x05\t0x00\t0\tnetwork
0000:1b:00.0 \t0000:46:00.0 \t0x00840090\t0x0084\t0x04\t0x04\t0x00\t8812\tnvme
0000:1b:00.0 \t0000:c1:00.0 \t0x01050090\t0x0105\t0x04\t0x04\t0xffffffff\t0\tnvme
"""
AFFINITY = f"""\
GPU P2P DMA distribution based on pci-distance

(last column indicates p2p via root complex)
GPU :0000:be:00.0 :{"0 " * 32}0
GPU :0000:34:00.0 :0 0 23872512 {"0 " * 29}1276417
"""
LINES = [*QUIET.splitlines(), *COUNTED.splitlines(), *DISTANCE.splitlines(), *AFFINITY.splitlines()]


def test_without_io_statistics_only_errors_are_counted() -> None:
    found = parse_stats(QUIET)
    assert (found.gds, found.driver, found.stats_version) == ("1.17.1.22", "2.28.4", "4.0")
    assert (found.io_stats, found.peerdirect, found.batches) == (False, False, None)
    assert found.reads is not None
    assert (found.reads.n, found.reads.err, found.reads.bandwidth_mibs) == (None, 0, None)
    assert found.writes is not None
    assert (found.writes.err, found.writes.pg_cache, found.writes.pg_cache_eio) == (2, 3, 5)
    assert found.bar1_map is not None
    assert (found.bar1_map.active, found.bar1_map.err) == (8, 1)
    assert found.errors["dma-map"] == 2


def test_the_two_lines_of_reads_are_one() -> None:
    found = parse_stats(COUNTED)
    assert found.io_stats
    assert found.reads is not None
    assert (found.reads.n, found.reads.mib) == (2**64 - 1, 7)
    assert (found.reads.bandwidth_mibs, found.reads.latency_us) == (11890, 688)


def test_a_gpu_without_peer_statistics() -> None:
    gpu = parse_stats(QUIET).gpus["0000:18:00.0"]
    assert (gpu.registered_mib, gpu.max_pinned_mib, gpu.cross_root_port_pct) == (512, 1024, None)
    crossing = QUIET.replace("max_pinned_MiB=1024 ", "max_pinned_MiB=1024 cross_root_port(%)=100")
    assert parse_stats(crossing).gpus["0000:18:00.0"].cross_root_port_pct == 100


def test_a_module_that_is_not_loaded() -> None:
    said = "cat: /proc/driver/nvidia-fs/stats: No such file or directory\n"
    assert parse_stats(said, 1) == NvidiaFsStats(loaded=False)


def test_version_and_the_storage_that_has_registered() -> None:
    assert parse_fs_version("version: 2.28\n") == "2.28"
    assert parse_fs_modules("nvme: 1\nwekafsio: 1\n") == {"nvme": "1", "wekafsio": "1"}
    assert parse_fs_modules("") == {}


def test_distances_tell_root_ports_and_sockets() -> None:
    near, across, far = parse_peer_distance(DISTANCE).peers
    assert (near.kind, near.link_width, near.link_gen, near.numa) == ("network", 16, 5, 0)
    assert [(p.cross_root, p.cross_socket) for p in (near, across, far)] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert (across.np2p, far.numa) == (8812, None)


def test_distances_of_older_modules() -> None:
    (peer,) = parse_peer_distance("0000:be:00.0 0000:b8:00.1 7 30210269 network\n").peers
    assert (peer.distance, peer.np2p, peer.kind, peer.link_gen) == (7, 30210269, "network", None)


def test_affinity_by_distance() -> None:
    found = parse_peer_affinity(AFFINITY)
    assert found["0000:be:00.0"] == Affinity(near=(0,) * 32, cross_root=0)
    assert found["0000:34:00.0"].near[2] == 23872512
    assert found["0000:34:00.0"].cross_root == 1276417
    assert parse_peer_affinity("") == {}


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_stats, ""),
        (parse_stats, QUIET.partition("Error")[0]),
        (parse_stats, QUIET.replace("Registered_MiB", "Registered")),
        (parse_stats, QUIET.replace("uuid:", "uid:")),
        (parse_fs_version, "2.28"),
        (parse_fs_modules, "nvme"),
        (parse_peer_distance, ""),
        (parse_peer_distance, DISTANCE.replace("0x0003", "three")),
        (parse_peer_affinity, "GPU :0000:be:00.0 :none\n"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match="expected"):
        parse(text)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_counters_of_any_size_are_read_back(n: int, err: int) -> None:
    text = COUNTED.replace(f"n={2**64 - 1} ok=9 err=0", f"n={n} ok={n} err={err}")
    reads = parse_stats(text).reads
    assert reads is not None
    assert (reads.n, reads.ok, reads.err) == (n, n, err)


@given(st.lists(st.sampled_from(LINES) | st.text()), st.sampled_from([0, 1]))
def test_nothing_but_a_value_error_is_raised(lines: list[str], rc: int) -> None:
    text = "\n".join(lines)
    for parse in (
        lambda said: parse_stats(said, rc),
        parse_fs_version,
        parse_fs_modules,
        parse_peer_distance,
        parse_peer_affinity,
    ):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert found is not None
