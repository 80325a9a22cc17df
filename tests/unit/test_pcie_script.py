"""The script railwright-pcie against a tree of files, and against what is decided in Python."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facts.pcie import parse_pcie
from railwright.resolve.pcie import REDIRECT_MASK, peer_bridges
from railwright.resolve.pcie_plan import Plan, script
from tests.unit.pcie_host import (
    ISOLATING,
    NICS,
    PORTS,
    Device,
    acs_of,
    build,
    changed,
    control_of,
    device,
    hgx,
    section_text,
    switch,
)


def run(tree: Path, plan: Plan | str, virtual: str = "none") -> subprocess.CompletedProcess[str]:
    tools = tree / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "systemd-detect-virt").write_text(f"#!/bin/sh\necho '{virtual}'\n")
    (tools / "systemd-detect-virt").chmod(0o755)
    text = script().replace("/sys/bus/pci/devices", f"{tree}/bus/pci/devices")
    text = text.replace("/sys/kernel/security", f"{tree}/security")
    text = text.replace("PATH=/usr/sbin", f"PATH={tools}:/usr/sbin", 1)
    (tree / "program").write_text(text)
    (tree / "plan").write_text(plan if isinstance(plan, str) else plan.content())
    return subprocess.run(
        ["sh", str(tree / "program"), str(tree / "plan")], capture_output=True, text=True
    )


def one_switch(acs: int = ISOLATING) -> dict[str, Device]:
    return {one.address: one for one in switch(0x15, 0, acs)}


SWITCH_NICS = {NICS[0]: 4096, NICS[1]: None}
SWITCH_PORTS = PORTS[:5]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return build(tmp_path / "sys", changed(one_switch(), NICS[0], control=0x2930))


def test_redirection_is_cleared_and_source_validation_kept(tree: Path) -> None:
    done = run(tree, Plan(acs="clear", nics=SWITCH_NICS))
    assert (done.returncode, done.stderr) == (0, "")
    assert {acs_of(tree, port) for port in SWITCH_PORTS} == {1}
    assert control_of(tree, NICS[0]) == 0x5930
    lines = [f"{port}: ACS control from 001d to 0001\n" for port in SWITCH_PORTS]
    lines.append(f"{NICS[0]}: MaxReadReq from 512 to 4096 bytes\n")
    assert sorted(done.stdout.splitlines(keepends=True)) == sorted(lines)


def test_a_second_run_writes_nothing_and_says_nothing(tree: Path) -> None:
    plan = Plan(acs="clear", nics=SWITCH_NICS)
    run(tree, plan)
    configs = list((tree / "devices").rglob("config"))
    for config in configs:
        os.utime(config, (1, 1))
    done = run(tree, plan)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {config.stat().st_mtime for config in configs} == {1}


def test_nothing_but_the_registers_is_written(tree: Path) -> None:
    before = {path: path.read_bytes() for path in (tree / "devices").rglob("config")}
    run(tree, Plan(acs="clear", nics=SWITCH_NICS))
    for path, space in before.items():
        now = path.read_bytes()
        assert len(now) == len(space)
        assert sum(a != b for a, b in zip(now, space, strict=True)) <= 1


@pytest.mark.parametrize("size", [128, 256, 512, 1024, 2048, 4096])
def test_each_read_request_size(tree: Path, size: int) -> None:
    assert run(tree, Plan(acs=None, nics={NICS[0]: size})).returncode == 0
    control = control_of(tree, NICS[0])
    assert 128 << (control >> 12) == size
    assert control & 0xFFF == 0x930
    # ACS is not asked for.
    assert acs_of(tree, SWITCH_PORTS[0]) == ISOLATING


def test_in_a_virtual_machine_acs_is_left_unless_it_is_asked_for(tree: Path) -> None:
    done = run(tree, Plan(acs="clear", nics=SWITCH_NICS), virtual="kvm")
    assert done.returncode == 0
    assert "ACS is left: this is a virtual machine (kvm)" in done.stdout
    assert acs_of(tree, SWITCH_PORTS[0]) == ISOLATING
    assert control_of(tree, NICS[0]) == 0x5930
    assert run(tree, Plan(acs="clear-in-vm", nics=SWITCH_NICS), virtual="kvm").returncode == 0
    assert acs_of(tree, SWITCH_PORTS[0]) == 1


def test_where_it_cannot_be_told_acs_is_left_and_the_unit_fails(tree: Path) -> None:
    done = run(tree, Plan(acs="clear", nics=SWITCH_NICS), virtual="")
    assert done.returncode == 1
    assert "cannot be told" in done.stderr
    assert acs_of(tree, SWITCH_PORTS[0]) == ISOLATING


def test_a_bridge_above_a_function_of_a_guest_is_left(tmp_path: Path) -> None:
    tree = build(tmp_path / "sys", one_switch(), assigned=["0000:18:00.0"])
    done = run(tree, Plan(acs="clear", nics=SWITCH_NICS))
    assert done.returncode == 1
    assert done.stderr == (
        "0000:17:00.0: ACS is left, a function below it is given to a guest (vfio-pci)\n"
    )
    assert acs_of(tree, "0000:17:00.0") == ISOLATING
    assert acs_of(tree, "0000:17:01.0") == 1


def test_a_write_that_is_refused_is_told_with_the_lockdown(tree: Path) -> None:
    (tree / "security").mkdir()
    (tree / "security/lockdown").write_text("none [integrity] confidentiality\n")
    (tree / "tools").mkdir()
    refusing = (
        "#!/bin/sh\necho \"dd: error writing 'config': Operation not permitted\" >&2\nexit 1\n"
    )
    (tree / "tools/dd").write_text(refusing)
    (tree / "tools/dd").chmod(0o755)
    done = run(tree, Plan(acs="clear", nics=SWITCH_NICS))
    assert done.returncode == 1
    assert done.stdout == ""
    assert (
        "0000:17:00.0: config space cannot be written (Operation not permitted), "
        "kernel lockdown: none [integrity] confidentiality\n"
    ) in done.stderr


def test_a_write_that_the_device_does_not_take_is_told(tree: Path) -> None:
    (tree / "tools").mkdir()
    (tree / "tools/dd").write_text("#!/bin/sh\ncat >/dev/null\n")
    (tree / "tools/dd").chmod(0o755)
    done = run(tree, Plan(acs="clear", nics=SWITCH_NICS))
    assert done.returncode == 1
    assert "0000:17:00.0: ACS control stays as it was\n" in done.stderr
    assert f"{NICS[0]}: MaxReadReq stays as it was\n" in done.stderr


def test_a_bridge_that_cannot_be_read_fails_and_the_others_are_served(tree: Path) -> None:
    config = tree / "bus/pci/devices/0000:17:00.0/config"
    config.write_bytes(config.read_bytes()[:64])
    done = run(tree, Plan(acs="clear", nics=SWITCH_NICS))
    assert (done.returncode, done.stderr) == (1, "0000:17:00.0: its ACS cannot be read\n")
    assert acs_of(tree, "0000:17:01.0") == 1


def test_a_nic_that_is_not_there_is_told_and_fails_nothing(tree: Path) -> None:
    done = run(tree, Plan(acs=None, nics={"0000:99:00.0": 4096}))
    assert (done.returncode, done.stdout) == (0, "0000:99:00.0: there is no such NIC\n")


@pytest.mark.parametrize("plan", ["acs clear\nnonsense\n", "rail 3\n"])
def test_a_plan_that_is_none_is_refused(tree: Path, plan: str) -> None:
    assert run(tree, plan).returncode == 2
    assert acs_of(tree, SWITCH_PORTS[0]) == ISOLATING


def test_a_plan_that_is_not_there_is_refused(tree: Path) -> None:
    run(tree, Plan(acs=None, nics={}))
    done = subprocess.run(["sh", str(tree / "program"), str(tree / "none")], capture_output=True)
    assert done.returncode != 0


def test_of_a_whole_node_just_what_railwright_judges_is_cleared(tmp_path: Path) -> None:
    devices = hgx(ISOLATING)
    tree = build(tmp_path / "sys", devices)
    run(tree, Plan(acs="clear", nics=dict.fromkeys(NICS)))
    judged = peer_bridges(parse_pcie(section_text(devices)), NICS)
    for address, one in devices.items():
        if one.acs is not None:
            expected = one.acs & ~REDIRECT_MASK if address in judged else one.acs
            assert acs_of(tree, address) == expected


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Device]:
    """Up to five functions under up to four bridges in a row, on two host bridges."""
    found: dict[str, Device] = {}
    for number in range(draw(st.integers(1, 5))):
        domain = draw(st.sampled_from(["0000:10", "0000:80"]))
        above = [f"pci{domain}"]
        for level in range(draw(st.integers(0, 4))):
            port = draw(st.integers(0, 1))
            # Where the way has led tells the buses apart.
            way = sum(int(name[-3]) << n for n, name in enumerate(above[1:]))
            bus = int(domain[-2:], 16) + (1 + level * 8 + way if level else 0)
            address = f"0000:{bus:02x}:0{port}.0"
            found[address] = device("bridge", above, address, acs=draw(st.sampled_from([None, 29])))
            above = [*above, address]
        kind = draw(st.sampled_from(["gpu", "nic", "nvme"]))
        address = f"0000:f{number}:00.0"
        found[address] = device(kind, above, address)
    return found


@settings(max_examples=12, deadline=None)
@given(trees())
def test_in_any_tree_the_script_finds_the_bridges_that_railwright_finds(
    devices: dict[str, Device],
) -> None:
    rails = [address for address, one in devices.items() if one.kind == "nic"]
    judged = peer_bridges(parse_pcie(section_text(devices)), rails)
    with tempfile.TemporaryDirectory() as folder:
        tree = build(Path(folder) / "sys", devices)
        assert run(tree, Plan(acs="clear", nics=dict.fromkeys(rails))).returncode == 0
        cleared = {a for a, one in devices.items() if one.acs and acs_of(tree, a) != one.acs}
    assert cleared == {address for address in judged if devices[address].acs}


def test_the_script_is_what_shellcheck_accepts() -> None:
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-"], input=script(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
