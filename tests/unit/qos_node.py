"""A node with one port, as a tree of files and tools that stand in, for the script of QoS."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from facts.qos import DATA_DIR
from railwright.owned import HEADER
from railwright.qos import data_of
from railwright.resolve.qos_unit import constant_files
from railwright.schema import RoceQos
from tests.unit import qos_tools
from tests.unit.qos_host import PCI

TOOLS = Path(qos_tools.__file__)
CM_PORT = "sys/kernel/config/rdma_cm/mlx5_0/ports/1"
ECN = "sys/class/net/rail0/ecn"
TC = "sys/class/infiniband/mlx5_0/tc/1/traffic_class"


class Node:
    """A root with one port, tools on PATH, and the script."""

    def __init__(self, root: Path, port: dict[str, Any], tools: tuple[str, ...]) -> None:
        self.root, self.state, self.shell = root, root / "port.json", "sh"
        self.state.write_text(json.dumps(port))
        (root / "bin").mkdir()
        for tool in tools:
            stub = f'#!/bin/sh\nexec {sys.executable} -S -E {TOOLS} {tool} "$@"\n'
            self.tool(tool, stub)
        for tool in ("cat", "sed", "head", "tr", "mkdir", "sh", "bash", "sleep", "readlink", "ls"):
            found = subprocess.run(["which", tool], capture_output=True, text=True).stdout.strip()
            (root / "bin" / tool).symlink_to(found)
        self.file(f"sys/bus/pci/devices/{PCI}/net/rail0/type", "1")
        self.file(f"sys/bus/pci/devices/{PCI}/net/rail0_vf/type", "1")
        self.file(f"sys/bus/pci/devices/{PCI}/net/rail0_vf/phys_port_name", "pf0vf0")
        for owned in constant_files():
            self.file(owned.path.lstrip("/"), owned.content or "")

    def tool(self, name: str, text: str) -> None:
        path = self.root / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n" if text else "")

    def text(self, name: str) -> str:
        return (self.root / name).read_text().strip()

    @property
    def port(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.state.read_text())
        return found

    def change(self, **values: Any) -> None:
        self.state.write_text(json.dumps({**self.port, **values}))

    def run(self, spec: RoceQos | None, *options: str) -> subprocess.CompletedProcess[str]:
        if spec is not None:
            self.file(f"{DATA_DIR.lstrip('/')}/{PCI}.conf", HEADER + data_of("rail0", spec))
        script = self.root / "usr/local/sbin/railwright-qos"
        return subprocess.run(
            [self.shell, "-u", str(script), *options, PCI],
            capture_output=True,
            text=True,
            timeout=120,
            env={
                "PATH": str(self.root / "bin"),
                "RAILWRIGHT_QOS_ROOT": str(self.root),
                "RAILWRIGHT_QOS_WAIT_S": "1",
                "QOS_PORT": str(self.state),
            },
        )


def node(root: Path, nvidia: bool = False, tool: str = "dcb", **port: Any) -> Node:
    made = Node(root, qos_tools.mlx5(**port), (tool, "ethtool", "rdma"))
    made.file(f"{CM_PORT}/default_roce_tos", "0")
    made.file(f"{CM_PORT}/default_roce_mode", "IB/RoCE v1")
    if nvidia:
        for side in ("np", "rp"):
            for priority in range(8):
                made.file(f"{ECN}/roce_{side}/enable/{priority}", "0")
        made.file(f"{ECN}/roce_np/cnp_dscp", "0")
        made.file(f"{ECN}/roce_np/cnp_802p_prio", "0")
        made.file(TC, "")
    return made
