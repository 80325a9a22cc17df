"""The PCIe path between GPUs, NICs and NVMe drives."""

from typing import Literal

from pydantic import Field, StrictBool

from railwright.schema.base import Spec

ReadRequest = Literal[128, 256, 512, 1024, 2048, 4096]
"""Sizes in bytes that a function can be given. Source: PCIe base specification, Device Control."""


class PcieSpec(Spec):
    """The PCIe path on nodes that have rails; what is null is not looked at."""

    acs: Literal["clear", "keep"] | None = Field(
        default=None,
        description="'clear' takes the bits that redirect peer traffic to the root complex off "
        "the bridges between GPUs, rail NICs and NVMe drives (NCCL user guide, troubleshooting); "
        "'keep' shows them and leaves them: SR-IOV and VFIO isolate guests by them.",
    )
    acs_in_vm: StrictBool = Field(
        default=False,
        description="Clear in a virtual machine too; its host isolates it by ACS, so only where "
        "its bridges are its own.",
    )
    max_read_request_bytes: ReadRequest | None = Field(
        default=None,
        description="MaxReadReq of the rail NICs. NVIDIA's nic-configuration-operator sets 4096: "
        "each read of 512, the usual default, is a request of its own to wait for.",
    )
    relaxed_ordering: Literal[True] | None = Field(
        default=None,
        description="The rail NICs must have relaxed ordering: 16 in place of 40 GB/s without it "
        "(openucx/ucx#10955), 150 of 200 Gb/s (#8062). Checked, never set: the kernel takes it "
        "away below root ports that reorder wrongly.",
    )
    iommu: Literal["passthrough"] | None = Field(
        default=None,
        description="No IOMMU translates what GPUs and rail NICs read and write "
        "(NVIDIA/nccl#1737). Checked here, set by kernel.arguments iommu.",
    )
    links: Literal["full"] | None = Field(
        default=None,
        description="Links of GPUs and rail NICs are as wide, and those of NICs as fast, as device "
        "and slot allow and as their siblings' are (NVIDIA/NVSentinel#890).",
    )
    affinity: Literal["nearest"] | None = Field(
        default=None,
        description="No rail is nearer to the GPU of a rail (rails.nics.N.gpu) than that rail, and "
        "none is across sockets; as many GPUs as rails.gpus are on PCIe.",
    )
