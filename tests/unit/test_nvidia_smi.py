"""GPUs as nvidia-smi lists them, and why it does not. The corpus is read in test_parse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nvidia_smi import Gpu, parse_query, query_fields
from facts.nvidia_smi_problem import find_problem
from facts.nvidia_throttle import pci_address

HEADER = "index, name, pci.bus_id, memory.total [MiB], power.limit [W], ecc.mode.current"
ROW = "0, NVIDIA H100 80GB HBM3, 00000000:2A:00.0, 81559 MiB, 700.00 W, Enabled"
MISMATCH = (
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n"
)
SILENT = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
    "that the latest NVIDIA driver is installed and running.\n"
)
LINES = [
    HEADER,
    ROW,
    *MISMATCH.splitlines(),
    SILENT,
    "[N/A], ERR!",
    "WARNING: infoROM is corrupted",
]


def one(text: str, *fields: str, rc: int = 0) -> Gpu:
    report = parse_query(text, fields, rc)
    assert report.problem is None
    (gpu,) = report.gpus
    return gpu


def test_units_stand_in_the_header_and_in_the_values() -> None:
    gpu = one(f"{HEADER}\n{ROW}\n")
    assert gpu.model_dump(include=gpu.model_fields_set) == {
        "index": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "pci": "0000:2a:00.0",
        "memory_total_mib": 81559,
        "power_limit_w": 700.0,
        "ecc": True,
        "absent": {},
    }


def test_without_header_and_units_the_query_names_the_columns() -> None:
    fields = ("index", "memory.total", "power.limit", "mig.mode.current")
    gpu = one("3, 81559, 700.00, Disabled\n", *fields)
    assert (gpu.index, gpu.memory_total_mib, gpu.power_limit_w, gpu.mig) == (3, 81559, 700.0, False)


def test_no_value_is_told_with_its_reason() -> None:
    fields = ("fan.speed", "mig.mode.current", "ecc.mode.current", "temperature.gpu", "serial")
    gpu = one("[N/A], [Not Supported], ERR!, [GPU is lost], [Unknown Error]", *fields)
    assert gpu.absent == {
        "fan_speed": "not_available",
        "mig": "not_supported",
        "ecc": "error",
        "temperature_gpu": "gpu_lost",
        "serial": "error",
    }
    assert (gpu.fan_speed, gpu.mig, gpu.ecc, gpu.temperature_gpu) == (None, None, None, None)
    assert gpu.failed
    assert one("[Something new]", "serial").absent == {"serial": "error"}
    assert not one("[N/A]", "fan.speed").failed


def test_mig_and_ecc_that_wait_for_a_reset() -> None:
    fields = ("mig.mode.current", "mig.mode.pending", "ecc.mode.current", "ecc.mode.pending")
    gpu = one("Disabled, Enabled, Enabled, Disabled", *fields)
    assert (gpu.mig, gpu.mig_pending, gpu.ecc, gpu.ecc_pending) == (False, True, True, False)


@pytest.mark.parametrize("name", ["clocks_event_reasons", "clocks_throttle_reasons"])
def test_reasons_by_either_name(name: str) -> None:
    gpu = one("0x0000000000000044", f"{name}.active")
    assert gpu.active_reasons == ("sw_power_cap", "hw_thermal_slowdown")
    fields = [f"{name}.{reason}" for reason in ("gpu_idle", "sw_power_cap", "hw_slowdown")]
    assert one("Active, Not Active, Active", *fields).active_reasons == ("idle", "hw_slowdown")
    assert one("Not Active, Not Active, Not Active", *fields).active_reasons == ()
    assert one("[N/A]", f"{name}.active").active_reasons is None


def test_fields_that_are_not_known_here_are_passed_over() -> None:
    assert one("7, 12 %", "index", "encoder.stats.sessionCount").index == 7


@pytest.mark.parametrize(
    ("text", "rc", "error"),
    [
        (SILENT, 9, "driver_not_loaded"),
        (MISMATCH, 18, "driver_library_mismatch"),
        ("Failed to initialize NVML: Unknown Error\n", 255, "nvml_failed"),
        ("No devices were found\n", 6, "no_devices"),
        (
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n",
            12,
            "library_not_found",
        ),
        (
            "Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.  Reboot the "
            "system to recover this GPU\n",
            15,
            "gpu_lost",
        ),
        (
            "Unable to determine the device handle for GPU0: 0000:41:00.0: Unknown Error\n",
            255,
            "gpu_lost",
        ),
        ("Failed to initialize NVML: Insufficient Permissions\n", 4, "no_permission"),
        ('Field "compute_cap" is not a valid field to query.\n\n', 2, "invalid_field"),
        ("", 127, "not_installed"),
        ("sh: 1: nvidia-smi: not found\n", 127, "not_installed"),
    ],
)
def test_a_failure_is_a_problem_with_a_cause_and_no_gpu(text: str, rc: int, error: str) -> None:
    report = parse_query(text, ("index", "name"), rc)
    assert report.gpus == ()
    assert report.problem is not None
    assert report.problem.error == error
    assert report.problem.cause


def test_what_a_problem_is_about() -> None:
    mismatch, field = find_problem(MISMATCH, 18), find_problem('Field "x" is not a valid field', 2)
    assert mismatch is not None
    assert field is not None
    assert (mismatch.nvml_library, field.field) == ("570.124", "x")
    lost = find_problem(
        "Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost", 15
    )
    assert lost is not None
    assert lost.gpu == "0000:41:00.0"
    assert find_problem(ROW, 0) is None


def test_a_warning_comes_with_an_answer() -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:2A:00.0"
    report = parse_query(f"{HEADER}\n{ROW}\n{warning}\n", rc=14)
    assert (len(report.gpus), report.warnings) == (1, (warning,))


@pytest.mark.parametrize(
    ("text", "fields", "rc", "words"),
    [
        ("0, name\n", (), 0, "expected the header"),
        ("0\n", ("index", "name"), 0, "expected 2 values"),
        ("zero\n", ("index",), 0, "index: expected a whole number"),
        ("0.5\n", ("index",), 0, "index: expected a whole number"),
        ("On and off\n", ("persistence_mode",), 0, "persistence_mode: expected Enabled"),
        ("1:2\n", ("pci.bus_id",), 0, "pci.bus_id: expected a PCI address"),
        ("0\n", ("index",), 1, "exited 1"),
        ("Segmentation fault\n", ("index",), 139, "whole number"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(
    text: str, fields: tuple[str, ...], rc: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        parse_query(text, fields, rc)


def test_the_fields_of_a_command() -> None:
    command = "nvidia-smi --query-gpu=index,memory.total --format=csv,noheader,nounits"
    assert query_fields(command) == ("index", "memory.total")
    assert query_fields("nvidia-smi -q") == ()


@pytest.mark.parametrize(
    ("text", "address"),
    [("00000000:2A:00.0", "0000:2a:00.0"), ("0000000F:01:00.0", "000f:01:00.0")],
)
def test_addresses_are_as_sysfs_has_them(text: str, address: str) -> None:
    assert pci_address(text) == address


def test_bug_43_the_gpu_that_nvidia_smi_does_not_list_is_named_by_its_address() -> None:
    on_pci = {f"000{domain}:{bus}:00.0" for domain in "8a" for bus in ("00", "10", "20", "30")}
    rows = [f"{pci.upper().zfill(16)}" for pci in sorted(on_pci)]
    every = parse_query("\n".join(rows), ("pci.bus_id",))
    assert {gpu.pci for gpu in every.gpus} == on_pci
    seven = parse_query("\n".join(row for row in rows if "A:00" not in row), ("pci.bus_id",))
    assert on_pci - {gpu.pci for gpu in seven.gpus} == {"000a:00:00.0"}


def test_bug_38_and_39_user_libraries_that_are_not_the_loaded_modules_are_a_problem() -> None:
    report = parse_query(MISMATCH, ("index",), 18)
    assert report.problem is not None
    assert "reboot" in report.problem.cause
    assert parse_query("0\n", ("index",)).problem is None


@given(st.integers(0, 99), st.floats(0, 2000), st.booleans())
def test_rows_are_read_back(index: int, watts: float, persistence: bool) -> None:
    said = "Enabled" if persistence else "Disabled"
    gpu = one(f"{index}, {watts:.2f}, {said}", "index", "power.limit", "persistence_mode")
    assert (gpu.index, gpu.power_limit_w, gpu.persistence) == (
        index,
        float(f"{watts:.2f}"),
        persistence,
    )


@given(st.lists(st.sampled_from(LINES) | st.text()), st.sampled_from([0, 1, 9, 127]))
def test_nothing_but_a_value_error_is_raised(lines: list[str], rc: int) -> None:
    for fields in ((), ("index", "name")):
        try:
            found = parse_query("\n".join(lines), fields, rc)
        except ValueError:
            continue
        assert found.problem is None or not found.gpus
