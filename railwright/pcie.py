"""PCIe functions and the bridges above them."""

from collections.abc import Mapping
from typing import Literal

from railwright.model import Model

Kind = Literal["gpu", "nic", "nvme"]

ACS_BITS = (
    "SrcValid",
    "TransBlk",
    "ReqRedir",
    "CmpltRedir",
    "UpstreamFwd",
    "EgressCtrl",
    "DirectTrans",
)
"""The bits of the ACS control register from bit 0, by lspci's names.

Source: PCIe base specification, ACS Control Register; include/uapi/linux/pci_regs.h.
"""


class AcsControl(Model):
    """The ACS control register of a port: what it does, not what it could do (ACSCap)."""

    register_value: int

    @classmethod
    def of(cls, flags: Mapping[str, bool]) -> "AcsControl":
        """From the flags of lspci's line ACSCtl."""
        on = [bit for bit, name in enumerate(ACS_BITS) if flags.get(name)]
        return cls(register_value=sum(1 << bit for bit in on))

    @property
    def enabled(self) -> tuple[str, ...]:
        return tuple(name for bit, name in enumerate(ACS_BITS) if self.register_value >> bit & 1)


class PcieLink(Model):
    """A link as the device at one of its ends tells of it: GT/s and lanes.

    None where it is not a PCIe device, or does not know.
    """

    speed: float | None
    width: int | None
    max_speed: float | None
    max_width: int | None


class Function(Model):
    """A GPU, NIC or NVMe drive.

    ``bridges`` lead to it from its host bridge ``host`` (``pci0000:16``), the root port first.
    ``numa_node`` is None where the firmware gives none; it is no socket: a socket can be several.
    ``iommu`` is the type of its group's domain (``identity``, ``DMA-FQ``), None without an IOMMU.
    ``device_control`` is the PCIe Device Control register of a NIC; None where it has none, or
    (not ``readable``) where it is not known.
    """

    address: str
    kind: Kind
    device: str
    host: str
    bridges: tuple[str, ...]
    numa_node: int | None
    driver: str | None
    iommu: str | None
    link: PcieLink
    device_control: int | None
    readable: bool = True

    @property
    def read_request_bytes(self) -> int | None:
        return None if self.device_control is None else 128 << (self.device_control >> 12 & 7)

    @property
    def relaxed_ordering(self) -> bool | None:
        return None if self.device_control is None else bool(self.device_control & 0x10)


class Bridge(Model):
    """A port above a function; ``acs`` is None where it has none, or (not ``readable``) unknown."""

    address: str
    link: PcieLink
    acs: AcsControl | None
    readable: bool


class Pcie(Model):
    """The functions of a node by their address, and the bridges above them.

    ``assigned`` are the bridges above functions that vfio-pci drives, with one such function each.
    ``virtual`` names the hypervisor: "none" on bare metal, None where that is not known.
    ``locked_down`` tells whether the kernel refuses writes to config space (Secure Boot).
    """

    functions: dict[str, Function]
    bridges: dict[str, Bridge]
    assigned: dict[str, str]
    virtual: str | None
    locked_down: bool

    def of_kind(self, kind: Kind) -> tuple[Function, ...]:
        """Functions of a kind, by address: the order of nvidia-smi's indices too."""
        return tuple(f for _, f in sorted(self.functions.items()) if f.kind == kind)
