"""Releases that the stand-ins are of, and what the marks of each part stand for in them."""

from typing import NamedTuple

from tests.standins.marks import Marks


class OfedRelease(NamedTuple):
    """DOCA-Host ``doca``, in whose repository the packages of OFED have version ``ofed``."""

    doca: str
    build: str
    ofed: str
    tools: str

    @property
    def dkms(self) -> str:
        """Version of the DKMS module mlnx-ofed-kernel: a packaging of the release's sources."""
        return f"{self.scripts}.1"

    @property
    def scripts(self) -> str:
        year, _, rest = self.ofed.partition("-")
        return f"{year}.OFED.{year}.{rest}"

    @property
    def marks(self) -> Marks:
        return Marks(self.dkms, self.ofed)


# What ofed_info -s says of each: https://docs.daos.io/v2.8 (supported DOCA-OFED). Names of files:
# doca-host_3.2.0-125000-25.10-*.deb, doca-host_3.2.1-044000-25.10-*.deb. Form of the versions:
# ofed-scripts_24.10.OFED.24.10.2.1.8-1, mlnx-ofed-kernel-dkms_24.10.OFED.24.10.1.1.4.1-1,
# mlnx-tools_24.10-0.2410068 (install logs of MLNX_OFED 24.10).
# From 3.2.0 on NVIDIA has sources of the modules alone.
OFED = (
    OfedRelease("3.2.0", "125000", "25.10-1.2.8", "25.10-0.2510128"),
    OfedRelease("3.2.1", "044000", "25.10-1.7.1", "25.10-0.2510171"),
)

# Patch releases of one branch (https://docs.nvidia.com/datacenter/tesla, release notes of R580).
DRIVERS = ("580.95.05", "580.105.08")

NVIDIA_FS = ("2.26.6", "2.27.3")
"""Of CUDA 13.0 and 13.1. The former builds for no kernel without CONFIG_MEMORY_FAILURE, such as
Debian 12's cloud kernels: a fault that only this stand-in has."""

CUFILE = "1.15.1.6"
CUDA = "13.0"
CUDA_PACKAGE = "13.0.2-1"
CUDA_CONFIG = "13.0.96-1"


def driver_marks(version: str) -> Marks:
    return Marks(version, version.partition(".")[0])


def fs_marks(version: str) -> Marks:
    return Marks(version, version.rpartition(".")[0])


CUFILE_MARKS = Marks(CUFILE, CUDA)
