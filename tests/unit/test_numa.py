"""What is made of ``numactl -H``. The recorded corpus is read in test_parse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.numa import Numactl, parse_numactl
from railwright.snapshot import Section, Snapshot

MEMORY_ONLY = """\
available: 3 nodes (0-1,8)
node 0 cpus: 0 1 2 3
node 0 size: 257618 MB
node 0 free: 201 MB
node 1 cpus: 4 5 6 7
node 1 size: <not available>
node 1 free: <not available>
node 8 cpus:
node 8 size: 131072 MB
node 8 free: 131000 MB
node distances:
node   0   1   8
  0:  10  21  14
  1:  21  10  24
  8:  14  24  10
"""


def test_a_node_with_memory_alone_and_a_hole_in_the_numbers() -> None:
    found = parse_numactl(MEMORY_ONLY)
    assert (found.nodes, found.node_ids) == (3, (0, 1, 8))
    assert found.cpus == {0: (0, 1, 2, 3), 1: (4, 5, 6, 7), 8: ()}
    assert found.cpuless == (8,)
    assert found.memoryless == ()
    assert found.size_mb == {0: 257618, 8: 131072}
    assert found.distance["8,1"] == 24
    assert len(found.distance) == 9


def test_one_node_and_cpus_as_ranges() -> None:
    found = parse_numactl(
        "available: 1 nodes (0)\nnode 0 cpus: 0-5, 24-29 (12)\nnode 0 size: 64 MB\n"
        "node 0 free: 3 MB\nNo distance information available.\n"
    )
    assert found.cpus == {0: (*range(6), *range(24, 30))}
    assert found.distance == {}


def test_warnings_of_libnuma_among_it_are_passed_over() -> None:
    warning = "libnuma: Warning: node argument 9 is out of range\n\n"
    assert parse_numactl(warning + MEMORY_ONLY) == parse_numactl(MEMORY_ONLY)


@pytest.mark.parametrize(
    "text",
    [
        "No NUMA available on this system\n",
        "No NUMA support available on this system.\n",
        "numactl: This system does not support NUMA policy\n",
    ],
)
def test_no_numa(text: str) -> None:
    assert parse_numactl(text, 1).to_json()["available"] is False


@pytest.mark.parametrize("text", ["", "usage: numactl [--all]", "node 0 cpus: 0\n"])
def test_what_is_not_its_output_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected 'available: N nodes"):
        parse_numactl(text, 1)


def test_a_row_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 3 distances of node 8"):
        parse_numactl(MEMORY_ONLY.removesuffix("  10\n"))


def test_the_fact_reads_its_section() -> None:
    section = Section(stdout="No NUMA available on this system\n", rc=1)
    found = Numactl().read(Snapshot(host="a", marker="m", sections={"numactl": section}))
    assert not found.available


@given(st.lists(st.integers(10, 255), min_size=1, max_size=12))
def test_any_matrix_comes_back(row: list[int]) -> None:
    header = " ".join(map(str, range(len(row))))
    rows = "\n".join(f" {i}: {' '.join(map(str, row))} " for i in range(len(row)))
    text = f"available: {len(row)} nodes (0)\nnode distances:\nnode {header}\n{rows}\n"
    found = parse_numactl(text).distance
    assert found == {f"{i},{j}": row[j] for i in range(len(row)) for j in range(len(row))}
