"""What chronyc and systemctl print, as the probe brings it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.chrony import (
    RIVALS,
    SECTIONS,
    ChronyFact,
    Tracking,
    parse_sources,
    parse_tracking,
)
from railwright.snapshot import Section, Snapshot

FOLLOWS = (
    "0A000202,10.0.2.2,6,1796028058.225943219,0.000003458,0.000040842,0.000040842,0.000,2.610,"
    "1000000.000,0.002238127,40.341987610,2.1,Normal\n"
)
STARTING = (
    "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,"
    "1.000000000,0.0,Not synchronised\n"
)


def text(
    reference: str = "7F000001 (127.0.0.1)",
    stratum: str = "6",
    time: str = "0.000000808 seconds fast of NTP time",
    leap: str = "Normal",
) -> str:
    return (
        f"Reference ID    : {reference}\n"
        f"Stratum         : {stratum}\n"
        "Ref time (UTC)  : Mon Nov 30 08:29:15 2026\n"
        f"System time     : {time}\n"
        "Root delay      : 0.000009280 seconds\n"
        f"Leap status     : {leap}\n"
    )


def test_the_two_forms_say_the_same() -> None:
    csv = (
        "7F000001,127.0.0.1,6,1796027355.635218712,-0.000000808,0.000001327,0.000001327,-0.322,"
        "-0.000,894.618,0.000009280,0.001968140,0.0,Normal\n"
    )
    expected = Tracking(
        synced=True,
        reference_id="7F000001",
        ref="127.0.0.1",
        stratum=6,
        offset_s=8.08e-07,
        leap="Normal",
    )
    # The correction is negative where the clock is fast.
    assert parse_tracking(csv) == expected
    assert parse_tracking(text()) == expected


def test_slow_is_negative() -> None:
    assert parse_tracking(text(time="0.25 seconds slow of NTP time")).offset_s == -0.25
    zero = parse_tracking(text(time="0.000000000 seconds slow of NTP time")).offset_s
    assert str(zero) == "0.0"
    assert str(parse_tracking(STARTING).offset_s) == "0.0"


@pytest.mark.parametrize(
    ("reference", "stratum", "leap", "synced", "ref"),
    [
        ("A1B2C3D4 (2001:db8::1)", "3", "Normal", True, "2001:db8::1"),
        ("47505300 (GPS)", "1", "Insert second", True, "GPS"),
        ("203.0.113.15 (ntp.example)", "2", "Delete second", True, "ntp.example"),
        ("0A000202 (10.0.2.2)", "6", "Not synchronised", False, "10.0.2.2"),
        ("0A000202 (10.0.2.2)", "16", "Normal", False, "10.0.2.2"),
        ("0A000202 (10.0.2.2)", "0", "Normal", False, "10.0.2.2"),
        ("00000000 ()", "3", "Normal", False, None),
        ("0.0.0.0 ()", "3", "Normal", False, None),
        ("7F7F0101 ()", "5", "Normal", False, None),
        ("7f7f0101 (LOCAL)", "5", "Normal", False, "LOCAL"),
        ("127.127.1.1 ()", "10", "Normal", False, None),
    ],
)
def test_what_counts_as_synchronised(
    reference: str, stratum: str, leap: str, synced: bool, ref: str | None
) -> None:
    found = parse_tracking(text(reference, stratum, leap=leap))
    assert (found.synced, found.ref, found.leap) == (synced, ref, leap)
    assert found.local == reference.lower().startswith(("7f7f0101", "127.127.1.1"))


@pytest.mark.parametrize(
    ("said", "rc", "error"),
    [
        ("506 Cannot talk to daemon\n", 1, "no_daemon"),
        ("Could not open connection to daemon\n", 1, "no_daemon"),
        (",,,,,,,,,,,,,\n", 1, "no_daemon"),
        ("501 Not authorised\n", 1, "not_authorised"),
        ("Fatal error : Could not open /run/chrony: Permission denied\n", 1, "not_authorised"),
        ("500 Failure\n", 1, "refused"),
        ("sh: 1: chronyc: not found\n", 127, "not_installed"),
        ("", 127, "not_installed"),
        ("", 0, "no_output"),
        ("\n", 124, "no_output"),
        ("", None, "no_output"),
    ],
)
def test_a_refusal_is_never_synchronised(said: str, rc: int | None, error: str) -> None:
    assert parse_tracking(said, rc) == Tracking.model_validate({"synced": False, "error": error})


@pytest.mark.parametrize(
    "said",
    [
        "Segmentation fault\n",
        text().replace("Stratum ", "Layer "),
        text(stratum="six"),
        text(time="soon"),
        text(time="nan seconds fast of NTP time"),
        text(reference="a b c"),
        FOLLOWS.replace("0.000003458", "x"),
        FOLLOWS.replace(",6,", ",-6,"),
    ],
)
def test_rubbish_is_told(said: str) -> None:
    with pytest.raises(ValueError, match="chronyc tracking"):
        parse_tracking(said)


@given(st.text(), st.integers(0, 255))
def test_any_text_is_read_or_refused(said: str, rc: int) -> None:
    try:
        found = parse_tracking(said, rc)
    except ValueError:
        return
    assert found.error is not None or found.stratum is not None


@given(st.floats(-1e6, 1e6), st.integers(0, 20), st.sampled_from(["Normal", "Not synchronised"]))
def test_csv_offset_has_the_opposite_sign(offset: float, stratum: int, leap: str) -> None:
    line = f"0A000202,a,{stratum},1.0,{offset:.9f},0,0,0,0,0,0,0,0,{leap}"
    found = parse_tracking(line)
    assert found.offset_s == pytest.approx(-offset, abs=1e-8)
    assert found.synced == (leap == "Normal" and 0 < stratum < 16)


def test_sources() -> None:
    found = parse_sources(
        "^,*,10.0.2.2,5,6,17,39,0.000751972,0.000792814,0.001125544\n"
        "^,?,no.such.invalid,0,6,0,4294967295,0.000000000,0.000000000,0.000000000\n"
    )
    assert [(s.address, s.state, s.reach) for s in found] == [
        ("10.0.2.2", "*", 15),
        ("no.such.invalid", "?", 0),
    ]
    with pytest.raises(ValueError, match="506"):
        parse_sources("506 Cannot talk to daemon\n")
    with pytest.raises(ValueError, match="expected a line"):
        parse_sources("^,*,10.0.2.2,5,6,9,39,0.0,0.0,0.0\n")


def test_the_fact_reads_its_sections() -> None:
    stdout = {
        "chrony_files": "",
        "chrony_installed": "installed=yes\ninstaller=apt-get\n",
        "chrony_units": "Id=chrony.service\nLoadState=loaded\nActiveState=active\n"
        "UnitFileState=enabled\n",
        "chrony_tracking": FOLLOWS,
        "chrony_sources": "^,*,10.0.2.2,5,6,17,39,0.0,0.0,0.0\n",
    }
    assert set(stdout) == {section.name for section in SECTIONS}
    sections = {name: Section(stdout=text, rc=0) for name, text in stdout.items()}
    found = ChronyFact().read(Snapshot(host="", marker="m", sections=sections))
    assert (found.installed, found.tracking.synced) == (True, True)
    assert found.sources[0].address == "10.0.2.2"
    assert list(found.units) == ["chrony.service"]
    assert "chrony.service" not in RIVALS
