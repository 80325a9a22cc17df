"""The rdma tool's links in the forms of its versions."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.rdma import parse_rdma_links
from railwright.cli import main

INFINIBAND = (
    "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 66 sm_lid 3 lmc 0 "
    "state ACTIVE physical_state LINK_UP "
)


def test_infiniband_has_lids_and_may_have_no_interface() -> None:
    (link,) = parse_rdma_links(INFINIBAND + "\n")
    assert (link.ifname, link.port, link.name) == ("mlx5_0", 1, "mlx5_0/1")
    assert (link.lid, link.sm_lid, link.lmc, link.netdev) == (66, 3, 0, None)
    assert link.subnet_prefix == "fe80:0000:0000:0000"


def test_infiniband_with_its_ipoib_interface() -> None:
    (link,) = parse_rdma_links(INFINIBAND + "netdev ibp196s0f0 \n")
    assert (link.netdev, link.state, link.physical_state) == ("ibp196s0f0", "ACTIVE", "LINK_UP")


def test_older_iproute2_numbers_the_links() -> None:
    links = parse_rdma_links(
        "8/1: mlx5_bond_0/1: state ACTIVE physical_state LINK_UP netdev reth0 \n"
        "9/1: mlx5_bond_1/1: state DOWN physical_state DISABLED netdev reth2 \n"
    )
    assert [(link.name, link.netdev) for link in links] == [
        ("mlx5_bond_0/1", "reth0"),
        ("mlx5_bond_1/1", "reth2"),
    ]


def test_its_json_had_the_port_in_the_name() -> None:
    old = [{"ifindex": 1, "port": 2, "ifname": "mlx4_0/2", "lid": 7, "state": "INIT",
            "physical_state": "LINK_UP", "caps": ["SM", "IP_BASED_GIDS"]}]  # fmt: skip
    (link,) = parse_rdma_links(json.dumps(old))
    assert (link.ifname, link.port, link.lid) == ("mlx4_0", 2, 7)
    assert link.caps == ("SM", "IP_BASED_GIDS")


def test_capabilities_belong_to_the_link_above() -> None:
    links = parse_rdma_links(
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev a netdev_index 6 \n"
        "    caps: <CM, IP_BASED_GIDS>\n"
        "link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev b netdev_index 7 \n"
        "    caps: <>\n"
    )
    assert [link.caps for link in links] == [("CM", "IP_BASED_GIDS"), ()]


@pytest.mark.parametrize("text", ["", "\n", "[ ]\n", "[]"])
def test_no_device_is_no_link(text: str) -> None:
    assert parse_rdma_links(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "rdma: command not found",
        "link mlx5_0 state ACTIVE physical_state LINK_UP",
        "link mlx5_0/1 state ACTIVE physical_state",
        "link mlx5_0/1 physical_state LINK_UP",
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP lid many",
        '{"ifname": "mlx5_0"}',
        "[3]",
        '[{"ifname": "mlx5_0", "port": 1, "state": "ACTIVE"}]',
        '[{"ifname": "mlx5_0", "port": 1, "caps": 3}]',
        '[{"ifname": ',
        "[" * 100_000,
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_rdma_links(text)


PIECES = ["link mlx5_0/1 ", "8/1: a/1: ", "state ACTIVE ", "physical_state UP ", "lid 3 ", "\n",
          "    caps: <CM>", '[{"ifname": "a", "port": 1}]', "netdev "]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text()).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        links = parse_rdma_links(text)
    except ValueError:
        return
    assert all(link.ifname and link.state and link.physical_state for link in links)


def test_a_tool_that_failed_is_not_a_host_without_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    assert main(["parse", "rdma-link", str(empty), "--rc", "1"]) == 1
    assert "failed without a link (exit status 1)" in capsys.readouterr().err
    assert main(["parse", "rdma-link", str(empty), "--rc", "0"]) == 0
