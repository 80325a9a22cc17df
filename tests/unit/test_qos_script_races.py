"""A port that changes while the script of QoS runs: nothing of it stays as the driver left it."""

from pathlib import Path

from railwright.schema import RoceQos
from tests.unit.qos_host import PCI
from tests.unit.qos_node import CM_PORT, Node, node

INBOX = RoceQos()
LOST = """
sed -i -e 's/"prio-pfc": [^]]*]/"prio-pfc": [false,false,false,false,false,false,false,false]/' \\
    "$QOS_PORT"
"""


def counting(made: Node, times: int, script: str) -> None:
    """Have the tool rdma do ``script`` the first ``times`` that it is called."""
    real = made.text("bin/rdma").splitlines()[-1]
    counter = made.root / "called"
    made.tool(
        "rdma",
        f"""#!/bin/sh
PATH=$PATH:/usr/bin:/bin
echo >>{counter}
if [ "$(wc -l <{counter})" -le {times} ]; then
{script}
fi
{real}
""",
    )


def test_an_interface_that_is_named_while_the_rdma_device_is_waited_for(tmp_path: Path) -> None:
    """When a driver is loaded again the port is eth0 at first, and its RDMA device comes late."""
    made = node(tmp_path, rdma=None)
    net = made.root / f"sys/bus/pci/devices/{PCI}/net"
    (net / "rail0").rename(net / "eth0")
    made.tool(
        "sleep",
        f"#!/bin/sh\n/bin/mv {net}/eth0 {net}/rail0\n"
        """/bin/sed -i 's/"rdma": null/"rdma": "mlx5_0"/' "$QOS_PORT"\n""",
    )
    done = made.run(INBOX)
    assert done.returncode == 0, done.stderr
    assert f"rail0 ({PCI}, rail0): rdma_cm tos: 0 -> 106" in done.stderr
    assert made.text(f"{CM_PORT}/default_roce_tos") == "106"


def test_what_a_link_that_goes_and_comes_takes_along_is_set_again(tmp_path: Path) -> None:
    made = node(tmp_path)
    ups = "sys/class/net/rail0/carrier_up_count"
    made.file(ups, "1")
    counting(made, 1, f"echo 2 >{made.root}/{ups}{LOST}")
    done = made.run(INBOX)
    assert done.returncode == 0, done.stderr
    assert made.port["prio-pfc"] == [False, False, False, True, False, False, False, False]
    assert done.stderr.count(": pfc: ") == 2


def test_a_link_that_does_not_stay_ends_the_unit_with_a_word(tmp_path: Path) -> None:
    made = node(tmp_path)
    ups = "sys/class/net/rail0/carrier_up_count"
    made.file(ups, "0")
    counting(made, 99, f"wc -l <{made.root}/called >{made.root}/{ups}")
    done = made.run(INBOX)
    assert done.returncode == 1
    assert "changed under each of 5 attempts" in done.stderr.splitlines()[-1]


def test_an_rdma_device_that_is_registered_anew_gets_its_values_too(tmp_path: Path) -> None:
    made = node(tmp_path)
    device = made.root / "sys/class/infiniband/mlx5_0"
    device.mkdir(parents=True)
    tos = made.root / CM_PORT / "default_roce_tos"
    # Asked for the third time: after all has been set.
    counting(
        made,
        3,
        f"""
if [ "$(wc -l <{made.root}/called)" -eq 3 ]; then
    mv {device} {device}_old && mkdir {device} && echo 0 >{tos}
fi""",
    )
    done = made.run(INBOX)
    assert done.returncode == 0, done.stderr
    assert made.text(f"{CM_PORT}/default_roce_tos") == "106"
    assert done.stderr.count("rdma_cm tos: 0 -> 106") == 2
