"""What is made of ``ethtool -S``, ``-a``, ``-i`` and ``-m``. test_parse.py reads the corpus."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.ethtool import (
    Driver,
    Module,
    Pause,
    Refusal,
    Statistics,
    parse_driver,
    parse_module_eeprom,
    parse_pause,
    parse_statistics,
)

CORPUS = Path(__file__).parents[1] / "corpus"
LINES = sorted(
    {line for file in CORPUS.glob("ethtool-*/*.txt") for line in file.read_text().splitlines()}
)

Reader = Callable[[str, int], Statistics | Pause | Driver | Module | Refusal]

NAMES = st.from_regex(r"(\[\d\]: )?[a-z_]{1,20}( [a-z]{1,5})?", fullmatch=True)


@given(st.dictionaries(NAMES, st.integers(0, 2**64 - 1)))
def test_counters_are_read_back_whatever_colons_and_blanks_their_names_have(
    counters: dict[str, int],
) -> None:
    lines = [f"     {name}: {count}" for name, count in counters.items()]
    found = parse_statistics("\n".join(["NIC statistics:", *lines]) + "\n")
    assert found == Statistics(counters=counters)


def test_standard_groups_are_counters_too() -> None:
    found = parse_statistics("Standard stats for eth0:\neth-mac-FramesTransmittedOK: 902\n")
    assert found == Statistics(counters={"eth-mac-FramesTransmittedOK": 902})


def statistics(*lines: str) -> Statistics:
    found = parse_statistics("NIC statistics:\n" + "".join(f"     {line}\n" for line in lines))
    assert isinstance(found, Statistics)
    return found


def test_active_priorities_are_those_with_traffic_in_either_direction() -> None:
    found = statistics("tx_prio3_bytes: 9", "rx_prio0_packets: 1", "rx_prio5_bytes: 0")
    assert found.active_prios == (0, 3)
    # Pause frames are no traffic of the priority.
    assert statistics("rx_prio3_pause: 7", "rx_prio3_bytes: 0").active_prios == ()
    assert statistics("rx_bytes: 4").active_prios is None


def test_bug_18_traffic_that_goes_out_unmarked_is_on_priority_0() -> None:
    unmarked = statistics("tx_prio0_packets: 86256", "tx_prio3_packets: 0")
    assert unmarked.active_prios == (0,)
    marked = statistics("tx_prio0_packets: 0", "tx_prio3_packets: 86256")
    assert marked.active_prios == (3,)


def test_bug_19_drops_of_a_lossy_fabric_are_counted() -> None:
    assert statistics("rx_discards_phy: 48213").counters == {"rx_discards_phy": 48213}
    assert statistics("rx_discards_phy: 0").counters == {"rx_discards_phy": 0}


PAUSE = "Pause parameters for ens2f0np0:\nAutonegotiate:\t{}\nRX:\t\t{}\nTX:\t\t{}\n{}\n"


@pytest.mark.parametrize("words", ["off on off", "on n/a on", "n/a n/a n/a"])
def test_pause_of_a_link(words: str) -> None:
    autoneg, rx, tx = ({"on": True, "off": False}.get(word) for word in words.split())
    assert parse_pause(PAUSE.format(*words.split(), "")) == Pause(
        iface="ens2f0np0", autoneg=autoneg, rx=rx, tx=tx
    )


NEGOTIATED = Pause(
    iface="ens2f0np0",
    autoneg=True,
    rx=True,
    tx=True,
    rx_negotiated=True,
    tx_negotiated=False,
    statistics={"tx_pause_frames": 12, "rx_pause_frames": 2**40},
)
COUNTED = f"Statistics:\n  tx_pause_frames: 12\n  rx_pause_frames: {2**40}\n"


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_negotiated_pause_and_its_frames(blank: str) -> None:
    negotiated = f"RX negotiated:{blank}on\nTX negotiated:{blank}off\n"
    assert parse_pause(PAUSE.format("on", "on", "on", negotiated + COUNTED)) == NEGOTIATED


def test_pause_says_the_same_in_json() -> None:
    port = {
        "ifname": "ens2f0np0",
        "autonegotiate": True,
        "rx": True,
        "tx": True,
        "negotiated": {"rx": True, "tx": False},
        "statistics": {"tx_pause_frames": 12, "rx_pause_frames": 2**40},
    }
    assert parse_pause(json.dumps([port])) == NEGOTIATED
    # What is n/a in the text is left out of the JSON.
    assert parse_pause('[{"ifname":"eth0"}]') == Pause(iface="eth0")


DRIVER = """\
driver: {}
version: {}
firmware-version: {}
expansion-rom-version: \n\
bus-info: 0000:5e:00.0
supports-statistics: yes
supports-test: no
supports-priv-flags: yes
"""


def driver(name: str, version: str, firmware: str) -> Driver:
    found = parse_driver(DRIVER.format(name, version, firmware))
    assert isinstance(found, Driver)
    return found


@pytest.mark.parametrize(
    ("version", "ofed"),
    [
        ("24.07-0.6.1", True),
        ("5.8-2.0.3", True),
        ("4.9-4.1.7.0", True),
        ("5.0-0", False),
        ("6.10.11-amd64", False),
        ("5.15.0-91-generic", False),
        ("4.18.0-553.el8_10.x86_64", False),
    ],
)
def test_the_version_tells_the_driver_of_ofed_from_that_of_the_kernel(
    version: str, ofed: bool
) -> None:
    assert driver("mlx5_core", version, "28.42.1000 (MT_0000000838)").ofed is ofed


def test_drivers_of_others_have_no_psid_and_are_of_no_ofed() -> None:
    found = driver("bnxt_en", "6.1.0-28-amd64", "214.0.191.0/pkg 21.40.16.6")
    assert (found.fw, found.psid, found.ofed) == ("214.0.191.0/pkg 21.40.16.6", None, None)
    assert (found.bus, found.expansion_rom) == ("0000:5e:00.0", "")
    assert found.supports == ("statistics", "priv-flags")
    empty = driver("virtio_net", "1.0.0", "")
    assert (empty.fw, empty.mode) == ("", None)


def test_ipoib_is_told_by_the_name_of_the_driver() -> None:
    found = driver("mlx5_core[ib_ipoib]", "6.10.11-amd64", "20.40.1000 (MT_0000000224)")
    assert (found.driver, found.mode) == ("mlx5_core", "ipoib")
    assert (found.fw, found.psid) == ("20.40.1000", "MT_0000000224")


QSFP = """\
\tIdentifier                                : 0x11 (QSFP28)
\tConnector                                 : 0x23 (No separable connector)
\tTransceiver type                          : 100G Ethernet: 100G Base-CR4 or 25G Base-CR CA-L
\tTransceiver type                          : 40G Ethernet: 40G Base-CR4
\tLength (Copper or Active cable)           : 3m
\tVendor name                               : Mellanox
\tVendor PN                                 : MCP1600-C003
\tVendor SN                                 : INV0000002
\tModule temperature                        : -5.50 degrees C / 22.10 degrees F
\tModule voltage                            : 3.2917 V
\tLaser tx bias current (Channel 1)         : 6.662 mA
\tLaser tx bias current (Channel 2)         : 0.000 mA
\tTransmit avg optical power (Channel 1)    : 0.7119 mW / -1.48 dBm
\tTransmit avg optical power (Channel 2)    : 0.0000 mW / -inf dBm
\tRcvr signal avg optical power(Channel 1)  : 0.7682 mW / -1.15 dBm
\tRcvr signal avg optical power(Channel 2)  : 0.0000 mW / -inf dBm
\tLaser bias current high alarm   (Chan 1)  : Off
\tLaser rx power low alarm    (Channel 2)   : On
\tLaser rx power low warning  (Channel 2)   : On
\tModule temperature high alarm             : On
\tModule temperature high alarm threshold   : 75.00 degrees C / 167.00 degrees F
\tLaser rx power low alarm threshold        : 0.0446 mW / -13.51 dBm
"""


def test_a_module_with_lanes() -> None:
    assert parse_module_eeprom(QSFP) == Module(
        identifier="QSFP28",
        connector="No separable connector",
        transceiver="100G Ethernet: 100G Base-CR4 or 25G Base-CR CA-L",
        vendor="Mellanox",
        part_number="MCP1600-C003",
        serial="INV0000002",
        cable_m=3.0,
        temp_c=-5.5,
        voltage_v=3.2917,
        rx_power_dbm=(-1.15, None),
        tx_power_dbm=(-1.48, None),
        bias_ma=(6.662, 0.0),
        alarms=("Laser rx power low alarm (Channel 2)", "Module temperature high alarm"),
        warnings=("Laser rx power low warning (Channel 2)",),
    )


def test_a_cmis_module_has_brackets_in_its_name() -> None:
    text = (
        "\tIdentifier : 0x18 (QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628))\n"
        "\tCable assembly length                     : 0.50m\n"
        "\tReceiver signal OMA(Channel 1)            : 0.1000 mW / -10.00 dBm\n"
    )
    found = parse_module_eeprom(text)
    assert isinstance(found, Module)
    assert found.identifier == "QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628)"
    assert (found.cable_m, found.rx_power_dbm) == (0.5, (-10.0,))
    assert found.to_json()["rx_power_dbm"] == -10.0


def test_a_module_that_is_no_cable_has_no_length() -> None:
    found = parse_module_eeprom("\tIdentifier : 0x03 (SFP)\n\tLength (Copper) : 0m\n")
    assert found == Module(identifier="SFP")


STALE = "Offset\t\tValues\n------\t\t------\n0x0000:\t\t11 07 00 00 00 00 00 00 00 00 00 00 00 \n"
WARNING = (
    "netlink warning: mlx5_core: Query module eeprom by page failed, read 0 bytes, err -5\n" * 2
)


@pytest.mark.parametrize("dump", [STALE, QSFP, ""])
def test_bug_54_a_warning_makes_the_module_unreadable_although_ethtool_exited_0(dump: str) -> None:
    assert parse_module_eeprom(WARNING + dump, 0) == Refusal(
        error="module_unreadable", errno=-5, message=WARNING.splitlines()[0]
    )
    # Wherever the two streams were put together.
    assert parse_module_eeprom(dump + WARNING, 0) == parse_module_eeprom(WARNING + dump, 0)


def test_bug_54_twin_the_same_module_without_a_warning_is_read() -> None:
    found = parse_module_eeprom(QSFP, 0)
    assert isinstance(found, Module)
    # A dump alone is of nobody knows what.
    with pytest.raises(ValueError, match="expected 'Identifier"):
        parse_module_eeprom(STALE, 0)


REFUSALS = [
    (parse_module_eeprom, "netlink error: Input/output error\n", "module_unreadable", -5),
    (
        parse_module_eeprom,
        "Cannot get Module EEPROM data: No such device or address\nSFP module not in cage?\n",
        "module_unreadable",
        -6,
    ),
    (
        parse_module_eeprom,
        "Cannot get module EEPROM information: Operation not supported\n",
        "not_supported",
        -95,
    ),
    (parse_module_eeprom, "netlink error: Unknown error 1564\n", "module_unreadable", None),
    (
        parse_pause,
        "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n",
        "no_such_device",
        -19,
    ),
    (
        parse_pause,
        "Pause parameters for ib0:\nCannot get device pause settings: Operation not supported\n",
        "not_supported",
        -95,
    ),
    (
        parse_statistics,
        "Cannot get stats strings information: No such device\n",
        "no_such_device",
        -19,
    ),
    (
        parse_statistics,
        "Cannot get stats strings information: Operation not supported\n",
        "not_supported",
        -95,
    ),
    (parse_driver, "Cannot get driver information: Operation not permitted\n", "not_permitted", -1),
]


@pytest.mark.parametrize(("read", "text", "kind", "errno"), REFUSALS)
@pytest.mark.parametrize("rc", [0, 1, 71])
def test_an_error_counts_whatever_the_exit_code_is(
    read: Reader, text: str, kind: str, errno: int | None, rc: int
) -> None:
    found = read(text, rc)
    assert isinstance(found, Refusal)
    assert (found.error, found.errno) == (kind, errno)


READERS = (parse_statistics, parse_pause, parse_driver, parse_module_eeprom)


@pytest.mark.parametrize("read", READERS)
def test_a_host_without_ethtool(read: Reader) -> None:
    found = read("sh: 1: ethtool: not found\n", 127)
    assert isinstance(found, Refusal)
    assert found.error == "not_installed"


BROKEN = [
    (parse_statistics, "", 0, "expected 'NIC statistics:'"),
    (parse_statistics, "NIC statistics:\n     rx_bytes: many\n", 0, "expected a counter"),
    (parse_statistics, "NIC statistics:\n     rx_bytes: 1\n", 1, "ethtool -S exited 1: NIC"),
    (parse_statistics, "Cannot get stats information: Bad address\n", 1, "Bad address"),
    (parse_pause, PAUSE.format("off", "maybe", "on", ""), 0, "expected on, off or n/a"),
    (parse_pause, "Pause parameters for eth0:\nRX:\t\ton\n", 0, "expected 'Pause parameters"),
    (parse_pause, "[]", 0, "expected a list of one port"),
    (parse_pause, "[{}]", 0, "expected ifname"),
    (parse_pause, '[{"ifname":"eth0","rx":"on"}]', 0, "rx: expected true or false, got 'on'"),
    (parse_pause, '[{"ifname":"eth0","negotiated":[]}]', 0, "expected an object"),
    (parse_pause, "[", 0, "expected JSON"),
    (parse_driver, "version: 1\n", 0, "expected 'driver: ...'"),
    (parse_driver, DRIVER, 2, "ethtool -i exited 2"),
    (parse_module_eeprom, "", 0, "expected 'Identifier"),
    (parse_module_eeprom, QSFP, 74, "ethtool -m exited 74"),
]


@pytest.mark.parametrize(("read", "text", "rc", "words"), BROKEN)
def test_what_cannot_be_read_is_a_value_error(read: Reader, text: str, rc: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(text, rc)


@given(st.lists(st.sampled_from(LINES) | st.text()), st.sampled_from([0, 1]))
def test_nothing_but_a_value_error_is_raised(lines: list[str], rc: int) -> None:
    for read in READERS:
        try:
            found = read("\n".join(lines), rc)
        except ValueError:
            continue
        assert json.loads(json.dumps(found.to_json())) is not None
