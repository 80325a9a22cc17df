"""The NVIDIA module that is loaded, as /proc/driver/nvidia/version and params tell it.

Formats: nv-procfs.c, and the banner of nv-frontend/nvidia.ko (NVRM_ID) of open-gpu-kernel-modules.
"""

import re
from typing import Literal

from railwright.model import Model

Flavour = Literal["open", "proprietary"]

# What NVreg_X is called in /proc/driver/nvidia/params where it is not X.
# Source: open-gpu-kernel-modules, nv-reg.h.
_NAMES = {"RmProfilingAdminOnly": "NVreg_RestrictProfilingToAdminUsers"}


class NvidiaModule(Model):
    """The loaded driver; ``version`` is as nvidia-smi's ``driver_version`` (580.95.05)."""

    version: str
    flavour: Flavour

    @property
    def branch(self) -> int:
        """The branch, 580."""
        return int(self.version.partition(".")[0])


_VERSION = re.compile(
    r"^NVRM version: NVIDIA UNIX (?P<open>Open )?(?:[\w-]+ )?Kernel Module"
    r"(?: for [\w-]+)? +(?P<version>[0-9]+(?:\.[0-9]+)+)(?:\s|$)",
    re.MULTILINE,
)


def parse_nvidia_version(text: str) -> NvidiaModule:
    """Read /proc/driver/nvidia/version. Raises ValueError for another text.

    The proprietary module says ``NVIDIA UNIX x86_64 Kernel Module  550.90.07``, the open one
    ``NVIDIA UNIX Open Kernel Module for x86_64  580.95.05``.
    """
    found = _VERSION.search(text)
    if found is None:
        raise ValueError(f"expected NVRM version: of the NVIDIA module, got {text.strip()[:80]!r}")
    return NvidiaModule(
        version=found["version"], flavour="open" if found["open"] else "proprietary"
    )


def parse_nvidia_params(text: str) -> dict[str, str]:
    """Read /proc/driver/nvidia/params: values by the names that modprobe takes (NVreg_X).

    Raises ValueError for a line that is not ``NAME: VALUE``.
    """
    found = {}
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = line.partition(": ")
        if not colon or not re.fullmatch(r"\w+", name):
            raise ValueError(f"expected a parameter of the NVIDIA module, got {line[:80]!r}")
        found[_NAMES.get(name, f"NVreg_{name}")] = value.strip().strip('"')
    return found


def registry_dwords(value: str) -> dict[str, str]:
    """The keys in NVreg_RegistryDwords (``a=1;b=2;``), the last of a key as the driver takes it.

    Raises ValueError for a part without ``=``.
    """
    found = {}
    for part in filter(None, map(str.strip, value.split(";"))):
        key, equals, said = part.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"expected KEY=VALUE of NVreg_RegistryDwords, got {part[:60]!r}")
        found[key.strip()] = said.strip()
    return found
