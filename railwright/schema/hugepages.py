"""Huge pages per size and NUMA node."""

from typing import Annotated, Literal

from pydantic import Field, StrictInt, field_validator

from railwright.schema.base import Finding, RefusedError, Spec

PageSize = Literal["2M", "1G"]
PAGE_KIB: dict[PageSize, int] = {"2M": 2048, "1G": 1024 * 1024}
NumaNode = Annotated[int, Field(ge=0, le=1023)]
PageCount = Annotated[StrictInt, Field(ge=0)]


class HugepagePool(Spec):
    """Pages of one size."""

    per_node: dict[NumaNode, PageCount] = Field(
        description="NUMA node to number of pages. Reserved pages are lost to the page cache."
    )
    allocate: Literal["boot", "runtime"] = Field(
        default="boot",
        description="'boot' reserves by kernel arguments (Linux 5.16 or later, sure to succeed), "
        "'runtime' by a unit early at boot, which can fall short.",
    )

    @field_validator("per_node")
    @classmethod
    def _not_empty(cls, per_node: dict[int, int]) -> dict[int, int]:
        if not per_node:
            raise RefusedError([Finding((), {}, "at least one NUMA node, such as {0: 1024}")])
        return per_node


class HugepagesSpec(Spec):
    """Huge pages, for DPDK, SPDK, WEKA; NCCL, PyTorch, Lustre and BeeGFS need none."""

    pools: dict[PageSize, HugepagePool] = Field(
        default={}, description="Page size (2M or 1G) to its pool."
    )
