"""The simulated NIC carries RoCE, counts it by priority, and keeps it on its own rail."""

from collections.abc import Iterator

import pytest

from .lab import Lab
from .railsim import NODES, ROCE, Nic, of_first_rail

pytestmark = pytest.mark.slow

WRITES = 300
PACKETS = WRITES * 65536 // 4096


@pytest.fixture(scope="module")
def nics(lab: Lab) -> Iterator[dict[str, Nic]]:
    yield from of_first_rail(lab)


@pytest.fixture
def linked(nics: dict[str, Nic]) -> dict[str, Nic]:
    """Both ends of rail 0 with addresses, DSCP 26 on priority 3 and PFC there."""
    for number, nic in enumerate(nics.values(), start=1):
        nic.sh(f"ip link set $dev mtu 9000 up; ip address replace 198.18.0.{number}/24 dev $dev")
        nic.set("app", "replace DEV dscp-prio 26:3")
        nic.set("pfc", "set DEV prio-pfc all:off 3:on")
    for nic in nics.values():
        nic.wait_for_carrier()
    return nics


def _send(nics: dict[str, Nic], options: str) -> None:
    """RDMA writes from gpu002 to gpu001."""
    command = f"timeout 100 ib_write_bw -d mlx5_0 -s 65536 -n {WRITES} {options}"
    nics["gpu001"].sh(f"{command} >/tmp/ib_write_bw.log 2>&1 </dev/null &")
    ready = "timeout 20 sh -c 'until ss -Hlnt sport = :18515 | grep -q .; do sleep 0.2; done'"
    nics["gpu001"].sh(ready)
    nics["gpu002"].sh(f"{command} 198.18.0.1")


def test_roce_is_counted_on_the_priority_of_its_dscp(linked: dict[str, Nic]) -> None:
    receiver, sender = linked.values()
    received, sent = receiver.counters(), sender.counters()
    _send(linked, "--tclass=106")
    tx = sender.grown(sent, "tx_prio{}_packets")
    rx = receiver.grown(received, "rx_prio{}_packets")
    assert tx[ROCE] == rx[ROCE] >= PACKETS
    for grown in (tx, rx):
        assert sum(grown.values()) - grown[ROCE] < grown[ROCE] / 100


def test_rails_are_isolated(linked: dict[str, Nic], lab: Lab) -> None:
    others = [Nic(lab, node, rail) for node in NODES for rail in (1, 4)]
    for other in others:
        other.sh("ip link set $dev up")
    before = [other.counters() for other in others]
    _send(linked, "--tclass=106")
    for other, since in zip(others, before, strict=True):
        assert other.grown(since, "rx_prio{}_packets")[ROCE] == 0


def test_ofed_forces_the_traffic_class(
    nics: dict[str, Nic], request: pytest.FixtureRequest
) -> None:
    sender = nics["gpu002"]
    sender.reload("personality=ofed")
    try:
        linked = request.getfixturevalue("linked")
        file = "/sys/class/infiniband/mlx5_0/tc/1/traffic_class"
        assert sender.sh(f"cat {file}") == ""
        sender.sh(f"echo 106 >{file}")
        assert sender.sh(f"cat {file}") == "Global tclass=106\n"
        sent = sender.counters()
        _send(linked, "")
        assert sender.grown(sent, "tx_prio{}_packets")[ROCE] >= PACKETS
    finally:
        sender.reload()
