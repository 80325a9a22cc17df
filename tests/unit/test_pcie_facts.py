"""PCIe functions read from the probe's text, and that text from a tree of files."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.lspci import parse_lspci
from facts.pcie import PcieFact, parse_pcie
from railwright.pcie import ACS_BITS, AcsControl
from railwright.resolve.pcie import REDIRECT_MASK, redirection
from railwright.snapshot import Section, Snapshot
from tests.unit.pcie_host import (
    GPUS,
    ISOLATING,
    NICS,
    PORTS,
    build,
    changed,
    device,
    hgx,
    section_script,
    section_text,
    switch,
)


def read_tree(tree: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", section_script(tree)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_section_reads_a_tree_of_sysfs(tmp_path: Path) -> None:
    devices = {one.address: one for one in switch(0x15, 0, ISOLATING)}
    devices = changed(devices, "0000:17:03.0", acs=1)
    devices = changed(devices, "0000:1a:00.0", control=0x2930, link=("16.0", "8", "32.0", "16"))
    devices = changed(devices, "0000:1b:00.0", control=None, iommu=None, driver=None)
    tree = build(tmp_path / "sys", devices, assigned=["0000:1c:00.0"])
    assert read_tree(tree) == section_text(devices, assigned=["0000:1c:00.0"])


def test_virtual_functions_and_other_classes_are_passed_over(tmp_path: Path) -> None:
    devices = {one.address: one for one in switch(0x15, 0)}
    vga = device("vga", ["pci0000:00"], "0000:00:02.0")
    tree = build(tmp_path / "sys", {**devices, vga.address: vga})
    (tree / "devices" / devices["0000:1a:00.0"].path / "physfn").mkdir()
    found = parse_pcie(read_tree(tree))
    assert sorted(found.functions) == [
        "0000:18:00.0",
        "0000:19:00.0",
        "0000:1b:00.0",
        "0000:1c:00.0",
    ]


def shortened(tree: Path, address: str, size: int) -> None:
    config = tree / "bus/pci/devices" / address / "config"
    config.write_bytes(config.read_bytes()[:size])


def test_config_space_that_is_not_shown_is_not_no_acs(tmp_path: Path) -> None:
    devices = {one.address: one for one in switch(0x15, 0, ISOLATING)}
    tree = build(tmp_path / "sys", devices)
    # What the kernel shows to others than root.
    shortened(tree, "0000:17:00.0", 64)
    shortened(tree, "0000:1a:00.0", 64)
    # A device that does not answer reads as ones.
    gone = tree / "bus/pci/devices/0000:17:01.0/config"
    gone.write_bytes(b"\xff" * 4096)
    # A conventional bridge has 256 bytes, and no room for ACS.
    shortened(tree, "0000:17:02.0", 256)
    found = parse_pcie(read_tree(tree))
    for address in ("0000:17:00.0", "0000:17:01.0"):
        assert (found.bridges[address].readable, found.bridges[address].acs) == (False, None)
    old = found.bridges["0000:17:02.0"]
    assert (old.readable, old.acs) == (True, None)
    nic = found.functions["0000:1a:00.0"]
    assert (nic.readable, nic.read_request_bytes) == (False, None)


def test_a_chain_of_capabilities_that_leads_round_is_unreadable(tmp_path: Path) -> None:
    devices = {one.address: one for one in switch(0x15, 0)}
    tree = build(tmp_path / "sys", devices)
    config = tree / "bus/pci/devices/0000:17:00.0/config"
    space = bytearray(config.read_bytes())
    space[0x100:0x104] = (1 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")
    config.write_bytes(space)
    assert not parse_pcie(read_tree(tree)).bridges["0000:17:00.0"].readable


def test_the_text_of_a_whole_node() -> None:
    found = parse_pcie(section_text(hgx(), lockdown="none [integrity] confidentiality"))
    assert tuple(gpu.address for gpu in found.of_kind("gpu")) == GPUS
    assert len(found.of_kind("nic")) == 9
    nic = found.functions[NICS[4]]
    assert (nic.device, nic.host, nic.numa_node) == ("15b3:1021", "pci0000:97", 1)
    assert nic.bridges == ("0000:97:01.0", "0000:98:00.0", "0000:99:02.0")
    assert (nic.read_request_bytes, nic.relaxed_ordering, nic.iommu) == (4096, True, "identity")
    assert (nic.link.speed, nic.link.width) == (32.0, 16)
    assert (found.virtual, found.locked_down) == ("none", True)


def test_a_node_without_numa_and_a_link_that_is_not_known() -> None:
    devices = changed(hgx(), NICS[0], numa=-1, link=("Unknown", "255", "32.0", "0"))
    nic = parse_pcie(section_text(devices)).functions[NICS[0]]
    assert nic.numa_node is None
    link = nic.link
    assert (link.speed, link.width, link.max_speed, link.max_width) == (None, None, 32.0, None)


def test_a_drive_behind_volume_management_has_that_host_bridge() -> None:
    path = "10000:e0/10000:e0:01.0/10000:e1:00.0"
    text = f"function nvme {path} 0x144d 0xa80a 0 - 16.0 4 16.0 4 nvme none\n"
    drive = parse_pcie(text).functions["10000:e1:00.0"]
    assert (drive.host, drive.bridges) == ("pci10000:e0", ("10000:e0:01.0",))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("function gpu 0000:15/0000:18:00.0 0x10de", "12 words"),
        ("bridge 0000:15:01.0 - - - -", "6 words"),
        ("bridge nonsense - - - - none", "6 words"),
        ("assigned /sys/devices", "path of PCI addresses"),
        ("gpu 0000:15:01.0", "expected a PCIe function or bridge"),
    ],
)
def test_what_is_no_line_of_the_section_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_pcie(f"virtual none\n{line}\n")


def test_the_fact_has_the_nearest_nics_of_each_gpu() -> None:
    section = Section(stdout=section_text(hgx()), rc=0)
    snapshot = Snapshot(host="n1", marker="m-0", sections={"pcie_devices": section})
    report = PcieFact().read(snapshot)
    assert report.gpus[GPUS[5]].nics == NICS[4:6]
    assert (report.gpus[GPUS[5]].nic, report.gpus[GPUS[5]].numa_node) == ("PIX", 1)
    assert report.gpus[GPUS[0]].nvmes == ("0000:1c:00.0",)


BUG_1 = """\
0000:50:01.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)
\tCapabilities: [170 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{0} CmpltRedir{0} UpstreamFwd{0} EgressCtrl- DirectTrans-
"""


def control_of_lspci(text: str) -> AcsControl:
    (bridge,) = parse_lspci(text)
    assert bridge.acs is not None
    return AcsControl.of(bridge.acs.enabled)


def test_bug_1_redirecting_bits_are_named() -> None:
    found = control_of_lspci(BUG_1.format("+"))
    assert found == AcsControl(register_value=ISOLATING)
    assert redirection(found) == "ReqRedir+ CmpltRedir+ UpstreamFwd+"


def test_bug_1_twin_what_a_port_could_do_and_source_validation_are_harmless() -> None:
    found = control_of_lspci(BUG_1.format("-"))
    assert found.enabled == ("SrcValid",)
    assert redirection(found) is None


@given(st.integers(0, 0x7F))
def test_any_control_register_is_judged_by_the_bits_that_are_cleared(value: int) -> None:
    control = AcsControl(register_value=value)
    assert (redirection(control) is None) == (value & REDIRECT_MASK == 0)
    assert redirection(AcsControl(register_value=value & ~REDIRECT_MASK)) is None
    flags = {name: name in control.enabled for name in ACS_BITS}
    assert AcsControl.of(flags) == control


def test_ports_of_the_fixture_are_the_ones_above_its_functions() -> None:
    found = parse_pcie(section_text(hgx()))
    assert {f.bridges[-1] for f in found.functions.values()} >= set(PORTS)
