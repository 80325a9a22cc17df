"""Rails on real kernels: lossless after flap, reload and reboot, and never on the wrong port."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import demo
from .commands import DEPLOY, Commands
from .lab import Lab
from .layout import RAILS, Distro
from .railsim import NODES, RELOAD, ROCE

INVENTORY = "inventories/lab.py"
CNP = 6
SETTLE_S = 120
FABRIC = ("--component", "rails", "--component", "qos", "--component", "ports")

# What dcb and the kernel say of each rail, a line of JSON each: read by no code of ours.
READ = """
for rail in 0 1 2 3 4 5 6 7; do
    for table in pfc app ets dcbx; do dcb -j -N $table show dev rail$rail | tr -d '\\n'; echo; done
    ethtool -a rail$rail | awk '/^[RT]X:/ { printf "%s ", $2 } END { print "" }'
    cat /sys/kernel/config/rdma_cm/mlx5_$rail/ports/1/default_roce_tos
done
"""


def sh(lab: Lab, node: str, script: str) -> str:
    done = lab.run(node, script)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
    return done.stdout


def wait_until_right(commands: Commands, *options: str) -> None:
    """Wait for the units that udev and the watch start; no run of ours comes in between."""
    end = time.monotonic() + SETTLE_S
    while (report := commands.drift(*FABRIC, *options))["exit_code"] != 0:
        assert time.monotonic() < end, demo.drifting(report)
        time.sleep(2)


def statistics(lab: Lab, node: str) -> list[dict[str, int]]:
    """``ethtool -S`` of each rail."""
    found = []
    for rail in range(RAILS):
        lines = sh(lab, node, f"ethtool -S rail{rail}").splitlines()[1:]
        pairs = (line.split(":") for line in lines)
        found.append({name.strip(): int(value) for name, value in pairs})
    return found


@pytest.fixture(scope="module")
def commands(distro: Distro) -> Commands:
    return Commands(distro, INVENTORY)


@pytest.fixture(scope="module")
def rails(lab: Lab) -> Iterator[Lab]:
    """The nodes with their rails; the simulated NICs are as they were at the end."""
    yield lab
    for node in NODES:
        sh(lab, node, f"systemctl start railwright-qos-watch; {RELOAD.format('')}")


@pytest.mark.parametrize("node", NODES)
def test_each_rail_is_lossless(rails: Lab, node: str) -> None:
    lines = sh(rails, node, READ).splitlines()
    assert len(lines) == 6 * RAILS
    for at in range(0, len(lines), 6):
        pfc, app, ets, dcbx = (json.loads(line) for line in lines[at : at + 4])
        assert [n for n, on in enumerate(pfc["prio_pfc"]) if on] == [ROCE]
        priorities = {dscp: priority for dscp, priority, *_ in app["dscp_prio"]}
        assert (priorities[26], priorities[48], len(priorities)) == (ROCE, CNP, 64)
        assert not ets["willing"]
        assert ets["tc_tsa"][ets["prio_tc"][CNP]] == "strict"
        assert dcbx.get("host")
        assert lines[at + 4].split() == ["off", "off"]
        assert lines[at + 5] == "106"


def test_a_nic_that_forgets_its_qos_with_its_link_is_put_right(
    rails: Lab, commands: Commands
) -> None:
    sh(rails, "gpu001", "echo Y >/sys/module/railsim/parameters/lose_on_link_down")
    sh(rails, "gpu001", "ip link set rail3 down && ip link set rail3 up")
    wait_until_right(commands, "--limit", "gpu001")
    said = sh(rails, "gpu001", "journalctl -b --no-pager -u 'railwright-qos@0000:16:00.0'")
    assert "pfc: " in said.splitlines()[-1] or "pfc: " in said
    sh(rails, "gpu001", "echo N >/sys/module/railsim/parameters/lose_on_link_down")


def test_a_driver_that_is_loaded_again_is_put_right(rails: Lab, commands: Commands) -> None:
    sh(rails, "gpu001", RELOAD.format(""))
    wait_until_right(commands, "--limit", "gpu001")


def test_rdma_runs_on_the_lossless_priority_of_its_rail(rails: Lab, distro: Distro) -> None:
    before = {node: statistics(rails, node) for node in NODES}
    done, report = fabric_test(distro)
    assert done == 0, report
    for node in NODES:
        now = statistics(rails, node)
        moved = [
            {name: after[name] - was.get(name, 0) for name in after if "_prio" in name}
            for was, after in zip(before[node], now, strict=True)
        ]
        for way in ("tx", "rx"):
            lossless = moved[3][f"{way}_prio{ROCE}_packets"]
            assert lossless > 1000
            others = sum(moved[3][f"{way}_prio{n}_packets"] for n in range(8) if n != ROCE)
            assert others < lossless / 100
            for rail in (0, 1, 2, 4, 5, 6, 7):
                assert moved[rail][f"{way}_prio{ROCE}_packets"] == 0


def fabric_test(distro: Distro) -> tuple[int, dict[str, Any]]:
    """``railwright fabric test`` on rail 3; the emulated link reaches no share of 400 Gb/s."""
    done = demo.run(
        (
            *("railwright", "fabric", "test", INVENTORY, "--rail", "3", "--yes"),
            *("--seconds", "12", "--min-percent", "0", "--format", "json"),
        ),
        distro,
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


def test_pfc_on_another_priority_fails_the_test_verify_and_drift(
    rails: Lab, distro: Distro, commands: Commands
) -> None:
    # The watch would put it right, as the change drops the link.
    sh(rails, "gpu002", "systemctl stop railwright-qos-watch")
    sh(rails, "gpu002", "dcb pfc set dev rail3 prio-pfc all:off 4:on")
    code, report = fabric_test(distro)
    assert code == 2, report
    assert "PFC" in json.dumps(report)
    drifting = demo.drifting(commands.drift("--component", "qos", "--limit", "gpu002"))
    told = {entry["key"]: entry for entry in drifting["gpu002"]}
    assert told["rail3 pfc"]["verdict"] == "not_running"
    failures = commands.failures("--component", "qos", "--limit", "gpu002")
    assert any("rail3" in name for name in failures)
    sh(rails, "gpu002", "systemctl start railwright-qos@0000:16:00.0 railwright-qos-watch")
    wait_until_right(commands, "--limit", "gpu002")


ASK = """
ip neigh flush dev rail0
timeout 2 bash -c '</dev/tcp/198.18.0.2/9' 2>/dev/null
ip neigh show 198.18.0.2 dev rail0
"""


def test_a_rail_answers_arp_for_no_other_rail(rails: Lab) -> None:
    """Rails 0 and 1 of gpu001 in one subnet; gpu002 asks on rail 0 for the address of rail 1."""
    sh(rails, "gpu001", "ip address add 198.18.0.1/24 dev rail0")
    sh(rails, "gpu001", "ip address add 198.18.0.2/24 dev rail1")
    sh(rails, "gpu002", "ip address add 198.18.0.100/24 dev rail0")
    wrong = sh(rails, "gpu001", "cat /sys/class/net/rail0/address").strip()
    keys = " ".join(f"net.ipv4.conf.{name}.arp_ignore=0" for name in ("all", "rail0", "rail1"))
    try:
        assert "lladdr" not in sh(rails, "gpu002", ASK)
        sh(rails, "gpu001", f"sysctl -q {keys}")
        assert f"lladdr {wrong}" in sh(rails, "gpu002", ASK)
        sh(rails, "gpu001", "sysctl -q -p /etc/sysctl.d/99-zz-railwright.conf")
        assert "lladdr" not in sh(rails, "gpu002", ASK)
    finally:
        sh(rails, "gpu001", "ip address del 198.18.0.1/24 dev rail0")
        sh(rails, "gpu001", "ip address del 198.18.0.2/24 dev rail1")
        sh(rails, "gpu002", "ip address del 198.18.0.100/24 dev rail0")


def _wait_for(lab: Lab, node: str, condition: str) -> None:
    sh(lab, node, f"timeout {SETTLE_S} sh -c 'until {condition}; do sleep 0.5; done'")


@pytest.mark.slow
def test_a_test_that_is_broken_off_leaves_nothing_running(rails: Lab, distro: Distro) -> None:
    process = subprocess.Popen(
        [
            *(str(Path(sys.executable).parent / "railwright"), "fabric", "test", INVENTORY),
            *("--rail", "3", "--yes", "--seconds", "600"),
        ],
        cwd=demo.ROOT,
        env={**os.environ, "DISTRO": distro},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for node in NODES:
        _wait_for(rails, node, "pgrep -x ib_write_bw")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=SETTLE_S)
    assert process.returncode == 1
    assert "1 not run" in output
    for node in NODES:
        _wait_for(rails, node, "! pgrep -x ib_write_bw")


@pytest.mark.slow
def test_the_interface_that_ssh_came_in_by_is_refused_with_the_reason(
    rails: Lab, distro: Distro
) -> None:
    site = Commands(distro, "tests/lab/inventories/way_in.py")
    before = sh(rails, "gpu002", "ip -o -4 address show scope global")
    way_in = next(line.split()[1] for line in before.splitlines() if " 10.0.2.15/" in line)
    drifting = demo.drifting(site.drift("--component", "rails", "--limit", "gpu002"))
    told = {entry["key"]: entry for entry in drifting["gpu002"]}
    assert f"ssh came in by {way_in}" in json.dumps(told["rail8 name"])
    assert not any(change.startswith("rails rail8") for _, change in site.dry())
    done = demo.run(("pyinfra", "-y", site.inventory, DEPLOY, "--limit", "gpu002"), distro)
    # A NIC without DCB is no rail: what is asked of it cannot be read, which fails the run.
    assert done.returncode == 1
    assert "rail8 pfc could not be read" in done.stdout + done.stderr
    assert sh(rails, "gpu002", "ip -o -4 address show scope global") == before
    assert sh(rails, "gpu002", "ls /etc/systemd/network | grep -c rail8 || true").strip() == "0"


@pytest.mark.slow
def test_the_vendors_driver_is_served_by_both_backends(
    rails: Lab, commands: Commands, distro: Distro
) -> None:
    sh(rails, "gpu002", RELOAD.format("personality=ofed"))
    wait_until_right(commands, "--limit", "gpu002")
    sh(rails, "gpu002", "for f in /sys/class/net/rail3/ecn/roce_*/enable/3; do echo 0 >$f; done")
    told = demo.drifting(commands.drift("--component", "qos", "--limit", "gpu002"))["gpu002"]
    assert [entry["key"] for entry in told] == ["rail3 ecn"]
    site = Commands(distro, "tests/lab/inventories/nvidia.py")
    site.converge()
    wait_until_right(site, "--limit", "gpu002")
    forced = sh(rails, "gpu002", "cat /sys/class/infiniband/mlx5_3/tc/1/traffic_class")
    assert forced.strip() == "Global tclass=106"
    assert sh(rails, "gpu002", "cat /sys/class/net/rail3/ecn/roce_rp/enable/3").strip() == "1"
    commands.converge()


@pytest.mark.slow
def test_after_a_reboot_the_rails_are_as_they_were(rails: Lab, commands: Commands) -> None:
    rails.reboot("gpu001")
    wait_until_right(commands, "--limit", "gpu001")


@pytest.mark.slow
def test_plan_of_the_nodes_is_empty_again(rails: Lab, commands: Commands, tmp_path: Path) -> None:
    for node in NODES:
        sh(rails, node, RELOAD.format(""))
    wait_until_right(commands)
    assert commands.plan(commands.snapshot(tmp_path / "after")) == frozenset()
