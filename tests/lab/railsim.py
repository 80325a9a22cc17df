"""The simulated NICs of the lab, and what the kernel and its tools say of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .lab import Lab

SLOTS = (
    (Path(__file__).parent / "image/root/usr/local/lib/railwright-lab/rails").read_text().split()
)
NODES = ("gpu001", "gpu002")
RELOAD = "rmmod railsim && modprobe railsim {} && udevadm settle"
ROCE = 3
"""The priority that DSCP 26 is mapped to; traffic class 106 is that DSCP, with ECN."""
_RULES = "/etc/udev/rules.d/90-railwright-qos.rules"
_ALONE = f"""
systemctl stop railwright-qos-watch 2>/dev/null
[ ! -e {_RULES} ] || mv {_RULES} /root/
udevadm control --reload
"""
_KEPT = f"""
[ ! -e /root/{_RULES.rpartition("/")[2]} ] || mv /root/{_RULES.rpartition("/")[2]} {_RULES}
udevadm control --reload
systemctl start railwright-qos-watch 2>/dev/null || true
"""


@dataclass(frozen=True)
class Nic:
    """The simulated NIC in one rail slot of a node."""

    lab: Lab
    node: str
    rail: int = 0

    def sh(self, script: str, refused: bool = False) -> str:
        done = self.lab.run(self.node, f"dev={self.dev}\n{script}")
        assert (done.returncode != 0) == refused, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    @property
    def dev(self) -> str:
        return f"$(ls /sys/bus/pci/devices/{SLOTS[self.rail]}/net)"

    @property
    def name(self) -> str:
        return self.sh("echo $dev").strip()

    def dcb(self, table: str) -> dict[str, Any]:
        return dict(json.loads(self.sh(f"dcb -j -N -s {table} show dev $dev")))

    def set(self, table: str, words: str, refused: bool = False) -> None:
        """dcb of iproute2 6.1 can fail on its own answer, where a second ends in between."""
        done = self.lab.run(
            self.node, f"dev={self.dev}\ndcb {table} {words.replace('DEV', 'dev $dev')}"
        )
        failed = done.returncode != 0 and "Protocol error" not in done.stderr
        assert failed == refused, f"{words}: {done.stderr}"

    def sysfs(self, file: str) -> str:
        return self.sh(f"cat /sys/class/net/$dev/{file}").strip()

    def pause(self) -> dict[str, str]:
        """From text: the JSON of ethtool 6.1 says true whatever the setting is."""
        lines = self.sh("ethtool -a $dev").splitlines()[1:]
        return {
            name: value.strip()
            for name, _, value in (line.partition(":") for line in lines)
            if value
        }

    def counters(self) -> dict[str, int]:
        lines = self.sh("ethtool -S $dev").splitlines()[1:]
        return {name.strip(): int(value) for name, value in (line.split(":") for line in lines)}

    def grown(self, since: dict[str, int], names: str) -> dict[int, int]:
        """Growth of a counter by priority; ``names`` is like ``tx_prio{}_packets``."""
        now = self.counters()
        return {n: now[names.format(n)] - since[names.format(n)] for n in range(8)}

    def reload(self, parameters: str = "") -> None:
        self.sh(RELOAD.format(parameters))

    def wait_for_carrier(self) -> None:
        self.sh(
            "timeout 10 sh -c 'until [ \"$(cat /sys/class/net/$0/carrier)\" = 1 ]; do :; done' $dev"
        )


def of_first_rail(lab: Lab) -> Iterator[dict[str, Nic]]:
    """The NICs of rail 0 by node, with nobody who puts right what is done to them.

    Whatever was done to any NIC is forgotten at the end.
    """
    found = {node: Nic(lab, node) for node in NODES}
    for nic in found.values():
        nic.sh(_ALONE)
        nic.reload()
    yield found
    for nic in found.values():
        nic.sh(_KEPT)
        nic.reload()
