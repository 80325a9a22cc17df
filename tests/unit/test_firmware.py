"""Firmware as mlxfwmanager and flint tell of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.firmware import Rom, parse_firmware

MANAGED = """\
Device #1:
----------

  Device Type:      BlueField2
  Part Number:      --
  Description:      BlueField-2 SmartNIC: 100GbE; Crypto Enabled
  PSID:             MT_0000000559
  PCI Device Name:  0000:3b:00.0
  Base GUID:        N/A
  Base MAC:         043f72a45a9c
  Versions:         Current        Available     
     FW (Running)   24.29.2008     N/A           
     FW             24.30.1000     24.30.1000    
     UEFI Virtio x  1.2.3.4

  Status:           Up to date

---------
All listed device(s) firmware images are up to date.
"""  # noqa: W291
FLINT = """\
Image type:            FS4
FW Version:            20.35.1012
FW Version(Running):   20.34.1002
FW Release Date:       28.10.2022
Product Version:       20.35.1012
Rom Info:              type=UEFI version=14.28.15 cpu=AMD64,AARCH64
                       type=PXE version=3.6.804 cpu=AMD64
Description:           UID                GuidsNumber
Base GUID:             043f720300f04c46        8
Base MAC:              043f72f04c46            8
Image VSD:             N/A
PSID:                  MT_0000000228
Security Attributes:   secure-fw
"""


def test_mlxfwmanager_tells_flash_and_running_apart() -> None:
    (device,) = parse_firmware(MANAGED).devices
    assert (device.fw, device.fw_running, device.fw_available) == (
        "24.30.1000",
        "24.29.2008",
        "24.30.1000",
    )
    assert (device.device, device.status, device.base_guid) == ("0000:3b:00.0", "Up to date", None)
    assert device.versions["UEFI Virtio x"].current == "1.2.3.4"
    assert device.description == "BlueField-2 SmartNIC: 100GbE; Crypto Enabled"


def test_flint_shows_the_running_version_where_it_is_another() -> None:
    (device,) = parse_firmware(FLINT).devices
    assert (device.fw, device.fw_running) == ("20.35.1012", "20.34.1002")
    assert (device.psid, device.base_guid) == ("MT_0000000228", "043f720300f04c46")
    assert device.security == "secure-fw"
    assert device.roms == (
        Rom(type="UEFI", version="14.28.15"),
        Rom(type="PXE", version="3.6.804"),
    )


def test_flint_after_a_reset() -> None:
    lines = [line for line in FLINT.splitlines() if "(Running)" not in line]
    (device,) = parse_firmware("\n".join(lines)).devices
    assert (device.fw, device.fw_running) == ("20.35.1012", None)


@pytest.mark.parametrize(
    ("said", "error", "device"),
    [
        (
            "Cannot open Device: 0031:01:00.0. Operation not supported.",
            "cannot_open",
            "0031:01:00.0",
        ),
        ("Cannot open Device: /dev/mst/a_b0. No such file.", "cannot_open", "/dev/mst/a_b0"),
        ("Failed to query /dev/mst/a_b0 device, error : x", "query_failed", "/dev/mst/a_b0"),
        ("No devices found or specified, mst might be stopped", "no_devices", None),
        ("Something new", "failed", None),
    ],
)
def test_complaints(said: str, error: str, device: str | None) -> None:
    found = parse_firmware(f"-E- {said}\n")
    (problem,) = found.problems
    assert (problem.error, problem.message, problem.device) == (error, said, device)
    assert found.devices == ()


def test_a_complaint_does_not_hide_the_other_devices() -> None:
    found = parse_firmware(MANAGED + "-E- Failed to query /dev/mst/x device\n")
    assert (len(found.devices), len(found.problems)) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bash: mstflint: command not found",
        "Querying Mellanox devices firmware ...\n",
        "Device #1:\nPSID: x\n",
        "FW Version: newest\n",
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_firmware(text)


@given(st.lists(st.sampled_from([MANAGED, FLINT, "-E- x\n", "Device #2:\n"]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_firmware("".join(pieces))
    except ValueError:
        return
    assert found.devices or found.problems
