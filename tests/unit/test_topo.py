"""The matrix of nvidia-smi topo -m: as drivers print it, and as it is pasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.topo import BrokenTopology, Topology, parse_topology

LEGEND = (
    "\nLegend:\n\n  X    = Self\n  NV#  = Connection\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n\n"
)
TABS = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPIX\tNODE\t0-31\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tSYS\t32-63\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \tNODE\t\t\t\t\n"
    "NIC1\tNODE\tSYS\tNODE\t X \n"
)


def whole(text: str) -> Topology:
    found = parse_topology(text)
    assert isinstance(found, Topology)
    return found


def bad(text: str) -> tuple[str, ...]:
    found = parse_topology(text)
    assert isinstance(found, BrokenTopology)
    return found.rows_bad


def test_matrix_with_an_underlined_heading() -> None:
    found = whole(TABS + LEGEND)
    assert found.nics == ("mlx5_0", "mlx5_1")
    assert found.links["GPU0"] == {"GPU1": "NV18", "mlx5_0": "PIX", "mlx5_1": "NODE"}
    assert found.links["mlx5_0"]["GPU1"] == "SYS"
    assert (found.gpus["GPU1"].cpus, found.gpus["GPU1"].numa, found.nvlinks) == ("32-63", 1, 18)
    assert found.legend == {"X": "Self", "NV#": "Connection"}


def test_bug_28_a_gpu_whose_nics_are_all_across_the_socket_has_none() -> None:
    found = whole(TABS + LEGEND)
    assert (found.near_nics("GPU1"), found.best_nic("GPU1")) == ((None, ()), None)
    # The twin is near one of them.
    assert (found.near_nics("GPU0"), found.best_nic("GPU0")) == (("PIX", ("mlx5_0",)), "mlx5_0")


def test_two_nics_as_near_as_each_other_are_no_best_one() -> None:
    found = whole(TABS.replace("PIX", "PXB").replace("PXB\tNODE\t0", "PXB\tPXB\t0") + LEGEND)
    assert found.near_nics("GPU0") == ("PXB", ("mlx5_0", "mlx5_1"))
    assert found.best_nic("GPU0") is None


def test_an_empty_cell_of_cpus_is_not_the_numa_node() -> None:
    found = whole(TABS.replace("0-31\t0\t", "\t0\t"))
    assert (found.gpus["GPU0"].cpus, found.gpus["GPU0"].numa) == (None, 0)


def test_an_empty_cell_of_nodes() -> None:
    found = whole(
        "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-7\t\tN/A\t\tN/A\n"
    )
    assert (found.gpus["GPU0"].cpus, found.gpus["GPU0"].numa_affinity) == ("0-7", None)
    found = whole("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0\t\n")
    assert (found.gpus["GPU0"].cpus, found.gpus["GPU0"].numa) == ("0", None)


def test_one_number_in_a_paste_could_be_either() -> None:
    found = whole("   GPU0  CPU Affinity  NUMA Affinity\nGPU0   X    1\n")
    assert (found.gpus["GPU0"].cpus, found.gpus["GPU0"].numa) == (None, None)


def test_a_gpu_near_several_nodes_has_no_one_node() -> None:
    found = whole(TABS.replace("0-31\t0\t", "0-31\t0-1\t"))
    assert (found.gpus["GPU0"].numa, found.gpus["GPU0"].numa_affinity) == (None, "0-1")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("GPU0\t X \tNV18\tPIX\tNODE", "GPU0\t X \tNV18\tPIXNODE"),
        ("GPU0\t X \tNV18\tPIX\tNODE", "GPU0\t X \tNV18PIX\tNODE"),
        ("GPU0\t X \tNV18\tPIX\tNODE", "GPU0\t X \tNV18\tPIX"),
        ("GPU0\t X \tNV18\tPIX\tNODE", "GPU0\t X \tNV18\tPIX\tNODE\tNODE"),
        ("GPU0\t X \tNV18\tPIX\tNODE\t0-31", "GPU0\t X \tNV18\tPIX\tNODE\tNODE"),
        ("GPU0\t X \tNV18\tPIX\tNODE", "GPU0\tNV18\t X \tPIX\tNODE"),
        ("GPU0\t X \tNV18\tPIX\tNODE", "GPU0\t X \tNV18\tPIX\tNODES"),
    ],
)
def test_lost_separators_and_shifted_rows_are_refused(before: str, after: str) -> None:
    assert before in TABS
    assert bad(TABS.replace(before, after) + LEGEND) == ("GPU0",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        TABS.replace("GPU1\tNV18\t X \tSYS\tSYS\t32-63\t1\t\tN/A\n", ""),
        TABS + "GPU0\t X \tNV18\tPIX\tNODE\n",
        TABS.replace("GPU1", "GPU0", 1),
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_topology(text)


@given(st.lists(st.sampled_from([*TABS.splitlines(keepends=True), LEGEND, "\t"]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_topology("".join(pieces))
    except ValueError:
        return
    if isinstance(found, Topology):
        assert set(found.gpus) <= set(found.links)
    else:
        assert found.rows_bad
