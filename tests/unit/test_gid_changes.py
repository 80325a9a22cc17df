"""GID indices over time and between hosts."""

from railwright.fabric.gids import GidChange, gid_changes, gid_differences, gid_indices
from tests.unit.ports_host import gids, host, node, planned_address


def test_the_index_is_that_of_the_one_v2_gid_of_the_rails_address() -> None:
    assert gid_indices(node(), host()) == {"rail0": 3, "rail1": 3}
    twice = "".join(gids("mlx5_0", planned_address(0), "eth0", v2_index=i) for i in (3, 5))
    assert gid_indices(node(rails=3), host(tables={0: twice, 1: ""})) == {
        "rail0": None,
        "rail1": None,
        "rail2": None,
    }


def test_bug_12_an_index_that_moved_is_reported() -> None:
    moved = host(tables={1: gids("mlx5_1", planned_address(1), "eth1", v2_index=7)})
    changes = gid_changes(node(), host(), moved)
    assert changes == (GidChange(rail="rail1", before=3, after=7),)
    assert str(changes[0]) == "rail1: GID index 3 → 7"
    assert gid_changes(node(), host(), host()) == ()


def test_bug_12_hosts_that_differ_from_most_are_named() -> None:
    same = {f"gpu{n:03d}": {"rail0": 3, "rail1": 3} for n in range(3)}
    assert gid_differences(same) == {}
    assert gid_differences({**same, "gpu009": {"rail0": 3, "rail1": 5}}) == {"rail1": {"gpu009": 5}}
    assert gid_differences({}) == {}
