"""The tables of what works together: every row is sourced, and the judge goes by them."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.compat import CompatFinding, Facts, Row, Table, judge, tables
from railwright.compat.rows import read_table
from railwright.compat.versions import VersionRange, parse_range, parse_version

ROWS = [row for table in tables() for row in table.rows]
# Rocky 9.6 with DOCA, as in ThinkParQ/beegfs#64.
ROCKY = Facts(
    distribution="rhel",
    release="9.6",
    kernel="5.14.0-570.26.1.el9_6.x86_64",
    rdma="doca_ofed",
    doca="2.9.3",
    beegfs="7.4.6",
)


def rows_against(facts: Facts) -> set[str]:
    """Names of the rows that the set is refused by."""
    return {one.row.name for one in judge(facts) if one.row is not None}


def not_known(facts: Facts) -> set[str]:
    """Tables that have nothing on the set."""
    return {one.table for one in judge(facts) if one.verdict == "unknown"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_has_a_source_and_a_date(row: Row) -> None:
    assert row.source.startswith("https://")
    assert " " not in row.source
    assert datetime.date(2026, 1, 1) <= row.date <= datetime.date.today()
    assert len(row.why.split()) >= 3


def test_there_are_more_than_a_hundred_rows_of_different_names_and_many_sources() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names) >= 100
    assert len({row.source for row in ROWS}) >= 40
    assert {row.verdict for row in ROWS} == {"good", "bad"}


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.name)
def test_a_table_is_named_after_what_it_pairs(table: Table) -> None:
    parts = {"modules": "driver_modules"}
    for part in table.name.split("-"):
        named = "gds" if part == "p2pdma" else parts.get(part, part)
        assert any(named in known for known in table.pairing), part


def test_every_part_of_the_matrix_is_judged() -> None:
    judged = {part for table in tables() for part in table.pairing}
    assert judged >= {
        "distribution",
        "kernel",
        "doca",
        "mlnx_ofed",
        "driver",
        "nvidia_fs",
        "lustre",
        "beegfs",
    }


def test_a_known_bad_set_is_found_with_its_row() -> None:
    bad = judge(ROCKY)[0]
    assert bad.verdict == "bad"
    assert bad.row is not None
    assert bad.row.name == "doca-beegfs/7.4.6-on-rhel9.6-with-2.9.3"
    assert str(bad) == (
        "beegfs 7.4.6 with doca 2.9.3, distribution rhel, release 9.6: the module "
        "disagrees about versions of ib_ and rdma_ symbols (5.14.0-570.26.1) "
        "(doca-beegfs/7.4.6-on-rhel9.6-with-2.9.3, "
        "https://github.com/ThinkParQ/beegfs/issues/64)"
    )


def test_its_healthy_twin_is_not_refused() -> None:
    assert rows_against(ROCKY.model_copy(update={"doca": None, "rdma": "inbox"})) == set()


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        (Facts(gpu="b200", driver_modules="proprietary"), "gpu-modules/blackwell-proprietary"),
        (Facts(gpu="v100", driver_modules="open"), "gpu-modules/before-turing-open"),
        (Facts(gpu="b200", driver="570.86.15"), "gpu-driver/b200-before-570.133.20"),
        (Facts(gpu="v100", driver="595.71.05"), "gpu-driver/volta-and-older-after-580"),
        (
            Facts(driver_modules="proprietary", nvidia_fs="2.29.4"),
            "modules-nvidia_fs/from-2.17.5-proprietary",
        ),
        (
            Facts(kernel="6.5.0-17-generic", nvidia_fs="2.18.3"),
            "kernel-nvidia_fs/before-2.19.6-on-6.5",
        ),
        (
            Facts(doca="3.3.0", nvidia_fs="2.29.4", kernel="6.8.0-1057-oracle"),
            "doca-nvidia_fs/doca-3.3-before-6.17",
        ),
        (
            Facts(distribution="rhel", release="9.5", mlnx_ofed="23.10-5.1.4.0"),
            "distribution-mlnx_ofed/rhel9.5-with-23.10",
        ),
        (
            Facts(distribution="rhel", release="9.8", doca="3.2.2"),
            "distribution-doca/rhel9.8-with-3.2.2",
        ),
        (
            Facts(distribution="rhel", release="9.8", lustre="2.15.8"),
            "distribution-lustre/rhel9.8-with-2.15",
        ),
        (Facts(lustre="2.12.6", mlnx_ofed="5.2-1.0.4.0"), "mlnx_ofed-lustre/2.12.6-with-5.2"),
        (Facts(beegfs="7.4.6", kernel="6.14.8-2-pve"), "kernel-beegfs/7.4.6-after-6.11"),
        (Facts(nic="connectx8", doca="2.9.3"), "nic-doca/connectx8-with-2.9"),
        (Facts(nic="bluefield3", mlnx_ofed="24.10-1.1.4.0"), "nic-mlnx_ofed/bluefield3"),
        (
            Facts(rdma="inbox", peer_memory="nvidia_peermem", distribution="rhel"),
            "rdma-peer_memory/inbox-peermem",
        ),
        (
            Facts(peer_memory="dma_buf", driver_modules="proprietary"),
            "modules-peer_memory/dma_buf-proprietary",
        ),
        (
            Facts(peer_memory="dma_buf", kernel="5.4.0-37-generic", distribution="ubuntu"),
            "kernel-peer_memory/dma_buf-before-5.12",
        ),
        (
            Facts(gds="p2pdma", distribution="ubuntu", kernel="5.15.0-101-generic"),
            "p2pdma/ubuntu-before-6.2",
        ),
        (Facts(gds="p2pdma", gpu="t4"), "p2pdma/gpu-before-ampere"),
        (Facts(driver="580.119.02", kernel="7.0.9-1"), "kernel-driver/580.119.02-on-7.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sets_that_were_reported_are_refused_by_their_row(facts: Facts, row: str) -> None:
    assert row in rows_against(facts)


@pytest.mark.parametrize(
    "facts",
    [
        Facts(gpu="h100", driver="580.95.05", driver_modules="open", nvidia_fs="2.29.4"),
        Facts(gpu="b200", driver="595.71.05", driver_modules="open", kernel="6.8.0-1057-oracle"),
        Facts(distribution="rhel", release="9.7", lustre="2.17.0"),
        Facts(distribution="rhel", release="9.8", lustre="2.15.8_39_g2d32b59"),
        Facts(distribution="rhel", release="9.4", mlnx_ofed="23.10-3.2.1.1", nic="connectx7"),
        Facts(kernel="6.8.0-60-generic", beegfs="7.4.6"),
        Facts(kernel="6.8.0-60-generic", peer_memory="dma_buf", rdma="inbox"),
    ],
)
def test_sets_that_are_known_to_work_have_no_finding(facts: Facts) -> None:
    assert judge(facts) == []


def test_peers_5_1_doca_whose_nvme_misses_nvidia_fs_is_refused_and_its_successor_is_not() -> None:
    node = Facts(kernel="6.8.0-1057-oracle", driver="595.71.05", nvidia_fs="2.29.4", doca="3.3.0")
    assert rows_against(node) == {"doca-nvidia_fs/doca-3.3-before-6.17"}
    assert rows_against(node.model_copy(update={"doca": "3.4.1"})) == set()


def test_peers_5_3_nvidia_fs_on_modules_without_its_symbols_is_refused_before_install() -> None:
    node = Facts(driver="550.163.01", nvidia_fs="2.29.4", driver_modules="proprietary")
    assert rows_against(node) == {"modules-nvidia_fs/from-2.17.5-proprietary"}
    assert rows_against(node.model_copy(update={"driver_modules": "open"})) == set()


def test_peers_5_4_beegfs_after_a_minor_update_with_doca_is_refused() -> None:
    assert rows_against(ROCKY) == {"doca-beegfs/7.4.6-on-rhel9.6-with-2.9.3"}
    assert rows_against(ROCKY.model_copy(update={"release": "9.4"})) == set()


def test_peers_5_5_a_lustre_client_that_has_no_such_kernel_is_refused_before_any_change() -> None:
    node = Facts(distribution="rhel", release="9.8", lustre="2.17.0")
    assert rows_against(node) == {"distribution-lustre/rhel9.8-with-2.16-and-2.17.0"}
    assert rows_against(node.model_copy(update={"release": "9.7"})) == set()


def test_peers_5_6_a_point_release_that_breaks_lustre_is_refused() -> None:
    node = Facts(distribution="rhel", release="8.7", lustre="2.15.1", kernel="4.18.0-425.3.1.el8")
    assert rows_against(node) == {"distribution-lustre/rhel8.7-kernel-425.3.1"}
    kept = node.model_copy(update={"kernel": "4.18.0-425.10.1.el8_7"})
    assert rows_against(kept) == set()


def test_an_unknown_set_is_a_warning_that_names_the_pair() -> None:
    facts = Facts(kernel="6.8.0-60-generic", beegfs="9.0.0")
    assert judge(facts) == [
        CompatFinding(
            verdict="unknown",
            table="kernel-beegfs",
            parts={"kernel": "6.8.0-60-generic", "beegfs": "9.0.0"},
        )
    ]
    assert str(judge(facts)[0]) == (
        "kernel 6.8.0-60-generic with beegfs 9.0.0: not known to work, kernel-beegfs has no row "
        "for it"
    )


def test_what_is_not_known_of_a_node_is_not_judged() -> None:
    assert judge(Facts()) == []
    assert not_known(Facts(kernel="6.8.0-60-generic")) == set()


def test_what_is_refused_is_not_called_unknown_as_well() -> None:
    assert not_known(Facts(beegfs="7.4.6", kernel="6.14.8-2-pve")) == set()


def test_a_bad_row_counts_over_a_good_one() -> None:
    table = read_table(
        "kernel-beegfs",
        """
        pairing: [kernel, beegfs]
        rows:
          - {id: a, when: {kernel: any, beegfs: any}, verdict: good, why: works for everybody,
             source: "https://example.org/a", date: 2026-11-30}
          - {id: b, when: {kernel: "=6.6", beegfs: any}, verdict: bad, why: but on this kernel,
             source: "https://example.org/b", date: 2026-11-30}
        """,
    )
    good, bad = (Facts(kernel=kernel, beegfs="8.0.0") for kernel in ("6.5.1", "6.6.1"))
    assert judge(good, [table]) == []
    assert [one.row.id for one in judge(bad, [table]) if one.row] == ["b"]


ROW = "{id: a, when: {kernel: any, beegfs: any}, verdict: good, why: works for all of us"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (f"[{ROW}, date: 2026-11-30}}]", "source"),
        (f"[{ROW}, source: 'https://example.org'}}]", "date"),
        (f"[{ROW}, source: 'http://example.org', date: 2026-11-30}}]", "pattern"),
        (
            "[{id: a, when: {kernel: any}, verdict: good, why: works for all of us, "
            "source: 'https://example.org', date: 2026-11-30}]",
            "expected beegfs in when",
        ),
        (
            "[{id: a, when: {kernel: '~6.8', beegfs: any}, verdict: bad, why: works for nobody, "
            "source: 'https://example.org', date: 2026-11-30}]",
            "expected a range",
        ),
        (
            "[{id: a, when: {gpu: b900}, verdict: bad, why: works for nobody at all, "
            "source: 'https://example.org', date: 2026-11-30}]",
            "expected gpu to be of",
        ),
        (
            "[{id: a, when: {kernal: any}, verdict: bad, why: works for nobody at all, "
            "source: 'https://example.org', date: 2026-11-30}]",
            "kernal",
        ),
        (
            "[{id: a, when: {kernel: 6.8}, verdict: bad, why: works for nobody at all, "
            "source: 'https://example.org', date: 2026-11-30}]",
            "kernel",
        ),
        ("[]", "rows"),
        ("{", "kernel-beegfs"),
    ],
)
def test_a_table_that_is_none_is_refused(rows: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        read_table("kernel-beegfs", f"pairing: [kernel, beegfs]\nrows: {rows}\n")


NUMBERS = st.lists(st.integers(0, 999), min_size=1, max_size=6)
SUFFIXES = st.sampled_from(["", "-generic", ".el9_6.x86_64", "_g2d32b59", "+deb12u1"])


def written(numbers: list[int]) -> str:
    return ".".join(map(str, numbers))


@given(NUMBERS, SUFFIXES)
def test_a_version_is_its_leading_numbers(numbers: list[int], suffix: str) -> None:
    version = parse_version(written(numbers) + suffix)
    assert version.numbers[: len(numbers)] == tuple(numbers)
    assert str(version) == written(numbers) + suffix


@given(NUMBERS, NUMBERS)
def test_versions_are_ordered_number_by_number_and_zeros_at_the_end_do_not_count(
    one: list[int], other: list[int]
) -> None:
    length = max(len(one), len(other))
    padded = [[*numbers, *[0] * (length - len(numbers))] for numbers in (one, other)]
    a, b = parse_version(written(one)), parse_version(written(other))
    assert (a < b) == (padded[0] < padded[1])
    assert (a == b) == (padded[0] == padded[1])
    assert a != b or hash(a) == hash(b)


@given(NUMBERS, NUMBERS)
def test_the_relations_of_a_bound_fit_together(bound: list[int], numbers: list[int]) -> None:
    version = parse_version(written(numbers))
    holds = {
        relation: version in parse_range(f"{relation}{written(bound)}")
        for relation in ("<", "<=", "=", ">=", ">")
    }
    assert [holds["<"], holds["="], holds[">"]].count(True) == 1
    assert holds["<="] == (holds["<"] or holds["="])
    assert holds[">="] == (holds[">"] or holds["="])


@given(NUMBERS, NUMBERS)
def test_a_bound_takes_in_all_that_begins_as_it_does(bound: list[int], more: list[int]) -> None:
    inside = parse_version(written([*bound, *more]))
    assert inside in parse_range(f"={written(bound)}")
    assert inside in parse_range(f"<={written(bound)}")
    assert inside not in parse_range(f">{written(bound)}")


@given(st.lists(st.tuples(st.sampled_from(["<", "<=", "=", ">=", ">"]), NUMBERS), max_size=3))
def test_a_range_is_read_back_as_it_is_written(bounds: list[tuple[str, list[int]]]) -> None:
    text = ", ".join(f"{relation}{written(numbers)}" for relation, numbers in bounds) or "any"
    found = parse_range(text)
    assert str(found) == text
    assert parse_range(str(found)) == found


@given(st.text(max_size=20))
def test_any_text_is_a_version_or_refused_in_words(text: str) -> None:
    told = ""
    try:
        assert parse_version(text) in VersionRange()
    except ValueError as error:
        told = str(error)
    begins_with_number = text.strip()[:1].isascii() and text.strip()[:1].isdigit()
    assert begins_with_number or "expected a version such as" in told


@pytest.mark.parametrize("text", ["", ">=", "6.8", ">= 5.14 <6.9", ">=6.8,", "=6.8-generic", ">=x"])
def test_text_that_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a"):
        parse_range(text)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("5.14.0-570.26.1.el9_6.x86_64", (5, 14, 0, 570, 26, 1)),
        ("6.8.0-60-generic", (6, 8, 0, 60)),
        ("24.10-1.1.4.0", (24, 10, 1, 1, 4, 0)),
        ("1:580.95.05-0ubuntu1", (580, 95, 5)),
        ("2.15.8_39_g2d32b59", (2, 15, 8, 39)),
        ("24.04", (24, 4)),
    ],
)
def test_versions_as_vendors_write_them(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text).numbers == numbers
