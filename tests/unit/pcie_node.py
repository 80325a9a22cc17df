"""A node of eight rails as the inventory has it, and the host as the probe saw it."""

import json
from collections.abc import Mapping
from typing import Any

from deploys.pcie import COMPONENT, actions, settings
from facts.pcie import UNIT
from railwright.actions import Action, InstallFile, Run
from railwright.component import settings_of
from railwright.schema import Node, PcieSpec, Rail, RailsSpec
from railwright.settings import Effect, Setting
from railwright.snapshot import Section, Snapshot
from tests.unit.pcie_host import MANAGEMENT, NICS, Devices, hgx, section_text
from tests.unit.records import MARKER, enablement, records

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
ALL = PcieSpec(
    acs="clear",
    max_read_request_bytes=4096,
    relaxed_ordering=True,
    iommu="passthrough",
    links="full",
    affinity="nearest",
)
CLEAR = PcieSpec(acs="clear")
RIGHT = hgx(acs=1)
"""Ports that validate the source and redirect nothing."""


def node(spec: PcieSpec = ALL, **more: Any) -> Node:
    rails: dict[str, object] = {
        "nics": {n: Rail(pci=address, gpu=n) for n, address in enumerate(NICS)},
        "gpus": 8,
    }
    return Node(
        name="n1",
        fabric="roce",
        rails=RailsSpec.model_validate({**rails, **more}),
        pcie=spec,
        sysctl={"values": {}},
    )


def host(
    devices: Devices = RIGHT,
    files: Mapping[str, str] | None = None,
    enabled: bool = False,
    state: str = "inactive",
    ssh: str = "eth0",
    container: bool = False,
    **more: Any,
) -> Snapshot:
    """``ssh`` is the interface that ssh came in by; NICs of rails are called rail0 and on."""
    names = {address: f"rail{n}" for n, address in enumerate(NICS)} | {MANAGEMENT: "eth0"}
    ports = "".join(
        f"port net {name} /sys/devices/{devices[address].path} mlx5_core "
        f"b8:3f:d2:00:00:0{n:x} 9000 up 400000 0 1\n"
        for n, (address, name) in enumerate(names.items())
        if address in devices
    )
    address = {"local": "192.0.2.7", "prefixlen": 24, "scope": "global"}
    listing = [{"ifname": ssh, "flags": ["UP"], "addr_info": [address]}]
    there = records(files or {}) + (enablement(UNIT) if enabled else "")
    unit = f"Id={UNIT.name}\nLoadState=loaded\nActiveState={state}\nUnitFileState=enabled\n"
    texts = {
        "identity": "kernel=6.1.0\n" + ("container=podman\n" if container else ""),
        "pcie_devices": section_text(devices, **more),
        "pcie_files": there,
        "pcie_unit": unit,
        "nic_ports": ports,
        "nic_rdma": "",
        "nic_addresses": json.dumps(listing),
        "way_in": "ssh 192.0.2.9 5000 192.0.2.7 22\n" + json.dumps([{"dev": ssh}]),
    }
    sections = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
    return Snapshot(host="n1", marker=MARKER, sections=sections)


def found(node: Node, snapshot: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings_of(COMPONENT, node, snapshot)}


def done(node: Node, snapshot: Snapshot) -> list[Action]:
    return list(actions(node, snapshot, settings(node, snapshot)))


def installed(node: Node, snapshot: Snapshot) -> dict[str, str]:
    return {a.path: a.content for a in done(node, snapshot) if isinstance(a, InstallFile)}


def commands(node: Node, snapshot: Snapshot) -> list[tuple[str, ...]]:
    return [a.command for a in done(node, snapshot) if isinstance(a, Run)]


def converged(node: Node, devices: Devices = RIGHT, **more: Any) -> Snapshot:
    """The host after a run, with the files as the run installs them."""
    values: dict[str, object] = {
        "files": installed(node, host(devices)),
        "enabled": True,
        "state": "active",
    }
    return host(devices, **{**values, **more})
