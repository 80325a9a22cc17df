"""lspci -vvv: links, transfer sizes and access control."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.lspci import PciDevice, parse_lspci

NIC = """\
5e:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [ConnectX-7] [15b3:1021] (rev 01)
\tSubsystem: Mellanox Technologies Device [15b3:0041]
\tNUMA node: 1
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0
\t\t\tExtTag+ AttnBtn- AttnInd- PwrInd- RBE+ FLReset+ SlotPowerLimit 75W
\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-
\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-
\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes
\t\tDevSta:\tCorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s, Width x16
\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-
\t\tLnkCap2: Supported Link Speeds: 2.5-32GT/s, Crosslink- Retimer+
\t\tLnkSta2: Current De-emphasis Level: -6dB, EqualizationComplete+
\tKernel driver in use: mlx5_core
\tKernel modules: mlx5_core
"""
BRIDGE = """\
0000:50:01.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal])
\tCapabilities: [170 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
"""


def only(text: str) -> PciDevice:
    (device,) = parse_lspci(text)
    return device


def test_a_healthy_nic() -> None:
    nic = only(NIC)
    assert (nic.address, nic.bdf, nic.numa) == ("5e:00.0", "0000:5e:00.0", 1)
    assert (nic.class_name, nic.class_id) == ("Infiniband controller", "0207")
    assert (nic.name, nic.vendor_device) == (
        "Mellanox Technologies MT2910 [ConnectX-7]",
        "15b3:1021",
    )
    assert (nic.driver, nic.relaxed_ordering) == ("mlx5_core", True)
    assert (nic.degraded, nic.remarks) == (False, ())


def test_bug_01_redirection_is_what_acsctl_says() -> None:
    bridge = only(BRIDGE)
    assert bridge.acs is not None
    assert bridge.acs.redirects


@pytest.mark.parametrize("flag", ["ReqRedir", "CmpltRedir", "UpstreamFwd"])
def test_bug_01_one_flag_is_enough(flag: str) -> None:
    off = BRIDGE[: BRIDGE.index("ACSCtl")] + "ACSCtl:\tSrcValid+ ReqRedir- CmpltRedir- UpstreamFwd-"
    bridge = only(off.replace(f"{flag}-", f"{flag}+"))
    assert bridge.acs is not None
    assert bridge.acs.redirects


def test_bug_01_healthy_twin_could_redirect_and_does_not() -> None:
    start = BRIDGE.index("ACSCtl")
    bridge = only(
        BRIDGE[:start] + BRIDGE[start:].replace("Redir+", "Redir-").replace("Fwd+", "Fwd-")
    )
    assert bridge.acs is not None
    assert bridge.acs.capable["ReqRedir"]
    assert (bridge.acs.redirects, bridge.acs.enabled["SrcValid"]) == (False, True)


def test_bug_07_speed_and_width_below_what_the_link_could_be() -> None:
    words = "Speed 8GT/s (downgraded), Width x8 (downgraded)"
    nic = only(NIC.replace("LnkSta:\tSpeed 32GT/s, Width x16", f"LnkSta:\t{words}"))
    assert (nic.speed_degraded, nic.width_degraded, nic.degraded) == (True, True, True)
    assert nic.remarks == ("downgraded", "downgraded")


def test_bug_07_an_idle_link_is_slow_and_whole() -> None:
    words = "Speed 2.5GT/s (downgraded), Width x16 (ok)"
    nic = only(NIC.replace("LnkSta:\tSpeed 32GT/s, Width x16", f"LnkSta:\t{words}"))
    assert (nic.speed_degraded, nic.width_degraded) == (True, False)


def test_bug_09_read_requests_of_512_bytes() -> None:
    nic = only(NIC.replace("MaxReadReq 4096", "MaxReadReq 512").replace("RlxdOrd+", "RlxdOrd-"))
    assert (nic.max_payload, nic.max_read_req, nic.relaxed_ordering) == (256, 512, False)
    healthy = only(NIC)
    assert (healthy.max_payload_cap, healthy.max_payload) == (512, 256)
    assert (healthy.max_read_req, healthy.relaxed_ordering) == (4096, True)


def test_without_root_nothing_is_known_rather_than_off() -> None:
    nic = only("5e:00.0 VGA compatible controller: A: b\n\tCapabilities: <access denied>\n")
    assert (nic.denied, nic.acs, nic.degraded, nic.relaxed_ordering) == (True, None, None, None)
    assert (nic.class_name, nic.name) == ("VGA compatible controller", "A: b")


def test_a_device_that_fell_off_the_bus() -> None:
    nic = only(
        "5e:00.0 3D controller: NVIDIA H100 (rev ff) (prog-if ff)\n\t!!! Unknown header type 7f\n"
    )
    assert nic.lost
    assert not only(NIC).lost


def test_an_unknown_speed_is_not_judged() -> None:
    nic = only(NIC.replace("LnkSta:\tSpeed 32GT/s, Width x16", "LnkSta:\tSpeed unknown, Width x16"))
    assert (nic.speed_degraded, nic.width_degraded, nic.degraded) == (None, False, False)


def test_several_devices_and_what_lspci_says_itself() -> None:
    devices = parse_lspci("pcilib: sysfs_read_vpd: read failed\n" + NIC + "\n" + BRIDGE)
    assert [device.address for device in devices] == ["5e:00.0", "0000:50:01.0"]


@pytest.mark.parametrize("text", ["", "bash: lspci: command not found", "\tLnkCap: x\n", NIC + "x"])
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_lspci(text)


@given(st.lists(st.sampled_from([NIC, BRIDGE, *NIC.splitlines(keepends=True)]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        devices = parse_lspci("".join(pieces))
    except ValueError:
        return
    assert devices
    assert all(device.bdf.count(":") == 2 for device in devices)
