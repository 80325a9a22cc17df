"""The NVIDIA module that is loaded, by its files under /proc."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nvidia_proc import parse_nvidia_params, parse_nvidia_version, registry_dwords

OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  "
    "(dvs-builder@U22)  Tue Sep 23 09:55:41 UTC 2025\nGCC version:  gcc version 11.4.0\n"
)
CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.135  Fri Jan 10 20:00:00 UTC 2025\n"
    "GCC version:  gcc version 12.2.0\n"
)
PARAMS = 'EnableStreamMemOPs: 0\nRmProfilingAdminOnly: 1\nRegistryDwords: "a=1;b=2;"\nRmMsg: ""\n'


@pytest.mark.parametrize(
    ("text", "version", "flavour", "branch"),
    [
        (OPEN, "580.95.05", "open", 580),
        (CLOSED, "550.135", "proprietary", 550),
        (OPEN.replace("x86_64", "aarch64"), "580.95.05", "open", 580),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module  570.86.15  Release Build\n",
            "570.86.15",
            "open",
            570,
        ),
    ],
)
def test_version_and_flavour(text: str, version: str, flavour: str, branch: int) -> None:
    found = parse_nvidia_version(text)
    assert (found.version, found.flavour, found.branch) == (version, flavour, branch)


def test_parameters_have_the_names_that_modprobe_takes() -> None:
    assert parse_nvidia_params(PARAMS) == {
        "NVreg_EnableStreamMemOPs": "0",
        "NVreg_RestrictProfilingToAdminUsers": "1",
        "NVreg_RegistryDwords": "a=1;b=2;",
        "NVreg_RmMsg": "",
    }


def test_registry_keys() -> None:
    assert registry_dwords("RMForceStaticBar1=1;RmForceDisableIomapWC=1;") == {
        "RMForceStaticBar1": "1",
        "RmForceDisableIomapWC": "1",
    }
    assert registry_dwords("") == {}


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_nvidia_version, ""),
        (parse_nvidia_version, "NVRM version: NVIDIA UNIX Kernel Module  new\n"),
        (parse_nvidia_params, "no colon\n"),
        (registry_dwords, "alone"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match="expected"):
        parse(text)


@given(st.dictionaries(st.from_regex(r"[A-Z]\w{0,9}", fullmatch=True), st.integers(0, 9)))
def test_registry_keys_are_read_back(keys: dict[str, int]) -> None:
    text = ";".join(f"{key}={value}" for key, value in keys.items())
    assert registry_dwords(text) == {key: str(value) for key, value in keys.items()}


@given(st.text() | st.lists(st.sampled_from((OPEN + CLOSED + PARAMS).splitlines())).map("\n".join))
def test_nothing_but_a_value_error_is_raised(text: str) -> None:
    for parse in (parse_nvidia_version, parse_nvidia_params, registry_dwords):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert found is not None
