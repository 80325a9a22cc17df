"""The script that brings the rails into force, run against a fake /sys and a stand-in for ip."""

import subprocess
from pathlib import Path

import pytest

from railwright.owned import HEADER
from railwright.templates import render

SCRIPT = render("rails/railwright-rails.sh.j2", header=HEADER)
# Renames in the fake /sys as the kernel does: not while the interface is up, nor to a name in use.
IP = """\
#!/bin/sh
echo "ip $*" >>"$LOG"
case "$*" in
    *"link set dev "*" name "*)
        from=$4 to=$6
        [ ! -e "$NAMES/$to" ] && [ -e "$NAMES/$from.down" ] || exit 2
        for link in "$RAILWRIGHT_SYS"/bus/pci/devices/*/net/"$from"; do
            mv "$link" "${link%/*}/$to"
        done
        mv "$NAMES/$from" "$NAMES/$to"
        mv "$NAMES/$from.down" "$NAMES/$to.down"
        ;;
    *"link set dev "*" down") : >"$NAMES/$4.down" ;;
    *"link set dev "*" up") rm -f "$NAMES/$4.down" ;;
    *"address show"*) echo "2: x inet 10.64.0.2/20 scope global x" ;;
    *"route show"*) echo "10.64.0.0/20 dev x" ;;
esac
"""
A, B = "0000:1a:00.0", "0000:3d:00.0"


class Fake:
    """A node with two ports, and what was run on it."""

    def __init__(self, root: Path, names: dict[str, str]) -> None:
        self.root = root
        (root / "bin").mkdir()
        (root / "names").mkdir()
        tool = root / "bin" / "ip"
        tool.write_text(IP)
        tool.chmod(0o755)
        for name in ("networkctl", "nmcli", "ifup", "netplan"):
            path = root / "bin" / name
            path.write_text(f'#!/bin/sh\necho "{name} $*" >>"$LOG"\n')
            path.chmod(0o755)
        for pci, interface in names.items():
            (root / "sys/bus/pci/devices" / pci / "net" / interface).mkdir(parents=True)
            (root / "names" / interface).touch()

    def run(self, *operations: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", "-s", "--", *operations],
            input=SCRIPT,
            capture_output=True,
            text=True,
            env={
                "PATH": f"{self.root}/bin:/usr/bin:/bin",
                "RAILWRIGHT_SYS": f"{self.root}/sys",
                "NAMES": f"{self.root}/names",
                "LOG": f"{self.root}/log",
            },
        )

    def log(self) -> list[str]:
        path = self.root / "log"
        return path.read_text().splitlines() if path.exists() else []

    def names(self) -> dict[str, str]:
        found = (self.root / "sys/bus/pci/devices").glob("*/net/*")
        return {path.parents[1].name: path.name for path in found}


def test_two_ports_with_each_others_names_are_swapped(tmp_path: Path) -> None:
    fake = Fake(tmp_path, {A: "rail1", B: "rail0"})
    result = fake.run(f"rename {A} rail0", f"rename {B} rail1", f"up {A}")
    assert (result.returncode, result.stderr) == (0, "")
    assert fake.names() == {A: "rail0", B: "rail1"}
    assert not list((tmp_path / "names").glob("*.down"))
    assert fake.log()[-1] == "ip link set dev rail0 up"


def test_a_port_that_has_its_name_is_left_alone(tmp_path: Path) -> None:
    fake = Fake(tmp_path, {A: "rail0"})
    assert fake.run(f"rename {A} rail0").returncode == 0
    assert fake.log() == []


def test_a_name_that_is_taken_leaves_the_port_as_it_was(tmp_path: Path) -> None:
    fake = Fake(tmp_path, {A: "enp26s0"})
    (tmp_path / "names" / "rail0").touch()
    result = fake.run(f"rename {A} rail0")
    assert result.returncode == 1
    assert "enp26s0: cannot be renamed to rail0" in result.stderr
    assert fake.names() == {A: "enp26s0"}
    assert not list((tmp_path / "names").glob("*.down"))


OPERATIONS = {
    f"mtu {A} 9000": ["ip link set dev e0 mtu 9000"],
    f"up {A}": ["ip link set dev e0 up"],
    f"address {A} 10.64.0.2/20": ["ip -4 address replace 10.64.0.2/20 dev e0"],
    "rule 10.64.0.2 100 1000": ["ip -4 rule add from 10.64.0.2 lookup 100 priority 1000"],
    "unrule 10.64.0.2 7 900": ["ip -4 rule del from 10.64.0.2 lookup 7 priority 900"],
    f"route {A} 100 10.64.0.0/20": ["ip -4 route replace 10.64.0.0/20 dev e0 scope link table 100"],
    f"route {A} 100 10.64.0.0/12 10.64.0.1": [
        "ip -4 route replace 10.64.0.0/12 via 10.64.0.1 dev e0 table 100"
    ],
    "reload": ["networkctl reload"],
    f"reconfigure {A} 10.64.0.2/20 100": [
        "networkctl reconfigure e0",
        "ip -4 -o address show dev e0",
        "ip -4 route show table 100 dev e0",
    ],
    f"profile {A} /etc/x.nmconnection railwright-rail0": [
        "nmcli connection load /etc/x.nmconnection",
        "nmcli --wait 30 connection up id railwright-rail0 ifname e0",
    ],
    "generate": ["netplan generate"],
    f"ifup {A}": ["ifup --force e0"],
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_runs_just_this(tmp_path: Path, operation: str) -> None:
    fake = Fake(tmp_path, {A: "e0", B: "e1"})
    result = fake.run(operation)
    assert (result.returncode, result.stderr) == (0, "")
    assert fake.log() == OPERATIONS[operation]


def test_a_port_without_an_interface_fails_and_the_others_go_on(tmp_path: Path) -> None:
    fake = Fake(tmp_path, {B: "e1"})
    result = fake.run(f"up {A}", f"rename {A} rail0", f"up {B}")
    assert result.returncode == 1
    assert f"{A}: no interface" in result.stderr
    assert fake.log() == ["ip link set dev e1 up"]


def test_a_device_below_the_function_counts_where_that_has_none(tmp_path: Path) -> None:
    fake = Fake(tmp_path, {})
    below = tmp_path / "sys/bus/pci/devices" / A / "virtio2" / "net" / "eth3"
    below.mkdir(parents=True)
    assert fake.run(f"up {A}").returncode == 0
    assert fake.log() == ["ip link set dev eth3 up"]
    own = tmp_path / "sys/bus/pci/devices" / A / "net"
    for name in ("rail0", "rail0.8001"):
        (own / name).mkdir(parents=True)
    assert fake.run(f"up {A}").returncode == 0
    assert fake.log()[-1] == "ip link set dev rail0 up"
    (own / "other").mkdir()
    assert fake.run(f"up {A}").returncode == 1


def test_an_operation_that_is_not_known_fails(tmp_path: Path) -> None:
    fake = Fake(tmp_path, {A: "e0"})
    assert fake.run(f"flush {A}").returncode == 1
    assert fake.log() == []
