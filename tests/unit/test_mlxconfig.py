"""mlxconfig's tables in the widths of its releases, and its complaints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.mlxconfig import MlxConfig, Parameter, parse_mlxconfig

ABOUT = "\nDevice #1:\n----------\n\nDevice type:    ConnectX7\nDevice:         0000:1a:00.0\n\n"
THREE = ABOUT + "Configurations:                    Default         Current         Next Boot\n"


def only(row: str, head: str = THREE) -> Parameter:
    (device,) = parse_mlxconfig(head + row + "\n").devices
    (parameter,) = device.params.values()
    return parameter


def test_bug_25_pending_is_current_against_next_boot() -> None:
    pending = only("*        NUM_OF_VFS          16              16              12")
    assert (pending.default, pending.current, pending.next) == (16, 16, 12)
    assert (pending.marked, pending.pending) == (True, True)
    # Not the default, and marked for it, yet no boot will change it.
    healthy = only("*        NUM_OF_VFS          16              12              12")
    assert (healthy.marked, healthy.pending) == (True, False)


def test_bug_09_write_ordering_has_a_name_and_a_number() -> None:
    found = only("         PCI_WR_ORDERING     per_mkey(0)     per_mkey(0)     force_relax(1)")
    assert (found.current, found.current_name) == (0, "per_mkey")
    assert (found.next, found.next_name, found.pending) == (1, "force_relax", True)


def test_bug_09_healthy_twin() -> None:
    found = only("         PCI_WR_ORDERING     per_mkey(0)     force_relax(1)  force_relax(1)")
    assert (found.current_name, found.pending) == ("force_relax", False)


def test_what_the_device_does_not_tell_is_not_pending() -> None:
    assert (
        only("         LINK_TYPE_P1        N/A             N/A             ETH(2)").pending is None
    )


def test_arrays_as_a_whole_and_by_index() -> None:
    whole = only("         HOST_CHAINING[0..7]  Array[0..7]   Array[0..7]     Array[0..7]")
    assert (whole.next, whole.next_name, whole.pending) == (None, "Array[0..7]", None)
    found = parse_mlxconfig(THREE + "         MODULE_SPLIT_M0[3]   1   1   2\n")
    assert found.devices[0].params["MODULE_SPLIT_M0[3]"].next == 2


@pytest.mark.parametrize(
    ("head", "row", "expected"),
    [
        ("Next Boot", "SRIOV_EN True(1)", Parameter(next=1, next_name="True")),
        ("Current         Next Boot", "N 1 2", Parameter(current=1, next=2)),
        ("Next Boot       New", "N 1 2", Parameter(next=1, new=2)),
        ("Current", "NUM_OF_VFS 4", Parameter(current=4)),
        ("Next Boot", "*  RO  N 1", Parameter(next=1, marked=True, read_only=True)),
    ],
)
def test_columns(head: str, row: str, expected: Parameter) -> None:
    assert only(f"        {row}", f"{ABOUT}Configurations:      {head}\n") == expected


def errors(found: MlxConfig) -> list[str]:
    return [problem.error for problem in found.problems]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("Failed to open the device", "open_failed"),
        ("Failed to open device: /dev/mst/x. No such file or directory", "open_failed"),
        ("Failed to identify the device", "identify_failed"),
        ("No devices found.", "no_devices"),
        ("The Device doesn't support ROCE_X parameter", "unsupported_parameter"),
        ("Unknown Parameter: ROCE_X", "unsupported_parameter"),
        ("Failed to query device current configuration", "query_failed"),
        ("Something new", "failed"),
    ],
)
def test_complaints(said: str, error: str) -> None:
    found = parse_mlxconfig(f"-E- {said}\n")
    assert errors(found) == [error]
    assert (found.problems[0].message, found.devices) == (said, ())


def test_a_complaint_of_several_lines_comes_after_its_table() -> None:
    found = parse_mlxconfig(
        THREE + "         N      1      1      1\n"
        "The '*' shows parameters with next value different from default/current value.\n"
        "-E- Failed to query some of the TLVs:\n"
        "    Failed to query the current values of the following TLVs:\n"
        "    nv_a nv_b \n\n" + THREE.replace("#1", "#2") + "         M      1      1      1\n"
    )
    assert [list(device.params) for device in found.devices] == [["N"], ["M"]]
    assert found.problems[0].message.endswith("nv_a nv_b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bash: mlxconfig: command not found",
        ABOUT + "cut",
        THREE + "         NUM_OF_VFS     16    16\n",
        THREE + "         *\n",
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_mlxconfig(text)


@given(st.lists(st.sampled_from([THREE, "   N  1  A(2)  N/A\n", "-E- x\n", "* "]) | st.text()))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    try:
        found = parse_mlxconfig("".join(pieces))
    except ValueError:
        return
    assert found.devices or found.problems
