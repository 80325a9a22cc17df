"""What nvidia-smi says when it cannot answer, and why.

It says so on standard output, where it could be taken for a row. Exit codes are NVML's
(nvmlReturn_t in nvml.h), but some releases exit with others, so that the words decide.
"""

import re
from typing import Literal

from railwright.model import Model

Error = Literal[
    "not_installed",
    "driver_not_loaded",
    "driver_library_mismatch",
    "library_not_found",
    "no_devices",
    "gpu_lost",
    "reset_required",
    "no_permission",
    "invalid_field",
    "nvml_failed",
    "no_answer",
]


class SmiProblem(Model):
    """Why there is no answer: ``message`` in nvidia-smi's own words, ``cause`` in ours.

    ``nvml_library`` is the version of the user libraries, which newer releases tell of a mismatch
    (without the patch level); ``field`` the one that was not known; ``gpu`` the address at fault.
    """

    error: Error
    message: str
    cause: str
    nvml_library: str | None = None
    field: str | None = None
    gpu: str | None = None


# In this order: a lost GPU is told with more words than the others have.
_SAID: tuple[tuple[str, Error, str], ...] = (
    (
        r"nvidia-smi: (?:command )?not found",
        "not_installed",
        "the driver's user tools are not installed",
    ),
    (
        r"couldn't communicate with the NVIDIA driver",
        "driver_not_loaded",
        "the module nvidia is not loaded: it was not built for this kernel, or failed to load",
    ),
    (
        r"Driver/library version mismatch",
        "driver_library_mismatch",
        "the user libraries were upgraded under the loaded module: load the new one, or reboot",
    ),
    (
        r"couldn't find libnvidia-ml",
        "library_not_found",
        "libnvidia-ml, the driver's user library, is not installed",
    ),
    (
        r"GPU is lost",
        "gpu_lost",
        "a GPU has fallen off the PCI bus: see Xid 79 in the kernel's log; a reboot is needed",
    ),
    (
        r"GPU requires reset",
        "reset_required",
        "a GPU asks for a reset before it can be used again",
    ),
    (
        r"Insufficient Permissions",
        "no_permission",
        "the caller may not open the device files of the GPU",
    ),
    (
        r'Field "[^"]*" is not a valid field',
        "invalid_field",
        "this release does not know a field, and then answers none: nvidia-smi --help-query-gpu",
    ),
    (
        r"No devices were found",
        "no_devices",
        "the module is loaded and no GPU is bound to it: see NVRM in the kernel's log",
    ),
    (
        r"Unable to determine the device handle",
        "gpu_lost",
        "a GPU does not answer: see Xid in the kernel's log; a reset or a reboot is needed",
    ),
    (
        r"Failed to initialize NVML",
        "nvml_failed",
        "NVML cannot be initialised: in a container the device files may be gone from its cgroup",
    ),
)
NO_ANSWER = SmiProblem(
    error="no_answer",
    message="",
    cause="nvidia-smi hangs, as it does where a GPU does not answer: see Xid in the kernel's log",
)
"""For a call that ran past its deadline."""

_LIBRARY = re.compile(r"NVML library version: ([0-9.]+)")
_FIELD = re.compile(r'Field "([^"]*)"')
_ADDRESS = re.compile(r"GPU ?(?:[0-9]+: )?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")


def find_problem(text: str, rc: int) -> SmiProblem | None:
    """The problem that ``text`` tells of; None where it tells of none that is known."""
    for words, error, cause in _SAID:
        said = next((line for line in text.splitlines() if re.search(words, line)), None)
        if said is not None or (rc == 127 and error == "not_installed"):
            library, field, gpu = _LIBRARY.search(text), _FIELD.search(text), _ADDRESS.search(text)
            return SmiProblem(
                error=error,
                message=(said or text.strip()).strip()[:200],
                cause=cause,
                nvml_library=library[1] if library else None,
                field=field[1] if field else None,
                gpu=gpu[1] if gpu else None,
            )
    return None
