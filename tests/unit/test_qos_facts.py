"""QoS as text: written down, read back, and the sections that read a node, run by a real shell."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.probe import Focus, script
from facts.qos import SECTIONS, Problem, parse_kernel_files, read_qos
from railwright import qos
from railwright.qos import both_points, data_of, mapped, parse_data, runs, same_sizes
from railwright.schema import RoceQos
from railwright.snapshot import parse_probe
from tests.unit import qos_tools
from tests.unit.qos_host import host

PRIORITIES = st.integers(0, 7)


def expanded(text: str) -> dict[int, str]:
    """What runs stand for: the inverse, written on its own."""
    found = {}
    for run in text.split() if text != "none" else ():
        key, _, value = run.rpartition(":")
        first, _, last = key.partition("-")
        for number in range(int(first), int(last or first) + 1):
            found[number] = value
    return found


@given(st.lists(PRIORITIES, min_size=1, max_size=64))
def test_runs_say_each_value(values: list[int]) -> None:
    assert expanded(runs(values)) == {i: str(value) for i, value in enumerate(values)}


@given(st.dictionaries(st.integers(0, 63), PRIORITIES))
def test_a_map_says_what_it_has_and_no_more(values: dict[int, int]) -> None:
    assert expanded(mapped(values)) == {key: str(value) for key, value in values.items()}
    if set(values) == set(range(64)):
        assert mapped(values) == runs([values[dscp] for dscp in range(64)])


def test_the_default_is_what_the_switches_have() -> None:
    wanted = qos.wanted(RoceQos())
    assert wanted["dscp map"] == "0-7:0 8-15:1 16-23:2 24-31:3 32-39:4 40-47:5 48-55:6 56-63:7"
    assert wanted["pfc"] == "3"
    assert wanted["ecn"] == "np 3 rp 3"
    assert wanted["rdma_cm tos"] == "106"
    assert "traffic class" not in wanted
    assert qos.wanted(RoceQos(backend="nvidia"))["traffic class"] == "106"


@given(
    st.dictionaries(st.integers(0, 63), PRIORITIES),
    st.frozensets(PRIORITIES),
    st.integers(0, 255),
    st.sampled_from(["inbox", "nvidia"]),
)
def test_data_is_read_back_as_it_is_asked_for(
    entries: dict[int, int], lossless: frozenset[int], tos: int, backend: str
) -> None:
    spec = RoceQos.model_validate(
        {
            "dscp_to_priority": entries,
            "lossless": lossless,
            "traffic_class": tos,
            "backend": backend,
        }
    )
    said = parse_data(data_of("rail3", spec))
    assert said.pop("RAIL") == "rail3"
    assert said.pop("BACKEND") == backend
    assert said == {qos.key_of(name): value for name, value in qos.wanted(spec).items()}


ODD = st.text(alphabet="abcXYZ0 _;$`'-", min_size=1)


@given(ODD)
def test_data_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected KEY=VALUE"):
        parse_data(text)


def test_unnamed_priorities_go_with_priority_0_and_unused_classes_are_strict() -> None:
    found = qos.ets(RoceQos(ets_percent={0: 40, 3: 60}, strict=frozenset({6, 7})))
    assert found.prio_tc == (0, 0, 0, 3, 0, 0, 6, 7)
    assert str(found) == "0-2:0 3:3 4-5:0 6:6 7:7 / 0:40% 1-2:strict 3:60% 4-7:strict"


@pytest.mark.parametrize(
    ("found", "right"),
    [((20016, 156096), True), ((20016, 155900), False), ((20160, 156096), False)],
)
def test_sizes_are_right_but_for_less_than_a_cell(found: tuple[int, int], right: bool) -> None:
    assert same_sizes((20016, 156200), found) is right


def test_points_of_congestion() -> None:
    assert both_points({3, 5}, ()) == "np 3 5 rp none"


def test_files_of_the_kernel() -> None:
    found = parse_kernel_files(
        "folder /sys/kernel/config/rdma_cm\n"
        "value /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode RoCE v2\n"
        "value /sys/class/infiniband/mlx5_0/tc/1/traffic_class \n"
        "refused /sys/kernel/debug/mlx5/0000:1a:00.0/cc_params/np_cnp_dscp head: error: No data\n"
    )
    assert found.folders == {"/sys/kernel/config/rdma_cm"}
    assert list(found.values.values()) == ["RoCE v2", ""]
    assert list(found.refused.values()) == ["No data"]


@given(ODD)
def test_files_of_another_kind_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected folder, value or refused"):
        parse_kernel_files(text)


def test_a_dcb_that_names_nothing_is_an_answer() -> None:
    snapshot = host({"rail0": qos_tools.mlx5(dcbx=[])})
    port = read_qos(snapshot).ports["rail0"]
    assert not isinstance(port.dcbx, Problem)
    assert port.dcbx.flags == ()
    assert not isinstance(port.app, Problem)
    assert port.app.dscp2prio == {}


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_sections_run_on_this_machine_and_are_read(shell: str) -> None:
    done = subprocess.run(
        [shell, "-c", script(SECTIONS, Focus(rails=True))], capture_output=True, timeout=120
    )
    assert done.stderr == b""
    snapshot = parse_probe(done.stdout.decode("ascii"), host="here")
    assert {name for name, section in snapshot.sections.items() if section.complete} >= {
        section.name for section in SECTIONS
    }
    found = read_qos(snapshot)
    # No port of a machine that has no DCB tool is taken for one that told something.
    for port in found.ports.values():
        assert isinstance(port.pfc, Problem) or port.pfc.pfc_enabled is not None
    assert snapshot.files("qos_files") == []


def test_the_sections_are_clean_shell() -> None:
    text = script(SECTIONS, Focus(rails=True))
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2034,SC2317", "-"],
        input=text,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""
