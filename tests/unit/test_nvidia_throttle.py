"""Why GPUs run below their clocks. The recorded corpus is read in test_parse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nvidia_throttle import parse_throttle, reason, reasons_of

GPU = """\
GPU 00000000:9A:00.0
    Performance State                                  : P0
    Clocks Event Reasons
        Idle                                           : Not Active
        SW Power Cap                                   : {cap}
        HW Slowdown                                    : {brake}
            HW Thermal Slowdown                        : Not Active
            HW Power Brake Slowdown                    : {brake}
        SW Thermal Slowdown                            : Not Active
    Clocks Event Reasons Counters
        SW Power Capping                               : 187204 us
        HW Power Braking                               : 0 us
    Sparse Operation Mode                              : N/A
"""
HEALTHY = GPU.format(cap="Not Active", brake="Not Active")


def test_bug_41_a_power_brake_is_a_fault_and_a_power_cap_under_load_is_none() -> None:
    braked = parse_throttle(GPU.format(cap="Not Active", brake="Active")).gpus["0000:9a:00.0"]
    assert braked.active == ("hw_slowdown", "hw_power_brake_slowdown")
    assert braked.fault
    busy = parse_throttle(GPU.format(cap="Active", brake="Not Active")).gpus["0000:9a:00.0"]
    assert (busy.active, busy.fault) == (("sw_power_cap",), False)


def test_counters_stand_apart_from_what_holds_now() -> None:
    gpu = parse_throttle(HEALTHY).gpus["0000:9a:00.0"]
    assert (gpu.active, gpu.pstate, gpu.fault) == ((), "P0", False)
    assert gpu.counters_us == {"sw_power_capping": 187204, "hw_power_braking": 0}


def test_the_older_name_of_the_section() -> None:
    older = HEALTHY.replace("Event", "Throttle").partition("    Clocks Throttle Reasons Counters")[
        0
    ]
    gpu = parse_throttle(older).gpus["0000:9a:00.0"]
    assert (gpu.active, gpu.counters_us) == ((), {})


def test_a_gpu_that_does_not_tell_is_neither_well_nor_at_fault() -> None:
    gpu = parse_throttle("GPU 0000000F:01:00.0\n    Clocks Event Reasons : N/A\n").gpus[
        "000f:01:00.0"
    ]
    assert (gpu.active, gpu.supported, gpu.fault) == (None, False, None)


def test_each_gpu_has_its_own() -> None:
    text = HEALTHY + GPU.format(cap="Active", brake="Active").replace("9A", "BA")
    found = parse_throttle(text).gpus
    assert [gpu.fault for gpu in found.values()] == [False, True]


def test_a_mask_says_what_the_report_says() -> None:
    assert reasons_of(0) == ()
    assert reasons_of(0x88) == ("hw_slowdown", "hw_power_brake_slowdown")
    assert reasons_of(1 << 40) == ("bit_40",)
    assert reason("HW Power Brake Slowdown") == reason("hw_power_brake_slowdown")
    assert reason("Idle") == reason("gpu_idle") == "idle"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVIDIA-SMI has failed\n",
        HEALTHY.replace("Performance State", "x").replace(": Not Active", ": Perhaps", 1),
        HEALTHY.replace("187204 us", "long"),
        HEALTHY.replace("GPU 00000000:9A:00.0", "GPU 0:9A"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_throttle(text)


@given(st.lists(st.sampled_from(HEALTHY.splitlines()) | st.text()))
def test_nothing_but_a_value_error_is_raised(lines: list[str]) -> None:
    try:
        found = parse_throttle("\n".join(lines))
    except ValueError:
        return
    assert found.gpus
