"""GPUDirect Storage: which way IO takes, and what libcufile is told."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from railwright.schema.base import word
from railwright.schema.cufile import CufileSpec
from railwright.schema.repositories import Packaged

if TYPE_CHECKING:
    NvidiaFsVersion = str
else:
    NvidiaFsVersion = word(r"[0-9]+\.[0-9]+\.[0-9]+", "an exact version, such as 2.29.4")


class GdsSpec(Packaged):
    """GPUDirect Storage of a node."""

    mode: Literal["auto", "nvidia-fs", "p2pdma"] | None = Field(
        default=None,
        description="The way that IO takes: nvidia-fs, or the kernel's P2PDMA; 'auto' takes P2PDMA "
        "where driver, kernel, distribution and drives allow it. Null is not looked at.",
    )
    version: NvidiaFsVersion | None = Field(
        default=None, description="nvidia-fs's exact version; none with p2pdma."
    )
    cufile: CufileSpec = Field(default=CufileSpec(), description="Content of /etc/cufile.json.")
