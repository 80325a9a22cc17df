"""Hosts for the tests of the QoS component, and what it decides and does about them."""

from typing import Any

from deploys.qos import COMPONENT, actions, settings
from facts.qos import WATCH
from railwright.actions import Action, InstallFile, Run
from railwright.component import settings_of
from railwright.schema import Node
from railwright.settings import Setting, Verdict, verdict
from railwright.snapshot import Snapshot
from tests.unit import qos_tools
from tests.unit.qos_host import PCIS, UNITS_UP, cc_files, cm_files, host, right_port

FINE = {Verdict.OK, Verdict.NOT_APPLICABLE}
BARE = {"rail0": qos_tools.mlx5(), "rail1": qos_tools.mlx5(rdma="mlx5_1")}
FILES = {**cm_files("mlx5_0", "mlx5_1"), **cc_files(*PCIS)}
UNITS = [f"railwright-qos@{pci}.service" for pci in PCIS]


def bare(**more: Any) -> Snapshot:
    """A host that nothing was done to: the driver's defaults, rdma_cm loaded, no directory."""
    values: dict[str, Any] = {
        "ports": BARE,
        "files": {"/sys/kernel/config/rdma_cm/x": "", **cc_files(*PCIS, dscp=0)},
    }
    return host(**{**values, **more})


def found(node: Node, snapshot: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings_of(COMPONENT, node, snapshot)}


def done(node: Node, snapshot: Snapshot) -> list[Action]:
    return list(actions(node, snapshot, settings(node, snapshot)))


def commands(node: Node, snapshot: Snapshot) -> list[tuple[str, ...]]:
    return [action.command for action in done(node, snapshot) if isinstance(action, Run)]


def installed(node: Node, snapshot: Snapshot | None = None) -> dict[str, str]:
    files = {
        action.path: action.content
        for action in done(node, snapshot or bare())
        if isinstance(action, InstallFile)
    }
    return {**files, WATCH.link: ""}


def converged(asked: Node, **more: Any) -> Snapshot:
    values: dict[str, Any] = {
        "ports": {"rail0": right_port(0), "rail1": right_port(1)},
        "files": FILES,
        "ours": installed(asked),
        "units": UNITS_UP,
    }
    return host(**{**values, **more})


def verdicts(node: Node, snapshot: Snapshot) -> dict[str, Verdict]:
    told = settings_of(COMPONENT, node, snapshot)
    return {s.key: verdict(s, node.effects.allow) for s in told}


def wrong(node: Node, snapshot: Snapshot) -> dict[str, Verdict]:
    return {k: v for k, v in verdicts(node, snapshot).items() if v not in FINE}
