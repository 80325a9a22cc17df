"""What the ports component decides of ports, partitions and GIDs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploys.ports import COMPONENT, settings
from facts.gids import parse_show_gids
from railwright.component import settings_of, unread
from railwright.schema import InfinibandFabric, Node, RoceFabric
from railwright.settings import Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.ports_cases import devinfo, done, found, verdicts
from tests.unit.ports_host import (
    EVERY,
    LIVE,
    gids,
    host,
    node,
    planned_address,
    status,
)

CORPUS = Path(__file__).parents[1] / "corpus"


def test_nothing_asked_for_and_nothing_of_ours_is_no_setting() -> None:
    assert settings(Node(name="n1"), host()) == []
    assert settings(Node(name="n1", fabric=InfinibandFabric()), host(infiniband=True)) == []


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        (node(rate_gbps=400), host()),
        (node(rate_gbps=400), host(sections=devinfo())),
        (node(InfinibandFabric(), rate_gbps=400), host(infiniband=True, sections=devinfo())),
        (
            node(InfinibandFabric(pkeys=frozenset({1, 2}))),
            host(
                infiniband=True,
                tables=dict.fromkeys(
                    (0, 1),
                    "mlx5_0/ports/1/pkeys/0:0xffff\nmlx5_0/ports/1/pkeys/1:0x8001\n"
                    "mlx5_0/ports/1/pkeys/2:0x0002\nmlx5_1/ports/1/pkeys/0:0x8001\n"
                    "mlx5_1/ports/1/pkeys/1:0x8002\n",
                ),
                sections=devinfo(),
            ),
        ),
    ],
)
def test_healthy_ports_are_ok_and_left_alone(asked: Node, seen: Snapshot) -> None:
    assert set(verdicts(asked, seen).values()) == {Verdict.OK}
    assert done(asked, seen) == []


def test_no_run_ever_acts_on_a_port() -> None:
    bad = {
        0: status("mlx5_0", state="1: DOWN", phys="3: Disabled", link="InfiniBand"),
        1: status("mlx5_1", rate="100 Gb/sec (2X HDR)"),
    }
    asked = node(rate_gbps=400, allow=EVERY)
    seen = host(ports=bad, tables={0: "", 1: ""}, speeds={1: "100000"}, mtus={1: 1500})
    assert set(verdicts(asked, seen).values()) >= {Verdict.DEGRADED, Verdict.NOT_RUNNING}
    assert [c for s in settings(asked, seen) for c in changes(s, EVERY)] == []
    assert done(asked, seen) == []


def test_a_link_that_is_down_is_degraded_with_its_physical_state() -> None:
    seen = host(ports={0: status("mlx5_0", state="1: DOWN", phys="2: Polling")})
    setting = found(node(), seen)["rail0 state"]
    assert (setting.running.standing, setting.running.value) == (Standing.DEGRADED, "DOWN")
    assert "Polling: the port looks for a peer" in (setting.running.detail or "")
    assert verdict(setting, LIVE) is Verdict.DEGRADED


def test_a_link_without_a_subnet_manager_is_told_so() -> None:
    port = status("mlx5_0", state="2: INIT", link="InfiniBand", sm_lid="0x0")
    states = found(node(InfinibandFabric()), host(infiniband=True, ports={0: port}))
    assert "no subnet manager has configured" in (states["rail0 state"].running.detail or "")
    assert states["rail0 sm"].running.standing is Standing.ABSENT
    assert states["rail1 sm"].running.standing is Standing.RIGHT


def test_a_file_of_sysfs_that_cannot_be_read_is_unreadable() -> None:
    port = status("mlx5_0", state="unknown", phys="unknown", rate="unknown", link="unknown")
    states = found(node(rate_gbps=400), host(ports={0: port}, speeds={0: "-"}))
    for key in ("rail0 state", "rail0 rate", "rail0 link layer"):
        assert states[key].running.standing is Standing.UNREADABLE


def test_the_wrong_protocol_is_wrong() -> None:
    port = status("mlx5_0", link="InfiniBand")
    assert verdicts(node(), host(ports={0: port}))["rail0 link layer"] is Verdict.NOT_RUNNING


def test_a_missing_nic_is_one_setting_and_the_others_are_looked_at() -> None:
    states = found(node(rails=3), host(rails=2))
    assert [key for key in states if key.startswith("rail2")] == ["rail2 port"]
    port = states["rail2 port"]
    assert (port.running.standing, port.acts) == (Standing.ABSENT, False)
    assert "there is no NIC at 0000:12:00.0" in (port.running.detail or "")
    assert states["rail1 state"].running.standing is Standing.RIGHT


def test_a_nic_without_rdma_is_one_setting() -> None:
    seen = host()
    ports = seen.text("nic_ports").replace("rdma mlx5_0", "x")
    quiet = seen.sections | {
        "nic_ports": Section(stdout=ports, rc=0),
    }
    states = found(node(), seen.model_copy(update={"sections": quiet}))
    assert "has no RDMA device" in (states["rail0 port"].running.detail or "")


def test_in_a_container_no_port_is_looked_at() -> None:
    assert settings(node(rate_gbps=400), host(container=True)) == []


def test_a_probe_that_was_cut_is_unreadable() -> None:
    cut = host(sections={"port_status": Section(stdout="Infini", rc=None, ended="deadline")})
    assert unread(settings_of(COMPONENT, node(), cut))


def test_bug_24_a_port_with_a_slower_cable_is_wrong() -> None:
    slow = status("mlx5_1", link="InfiniBand", rate="100 Gb/sec (2X HDR)", sm_lid="0x1")
    asked = node(InfinibandFabric(), rate_gbps=200)
    well = status("mlx5_0", link="InfiniBand", rate="200 Gb/sec (4X HDR)", sm_lid="0x1")
    states = found(asked, host(infiniband=True, ports={0: well, 1: slow}))
    assert states["rail0 rate"].running.standing is Standing.RIGHT
    rate = states["rail1 rate"]
    assert (rate.desired, rate.running.value) == ("200 Gb/s", "100 Gb/s")
    assert rate.running.standing is Standing.WRONG
    assert rate.running.detail == "2X HDR"
    assert "cable" in (rate.remedy or "")


def test_bug_24_twin_the_rate_of_a_port_that_is_down_is_no_verdict() -> None:
    # ibstat 02 of the corpus: 40 and 100 Gb/s on ports that are Down and Disabled.
    down = status("mlx5_0", state="1: DOWN", phys="3: Disabled", rate="40 Gb/sec (4X QDR)")
    asked = node(rate_gbps=100)
    setting = found(asked, host(ports={0: down}, speeds={0: "-1"}))["rail0 rate"]
    assert verdict(setting, LIVE) is Verdict.NOT_APPLICABLE
    assert setting.running.detail == "the port is DOWN"


@pytest.mark.parametrize(
    ("fabric", "remedy"),
    [
        (RoceFabric(), "the MTU of eth1 is 1500: it needs 4200 (rails.mtu)"),
        (InfinibandFabric(), "give the partition mtu 4096 at the subnet manager"),
    ],
    ids=["RoCE", "InfiniBand"],
)
def test_bug_23_a_port_whose_active_mtu_is_not_4096(
    fabric: RoceFabric | InfinibandFabric, remedy: str
) -> None:
    asked, is_ib = node(fabric, allow=EVERY), isinstance(fabric, InfinibandFabric)
    seen = host(infiniband=is_ib, mtus={1: 1500}, sections=devinfo(4096, 1024))
    assert verdicts(asked, seen)["rail0 mtu"] is Verdict.OK
    setting = found(asked, seen)["rail1 mtu"]
    assert (setting.desired, setting.running.value) == ("4096", "1024")
    assert verdict(setting, EVERY) is Verdict.NOT_RUNNING
    assert (setting.acts, setting.remedy) == (False, remedy)
    healthy = host(infiniband=is_ib, sections=devinfo(4096, 4096))
    assert set(verdicts(asked, healthy).values()) == {Verdict.OK}
    assert {s.remedy for s in settings(asked, healthy)} == {None}


def test_a_port_that_is_down_has_no_active_mtu() -> None:
    down = status("mlx5_0", state="1: DOWN", phys="3: Disabled")
    mtu = found(node(), host(ports={0: down}, sections=devinfo(1024, 4096)))["rail0 mtu"]
    assert verdict(mtu, LIVE) is Verdict.NOT_APPLICABLE
    assert mtu.running.detail == "the port is DOWN"


@pytest.mark.parametrize(
    ("mtu", "standing", "value"),
    [
        (9000, Standing.RIGHT, "4096"),
        (4200, Standing.RIGHT, "4096"),
        (1500, Standing.WRONG, "1024"),
        (100, Standing.UNREADABLE, None),
    ],
)
def test_without_a_verbs_tool_the_interface_tells_the_mtu(
    mtu: int, standing: Standing, value: str | None
) -> None:
    running = found(node(), host(mtus={0: mtu}))["rail0 mtu"].running
    assert (running.standing, running.value) == (standing, value)


def test_the_mtu_of_infiniband_needs_the_verbs_tool() -> None:
    mtu = found(node(InfinibandFabric()), host(infiniband=True))["rail0 mtu"]
    assert verdict(mtu, LIVE) is Verdict.UNREADABLE
    assert "ibverbs-utils" in (mtu.running.detail or "")


def test_a_partition_that_the_subnet_manager_does_not_give() -> None:
    table = "mlx5_0/ports/1/pkeys/0:0xffff\nmlx5_0/ports/1/pkeys/1:0x8001\n"
    asked = node(InfinibandFabric(pkeys=frozenset({1, 0x20})))
    states = found(asked, host(infiniband=True, tables={0: table}))
    assert states["rail0 pkeys"].running.standing is Standing.WRONG
    assert states["rail0 pkeys"].running.value == "0x0001"
    assert "not in 0x0020" in (states["rail0 pkeys"].running.detail or "")
    assert states["rail1 pkeys"].running.standing is Standing.ABSENT


def corpus_table(name: str, device: str) -> str:
    """GIDs of ``device`` in a recorded show_gids, as sysfs has them."""
    types = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
    lines = []
    text = (CORPUS / "show-gids" / f"{name}.txt").read_text(encoding="utf-8")
    for gid in parse_show_gids(text).gids:
        if gid.device == device:
            at = "mlx5_0/ports/1"
            lines.append(f"{at}/gids/{gid.index}:{gid.gid}")
            lines.append(f"{at}/gid_attrs/types/{gid.index}:{types[gid.version or 'v1']}")
            lines.append(f"{at}/gid_attrs/ndevs/{gid.index}:eth0")
    return "\n".join(lines) + "\n"


def bug_12(address: str) -> Node:
    asked = node(rails=1)
    nic = asked.rails.nics[0].model_copy(update={"address": f"{address}/24"})
    rails = {"nics": {0: nic.model_dump()}}
    return Node.model_validate({**asked.model_dump(), "rails": rails})


def test_bug_12_the_index_is_found_by_the_address_and_never_asked_for() -> None:
    seen = host(rails=1, tables={0: corpus_table("01-rocev2-index3", "mlx5_0")})
    setting = found(bug_12("10.77.1.5"), seen)["rail0 gid"]
    assert setting.running.standing is Standing.RIGHT
    assert setting.running.value == "RoCE v2 10.77.1.5 at index 3"
    assert setting.desired == "RoCE v2 10.77.1.5"


def test_bug_12_twin_a_port_without_the_v2_gid_of_its_address_is_not_ok() -> None:
    table = corpus_table("02-ib-port-without-netdev", "mlx5_0")
    asked = bug_12("10.77.1.5")
    setting = found(asked, host(rails=1, tables={0: table}))["rail0 gid"]
    assert setting.running.standing is Standing.ABSENT
    assert setting.running.detail == "link-local GIDs only"
    v1 = corpus_table("01-rocev2-index3", "mlx5_0").replace("types/3:RoCE v2", "types/3:IB/RoCE v1")
    assert found(asked, host(rails=1, tables={0: v1}))["rail0 gid"].running.value == (
        "RoCE v1 10.77.1.5 at index 2"
    )


def test_a_gid_of_another_address_is_named() -> None:
    seen = host(tables={0: gids("mlx5_0", "10.99.0.1", "eth0")})
    gid = found(node(), seen)["rail0 gid"]
    assert gid.running.standing is Standing.WRONG
    assert gid.running.value == "RoCE v2 10.99.0.1"


def test_an_address_that_is_there_twice_is_wrong() -> None:
    one = gids("mlx5_0", planned_address(0), "eth0")
    two = gids("mlx5_0", planned_address(0), "eth0", v2_index=5)
    gid = found(node(), host(tables={0: one + two}))["rail0 gid"]
    assert gid.running.standing is Standing.WRONG
    assert gid.running.value == "RoCE v2 10.64.0.13 at indices 3, 5"


def test_a_gid_of_a_vlan_on_the_port_is_not_that_of_the_rail() -> None:
    seen = host(tables={0: gids("mlx5_0", planned_address(0), "eth0.100")})
    gid = found(node(), seen)["rail0 gid"]
    assert gid.running.standing is Standing.WRONG
    assert gid.running.detail == "it comes from eth0.100, not from eth0"


@given(st.integers(2, 250))
def test_whatever_the_index_the_gid_is_right(index: int) -> None:
    seen = host(tables={0: gids("mlx5_0", planned_address(0), "eth0", v2_index=index)})
    gid = found(node(), seen)["rail0 gid"]
    assert gid.running.standing is Standing.RIGHT
    assert str(gid.running.value).endswith(f"at index {index}")
