"""Faults of the fabric that people reported in public: rows whose input several tools tell.

Numbers are the rows of the list of faults. The other rows are tested beside their component.
"""

from pathlib import Path

from facts.cpu import parse_lscpu
from facts.lspci import parse_lspci
from facts.topo import Topology, parse_topology
from railwright.fabric.gids import gid_differences, gid_indices
from railwright.schema import PcieSpec, Rail
from railwright.settings import Standing, Verdict, verdict
from tests.unit import firmware_cases, pcie_host, pcie_node, ports_cases, ports_host
from tests.unit.pcie_host import GPUS, NICS, changed

CORPUS = Path(__file__).parents[1] / "corpus"

ROW_9 = """\
5e:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [ConnectX-7] [15b3:1021]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-
\t\t\tRlxdOrd{} ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-
\t\t\tMaxPayload 256 bytes, MaxReadReq {} bytes
"""
TUNED = PcieSpec(max_read_request_bytes=4096, relaxed_ordering=True)


def test_bug_9_small_reads_in_strict_order_are_told_as_lspci_shows_them() -> None:
    """The register that the probe reads says what lspci says of it."""
    states = {}
    # Device Control: payload 256 in bits 7:5, read request 512 or 4096 in 14:12, ordering in 4.
    for register, ordering, size in ((0x2920, "-", 512), (0x5930, "+", 4096)):
        (nic,) = parse_lspci(ROW_9.format(ordering, size))
        assert (nic.max_payload, nic.max_read_req) == (256, size)
        devices = changed(pcie_node.RIGHT, NICS[3], control=register)
        asked = pcie_node.node(TUNED)
        every = pcie_node.found(asked, pcie_node.converged(asked, devices))
        shown = [every[f"rail3 {name}"] for name in ("mrrs", "relaxed ordering")]
        assert [s.running.value for s in shown] == [f"{size} bytes", f"RlxdOrd{ordering}"]
        states[size] = {verdict(s, pcie_node.LIVE) for s in shown}
    assert states == {512: {Verdict.NOT_RUNNING}, 4096: {Verdict.OK}}


def test_bug_9_write_ordering_of_the_firmware_is_held_against_the_profile_alone() -> None:
    row = "PCI_WR_ORDERING", "rail0 PCI_WR_ORDERING"
    strict = firmware_cases.config(PCI_WR_ORDERING="per_mkey(0) per_mkey(0) per_mkey(0)")
    relaxed = firmware_cases.config(PCI_WR_ORDERING="per_mkey(0) force_relax(1) force_relax(1)")
    states = {}
    for text in (strict, relaxed):
        seen = firmware_cases.nic(firmware_cases.told(firmware_cases.answer(0, text)))
        asked = firmware_cases.asking({row[0]: "force_relax"})
        setting = firmware_cases.found(asked, seen)[row[1]]
        states[setting.running.value] = verdict(setting, ports_host.LIVE)
        # An old CPU is slower with it: without the inventory's word nothing is held against a NIC.
        assert row[1] not in firmware_cases.found(firmware_cases.asking({}), seen)
    assert states == {"per_mkey(0)": Verdict.WRONG, "force_relax(1)": Verdict.OK}


def test_bug_12_hosts_whose_index_differs_are_named_and_none_is_pinned() -> None:
    """The row's table: v1 at 0 and 2, v2 of a link-local address at 1 and of IPv4 at 3."""
    asked = ports_host.node(rails=1)
    row = ports_host.gids("mlx5_0", ports_host.planned_address(0), "eth0")
    v1_only = row.replace("types/3:RoCE v2", "types/3:IB/RoCE v1")
    moved = ports_host.gids("mlx5_0", ports_host.planned_address(0), "eth0", v2_index=5)
    indices, verdicts = {}, {}
    tables = {"gpu1": row, "gpu2": row, "gpu3": moved, "gpu4": v1_only}
    for name, table in tables.items():
        seen = ports_host.host(rails=1, tables={0: table})
        indices[name] = gid_indices(asked, seen)
        verdicts[name] = ports_cases.verdicts(asked, seen)["rail0 gid"]
        assert ports_cases.done(asked, seen) == []
    assert gid_differences(indices) == {"rail0": {"gpu3": 5, "gpu4": None}}
    # An index is no fault of a host; a port without a v2 GID of its address is.
    assert verdicts == {
        **dict.fromkeys(("gpu1", "gpu2", "gpu3"), Verdict.OK),
        "gpu4": Verdict.NOT_RUNNING,
    }


def test_bug_23_of_two_hosts_the_one_with_the_smaller_active_mtu_is_wrong() -> None:
    asked = ports_host.node(rails=1)
    told = {}
    for name, mtu in (("a", 4096), ("b", 1024)):
        seen = ports_host.host(rails=1, sections=ports_cases.devinfo(mtu, mtu))
        setting = ports_cases.found(asked, seen)["rail0 mtu"]
        told[name] = setting.running.value, verdict(setting, ports_host.LIVE)
    assert told == {"a": ("4096", Verdict.OK), "b": ("1024", Verdict.NOT_RUNNING)}


ROW_28 = """\
\tGPU0\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tSYS\t{}\tSYS\t18-23,66-71\t3\t\tN/A
NIC0\tSYS\t X \tSYS\tNODE
NIC1\t{}\tSYS\t X \tSYS
NIC2\tSYS\tNODE\tSYS\t X
"""


def test_bug_28_a_gpu_on_node_3_of_8_has_the_one_nic_that_is_near() -> None:
    cpus = parse_lscpu((CORPUS / "lscpu" / "01-epyc-8-nodes.txt").read_text(encoding="utf-8"))
    assert (cpus.sockets, cpus.numa_nodes) == (2, 8)
    one_near = parse_topology(ROW_28.format("PXB", "PXB"))
    assert isinstance(one_near, Topology)
    assert one_near.gpus["GPU0"].numa == 3
    assert (one_near.best_nic("GPU0"), one_near.near_nics("GPU0")) == ("NIC1", ("PXB", ("NIC1",)))
    none_near = parse_topology(ROW_28.format("SYS", "SYS"))
    assert isinstance(none_near, Topology)
    assert none_near.best_nic("GPU0") is None


def test_bug_28_a_rail_of_the_same_socket_and_another_numa_node_is_not_near() -> None:
    """NPS4: nodes 0 to 3 are of the first socket, and one NIC alone is near the GPU of node 3."""
    devices = {a: one for a, one in pcie_host.hgx(acs=1).items() if a != NICS[0]}
    for address, numa in ((GPUS[0], 3), (NICS[1], 3), (NICS[2], 2), (NICS[3], 1)):
        devices = changed(devices, address, numa=numa)
    rails = {
        "right": {0: Rail(pci=NICS[1], gpu=0), 1: Rail(pci=NICS[2])},
        "wrong": {0: Rail(pci=NICS[2], gpu=0), 1: Rail(pci=NICS[1])},
    }
    spec = PcieSpec(affinity="nearest")
    told = {}
    for name, nics in rails.items():
        every = pcie_node.found(pcie_node.node(spec, nics=nics, gpus=None), pcie_node.host(devices))
        running = every["rail0 affinity"].running
        told[name] = running.standing, running.value, running.detail
    assert told == {
        "right": (Standing.RIGHT, f"nearest to {GPUS[0]}", "PIX"),
        "wrong": (Standing.WRONG, "SYS", "nearer: rail1 PIX"),
    }
