"""Huge pages read from text, and the script that reserves them against a tree of files."""

import os
import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.hugepages import (
    Memory,
    NodePages,
    PageCount,
    PoolListing,
    Shortfall,
    SystemPages,
    parse_hugepages,
    parse_memory,
    parse_pools,
)
from facts.probe import Focus, Section, script
from railwright.owned import HEADER
from railwright.snapshot import parse_probe
from railwright.templates import render

SECTION = """\
page_size=4096
Node 0, zone      DMA      0      0      0      0      0      0      0      1      0      1      3
Node 0, zone    DMA32   1111    505    262    125     54     26     19      4      3      5    342
Node 1, zone   Normal     62      2      1      2      1      3     12     14     14     12      0
node0/meminfo:Node 0 MemTotal:        1546828 kB
node0/meminfo:Node 0 MemFree:         1459448 kB
node1/meminfo:Node 1 MemTotal:        1500000 kB
node1/meminfo:Node 1 MemFree:          100000 kB
node0/hugepages/hugepages-1048576kB/nr_hugepages:0
node0/hugepages/hugepages-2048kB/nr_hugepages:32
node1/hugepages/hugepages-1048576kB/nr_hugepages:0
node1/hugepages/hugepages-2048kB/nr_hugepages:70
node0/hugepages/hugepages-2048kB/free_hugepages:30
node1/hugepages/hugepages-2048kB/surplus_hugepages:6
"""


def test_the_section_of_a_node() -> None:
    memory = parse_memory(SECTION)
    assert (memory.page_kb, memory.sizes_kb) == (4, (2048, 1048576))
    one, other = memory.nodes[0], memory.nodes[1]
    assert (one.total_kb, one.free_kb) == (1546828, 1459448)
    assert (one.pools[2048].total, one.pools[2048].free) == (32, 30)
    # Of 70 pages 6 go when they are freed: the pool is one of 64.
    assert other.pools[2048].persistent == 64
    # Both zones of node 0: six blocks of order 9, 345 of order 10.
    assert one.free_pages(2048, memory.page_kb) == 6 + 345 * 2
    assert one.free_pages(1048576, memory.page_kb) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SECTION.replace("page_size=4096", "page_size="), "page size"),
        ("page_size=4096\n", "no NUMA node"),
        (SECTION.replace("2048kB/nr_", "2048kB/xx_"), "nr_hugepages of 2048 kB pages, node 0"),
    ],
)
def test_a_section_that_lacks_something_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_memory(text)


def test_this_machine_is_read() -> None:
    section = Section(
        name="hugepages", script="cat /proc/buddyinfo; echo page_size=$(getconf PAGESIZE)"
    )
    done = subprocess.run(
        ["sh", "-c", script([section], Focus())], capture_output=True, text=True, check=True
    )
    text = parse_probe(done.stdout, host="here").text("hugepages")
    found = parse_memory(text + "node0/meminfo:Node 0 MemTotal: 1024 kB\n")
    assert isinstance(found, Memory)
    assert len(found.nodes[0].free_blocks) >= 10


MEMINFO_1G = """\
MemTotal:       2113421312 kB
HugePages_Total:      16
HugePages_Free:       10
HugePages_Rsvd:        2
HugePages_Surp:        0
Hugepagesize:    1048576 kB
Hugetlb:        16777216 kB
"""


def test_meminfo_with_a_default_of_1g() -> None:
    found = parse_hugepages(MEMINFO_1G)
    assert found == SystemPages(
        total=16,
        free=10,
        rsvd=2,
        surp=0,
        default_size_kb=1048576,
        hugetlb_kb=16777216,
        other_sizes_kb=0,
    )


def test_meminfo_without_hugetlb_does_not_guess_at_other_sizes() -> None:
    text = "".join(x for x in MEMINFO_1G.splitlines(True) if not x.startswith("Hugetlb"))
    found = parse_hugepages(text)
    assert isinstance(found, SystemPages)
    assert (found.total, found.hugetlb_kb, found.other_sizes_kb) == (16, None, None)


def test_meminfo_of_a_kernel_without_huge_pages() -> None:
    assert parse_hugepages("MemTotal:  8000000 kB\nMemFree:  4000000 kB\n") == SystemPages()


def test_meminfo_of_a_node() -> None:
    found = parse_hugepages("Node 3 MemTotal: 8 kB\nNode 3 HugePages_Total:     7\n")
    assert found == NodePages(node=3, total=7)


def test_meminfo_of_several_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="one node, got several"):
        parse_hugepages("Node 0 MemTotal: 8 kB\nNode 1 MemTotal: 8 kB\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "## ERROR: requested 4096 hugepages but only 3738 could be allocated.",
            Shortfall(requested=4096, allocated=3738),
        ),
        (
            "## ERROR: requested 1024 hugepages but 512 could be allocated on node1.",
            Shortfall(requested=1024, allocated=512, node=1),
        ),
        ("3738\n", PageCount(total=3738)),
    ],
)
def test_other_reports(text: str, expected: object) -> None:
    assert parse_hugepages(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages:3738",
        "node1/hugepages/hugepages-2048kB/nr_hugepages:3738",
        "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages 3738",
    ],
)
def test_a_listing_of_sysfs(line: str) -> None:
    found = parse_hugepages(line)
    assert isinstance(found, PoolListing)
    (pool,) = found.pools
    assert (pool.node, pool.size_kb, pool.total) == (1, 2048, 3738)


def test_a_listing_of_the_whole_system() -> None:
    (pool,) = parse_pools("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages:4\n")
    assert (pool.node, pool.size_kb, pool.total) == (None, 1048576, 4)


@pytest.mark.parametrize("text", ["", "bash: no such file", "HugePages\n"])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected /proc/meminfo"):
        parse_hugepages(text, 1)


@given(st.integers(0, 2**20), st.sampled_from([2048, 1048576]), st.integers(0, 2**30), st.randoms())
def test_any_meminfo_adds_up(total: int, size: int, other: int, shuffle: Random) -> None:
    lines = [
        f"HugePages_Total: {total:7}",
        f"Hugepagesize: {size:10} kB",
        f"Hugetlb: {total * size + other:16} kB",
        "DirectMap1G:    2146435072 kB",
    ]
    shuffle.shuffle(lines)
    found = parse_hugepages("\n".join(lines))
    assert isinstance(found, SystemPages)
    assert (found.total, found.default_size_kb, found.other_sizes_kb) == (total, size, other)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two nodes that have no pages yet, with what the kernel would do to them in ``cat``."""
    for node in (0, 1):
        for size in (2048, 1048576):
            pool = tmp_path / f"node{node}/hugepages/hugepages-{size}kB"
            pool.mkdir(parents=True)
            (pool / "nr_hugepages").write_text("0\n")
            (pool / "surplus_hugepages").write_text("0\n")
    return tmp_path


def reserve(sysfs: Path, *requests: str, cat: str = "") -> subprocess.CompletedProcess[str]:
    text = render("hugepages/railwright-hugepages.sh.j2", header=HEADER)
    program = sysfs / "railwright-hugepages"
    program.write_text(text.replace("/sys/devices/system/node", str(sysfs)))
    tools = sysfs / "bin"
    tools.mkdir(exist_ok=True)
    if cat:
        (tools / "cat").write_text(f"#!/bin/sh\n{cat}\n")
        (tools / "cat").chmod(0o755)
    return subprocess.run(
        ["sh", str(program), *requests],
        capture_output=True,
        text=True,
        env={"PATH": f"{tools}:{os.environ['PATH']}"},
    )


def pages(sysfs: Path, node: int, size_kb: int = 2048) -> str:
    return (sysfs / f"node{node}/hugepages/hugepages-{size_kb}kB/nr_hugepages").read_text()


def test_the_script_reserves_per_node_and_size(sysfs: Path) -> None:
    done = reserve(sysfs, "2M:0=32,1=64", "1G:1=2")
    assert (done.returncode, done.stderr) == (0, "")
    assert [pages(sysfs, 0), pages(sysfs, 1)] == ["32\n", "64\n"]
    assert [pages(sysfs, 0, 1048576), pages(sysfs, 1, 1048576)] == ["0\n", "2\n"]
    # Nothing was short, so nothing was compacted.
    assert not (sysfs / "node0/compact").exists()


def test_the_script_writes_nothing_where_all_is_right(sysfs: Path) -> None:
    reserve(sysfs, "2M:0=32")
    pool = sysfs / "node0/hugepages/hugepages-2048kB/nr_hugepages"
    os.utime(pool, (1, 1))
    assert reserve(sysfs, "2M:0=32").returncode == 0
    assert pool.stat().st_mtime == 1


def test_the_script_counts_no_surplus(sysfs: Path) -> None:
    (sysfs / "node0/hugepages/hugepages-2048kB/nr_hugepages").write_text("40\n")
    (sysfs / "node0/hugepages/hugepages-2048kB/surplus_hugepages").write_text("8\n")
    assert reserve(sysfs, "2M:0=32").returncode == 0
    assert pages(sysfs, 0) == "40\n"


def test_the_script_compacts_tells_and_fails_where_it_stays_short(sysfs: Path) -> None:
    # A kernel that gives 3738 pages of whatever is asked for.
    short = 'case $1 in *node1*2048kB/nr_*) echo 3738 ;; *) /bin/cat "$@" ;; esac'
    done = reserve(sysfs, "2M:1=4096,0=8", cat=short)
    assert done.returncode == 1
    assert done.stderr == "NUMA node 1: asked for 4096 pages of 2048 kB, has 3738\n"
    assert (sysfs / "node1/compact").read_text() == "1\n"
    # The other node is served all the same.
    assert pages(sysfs, 0) == "8\n"


def test_the_script_names_a_node_that_is_not_there(sysfs: Path) -> None:
    done = reserve(sysfs, "2M:7=8,0=8")
    assert done.returncode == 1
    assert done.stderr == "NUMA node 7 has no pages of 2048 kB\n"
    assert pages(sysfs, 0) == "8\n"


def test_the_script_refuses_what_it_does_not_know(sysfs: Path) -> None:
    done = reserve(sysfs, "4K:0=8")
    assert (done.returncode, done.stderr[:33]) == (2, "expected SIZE:NODE=PAGES with SIZ")
