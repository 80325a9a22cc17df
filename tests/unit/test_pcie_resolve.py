"""What lies between two functions, how near they are, and what their links must be like."""

from hypothesis import given
from hypothesis import strategies as st

from facts.pcie import parse_pcie
from railwright.pcie import Function, Pcie
from railwright.resolve.pcie import (
    affinity,
    between,
    nearest,
    nearest_of_gpus,
    nearness,
    peer_bridges,
)
from railwright.resolve.pcie_link import LinkReport, link_report
from tests.unit.pcie_host import (
    GPUS,
    MANAGEMENT,
    NICS,
    PORTS,
    Devices,
    changed,
    device,
    hgx,
    section_text,
)


def pcie(devices: Devices) -> Pcie:
    return parse_pcie(section_text(devices))


NODE = pcie(hgx())


def function(address: str, node: Pcie = NODE) -> Function:
    return node.functions[address]


def test_under_one_switch_the_ports_decide_and_not_what_is_above_them() -> None:
    assert between(function(GPUS[0]), function(NICS[0])) == ("0000:17:00.0", "0000:17:02.0")
    assert affinity(function(GPUS[0]), function(NICS[0])) == "PIX"


def test_between_host_bridges_no_bridge_decides() -> None:
    assert between(function(GPUS[0]), function(NICS[2])) is None
    assert affinity(function(GPUS[0]), function(NICS[2])) == "NODE"
    assert affinity(function(GPUS[0]), function(NICS[4])) == "SYS"


def test_switches_in_a_cascade_are_pxb() -> None:
    host, root, top = "pci0000:15", "0000:15:01.0", "0000:16:00.0"
    down, second = "0000:17:00.0", "0000:18:00.0"
    gpu = device("gpu", [host, root, top, "0000:17:01.0"], "0000:30:00.0")
    nic = device("nic", [host, root, top, down, second, "0000:19:00.0"], "0000:31:00.0")
    bridges = {
        address: device("bridge", [host], address)
        for address in (root, top, down, second, "0000:17:01.0", "0000:19:00.0")
    }
    node = pcie({**bridges, gpu.address: gpu, nic.address: nic})
    one, other = node.functions[gpu.address], node.functions[nic.address]
    assert affinity(one, other) == "PXB"
    assert between(one, other) == ("0000:17:01.0", down, second, "0000:19:00.0")


def test_two_root_ports_of_one_host_bridge_are_phb_and_both_decide() -> None:
    host = "pci0000:40"
    ports = {a: device("bridge", [host], a) for a in ("0000:40:01.1", "0000:40:03.1")}
    gpu = device("gpu", [host, "0000:40:01.1"], "0000:41:00.0")
    nic = device("nic", [host, "0000:40:03.1"], "0000:42:00.0")
    node = pcie({**ports, gpu.address: gpu, nic.address: nic})
    assert affinity(node.functions[gpu.address], node.functions[nic.address]) == "PHB"
    assert set(peer_bridges(node, [nic.address])) == set(ports)


def test_ports_of_one_nic_have_no_bridge_between_them() -> None:
    second = device("nic", hgx()[NICS[0]].above, NICS[0].replace(".0", ".1"))
    node = pcie({**hgx(), second.address: second})
    assert between(node.functions[NICS[0]], node.functions[second.address]) == ()
    assert affinity(node.functions[NICS[0]], node.functions[second.address]) == "PIX"


def test_a_numa_node_that_is_not_known_is_not_taken_for_the_same() -> None:
    node = pcie(changed(hgx(), NICS[2], numa=-1))
    assert affinity(node.functions[GPUS[0]], node.functions[NICS[2]]) is None
    # What is nearer does not depend on it.
    assert affinity(node.functions[GPUS[2]], node.functions[NICS[2]]) == "PIX"


def test_the_ports_above_gpus_rails_and_drives_are_what_peer_traffic_passes() -> None:
    assert set(peer_bridges(NODE, NICS)) == set(PORTS)


def test_a_nic_that_is_no_rail_and_its_port_are_left_out() -> None:
    found = peer_bridges(NODE, [NICS[0]])
    assert "0000:17:02.0" in found
    assert "0000:17:03.0" not in found
    assert MANAGEMENT not in {name for pair in found.values() for name in pair}


def test_without_a_gpu_the_ports_between_rails_and_drives_count() -> None:
    node = pcie({a: one for a, one in hgx().items() if one.kind != "gpu"})
    expected = {port for port in PORTS if port[-4:-2] in ("02", "03", "04")}
    assert set(peer_bridges(node, NICS)) == expected
    assert peer_bridges(node, []) == {}


def test_bug_28_the_nearest_nic_follows_the_topology_and_not_the_socket() -> None:
    """NPS4: four NUMA nodes on a socket. The GPU's node has no NIC, and one shares its switch."""
    devices = hgx()
    for address in devices:
        if address in GPUS[:2]:
            devices = changed(devices, address, numa=3)
    node = pcie(devices)
    nic, (one, two) = nearest(node.functions[GPUS[0]], node.of_kind("nic"))
    assert (nic, one.address, two.address) == ("PIX", *NICS[:2])
    # NUMA nodes 0 and 3 may be of one socket; between NUMA nodes it is SYS all the same.
    assert affinity(node.functions[GPUS[0]], node.functions[NICS[2]]) == "SYS"


def test_bug_28_twin_each_gpu_has_the_nics_of_its_switch() -> None:
    found = nearest_of_gpus(NODE)
    for index, gpu in enumerate(GPUS):
        first = index - index % 2
        assert (found[gpu].nic, found[gpu].nics) == ("PIX", NICS[first : first + 2])


def test_nothing_is_nearest_where_there_is_nothing() -> None:
    assert nearest(function(GPUS[0]), []) == (None, ())


ADDRESSES = st.sampled_from(sorted(NODE.functions))


@given(ADDRESSES, ADDRESSES)
def test_paths_lead_both_ways(one: str, other: str) -> None:
    there, back = between(function(one), function(other)), between(function(other), function(one))
    assert affinity(function(one), function(other)) == affinity(function(other), function(one))
    assert (there is None) == (back is None)
    assert sorted(there or ()) == sorted(back or ())
    near = affinity(function(one), function(other))
    assert nearness(near) <= nearness("PHB") or there is None


def report(devices: Devices, address: str) -> LinkReport | None:
    node = pcie(devices)
    one = node.functions[address]
    return link_report(one, node, [f for f in node.of_kind(one.kind) if f.address != MANAGEMENT])


def test_bug_7_a_width_below_what_device_and_slot_allow_is_a_fault() -> None:
    found = report(changed(hgx(), GPUS[6], link=("8.0", "8", "32.0", "16")), GPUS[6])
    assert found == LinkReport(
        expected="x16",
        found="x8",
        faults=("x8 of x16",),
        note="8 of 32 GT/s: an idle GPU lowers it",
    )
    nic = report(changed(hgx(), NICS[0], link=("16.0", "8", "32.0", "16")), NICS[0])
    assert nic is not None
    assert (nic.found, nic.expected) == ("16 GT/s x8", "32 GT/s x16")
    assert nic.faults == ("x8 of x16", "16 of 32 GT/s")


def test_bug_7_twin_an_idle_gpu_and_full_links_are_no_fault() -> None:
    idle = report(changed(hgx(), GPUS[6], link=("2.5", "16", "32.0", "16")), GPUS[6])
    assert idle is not None
    assert (idle.faults, idle.note) == ((), "2.5 of 32 GT/s: an idle GPU lowers it")
    for address in (*GPUS, *NICS):
        full = report(hgx(), address)
        assert full is not None
        assert (full.faults, full.note) == ((), None)


def test_a_slot_that_gives_less_than_those_of_the_siblings_is_a_fault() -> None:
    narrow = ("32.0", "8", "32.0", "8")
    devices = changed(hgx(), "0000:17:02.0", link=narrow)
    devices = changed(devices, NICS[0], link=("32.0", "8", "32.0", "16"))
    found = report(devices, NICS[0])
    assert found is not None
    assert found.faults == ("x8 of x16", "its slot has x8")
    # A NIC of another model is no measure.
    for other in NICS[1:]:
        devices = changed(devices, other, ids=("0x15b3", "0x1017"))
    alone = report(devices, NICS[0])
    assert alone is not None
    assert (alone.faults, alone.expected) == ((), "32 GT/s x8")


def test_a_link_that_is_not_told_is_no_report() -> None:
    assert report(changed(hgx(), NICS[0], link=("Unknown", "0", "32.0", "16")), NICS[0]) is None
