"""The script that puts QoS in force, run against a tree of files and tools that stand in.

What it makes of a port is then read by the component: the two must agree.
"""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from facts.qos import DATA_DIR, WATCH_SCRIPT_PATH
from railwright.owned import HEADER
from railwright.qos import data_of, wanted
from railwright.resolve.qos import running
from railwright.resolve.qos_unit import constant_files
from railwright.schema import RoceQos
from railwright.settings import Standing
from tests.unit.qos_host import PCI, view_of
from tests.unit.qos_node import CM_PORT, ECN, TC, Node, node


def qos(**given: Any) -> RoceQos:
    return RoceQos.model_validate(given)


INBOX = qos()
NVIDIA = qos(backend="nvidia")
BUFFERS = qos(buffer_bytes={0: 20016, 1: 156200}, priority_to_buffer={3: 1}, cable_length_m=30)
OTHER = qos(
    roce_dscp=59,
    dscp_to_priority={59: 5},
    lossless={5},
    ecn={5},
    ets_percent={0: 30, 5: 70},
    traffic_class=238,
)
PCP = qos(trust="pcp")


def kernel_files(made: Node) -> dict[str, str]:
    """The files below the root by the path that they have on a node, as the kernel shows them."""
    below = [path for path in (made.root / "sys").rglob("*") if path.is_file()]
    files = {f"/{path.relative_to(made.root)}": path.read_text().strip() for path in below}
    if forced := files.get(f"/{TC}"):
        files[f"/{TC}"] = f"Global tclass={forced}"
    return files


def unmet(made: Node, spec: RoceQos) -> dict[str, str | None]:
    """What the component finds wrong of what the script made."""
    view = view_of(made.port, spec, kernel_files(made))
    found = {name: running(name, value, view) for name, value in wanted(spec).items()}
    return {
        name: state.value or state.detail
        for name, state in found.items()
        if state.standing is not Standing.RIGHT
    }


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("tool", ["dcb", "mlnx_qos"])
def test_with_nvidias_driver_all_is_put_right_and_a_second_run_does_nothing(
    tool: str, shell: str, tmp_path: Path
) -> None:
    made = node(tmp_path, nvidia=True, tool=tool)
    made.shell = shell
    done = made.run(NVIDIA)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert unmet(made, NVIDIA) == {}
    assert made.port["toggles"] == 1
    assert made.text(f"{ECN}/roce_np/enable/3") == made.text(f"{ECN}/roce_rp/enable/3") == "1"
    assert made.text(f"{ECN}/roce_np/enable/0") == "0"
    assert made.text(TC) == "106"
    before = made.port
    again = made.run(None)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert made.port == before


@pytest.mark.parametrize("tool", ["dcb", "mlnx_qos"])
@pytest.mark.parametrize(
    "spec", [INBOX, BUFFERS, OTHER, PCP], ids=["inbox", "buffers", "59", "pcp"]
)
def test_what_it_makes_of_a_port_is_what_the_component_asks(
    spec: RoceQos, tool: str, tmp_path: Path
) -> None:
    if tool == "mlnx_qos":
        spec = spec.model_copy(update={"backend": "nvidia"})
    made = node(tmp_path, nvidia=tool == "mlnx_qos", tool=tool)
    done = made.run(spec)
    assert done.returncode == 0, done.stderr
    # The driver of the kernel has neither a switch for ECN nor parameters of CNP here.
    left = {"ecn", "cnp dscp", "cnp priority"} if tool == "dcb" else set()
    assert unmet(made, spec).keys() == left
    before = made.port
    again = made.run(None)
    assert (again.returncode, again.stderr) == (0, "")
    assert made.port == before


@pytest.mark.parametrize(
    ("tool", "drift", "told"),
    [
        ("dcb", {"prio-pfc": [False] * 8}, "pfc"),
        ("dcb", {"prio-pfc": [False, False, False, True, True, False, False, False]}, "pfc"),
        ("dcb", {"pause": [True, False]}, "global pause"),
        ("dcb", {"dcbx": ["cee", "ieee"]}, "dcbx"),
        ("dcb", {"tc-tsa": ["vendor"] * 8}, "ets"),
        ("mlnx_qos", {"prio-tc": [1, 0, 2, 3, 4, 5, 6, 7]}, "ets"),
        ("mlnx_qos", {"app": [[26, 3]]}, "trust and DSCP map"),
        ("dcb", {"app": []}, "trust and DSCP map"),
    ],
)
def test_one_thing_that_drifted_is_the_one_thing_that_is_set(
    tool: str, drift: dict[str, Any], told: str, tmp_path: Path
) -> None:
    made = node(tmp_path, nvidia=True, tool=tool)
    assert made.run(NVIDIA).returncode == 0
    made.change(**drift)
    done = made.run(None)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"rail0 ({PCI}, rail0): {told}: ")
    assert unmet(made, NVIDIA) == {}


def test_an_agent_or_a_willing_port_is_taken_off_the_switchs_word(tmp_path: Path) -> None:
    made = node(tmp_path, willing=True, dcbx=["lld-managed", "ieee"])
    told = made.run(INBOX).stderr
    assert "dcbx: agent -> host" in told
    assert "ets: willing on/" in told
    assert (made.port["willing"], made.port["dcbx"]) == (False, ["host", "ieee"])


def test_the_map_is_never_empty_on_the_way(tmp_path: Path) -> None:
    made = node(tmp_path, app=[[d, 7] for d in range(64)])
    made.run(INBOX)
    app = [line for line in made.port["done"] if line.startswith("app")]
    # mlx5 takes the old entries out itself; there is nothing to delete, and none is tried.
    assert [line.split()[1] for line in app] == ["add"]


def test_a_driver_that_keeps_both_entries_of_a_dscp_has_the_old_one_deleted(tmp_path: Path) -> None:
    made = node(tmp_path, app=[[26, 5], [27, 3]], generic=True)
    assert made.run(INBOX).returncode == 0
    assert "app del dscp-prio 26:5" in made.port["done"]
    assert sorted(made.port["app"]) == [[d, d >> 3] for d in range(64)]


def test_live_leaves_pfc_alone_and_says_so(tmp_path: Path) -> None:
    made = node(tmp_path)
    done = made.run(INBOX, "--live")
    assert done.returncode == 0
    assert "pfc is left as it is: a change drops the link" in done.stderr
    assert (made.port["toggles"], made.port["prio-pfc"]) == (0, [False] * 8)
    assert unmet(made, INBOX).keys() == {"pfc", "ecn", "cnp dscp", "cnp priority"}


def test_cnp_is_set_by_mlx5s_parameters_where_the_kernels_driver_has_them(tmp_path: Path) -> None:
    made = node(tmp_path)
    cc = f"sys/kernel/debug/mlx5/{PCI}/cc_params"
    made.file(f"{cc}/np_cnp_dscp", "0")
    made.file(f"{cc}/np_cnp_prio", "6")
    made.file(f"{cc}/np_cnp_prio_mode", "1")
    assert unmet(made, INBOX)["cnp priority"] == "6, not in use (np_cnp_prio_mode)"
    assert made.run(INBOX).returncode == 0
    assert made.text(f"{cc}/np_cnp_dscp") == "48"
    assert made.text(f"{cc}/np_cnp_prio_mode") == "0"
    assert unmet(made, INBOX).keys() == {"ecn"}


def test_rdma_cm_is_loaded_and_its_directory_made_and_left(tmp_path: Path) -> None:
    made = node(tmp_path)
    cm = made.root / "sys/kernel/config/rdma_cm"
    for file in sorted(cm.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    cm.rmdir()
    # What configfs does where a directory is made.
    ports = "$1/ports/1"
    made.tool(
        "mkdir",
        f'#!/bin/sh\n/bin/mkdir -p "{ports}" && echo 0 >"{ports}/default_roce_tos" &&'
        f' echo "IB/RoCE v1" >"{ports}/default_roce_mode"\n',
    )
    made.tool("modprobe", f"#!/bin/sh\n[ $1 = rdma_cm ] && /bin/mkdir {cm}\n")
    done = made.run(INBOX)
    assert done.returncode == 0, done.stderr
    assert "rdma_cm tos: 0 -> 106" in done.stderr
    assert made.text(f"{CM_PORT}/default_roce_mode") == "RoCE v2"


def test_a_device_of_the_function_itself_is_found_without_the_rdma_tool(tmp_path: Path) -> None:
    made = node(tmp_path, rdma=None)
    (made.root / f"sys/bus/pci/devices/{PCI}/infiniband/mlx5_0").mkdir(parents=True)
    assert made.run(INBOX).returncode == 0


def test_without_an_rdma_device_the_rest_is_set_and_it_fails_after_a_while(tmp_path: Path) -> None:
    made = node(tmp_path, rdma=None)
    done = made.run(INBOX)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == f"rail0 ({PCI}, rail0): there is no RDMA device"
    assert made.port["prio-pfc"] == [False, False, False, True, False, False, False, False]


def test_a_virtual_port_has_its_interface_below_another_device(tmp_path: Path) -> None:
    made = node(tmp_path)
    device = made.root / f"sys/bus/pci/devices/{PCI}"
    (device / "virtio0").mkdir()
    (device / "net").rename(device / "virtio0/net")
    assert made.run(INBOX).returncode == 0


def test_what_cannot_be_read_is_never_taken_for_right(tmp_path: Path) -> None:
    made = node(tmp_path, dcb=False)
    done = made.run(INBOX)
    assert done.returncode == 1
    assert f"rail0 ({PCI}, rail0): dcb tells nothing of rail0" in done.stderr
    assert [line for line in made.port["done"] if "app" in line or "pfc" in line] == []


def test_nvidias_backend_without_nvidias_driver_fails_by_name(tmp_path: Path) -> None:
    done = node(tmp_path).run(NVIDIA)
    assert done.returncode == 1
    assert "NVIDIA's driver is not loaded" in done.stderr
    assert "traffic_class cannot be read" in done.stderr


def test_without_dcb_the_inbox_backend_says_what_is_missing(tmp_path: Path) -> None:
    done = node(tmp_path, tool="mlnx_qos").run(INBOX)
    assert done.returncode == 1
    assert "there is no dcb (package iproute2)" in done.stderr


def test_a_port_without_pause_has_none_to_switch_off(tmp_path: Path) -> None:
    made = node(tmp_path, pause=None)
    assert made.run(INBOX).returncode == 0


@pytest.mark.parametrize(
    "line", ["NOPE=1", "PFC=3; reboot", "PFC=$(reboot)", "RAIL=`x`", "TRUST='dscp'"]
)
def test_data_that_is_no_data_is_refused_and_nothing_is_done(line: str, tmp_path: Path) -> None:
    made = node(tmp_path)
    made.file(f"{DATA_DIR.lstrip('/')}/{PCI}.conf", f"{HEADER}{data_of('rail0', INBOX)}{line}")
    done = made.run(None)
    assert done.returncode == 2
    assert made.port["done"] == []


def test_no_port_no_data_no_argument(tmp_path: Path) -> None:
    made = node(tmp_path)
    assert made.run(None).returncode == 2
    (made.root / f"sys/bus/pci/devices/{PCI}/net").rename(made.root / "gone")
    done = made.run(INBOX)
    assert (done.returncode, "there is no interface" in done.stderr) == (3, True)


def test_of_several_interfaces_none_is_the_port(tmp_path: Path) -> None:
    made = node(tmp_path)
    made.file(f"sys/bus/pci/devices/{PCI}/net/rail0_b/type", "1")
    assert made.run(INBOX).returncode == 3
    assert made.port["done"] == []


def test_the_watch_starts_the_unit_when_a_link_of_ours_has_come_up(tmp_path: Path) -> None:
    made = node(tmp_path)
    made.run(INBOX)
    device = made.root / f"sys/bus/pci/devices/{PCI}"
    for name, link in (("rail0", device), ("eth0", made.root / "sys/bus/pci/devices/0000:00:01.0")):
        made.file(f"sys/class/net/{name}/carrier_up_count", "1")
        link.mkdir(parents=True, exist_ok=True)
        (made.root / f"sys/class/net/{name}/device").symlink_to(link)
    up = "<BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 state UP"
    count = made.root / "sys/class/net/rail0/carrier_up_count"
    made.tool(
        "ip",
        f"""#!/bin/sh
[ "$*" = '-o monitor link' ] || exit 9
echo '3: rail0: {up}'
echo '3: rail0@eth9: {up}'
echo '2: eth0: {up}'
echo 'Deleted 7: dummy0: <BROADCAST>'
tries=0
while [ ! -s {made.root}/started ] && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
echo 2 >{count}
echo '3: rail0: {up}'
echo '3: rail0: {up}'
""",
    )
    made.tool("systemctl", f'#!/bin/sh\necho "$*" >>{made.root}/started\n')
    done = subprocess.run(
        ["sh", "-u", str(made.root / WATCH_SCRIPT_PATH.lstrip("/"))],
        capture_output=True,
        text=True,
        timeout=30,
        env={"PATH": str(made.root / "bin"), "RAILWRIGHT_QOS_ROOT": str(made.root)},
    )
    assert done.stderr == ""
    start = f"start --no-block railwright-qos@{PCI}.service"
    # Once for what came before it was there, and once for the link that came up.
    assert made.text("started").splitlines() == [start, start]


def test_the_scripts_are_clean() -> None:
    for owned in constant_files():
        if owned.mode == "755":
            done = subprocess.run(
                ["shellcheck", "-"], input=owned.content, capture_output=True, text=True
            )
            assert done.stdout == ""
