"""Huge pages: what each NUMA node has, how fragmented its memory is, and our unit."""

import re
from collections.abc import Iterable
from typing import ClassVar

from facts.probe import Section, SnapshotFact
from railwright.files import FileRecord
from railwright.model import Model
from railwright.owned_unit import OwnedUnit
from railwright.snapshot import Snapshot

UNIT = OwnedUnit(name="railwright-hugepages.service", target="sysinit.target")
SCRIPT_PATH = "/usr/local/sbin/railwright-hugepages"

SECTIONS = (
    Section(
        name="hugepages",
        script="""
echo "page_size=$(getconf PAGESIZE)"
cat /proc/buddyinfo
cd /sys/devices/system/node || return
grep -H -e MemTotal -e MemFree node*/meminfo
grep -H . node*/hugepages/hugepages-*/nr_hugepages node*/hugepages/hugepages-*/free_hugepages \\
    node*/hugepages/hugepages-*/surplus_hugepages
true
""",
    ),
    Section(name="hugepages_files", script=f"files {UNIT.path} {SCRIPT_PATH}\nmeta {UNIT.link}"),
    Section(name="hugepages_unit", script=f"units {UNIT.name}"),
)


class Pool(Model):
    """Pages of one size, of one node or (``node`` None) of the whole system."""

    node: int | None
    size_kb: int
    total: int
    free: int | None = None
    surplus: int | None = None

    @property
    def persistent(self) -> int:
        """Pages that the pool keeps: surplus ones go when they are freed.

        It is this number that a write to nr_hugepages sets. Source: mm/hugetlb.c,
        ``set_max_huge_pages``.
        """
        return self.total - (self.surplus or 0)


class MemoryNode(Model):
    """One NUMA node; ``free_blocks`` is by order: blocks of page size times 2**order."""

    node: int
    total_kb: int
    free_kb: int
    pools: dict[int, Pool]
    """Page size in KiB to its pool."""
    free_blocks: tuple[int, ...]

    def free_pages(self, size_kb: int, page_kb: int) -> int | None:
        """Huge pages that free memory would give at once; None where no order is that large."""
        order = (size_kb // page_kb).bit_length() - 1
        if order >= len(self.free_blocks):
            return None
        larger = enumerate(self.free_blocks[order:])
        return sum(count << exponent for exponent, count in larger)


class Memory(Model):
    """The NUMA nodes by number. ``page_kb`` is the size of an ordinary page."""

    page_kb: int
    nodes: dict[int, MemoryNode]

    @property
    def sizes_kb(self) -> tuple[int, ...]:
        """Page sizes that some node of this host has."""
        return tuple(sorted({size for node in self.nodes.values() for size in node.pools}))


_POOL = re.compile(
    r"(?:node(\d+)/hugepages/|/)?hugepages-(\d+)kB/(nr|free|surplus)_hugepages[: \t]+(\d+)\s*$"
)
_MEMINFO = re.compile(r"node(\d+)/meminfo:Node \d+ (MemTotal|MemFree): +(\d+) kB")
_BUDDY = re.compile(r"Node (\d+), zone +\S+((?: +\d+)+) *$")


def parse_pools(text: str) -> list[Pool]:
    """Read lines ``node0/hugepages/hugepages-2048kB/nr_hugepages:32`` as ``grep -H`` gives them.

    Raises ValueError for a pool without its number of pages.
    """
    found: dict[tuple[int | None, int], dict[str, int]] = {}
    for line in text.splitlines():
        match = _POOL.search(line)
        if match:
            key = (int(match[1]) if match[1] else None, int(match[2]))
            found.setdefault(key, {})[match[3]] = int(match[4])
    pools = []
    for (node, size_kb), counts in found.items():
        if "nr" not in counts:
            raise ValueError(f"expected nr_hugepages of {size_kb} kB pages, node {node}")
        pools.append(
            Pool(
                node=node,
                size_kb=size_kb,
                total=counts["nr"],
                free=counts.get("free"),
                surplus=counts.get("surplus"),
            )
        )
    return pools


def parse_memory(text: str) -> Memory:
    """Read the section ``hugepages``. Raises ValueError where it tells of no node."""
    page_size = re.search(r"^page_size=(\d+)$", text, re.MULTILINE)
    if page_size is None:
        raise ValueError("the page size cannot be read (getconf PAGESIZE)")
    memory: dict[int, dict[str, int]] = {}
    blocks: dict[int, list[int]] = {}
    for line in text.splitlines():
        if match := _MEMINFO.match(line):
            memory.setdefault(int(match[1]), {})[match[2]] = int(match[3])
        elif match := _BUDDY.match(line):
            zone = [int(word) for word in match[2].split()]
            node = blocks.setdefault(int(match[1]), [0] * len(zone))
            for order, count in enumerate(zone):
                node[order] += count
    if not memory:
        raise ValueError("no NUMA node in /sys/devices/system/node")
    pools: dict[int, dict[int, Pool]] = {}
    for pool in parse_pools(text):
        if pool.node is not None:
            pools.setdefault(pool.node, {})[pool.size_kb] = pool
    return Memory(
        page_kb=int(page_size[1]) // 1024,
        nodes={
            node: MemoryNode(
                node=node,
                total_kb=sizes.get("MemTotal", 0),
                free_kb=sizes.get("MemFree", 0),
                pools=pools.get(node, {}),
                free_blocks=tuple(blocks.get(node, ())),
            )
            for node, sizes in memory.items()
        },
    )


_REQUEST = re.compile(r"^(2M|1G):(\d+=\d+(?:,\d+=\d+)*)$")


def unit_requests(files: Iterable[FileRecord]) -> dict[tuple[str, int], int]:
    """What our unit asks for at boot: (size, node) to pages; empty where it is not there."""
    unit = next((file for file in files if file.path == UNIT.path), None)
    found = {}
    for line in (unit.content or "").splitlines() if unit else ():
        if line.startswith(f"ExecStart={SCRIPT_PATH} "):
            for word in filter(None, map(_REQUEST.match, line.split()[1:])):
                for pair in word[2].split(","):
                    node, count = pair.split("=")
                    found[word[1], int(node)] = int(count)
    return found


class Hugepages(SnapshotFact):
    """``pyinfra INVENTORY fact facts.hugepages.Hugepages``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Memory:
        return parse_memory(snapshot.text("hugepages"))


class SystemPages(Model):
    """The huge page lines of /proc/meminfo, which itemises the default size alone.

    ``hugetlb_kb`` is the memory in huge pages of all sizes, ``other_sizes_kb`` what of it is not
    of the default size. None where the kernel does not print the line.
    """

    total: int | None = None
    free: int | None = None
    rsvd: int | None = None
    surp: int | None = None
    default_size_kb: int | None = None
    hugetlb_kb: int | None = None
    other_sizes_kb: int | None = None


class NodePages(Model):
    """The same of one NUMA node; its meminfo does not say the size of the pages."""

    node: int
    total: int | None = None
    free: int | None = None
    surp: int | None = None


class Shortfall(Model):
    """What SPDK's setup.sh says where it was given fewer pages than it asked for."""

    requested: int
    allocated: int
    node: int | None = None


class PoolListing(Model):
    """Pools as sysfs lists them."""

    pools: tuple[Pool, ...]


class PageCount(Model):
    """One nr_hugepages file on its own."""

    total: int


HugepagesReport = SystemPages | NodePages | Shortfall | PoolListing | PageCount

_LINE = re.compile(r"^(?:Node +(\d+) +)?([A-Za-z0-9_()]+): +(\d+)(?: kB)? *$", re.MULTILINE)
_SHORT = re.compile(
    r"requested (\d+) hugepages but (?:only )?(\d+) could be allocated(?: on node(\d+))?"
)


def parse_hugepages(text: str, rc: int = 0) -> HugepagesReport:
    """Read /proc/meminfo, a node's meminfo, a sysfs listing, or SPDK's complaint.

    Raises ValueError where it is none of them.
    """
    if short := _SHORT.search(text):
        node = int(short[3]) if short[3] else None
        return Shortfall(requested=int(short[1]), allocated=int(short[2]), node=node)
    lines = _LINE.findall(text)
    if lines:
        return _meminfo(lines)
    if pools := parse_pools(text):
        return PoolListing(pools=tuple(pools))
    if re.fullmatch(r"\s*\d+\s*", text):
        return PageCount(total=int(text))
    raise ValueError(
        f"expected /proc/meminfo, a node's meminfo, or hugepages of sysfs (exit status {rc})"
    )


def _meminfo(lines: list[tuple[str, str, str]]) -> SystemPages | NodePages:
    values = {name: int(number) for _, name, number in lines}
    nodes = {int(node) for node, _, _ in lines if node}
    if len(nodes) > 1:
        raise ValueError("expected the meminfo of one node, got several")
    total, free = values.get("HugePages_Total"), values.get("HugePages_Free")
    surplus = values.get("HugePages_Surp")
    if nodes:
        return NodePages(node=nodes.pop(), total=total, free=free, surp=surplus)
    size, hugetlb = values.get("Hugepagesize"), values.get("Hugetlb")
    known = total is not None and size is not None and hugetlb is not None
    return SystemPages(
        total=total,
        free=free,
        rsvd=values.get("HugePages_Rsvd"),
        surp=surplus,
        default_size_kb=size,
        hugetlb_kb=hugetlb,
        other_sizes_kb=hugetlb - total * size if known else None,  # type: ignore[operator]
    )
