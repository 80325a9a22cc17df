"""What nvme-cli prints, in the shapes of its releases."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nvme_cli import NvmeCli, fields_of, parse_nvme

CORPUS = Path(__file__).parents[1] / "corpus" / "nvme"
NAMESPACE = {"NameSpace": "nvme1n1", "NSID": 1, "PhysicalSize": 1024, "SectorSize": 512}
CONTROLLER = {
    "Controller": "nvme1",
    "SerialNumber": "S1",
    "ModelNumber": "M",
    "Firmware": "F",
    "Transport": "rdma",
}


def recorded(name: str) -> NvmeCli:
    return parse_nvme((CORPUS / f"{name}.txt").read_text())


def test_flat_drives_of_1x() -> None:
    drive = recorded("01-list-json-flat-1x").devices["/dev/nvme1n1"]
    assert (drive.fw, drive.sector, drive.size, drive.nsid) == ("GDC5602Q", 512, 3840755982336, 1)


def test_hosts_with_subsystems_of_2x() -> None:
    found = recorded("03-list-subsys-array-2x").subsys
    local, far = found["nvme-subsys2"], found["nvme-subsys5"]
    assert (local.state, local.transport, local.traddr) == ("live", "pcie", None)
    assert local.nqn.endswith("INV0000000003            Example FireDisk 530")
    assert (far.state, far.transport, far.traddr) == ("connecting", "rdma", "10.77.3.40")


def test_no_drive_is_told_in_two_ways() -> None:
    assert recorded("05-list-json-empty") == NvmeCli()
    assert parse_nvme("") == NvmeCli()


@pytest.mark.parametrize("below", ["subsystem", "controller"])
def test_the_drives_of_2_11_hang_below_subsystem_or_controller(below: str) -> None:
    controller: dict[str, Any] = {**CONTROLLER, "Namespaces": []}
    subsystem: dict[str, Any] = {
        "SubsystemNQN": "nqn.2014-08.org.x:y", "Controllers": [controller], "Namespaces": [],
    }  # fmt: skip
    (subsystem if below == "subsystem" else controller)["Namespaces"] = [NAMESPACE]
    text = json.dumps({"Devices": [{"HostNQN": "nqn.x", "Subsystems": [subsystem]}]})
    drive = parse_nvme(text).devices["/dev/nvme1n1"]
    assert (drive.fw, drive.serial, drive.transport, drive.subsystem) == (
        "F",
        "S1",
        "rdma",
        "nqn.2014-08.org.x:y",
    )
    assert (drive.size, drive.sector, drive.nsid) == (1024, 512, 1)


def test_one_object_of_1x_has_the_paths_after_the_name() -> None:
    path = {"Name": "nvme0", "Transport": "tcp", "Address": "traddr=10.0.0.1 trsvcid=4420"}
    listed = [{"Name": "nvme-subsys0", "NQN": "nqn.x"}, {"Paths": [{**path, "State": "live"}]}]
    (found,) = parse_nvme(json.dumps({"Subsystems": listed})).subsys.values()
    assert (found.nqn, found.traddr, found.state) == ("nqn.x", "10.0.0.1", "live")


def test_one_path_that_lives_makes_the_subsystem_live() -> None:
    paths = [
        {"Name": f"nvme{n}", "Transport": "tcp", "Address": "traddr=10.0.0.1", "State": state}
        for n, state in enumerate(("connecting", "live"))
    ]
    listed = [{"Subsystems": [{"Name": "s", "NQN": "nqn.x", "Paths": paths}]}]
    assert parse_nvme(json.dumps(listed)).subsys["s"].state == "live"


@pytest.mark.parametrize(
    "address", ["traddr=10.0.0.1,trsvcid=4420", "traddr=10.0.0.1 trsvcid=4420"]
)
def test_an_address_is_parted_by_comma_or_blank(address: str) -> None:
    assert fields_of(address) == {"traddr": "10.0.0.1", "trsvcid": "4420"}
    assert fields_of("0000:61:00.0") == {}


@pytest.mark.parametrize(
    "text",
    [
        "nvme: command not found",
        "[3]",
        '{"Devices": 3}',
        '{"Devices": [{"Firmware": "x"}]}',
        '[{"HostNQN": "x"}]',
        '[{"Subsystems": [{"Paths": []}]}]',
        '[{"Subsystems": [{"Name": "a", "NQN": "b", "Paths": [{}]}]}]',
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_nvme(text)


def test_a_tool_that_failed_is_not_a_host_without_drives() -> None:
    with pytest.raises(ValueError, match="nvme failed with 1: no word"):
        parse_nvme("", 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["Devices", "Subsystems", "Paths", "Name", "NQN", "NameSpace", "Namespaces",
                         "Controllers", "DevicePath", "Transport", "Address"]), inner),
)  # fmt: skip


@given(JSON.map(json.dumps) | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_nvme(text)
    except ValueError:
        return
    assert all(device == drive.device for device, drive in found.devices.items())
