"""GID tables, and the index that RoCE v2 over IPv4 would use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.gids import parse_show_gids, roce_v2_ipv4_index, roce_v2_ipv6_index

HEAD = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\n"
LINK_LOCAL = "fe80:0000:0000:0000:0242:aaff:fe10:0001"
IPV4 = "0000:0000:0000:0000:0000:ffff:0a4d:0105"


def row(index: int, gid: str, version: str, netdev: str = "ens1", port: int = 1) -> str:
    ipv4 = "10.77.1.5  " if gid == IPV4 else "\t"
    return f"mlx5_0\t{port}\t{index}\t{gid}\t{ipv4}\t{version}\t{netdev}\n"


def indices(*rows: str) -> tuple[int | None, int | None]:
    table = parse_show_gids(HEAD + "".join(rows) + f"n_gids_found={len(rows)}\n")
    return roce_v2_ipv4_index(table.gids), roce_v2_ipv6_index(table.gids)


def test_bug_12_the_index_is_that_of_v2_and_ipv4() -> None:
    rows = [row(0, LINK_LOCAL, "v1"), row(1, LINK_LOCAL, "v2"), row(2, IPV4, "v1")]
    assert indices(*rows, row(3, IPV4, "v2")) == (3, None)
    # The twin has no v2 for its address: there is none to use, least of all index 1.
    assert indices(*rows) == (None, None)


def test_the_address_of_the_port_comes_before_that_of_a_vlan() -> None:
    rows = [row(0, LINK_LOCAL, "v1"), row(2, IPV4, "v2", "ens1.100"), row(5, IPV4, "v2")]
    assert indices(*rows) == (5, None)
    assert indices(*rows[:2]) == (2, None)


def test_an_ipv6_address_that_is_routed() -> None:
    routed = "2001:0db8:0077:0001:0000:0000:0000:0014"
    assert indices(row(1, LINK_LOCAL, "v2"), row(3, routed, "v2")) == (None, 3)


def test_an_address_that_only_starts_with_zeros_is_no_ipv4() -> None:
    # The script prints the last four bytes of any GID that starts with 0000 as an IPv4 address.
    odd = f"mlx5_0\t1\t0\t{'0000:' * 7}0001\t0.0.0.1  \tv2\tens1\n"
    table = parse_show_gids(HEAD + odd + "n_gids_found=1\n")
    assert table.gids[0].ipv4 is None


def test_ports_are_kept_apart() -> None:
    table = parse_show_gids(HEAD + row(3, IPV4, "v2") + row(3, IPV4, "v2", port=2))
    assert list(table.ports()) == [("mlx5_0", 1), ("mlx5_0", 2)]
    assert table.found is None


def test_a_version_that_the_kernel_does_not_tell_is_not_the_interface() -> None:
    table = parse_show_gids(f"mlx5_0 1 0 {LINK_LOCAL} vlan7\nmlx5_0 1 1 {LINK_LOCAL}\n")
    assert [(gid.version, gid.netdev) for gid in table.gids] == [(None, "vlan7"), (None, None)]


def test_what_was_cut_off_is_missed() -> None:
    with pytest.raises(ValueError, match="found 4 GIDs, but 1 are listed"):
        parse_show_gids(HEAD + row(3, IPV4, "v2") + "n_gids_found=4\n")


@pytest.mark.parametrize(
    "text",
    ["", "show_gids: command not found", "ls: cannot access '/sys/class/infiniband/'", HEAD + "x"],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_show_gids(text)


@given(st.lists(st.sampled_from([HEAD, row(3, IPV4, "v2"), "n_gids_found=1\n"]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        table = parse_show_gids("".join(pieces))
    except ValueError:
        return
    assert table.found in (None, len(table.gids))


@given(st.text("0123456789abcdef:", min_size=39, max_size=39))
def test_any_gid_is_read_or_refused(gid: str) -> None:
    try:
        table = parse_show_gids(row(0, gid, "v2"))
    except ValueError:
        return
    assert table.gids[0].gid == gid
