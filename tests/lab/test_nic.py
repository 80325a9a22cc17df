"""The simulated NIC itself: it answers as mlx5 does, in both personalities."""

import json
from collections.abc import Iterator

import pytest

from .lab import Lab
from .layout import RAILS
from .railsim import NODES, ROCE, SLOTS, Nic, of_first_rail

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nics(lab: Lab) -> Iterator[dict[str, Nic]]:
    yield from of_first_rail(lab)


@pytest.fixture
def nic(nics: dict[str, Nic]) -> Nic:
    """A NIC that is up, with MTU 9000."""
    nics["gpu001"].sh("ip link set $dev mtu 9000 up")
    return nics["gpu001"]


@pytest.fixture
def ofed(nic: Nic) -> Iterator[Nic]:
    nic.reload("personality=ofed")
    nic.sh("ip link set $dev mtu 9000 up")
    yield nic
    nic.reload()


def _pause(rx: str, tx: str) -> dict[str, str]:
    return {"Autonegotiate": "off", "RX": rx, "TX": tx}


@pytest.mark.parametrize("node", NODES)
def test_each_slot_holds_one_simulated_nic(lab: Lab, node: str) -> None:
    assert len(SLOTS) == RAILS
    for rail, slot in enumerate(SLOTS):
        found = Nic(lab, node, rail).sh(
            "ls /sys/bus/pci/devices/" + slot + "/net | wc -l\n"
            f"cat /sys/bus/pci/devices/{slot}/numa_node\n"
            "ethtool -i $dev | sed -n 's/^driver: //p; s/^bus-info: //p'\n"
            "cat /sys/class/net/$dev/phys_port_name"
        )
        assert found.split() == ["1", str(rail // 4), "railsim", slot, "p0"]


@pytest.mark.parametrize("node", NODES)
def test_virtio_nics_are_out_of_the_way(lab: Lab, node: str) -> None:
    links = json.loads(lab.run(node, "ip -j address").stdout)
    under = {link["ifname"]: link for link in links if link["ifname"].startswith("under")}
    assert set(under) == {f"under{rail}" for rail in range(RAILS)}
    for link in under.values():
        assert (link["mtu"], link["operstate"], link["addr_info"]) == (9216, "UP", [])


@pytest.mark.parametrize("node", NODES)
def test_rdma_devices_are_named_by_slot(lab: Lab, node: str) -> None:
    links = json.loads(lab.run(node, "rdma -j link").stdout)
    found = {link["ifname"]: link["netdev"] for link in links}
    assert found == {f"mlx5_{rail}": Nic(lab, node, rail).name for rail in range(RAILS)}


def test_root_ports_have_access_control(lab: Lab) -> None:
    bridges = lab.run("gpu001", "lspci -vv -d 1b36:000c").stdout
    assert bridges.count("Access Control Services") == 2


def test_nic_starts_with_the_defaults_of_the_firmware(nics: dict[str, Nic]) -> None:
    """With udev stopped nobody has set anything yet."""
    nic = nics["gpu001"]
    nic.sh("udevadm settle; udevadm control --stop-exec-queue; rmmod railsim; modprobe railsim")
    try:
        assert nic.name.startswith("eth")
        assert nic.dcb("dcbx") == {"cee": True, "ieee": True}
        assert nic.dcb("app") == {}
        assert not any(nic.dcb("pfc")["prio_pfc"])
        assert nic.dcb("ets")["tc_tsa"] == ["vendor"] * 8
        assert nic.dcb("ets")["prio_tc"] == [1, 0, 2, 3, 4, 5, 6, 7]
        assert nic.pause() == _pause(rx="on", tx="on")
    finally:
        nic.sh("udevadm control --start-exec-queue; udevadm settle")


def test_pfc_round_trip_divides_the_buffer_and_takes_the_link_down(nic: Nic) -> None:
    nic.set("pfc", "set DEV prio-pfc all:off")
    nic.wait_for_carrier()
    downs = int(nic.sysfs("carrier_down_count"))
    nic.set("pfc", "set DEV prio-pfc 3:on delay 9")
    found = nic.dcb("pfc")
    assert found["prio_pfc"] == [n == ROCE for n in range(8)]
    assert (found["pfc_cap"], found["delay"]) == (8, 9)
    assert nic.dcb("buffer")["prio_buffer"] == [int(n == ROCE) for n in range(8)]
    nic.wait_for_carrier()
    assert int(nic.sysfs("carrier_down_count")) == downs + 1
    nic.set("pfc", "set DEV prio-pfc 3:on")
    assert int(nic.sysfs("carrier_down_count")) == downs + 1


def test_ets_round_trip(nic: Nic) -> None:
    wanted = "tc-tsa all:ets 6:strict tc-bw all:0 0:50 3:50"
    nic.set("ets", f"set DEV prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 {wanted}")
    found = nic.dcb("ets")
    assert found["prio_tc"] == list(range(8))
    assert found["tc_tsa"] == ["ets"] * 6 + ["strict", "ets"]
    # mlx5 reads back 100 for a class that shares no bandwidth.
    assert found["tc_bw"] == [50, 0, 0, 50, 0, 0, 100, 0]


def test_ets_that_does_not_sum_up_is_refused(nic: Nic) -> None:
    before = nic.dcb("ets")
    nic.set("ets", "set DEV tc-tsa all:ets tc-bw all:0 0:50 3:40", refused=True)
    assert nic.dcb("ets") == before


def test_app_round_trip(nic: Nic) -> None:
    nic.set("app", "replace DEV dscp-prio 26:3 48:6")
    assert sorted(pair[:2] for pair in nic.dcb("app")["dscp_prio"]) == [[26, 3], [48, 6]]
    nic.set("app", "replace DEV dscp-prio 26:4")
    assert [26, 4] in [pair[:2] for pair in nic.dcb("app")["dscp_prio"]]
    nic.set("app", "flush DEV dscp-prio")
    assert nic.dcb("app") == {}


def test_app_by_anything_but_dscp_is_refused(nic: Nic) -> None:
    nic.set("app", "add DEV default-prio 3", refused=True)


def test_dcbx_round_trip(nic: Nic) -> None:
    nic.set("dcbx", "set DEV host ieee")
    assert nic.dcb("dcbx") == {"host": True, "ieee": True}
    nic.set("dcbx", "set DEV lld-managed ieee", refused=True)
    assert nic.dcb("dcbx") == {"host": True, "ieee": True}


def test_buffer_round_trip_stays_divided_by_hand(nic: Nic) -> None:
    nic.set("pfc", "set DEV prio-pfc all:off 3:on")
    total = nic.dcb("buffer")["total_size"]
    nic.set("buffer", "set DEV prio-buffer all:0 3:2 buffer-size all:0 0:20000 2:200000")
    nic.set("pfc", "set DEV prio-pfc all:off")
    found = nic.dcb("buffer")
    assert found["prio_buffer"] == [0, 0, 0, 2, 0, 0, 0, 0]
    assert found["buffer_size"] == [20000, 0, 200000, 0, 0, 0, 0, 0]
    assert found["total_size"] == total
    # dcb of iproute2 6.1 exits 0: it takes the acknowledgement of its own question for the answer.
    nic.lab.run(nic.node, f"dcb buffer set dev {nic.dev} buffer-size 0:{total} 1:1")
    assert nic.dcb("buffer") == found


def test_pause_round_trip(nic: Nic) -> None:
    nic.sh("ethtool -A $dev rx off tx off")
    assert nic.pause() == _pause(rx="off", tx="off")
    nic.sh("ethtool -A $dev rx on")
    assert nic.pause() == _pause(rx="on", tx="off")
    nic.sh("ethtool -A $dev autoneg on", refused=True)


def test_events_are_counted_where_mlx5_counts_them(nic: Nic) -> None:
    nic.set("pfc", "set DEV prio-pfc all:off 3:on")
    before = nic.counters()
    folder = f"/sys/kernel/debug/mlx5/{SLOTS[nic.rail]}/counters"
    nic.sh(
        f"cd {folder}; echo 5 >rx_prio3_pause; echo 7 >tx_prio3_pause; echo 9 >rx_prio3_discards"
    )
    after = nic.counters()
    assert (after["rx_prio3_pause"], after["tx_prio3_pause"]) == (5, 7)
    assert after["rx_pause_ctrl_phy"] - before["rx_pause_ctrl_phy"] == 5
    assert (after["rx_prio3_discards"], after["rx_discards_phy"]) == (9, 9)
    assert (nic.dcb("pfc")["requests"][3], nic.dcb("pfc")["indications"][3]) == (7, 5)
    nic.set("pfc", "set DEV prio-pfc all:off")
    assert "rx_prio3_pause" not in nic.counters()


def test_rdma_mtu_follows_the_mtu(nic: Nic) -> None:
    read = "ibv_devinfo -d mlx5_0 | sed -n 's/.*active_mtu:[[:space:]]*//p'"
    assert nic.sh(read).split()[0] == "4096"
    nic.sh("ip link set $dev mtu 1500")
    assert nic.sh(read).split()[0] == "1024"
    nic.sh("ip link set $dev mtu 9217", refused=True)


def test_link_follows_the_nic_below(nic: Nic) -> None:
    nic.wait_for_carrier()
    nic.sh("ip link set under0 down")
    assert nic.sysfs("carrier") == "0"
    nic.sh("ip link set under0 up")
    assert nic.sysfs("carrier") == "1"
    assert nic.sysfs("speed") == "400000"


def test_inbox_has_nothing_of_the_vendor(nic: Nic) -> None:
    assert nic.sh("ethtool -i $dev | sed -n 's/^version: //p'") == nic.sh("uname -r")
    nic.sh("cd /sys/class/net/$dev; ls ecn", refused=True)
    nic.sh("ls /sys/class/infiniband/mlx5_0/tc", refused=True)
    folder = f"/sys/kernel/debug/mlx5/{SLOTS[nic.rail]}/cc_params"
    assert nic.sh(f"cd {folder}; cat np_cnp_dscp np_cnp_prio").split() == ["48", "6"]


def test_ofed_has_a_version_and_ecn_of_its_own(ofed: Nic) -> None:
    assert ofed.sh("ethtool -i $dev | sed -n 's/^version: //p'") == "24.10-1.1.4\n"
    for point in ("roce_np", "roce_rp"):
        for prio in range(8):
            assert ofed.sysfs(f"ecn/{point}/enable/{prio}") == "1"
        ofed.sh(f"echo 0 >/sys/class/net/$dev/ecn/{point}/enable/3")
        assert ofed.sysfs(f"ecn/{point}/enable/3") == "0"
    assert ofed.sysfs("ecn/roce_np/cnp_dscp") == "48"
    ofed.sh("echo 64 >/sys/class/net/$dev/ecn/roce_np/cnp_dscp", refused=True)
    ofed.sh(f"ls /sys/kernel/debug/mlx5/{SLOTS[ofed.rail]}/cc_params", refused=True)


def test_trust_is_dscp_from_the_first_app_entry_to_the_last(ofed: Nic) -> None:
    ofed.set("app", "flush DEV dscp-prio")
    assert ofed.sysfs("qos/trust") == "pcp"
    ofed.set("app", "add DEV dscp-prio 26:5 48:6")
    assert ofed.sysfs("qos/trust") == "dscp"
    assert "26\t5" in ofed.sysfs("qos/dscp2prio")
    # A mapping that is taken away leaves priority 0, not the firmware's dscp >> 3.
    ofed.set("app", "del DEV dscp-prio 26:5")
    assert ofed.sysfs("qos/trust") == "dscp"
    assert "26\t0" in ofed.sysfs("qos/dscp2prio")
    assert "34\t4" in ofed.sysfs("qos/dscp2prio")
    ofed.set("app", "del DEV dscp-prio 48:6")
    assert ofed.sysfs("qos/trust") == "pcp"


def _set_all(nic: Nic) -> None:
    nic.set("dcbx", "set DEV host ieee")
    nic.set("app", "replace DEV dscp-prio 26:3")
    # dcb sums up what it read, and mlx5 reads back 100 for each class that shares nothing.
    nic.set("ets", "set DEV tc-tsa all:strict tc-bw all:0")
    nic.set("pfc", "set DEV prio-pfc all:off 3:on")
    nic.sh("ethtool -A $dev rx off tx off")


@pytest.mark.parametrize("loses", [False, True])
def test_qos_is_lost_at_link_down_only_by_a_nic_that_loses_it(nic: Nic, loses: bool) -> None:
    _set_all(nic)
    parameter = "/sys/module/railsim/parameters/lose_on_link_down"
    nic.sh(f"echo {int(loses)} >{parameter}; ip link set $dev down; ip link set $dev up")
    nic.sh(f"echo 0 >{parameter}")
    assert nic.dcb("pfc")["prio_pfc"][ROCE] is not loses
    assert (nic.dcb("app") == {}) is loses
    assert (nic.dcb("ets")["tc_tsa"] == ["vendor"] * 8) is loses
    default = "on" if loses else "off"
    assert nic.pause() == _pause(rx=default, tx=default)
    assert ("host" in nic.dcb("dcbx")) is not loses


def test_rdma_device_survives_a_rename_and_comes_again(nic: Nic) -> None:
    name = nic.name
    nic.sh("ip link set $dev down; ip link set $dev name rail0")
    links = json.loads(nic.sh("rdma -j link show mlx5_0/1"))
    assert [link["netdev"] for link in links] == ["rail0"]
    nic.reload()
    links = json.loads(nic.sh("rdma -j link show mlx5_0/1"))
    assert [link["netdev"] for link in links] == [name]


def test_personality_that_does_not_exist_is_refused(nic: Nic) -> None:
    nic.sh("rmmod railsim")
    try:
        done = nic.lab.run(nic.node, "modprobe railsim personality=vendor")
        assert done.returncode != 0
    finally:
        nic.lab.run(nic.node, "modprobe railsim && udevadm settle")
