"""A run on hosts that answer badly: it goes on, does nothing there, and fails in the end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploys.components import COMPONENTS
from railwright.component import UNREAD, sections_of, settings_of, unread
from railwright.converge import unmet
from railwright.schema import FirmwareSpec, GdsSpec, GpuDriverSpec, Node, OfedSpec
from railwright.schema.beegfs import BeegfsSpec
from railwright.schema.lustre import LustreSpec
from railwright.schema.storage import StorageSpec
from railwright.settings import Change
from railwright.site import load_inventory
from railwright.snapshot import Section, Snapshot
from tests.unit.test_recorded import ROOT, fleet, node, snapshot

__all__ = ["node"]

STORAGE = StorageSpec.model_validate(
    {
        "mounts": {
            "/scratch": {"kind": "scratch", "raid": 0, "disks": ["nvme-a", "nvme-b"]},
            "/mnt/nfs": {"kind": "nfs", "server": "10.64.0.9", "export": "/data"},
            "/mnt/beegfs": {"kind": "beegfs", "management": "mgmt01", "auth": "disabled"},
            "/mnt/volume": {
                "kind": "nvmeof",
                "transport": "tcp",
                "nqn": "nqn.2014-08.org.example:v1",
                "portals": [{"address": "10.64.0.9"}],
                "namespace": {"nsid": 1},
            },
        }
    }
)
BAD = {
    "deadline": Section(stdout="", rc=None, ended="deadline"),
    "rubbish": Section(stdout="\x07 rubbish = [\n\t} 7 7 7\n", rc=0),
    "missing": Section(stdout="", stderr="sh: not found", rc=127),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("section", [section.name for section in sections_of(COMPONENTS)])
def test_no_section_can_break_a_run(kind: str, section: str, node: Node) -> None:
    good = snapshot("converged")
    seen = good.model_copy(update={"sections": {**good.sections, section: BAD[kind]}})
    for component in COMPONENTS:
        settings = settings_of(component, node, seen)
        if not unread(settings):
            list(component.actions(node, seen, settings))


def test_an_unread_component_is_one_setting() -> None:
    empty = Snapshot(host="gpu001", marker="m", sections={})
    railed = load_inventory(ROOT / "inventories" / "lab.py").nodes["gpu001"]
    asked = railed.model_copy(
        update={
            "firmware": FirmwareSpec(keys={"ATS_ENABLED": 0}),
            "ofed": OfedSpec(kind="inbox", removes=frozenset({"mlnx-tools"})),
            "gpu_driver": GpuDriverSpec(version="580.95.05"),
            "gds": GdsSpec(mode="p2pdma"),
            "lustre": LustreSpec(parameters={"at_max": 600}),
            "beegfs": BeegfsSpec(major=8),
            "storage": STORAGE,
        }
    )
    for component in COMPONENTS:
        (found,) = settings_of(component, asked, empty)
        assert found.key == UNREAD
        assert found.persisted.detail


def _lab_node() -> Node:
    return load_inventory(ROOT / "inventories" / "lab.py").nodes["gpu001"]


def _pyinfra(directory: Path, inventory: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            str(Path(sys.executable).parent / "pyinfra"),
            *("-y", "--json", str(inventory), str(ROOT / "deploys" / "gpu_node.py")),
        ],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYINFRA_PROGRESS": "off"},
        capture_output=True,
        text=True,
    )


def test_pyinfra_fails_the_host_that_cannot_be_read_and_the_other_goes_on(tmp_path: Path) -> None:
    good = snapshot("converged")
    bad = good.model_copy(update={"sections": {**good.sections, "sysctl_files": BAD["deadline"]}})
    inventory = fleet(tmp_path, {"@fake/gpu001": "converged", "@fake/gpu002": "bad"}, {"bad": bad})
    done = _pyinfra(tmp_path, inventory)
    results = json.loads(done.stdout)["results"]
    assert done.returncode == 1, done.stderr
    assert results["failed_hosts"] == ["@fake/gpu002"]
    assert "sysctl_files" in done.stderr


def test_what_did_not_come_true_is_said_in_words() -> None:
    change = Change(component="sysctl", key="gone", state="running", before=None, after="1")
    assert unmet([], "gone", [change]) == [
        "sysctl gone: running absent → 1: cannot be seen any more"
    ]
    removed = change.model_copy(update={"after": "absent"})
    assert unmet([], "gone", [removed]) == []


@pytest.mark.parametrize("rc", [2, 126, 127])
def test_a_package_manager_that_cannot_be_asked_is_not_one_that_is_not_there(rc: int) -> None:
    good = snapshot("converged")
    failed = Section(stdout="", stderr="sh: cannot fork", rc=rc)
    seen = good.model_copy(update={"sections": {**good.sections, "packages": failed}})
    (holds,) = (component for component in COMPONENTS if component.name == "holds")
    settings = settings_of(holds, _lab_node(), seen)
    assert unread(settings)


def test_one_setting_that_cannot_be_read_fails_its_host(tmp_path: Path) -> None:
    good = snapshot("converged")
    dark = Section(stdout="", stderr="sh: 1: sysctl: not found", rc=127)
    bad = good.model_copy(update={"sections": {**good.sections, "sysctl_values": dark}})
    inventory = fleet(tmp_path, {"@fake/gpu001": "converged", "@fake/gpu002": "bad"}, {"bad": bad})
    done = _pyinfra(tmp_path, inventory)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["results"]["failed_hosts"] == ["@fake/gpu002"]
    assert "[@fake/gpu002] sysctl vm.swappiness could not be read: " in done.stderr
    assert "sysctl: not found" in done.stderr
