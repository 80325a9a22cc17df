"""What the sections for RDMA ports print, run by the real sh on a tree, and what is made of it."""

import subprocess
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import ports
from facts.opensm import STATE
from facts.ports import (
    Ports,
    PortTables,
    parse_tables,
    read_devinfo,
    read_images,
    read_ipoib,
    read_ports,
    v2_indices,
)
from facts.probe import Focus, Section, script
from railwright.resolve.ports import roce_mtu
from railwright.snapshot import Snapshot, parse_probe
from tests.unit.ports_host import gids

PORT = "sys/class/infiniband/mlx5_0/ports/1"
IB = {
    f"{PORT}/state": "4: ACTIVE\n",
    f"{PORT}/phys_state": "5: LinkUp\n",
    f"{PORT}/rate": "400 Gb/sec (4X NDR)\n",
    f"{PORT}/link_layer": "InfiniBand\n",
    f"{PORT}/lid": "0x25\n",
    f"{PORT}/sm_lid": "0x1\n",
    f"{PORT}/pkeys/0": "0xffff\n",
    f"{PORT}/pkeys/1": "0x8001\n",
    f"{PORT}/pkeys/2": "0x0000\n",
    f"{PORT}/gids/0": "fe80:0000:0000:0000:00aa:bbcc:0011:2200\n",
    f"{PORT}/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000\n",
    f"{PORT}/gid_attrs/types/0": "IB/RoCE v1\n",
    "sys/class/infiniband/mlx5_0/sys_image_guid": "00aa:bbcc:0011:2200\n",
    "sys/class/net/ib0/mode": "datagram\n",
    "etc/infiniband/openib.conf": "ONBOOT=yes\nSET_IPOIB_CM=auto\n",
}


def probe(root: Path, files: dict[str, str], *sections: Section) -> Snapshot:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    moved = [
        section.model_copy(
            update={
                "script": section.script.replace("/sys/", f"{root}/sys/")
                .replace("/etc/infiniband", f"{root}/etc/infiniband")
                .replace("/etc/sysconfig", f"{root}/etc/sysconfig")
                .replace("/proc/[0-9]*", f"{root}/proc/[0-9]*")
                .replace(f"#{root}/sys/", f"#{root}/sys/")
            }
        )
        for section in sections
    ]
    ran = subprocess.run(
        ["sh", "-c", script(moved, Focus(rails=True))], capture_output=True, text=True, check=True
    )
    return parse_probe(ran.stdout, "n1")


def test_a_port_of_infiniband_is_read(tmp_path: Path) -> None:
    seen = probe(tmp_path, IB, ports.STATUS, ports.TABLES, ports.IPOIB)
    status = read_ports(seen)["mlx5_0/1"]
    assert (status.state, status.phys, status.link) == ("ACTIVE", "LinkUp", "InfiniBand")
    assert (status.rate_gbps, status.gen, status.lid, status.sm_lid) == (400, "NDR", 37, 1)
    found = Ports().read(seen)
    assert found.ports["mlx5_0/1"] == status
    # Entries of zeros are not set.
    assert found.tables["mlx5_0/1"].pkeys == (0xFFFF, 0x8001)
    assert [gid.index for gid in found.tables["mlx5_0/1"].gids] == [0]
    assert read_images(seen)["mlx5_0"].guid == "00aa:bbcc:0011:2200"
    ipoib = read_ipoib(seen)
    assert (ipoib.modes, ipoib.openib) == ({"ib0": "datagram"}, "auto")


def test_an_entry_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    # A directory stands in for EINVAL: neither can be read by anyone.
    (tmp_path / PORT / "gids/7").mkdir(parents=True)
    (tmp_path / PORT / "sm_lid").mkdir()
    files = {path: text for path, text in IB.items() if not path.endswith("/sm_lid")}
    seen = probe(tmp_path, files, ports.STATUS, ports.TABLES)
    assert [gid.index for gid in Ports().read(seen).tables["mlx5_0/1"].gids] == [0]
    assert read_ports(seen)["mlx5_0/1"].sm_lid is None


def test_a_node_without_rdma_has_no_ports(tmp_path: Path) -> None:
    sections = (ports.STATUS, ports.TABLES, ports.MTU, ports.IPOIB)
    seen = probe(tmp_path, {"sys/x": ""}, *sections)
    found = Ports().read(seen)
    assert (found.ports, found.tables) == ({}, {})
    devinfo = read_devinfo(seen)
    assert devinfo is not None
    assert devinfo.devices == {}
    assert read_ipoib(seen).modes == {}


def test_gids_have_their_version_and_interface() -> None:
    table = parse_tables(gids("mlx5_0", "10.64.0.13", "eth0"))["mlx5_0/1"]
    assert [(gid.index, gid.version, gid.ipv4) for gid in table.gids] == [
        (0, "v1", None),
        (1, "v2", None),
        (2, "v1", "10.64.0.13"),
        (3, "v2", "10.64.0.13"),
    ]
    assert {gid.netdev for gid in table.gids} == {"eth0"}
    assert v2_indices(table.gids, IPv4Address("10.64.0.13")) == (3,)
    assert v2_indices(table.gids, IPv4Address("10.64.0.14")) == ()


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "mlx5_0/ports/1/gids/0:not a gid",
        "mlx5_0/ports/1/pkeys/0:0xzz",
        "mlx5_0/ports/1/state:4",
    ],
)
def test_a_line_of_another_kind_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_tables(line)


@given(st.text(alphabet="mlx5_0/ports1gidkey:fx \n", max_size=80))
def test_whatever_is_printed_is_tables_or_a_value_error(text: str) -> None:
    try:
        found = parse_tables(text)
    except ValueError:
        return
    assert all(isinstance(table, PortTables) for table in found.values())


@given(st.integers(0, 20000))
def test_the_mtu_of_rdma_fits_its_interface(mtu: int) -> None:
    found = roce_mtu(mtu)
    assert found is None if mtu < 352 else found is not None and found + 96 <= mtu


def test_what_opensm_was_started_with(tmp_path: Path) -> None:
    files = {
        "proc/7/comm": "opensm\n",
        "proc/7/cmdline": "/usr/sbin/opensm\0--priority\x0014\0",
        "proc/8/comm": "bash\n",
        "proc/8/cmdline": "bash\0",
        "etc/sysconfig/opensm": "# GUIDS=\nPRIORITY=15\n",
    }
    lines = probe(tmp_path, files, STATE).text("opensm").split("\n")
    assert "process=/usr/sbin/opensm --priority 14 " in lines
    assert not [line for line in lines if "bash" in line or line == "guids=yes"]
    files["etc/sysconfig/opensm"] = 'GUIDS="0x1 0x2"\n'
    assert "guids=yes" in probe(tmp_path, files, STATE).text("opensm")
