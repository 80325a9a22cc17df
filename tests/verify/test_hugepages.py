"""Huge pages, read in sysfs, in /proc/meminfo and from systemd."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.hugepages import PAGE_KIB
from tests.verify.cases import for_each
from tests.verify.units import assert_unit

UNIT = "railwright-hugepages.service"


def _each_pool(node: Node) -> Iterator[tuple[str, str, int, int]]:
    for size, pool in node.hugepages.pools.items():
        for number, pages in pool.per_node.items():
            yield f"{size} node{number}", size, number, pages


def _each_asked(node: Node) -> Iterator[tuple[str]]:
    if node.hugepages.pools:
        yield ("in all",)


def _each_unit(node: Node) -> Iterator[tuple[str]]:
    if any(pool.allocate == "runtime" for pool in node.hugepages.pools.values()):
        yield (UNIT,)


def _at_boot(host: Host) -> dict[tuple[str, int], int]:
    """What the unit, as systemd would load it, reserves."""
    started = re.findall(r"^ExecStart=(.*)$", host.run(f"systemctl cat {UNIT}").stdout, re.M)
    return {
        (size, int(number)): int(pages)
        for size, pairs in re.findall(r"(2M|1G):(\S+)", " ".join(started))
        for number, pages in re.findall(r"(\d+)=(\d+)", pairs)
    }


@for_each(_each_pool)
def test_hugepages(
    host: Host, node: Node, case: tuple[str, str, int, int], owns_kernel: bool
) -> None:
    _, size, number, pages = case
    # A pool that the kernel command line reserves is not to be asked for by the unit as well.
    by_unit = node.hugepages.pools[size].allocate == "runtime"
    assert _at_boot(host).get((size, number)) == (pages if by_unit else None)
    if owns_kernel:
        pool = f"/sys/devices/system/node/node{number}/hugepages/hugepages-{PAGE_KIB[size]}kB"
        has = int(host.file(f"{pool}/nr_hugepages").content_string)
        surplus = int(host.file(f"{pool}/surplus_hugepages").content_string)
        assert has - surplus == pages


@for_each(_each_asked)
def test_hugepages_in_all(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    asked = sum(
        PAGE_KIB[size] * pages
        for size, pool in node.hugepages.pools.items()
        for pages in pool.per_node.values()
    )
    by_unit = sum(PAGE_KIB[size] * pages for (size, _), pages in _at_boot(host).items())
    assert by_unit <= asked
    # A container sees the memory of its host, of which nothing is asked.
    if owns_kernel:
        told = re.search(r"^Hugetlb: +(\d+) kB$", host.file("/proc/meminfo").content_string, re.M)
        assert told is not None
        assert int(told[1]) >= asked


@for_each(_each_unit)
def test_hugepages_unit(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    assert_unit(host, UNIT, owns_kernel)
