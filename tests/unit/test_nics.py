"""NICs of a node: their ports, which rail is which, and the way that ssh came in by."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nics import SECTIONS, NicFact, Nics, parse_way_in, pci_of, read_nics
from facts.probe import Focus, script
from railwright.resolve.nics import find_rails, rails_in_image, renamed
from railwright.schema import (
    Effect,
    EffectsSpec,
    InfinibandFabric,
    Node,
    Rail,
    RailsSpec,
    RoceFabric,
)
from railwright.snapshot import Section, Snapshot, parse_probe

PCI = "/sys/devices/pci0000:17/0000:17:01.0/0000:1a:00.0"
VIRTIO = "/sys/devices/pci0000:00/0000:00:05.0"
ETHERNET = (
    f"port net ens2f0np0 {PCI} mlx5_core b8:3f:d2:00:00:01 9000 up 400000 0 1\n"
    "port net ens3f0np0 /sys/devices/pci0000:3c/0000:3d:00.0 mlx5_core b8:3f:d2:00:00:02"
    " 1500 down -1 1 1\n"
    "port net eth0 /sys/devices/pci0000:00/0000:00:03.0/virtio0 virtio_net 52:54:00:00:00:01"
    " 1500 up - -1 1\n"
)
RDMA = (
    "rdma mlx5_0 b83f:d203:0000:0001 /sys/devices/pci0000:17/0000:17:01.0/0000:1a:00.0\n"
    "rdma mlx5_1 b83f:d203:0000:0002 /sys/devices/pci0000:3c/0000:3d:00.0\n"
)
LINKS = [
    {
        "ifindex": n,
        "ifname": f"mlx5_{n}",
        "port": 1,
        "state": "ACTIVE",
        "physical_state": "LINK_UP",
        "netdev": netdev,
    }
    for n, netdev in enumerate(("ens2f0np0", "ens3f0np0"))
]
ADDRESSES = [
    {
        "ifname": "ens2f0np0",
        "flags": ["UP"],
        "permaddr": "b8:3f:d2:ff:ff:01",
        "addr_info": [
            {"local": "10.64.0.2", "prefixlen": 20, "scope": "global"},
            {"local": "fe80::1", "prefixlen": 64, "scope": "link"},
        ],
    },
    {
        "ifname": "eth0",
        "flags": ["UP"],
        "addr_info": [{"local": "192.0.2.5", "prefixlen": 24, "scope": "global"}],
    },
    {"ifname": "ens3f0np0", "flags": [], "addr_info": []},
]
WAY_IN = 'ssh 192.0.2.9 50000 192.0.2.5 22\n[{"dst":"192.0.2.9","dev":"eth0"}]\n'


def snapshot(
    ports: str = ETHERNET + RDMA,
    links: object = LINKS,
    way_in: Section | None = None,
    addresses: object = ADDRESSES,
) -> Snapshot:
    texts = {
        "nic_ports": ports,
        "nic_rdma": json.dumps(links) if links else "",
        "nic_addresses": json.dumps(addresses),
    }
    sections = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
    sections["way_in"] = way_in or Section(stdout=WAY_IN, rc=0)
    return Snapshot(host="n1", marker="m", sections=sections)


def node(allow: frozenset[Effect] = frozenset({Effect.LINK}), **nics: Rail) -> Node:
    infiniband = any(nic.guid for nic in nics.values())
    return Node(
        name="n1",
        fabric=InfinibandFabric() if infiniband else RoceFabric(),
        effects=EffectsSpec(allow=allow),
        rails=RailsSpec(nics={int(key[1:]): nic for key, nic in nics.items()}),
    )


def test_a_port_is_read_with_all_that_is_known_of_it() -> None:
    nics = read_nics(snapshot())
    port = nics.interfaces["ens2f0np0"]
    assert (port.pci, port.is_function, port.driver) == ("0000:1a:00.0", True, "mlx5_core")
    assert (port.mac, port.permanent_mac) == ("b8:3f:d2:00:00:01", "b8:3f:d2:ff:ff:01")
    assert (port.speed_mbps, nics.interfaces["ens3f0np0"].speed_mbps) == (400000, None)
    assert port.addresses == ("10.64.0.2/20",)
    virtio = nics.interfaces["eth0"]
    assert (virtio.pci, virtio.is_function, virtio.numa_node) == ("0000:00:03.0", False, None)
    device = nics.rdma_of("ens3f0np0")
    assert device is not None
    assert device.name == "mlx5_1"
    assert nics.client == "192.0.2.9"
    assert nics.addresses["eth0"] == ("192.0.2.5/24",)


BY = {
    "pci": Rail(pci="1A:00.0"),
    "mac": Rail(mac="b8:3f:d2:ff:ff:01"),
    "guid": Rail(guid="b83f:d203:0000:0001"),
    "rdma_device": Rail(rdma_device="mlx5_0"),
}


@pytest.mark.parametrize("by", BY)
def test_a_rail_is_found_by_each_of_its_identities(by: str) -> None:
    (rail,) = find_rails(node(r0=BY[by]), read_nics(snapshot()))
    assert rail.error is None
    assert rail.port is not None
    assert rail.interface is not None
    assert rail.port.rdma is not None
    found = (rail.key, rail.interface.name, rail.port.rdma.name, rail.port.pci)
    assert found == ("rail0", "ens2f0np0", "mlx5_0", "0000:1a:00.0")
    assert rail.port.refusal is None


LOST = {
    "at 0000:5e:00.0": Rail(pci="0000:5e:00.0"),
    "with MAC b8:3f:d2:00:00:09": Rail(mac="b8:3f:d2:00:00:09"),
    "with GUID b83f:d203:0000:0009": Rail(guid="b83f:d203:0000:0009"),
    "of RDMA device mlx5_9": Rail(rdma_device="mlx5_9"),
}


@pytest.mark.parametrize("name", LOST)
def test_a_nic_that_is_not_there_is_named_and_the_others_are_found(name: str) -> None:
    other = Rail(guid="b83f:d203:0000:0002") if LOST[name].guid else Rail(pci="0000:3d:00.0")
    lost, there = find_rails(node(r0=LOST[name], r1=other), read_nics(snapshot()))
    assert (lost.port, lost.error) == (None, f"there is no NIC {name}")
    assert there.error is None


def test_the_function_itself_comes_before_a_device_below_it() -> None:
    both = (
        f"port net eth5 {VIRTIO}/virtio2 virtio_net 52:54:00:00:00:05 1500 up - -1 1\n"
        f"port net rail0 {VIRTIO} railsim 52:54:00:00:00:05 1500 up 200000 -1 1\n"
    )
    for nic in (Rail(pci="0000:00:05.0"), Rail(mac="52:54:00:00:00:05")):
        (rail,) = find_rails(node(r0=nic), read_nics(snapshot(both, None)))
        assert rail.interface is not None
        assert rail.interface.name == "rail0"


def test_two_ports_of_one_function_are_not_taken_for_one() -> None:
    two = ETHERNET.replace("/sys/devices/pci0000:3c/0000:3d:00.0", PCI)
    (rail,) = find_rails(node(r0=Rail(pci="0000:1a:00.0")), read_nics(snapshot(two, None)))
    assert rail.error == "at 0000:1a:00.0 has several ports: ens2f0np0, ens3f0np0"


def test_infiniband_without_an_interface_named_by_rdma_is_found_by_its_function() -> None:
    ib = (
        f"port net ibp26s0 {PCI} mlx5_core 00:00:10:49 2044 up 400000 0 32\n"
        f"port net ibp26s0.8001 {PCI} mlx5_core 00:00:10:49 2044 up 400000 0 32\n"
    )
    links = [{k: v for k, v in link.items() if k != "netdev"} for link in LINKS]
    nics = read_nics(snapshot(ib + RDMA, links))
    (rail,) = find_rails(node(r0=Rail(guid="b83f:d203:0000:0001")), nics)
    assert rail.interface is not None
    assert (rail.interface.name, rail.interface.is_infiniband) == ("ibp26s0", True)
    (alone,) = find_rails(node(r1=Rail(guid="b83f:d203:0000:0002")), nics)
    assert alone.port is not None
    assert (alone.interface, alone.port.pci) == (None, "0000:3d:00.0")


PORTS = frozenset({"eth0", "ens2f0np0", "ens3f0np0"})
ROUTE = '[{{"dst":"192.0.2.9","dev":"{}"}}]\n'


def way(dev: str, lowers: dict[str, tuple[str, ...]], server: str = "192.0.2.5") -> object:
    addresses = {dev: ("192.0.2.5/24",), "lo": ("127.0.0.1/8",)}
    text = f"ssh 192.0.2.9 50000 {server} 22\n" + ROUTE.format(dev)
    return parse_way_in(text, addresses, lowers, PORTS)


def test_the_way_in_over_a_bond_a_vlan_and_a_bridge_has_all_ports_below() -> None:
    bond = {"bond0": ("eth0", "ens3f0np0")}
    assert way("bond0", bond) == {"bond0", "eth0", "ens3f0np0"}
    vlan = {**bond, "bond0.10": ("bond0",)}
    assert way("bond0.10", vlan) == {"bond0.10", "bond0", "eth0", "ens3f0np0"}
    assert way("br0", {**vlan, "br0": ("bond0.10",)}) == {
        "br0",
        "bond0.10",
        "bond0",
        "eth0",
        "ens3f0np0",
    }
    assert way("eth0", {}) == {"eth0"}


def test_in_by_one_interface_and_back_by_another_are_both_the_way_in() -> None:
    text = "ssh 192.0.2.9 50000 10.64.0.2 22\n" + ROUTE.format("eth0")
    addresses = {"ens2f0np0": ("10.64.0.2/20",), "eth0": ("192.0.2.5/24",)}
    assert parse_way_in(text, addresses, {}, PORTS) == {"ens2f0np0", "eth0"}


def test_a_link_local_way_in_is_told_by_its_scope() -> None:
    text = "ssh fe80::9%eth0 50000 fe80::5%eth0 22\n"
    assert parse_way_in(text, {}, {}, PORTS) == {"eth0"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk\n",
        "ssh 192.0.2.9 50000 198.51.100.1 22\n[]\n",
        # An agent on the node itself hands the session on: by which port it came is not seen.
        'ssh 127.0.0.1 50000 127.0.0.1 22\n[{"dst":"127.0.0.1","dev":"lo"}]\n',
        'ssh 100.64.0.9 50000 100.64.0.5 22\n[{"dst":"100.64.0.9","dev":"wg0"}]\n',
    ],
)
def test_a_way_in_below_which_no_port_is_seen_is_not_known(text: str) -> None:
    addresses = {"lo": ("127.0.0.1/8",), "wg0": ("100.64.0.5/24",)}
    assert parse_way_in(text, addresses, {}, PORTS) is None


@pytest.mark.parametrize(
    "way_in",
    [Section(stdout="", rc=0), Section(stdout=WAY_IN, stderr="RTNETLINK answers: x", rc=2)],
)
def test_an_unknown_way_in_refuses_every_port(way_in: Section) -> None:
    (rail,) = find_rails(node(r0=BY["pci"]), read_nics(snapshot(way_in=way_in)))
    assert rail.port is not None
    assert rail.port.refusal is not None
    assert "not known" in rail.port.refusal


def test_the_port_below_the_way_in_is_refused() -> None:
    # So the probe says it of a bond and its ports, and of a virtual function and its port.
    below = snapshot(f"{ETHERNET}{RDMA}lower eth0 ens2f0np0\n")
    (rail,) = find_rails(node(r0=BY["pci"]), read_nics(below))
    assert rail.port is not None
    assert rail.port.refusal == "ssh came in by ens2f0np0"


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"))))
def test_the_way_in_ends_whatever_lies_below_what(lowers: dict[str, list[str]]) -> None:
    below = {name: tuple(found) for name, found in lowers.items()}
    text = 'ssh 192.0.2.9 1 192.0.2.5 22\n[{"dev":"a"}]\n'
    found = parse_way_in(text, {"a": ("192.0.2.5/24",)}, below, frozenset("abcdefgh"))
    assert found is not None
    assert "a" in found
    assert all(set(below.get(name, ())) <= found for name in found)


@given(st.text(max_size=200))
def test_a_way_in_of_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        found = parse_way_in(text, {}, {}, PORTS)
    except ValueError as error:
        assert "ip -j route get" in str(error)  # noqa: PT017
    else:
        assert found is None or found <= PORTS


@pytest.mark.parametrize(
    ("path", "pci"),
    [
        ("/sys/devices/pci0000:17/0000:17:01.0/0000:1a:00.0", "0000:1a:00.0"),
        ("/sys/devices/pci10000:e0/10000:e0:1c.0/10000:e1:00.0", "10000:e1:00.0"),
        ("/sys/devices/pci0000:00/0000:00:03.0/virtio0", "0000:00:03.0"),
        ("/sys/devices/platform/x", None),
    ],
)
def test_the_pci_address_of_a_path(path: str, pci: str | None) -> None:
    assert pci_of(path) == pci


@pytest.mark.parametrize("text", ["{}", "junk", "[1]"])
def test_addresses_that_are_none_are_refused_in_words(text: str) -> None:
    seen = snapshot()
    sections = {**seen.sections, "nic_addresses": Section(stdout=text, rc=0)}
    with pytest.raises(ValueError, match="ip -j addr: expected"):
        read_nics(seen.model_copy(update={"sections": sections}))


def rails_of(nics: Nics, asked: Node) -> dict[str, str]:
    return renamed(asked, find_rails(asked, nics), nics)


def test_what_is_renamed_in_a_run() -> None:
    asked = node(r0=Rail(pci="0000:1a:00.0"), r1=Rail(pci="0000:3d:00.0"))
    nics = read_nics(snapshot())
    assert rails_of(nics, asked) == {"rail0": "ens2f0np0", "rail1": "ens3f0np0"}
    assert rails_of(nics, node(frozenset(), r0=Rail(pci="0000:1a:00.0"))) == {}
    # A name that a foreign interface has is not free; nor is one that waits for such a one.
    taken = nics.model_copy(update={"addresses": {**nics.addresses, "rail0": ()}})
    assert rails_of(taken, asked) == {"rail1": "ens3f0np0"}


def test_the_rails_of_an_image_are_known_by_the_inventory_alone() -> None:
    (rail,) = rails_in_image(node(r0=Rail(pci="0000:1a:00.0")))
    assert rail.port is not None
    assert (rail.port.pci, rail.port.refusal, rail.interface) == ("0000:1a:00.0", None, None)


def test_a_representor_of_a_virtual_function_is_no_port(tmp_path: Path) -> None:
    for name, port in (("rail0", "p0"), ("rail0_0", "pf0vf0"), ("rail0_1", "pf0sf88")):
        link = tmp_path / "net" / name
        (link / "device").mkdir(parents=True)
        (link / "phys_port_name").write_text(f"{port}\n")
    section = next(section for section in SECTIONS if section.name == "nic_ports")
    probe = script((section,), Focus(rails=True)).replace("/sys/class/net", str(tmp_path / "net"))
    done = subprocess.run(["sh", "-c", probe], capture_output=True, text=True, check=True)
    lines = parse_probe(done.stdout, host="n").text("nic_ports").splitlines()
    told = [line.split()[2] for line in lines if line.startswith("port net ")]
    assert told == ["rail0"]


def test_the_fact_asks_a_host_whose_inventory_has_no_rails() -> None:
    done = subprocess.run(
        ["sh", "-c", NicFact().command()], capture_output=True, text=True, check=True
    )
    sections = parse_probe(done.stdout, host="here").sections
    assert '"ifname"' in sections["nic_addresses"].stdout
