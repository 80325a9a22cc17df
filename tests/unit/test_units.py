"""What is made of ``systemctl show``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.units import parse_units, read_units, unit_blocks
from railwright.snapshot import Section, Snapshot
from tests.unit.units import unit


def test_units_are_told_apart_by_name() -> None:
    found = parse_units(
        "Id=chrony.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
        "DropInPaths=\n\n"
        "Id=ntp.service\nLoadState=masked\nActiveState=inactive\nUnitFileState=masked\n\n"
        "Id=ntpsec.service\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n"
    )
    assert found["chrony.service"].file_state == "enabled"
    assert (found["ntp.service"].loaded, found["ntp.service"].masked) == (True, True)
    assert not found["ntpsec.service"].loaded
    with pytest.raises(ValueError, match="LoadState"):
        parse_units("Id=chrony.service\n")


def test_a_value_may_hold_an_equals_sign_and_other_lines_go_by() -> None:
    assert unit_blocks("Id=a.service\nExecStart={ path=/bin/x }\n/etc/x:3:LimitNOFILE=4\n") == [
        {"Id": "a.service", "ExecStart": "{ path=/bin/x }"}
    ]


@given(st.text(alphabet="Id=\n .ax"))
def test_rubbish_has_no_units(text: str) -> None:
    if unit_blocks(text):
        with pytest.raises(ValueError, match="systemctl show without"):
            parse_units(text)
    else:
        assert parse_units(text) == {}


def test_no_answer_is_told_with_what_systemctl_said() -> None:
    mute = Section(stdout="", stderr="System has not been booted with systemd", rc=1)
    snapshot = Snapshot(host="n", marker="m", sections={"u": mute})
    with pytest.raises(ValueError, match="not been booted"):
        read_units(snapshot, "u")
    told = snapshot.model_copy(update={"sections": {"u": Section(stdout=unit("a.service"), rc=0)}})
    assert read_units(told, "u")["a.service"].active == "active"
