"""What is made of ``lctl dl`` and ``lctl get_param``. test_parse.py reads the corpus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.lctl import parse_devices, parse_parameters

DEVICES = """\
  0 UP mgc MGC10.77.3.1@o2ib 0a0b0c0d-5555-6666-7777-000000000001 4
  1 UP lov scr-clilov-ffff9a0012340000 0a0b0c0d-5555-6666-7777-000000000002 3
  2 UP mdc scr-MDT0000-mdc-ffff9a0012340000 0a0b0c0d-5555-6666-7777-000000000002 4
  3 IN osc scr-OST00ff-osc-ffff9a0012340000 0a0b0c0d-5555-6666-7777-000000000002 4
"""


def test_devices_are_told_by_what_they_are() -> None:
    found = parse_devices(DEVICES)
    assert (found.fsname, found.mgs_nid, found.mdt, found.ost) == ("scr", "10.77.3.1@o2ib", 1, 1)
    assert found.ost_index == {"scr": [255]}
    assert found.not_up == ["scr-OST00ff-osc-ffff9a0012340000"]


def test_without_a_mount_there_is_no_device() -> None:
    assert parse_devices("").devices == ()


@pytest.mark.parametrize(
    ("text", "rc"), [("opening /dev/obd failed\n", 0), ("0 UP mgc\n", 0), ("", 2)]
)
def test_what_is_no_list_of_devices_is_told(text: str, rc: int) -> None:
    with pytest.raises(ValueError, match="lctl dl"):
        parse_devices(text, rc)


def test_values_are_told_by_the_whole_name() -> None:
    text = (
        "osc.scr-OST0000-osc-ffff9a.max_rpcs_in_flight=8\n"
        "llite.scr-ffff9a.max_cached_mb=\n"
        "users: 5\n"
        "max_cached_mb: 128764\n"
        "used_mb: 0\n"
        "osc.scr-OST0000-osc-ffff9a.checksum_type=crc32 adler [crc32c] t10ip512\n"
        "ldlm.namespaces.MGC10.77.3.1@o2ib.lru_size=1600\n"
        "at_max=600\n"
    )
    assert parse_parameters(text).values == {
        "osc.scr-OST0000-osc-ffff9a.max_rpcs_in_flight": "8",
        "llite.scr-ffff9a.max_cached_mb": "128764",
        "osc.scr-OST0000-osc-ffff9a.checksum_type": "crc32c",
        "ldlm.namespaces.MGC10.77.3.1@o2ib.lru_size": "1600",
        "at_max": "600",
    }


def test_what_lctl_does_not_find_is_told_with_its_reason() -> None:
    text = "error: get_param: param_path 'osc/*/max_rpc': No such file or directory\n"
    found = parse_parameters(text)
    assert found.values == {}
    assert found.errors == {"osc/*/max_rpc": "No such file or directory"}


def test_another_text_is_no_parameter() -> None:
    with pytest.raises(ValueError, match="expected NAME=VALUE"):
        parse_parameters("lctl: command failed\n")


@given(st.lists(st.sampled_from(DEVICES.splitlines()) | st.text()))
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    try:
        found = parse_devices("\n".join(lines))
    except ValueError:
        return
    assert len(found.devices) == sum(bool(line.strip()) for line in lines)


@given(st.text())
def test_any_text_of_get_param_is_read_or_refused(text: str) -> None:
    try:
        found = parse_parameters(text)
    except ValueError:
        return
    assert bool(found.values or found.errors) == bool(text.strip())
