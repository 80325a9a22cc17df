"""Rails: the NICs of a node, one on each network plane, and the addresses of those planes."""

import re
from collections import Counter
from ipaddress import IPv4Interface, IPv4Network
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, StrictInt, model_validator

from railwright.schema.base import Finding, Spec, reject, word

MAX_RAILS = 64

if TYPE_CHECKING:
    MacAddress = str
    Guid = str
    RdmaDevice = str
    NameTemplate = str
else:
    MacAddress = word(
        r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", "a MAC address in lower case, such as b8:3f:d2:00:00:01"
    )
    Guid = word(
        r"[0-9a-f]{4}(:[0-9a-f]{4}){3}", "a node GUID, such as b83f:d203:0000:0001 (ibstat: 0x...)"
    )
    RdmaDevice = word(r"[a-z][A-Za-z0-9_]{0,62}", "an RDMA device, such as mlx5_0")
    # IFNAMSIZ leaves 15 characters.
    NameTemplate = word(
        r"[a-z][a-z0-9]{0,11}\{rail\}", "a name with {rail} at its end, such as rail{rail}"
    )

_PCI = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([01][0-9a-f])\.([0-7])")


def normal_pci(text: str) -> str:
    """A PCI address as sysfs writes it: ``0000:1a:00.0``.

    Tools also write it without the domain (``1a:00.0``), with eight digits of it
    (``00000000:1A:00.0``, nvidia-smi), and in capitals. Raises ValueError for anything else.
    """
    given = text.lower()
    found = _PCI.fullmatch(given if given.count(":") == 2 else f"0000:{given}")
    if found is None:
        raise ValueError(f"expected a PCI address such as 0000:1a:00.0, got {text!r}")
    domain, bus, device, function = found.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}"


def _checked_pci(text: str) -> str:
    try:
        return normal_pci(text)
    except ValueError:
        reject([Finding((), text, "a PCI address such as 0000:1a:00.0")])
        raise


PciAddress = Annotated[str, AfterValidator(_checked_pci)]
RailNumber = Annotated[int, Field(ge=0, lt=MAX_RAILS)]

IDENTITIES = ("pci", "mac", "guid", "rdma_device")


class Rail(Spec):
    """One NIC of a node; its rail is the key that it stands under in ``rails.nics``."""

    pci: PciAddress | None = Field(
        default=None, description="PCI address of the NIC's port: the same on all nodes of a model."
    )
    mac: MacAddress | None = Field(default=None, description="Permanent MAC address of the port.")
    guid: Guid | None = Field(default=None, description="Node GUID of the RDMA device.")
    rdma_device: RdmaDevice | None = Field(
        default=None,
        description="RDMA device; its number follows the probing order, so prefer pci.",
    )
    gpu: Annotated[StrictInt, Field(ge=0, le=63)] | PciAddress | None = Field(
        default=None, description="The GPU it serves: nvidia-smi's index, or its PCI address."
    )
    address: IPv4Interface | None = Field(
        default=None, description="Address with prefix length, in place of the plan's."
    )
    mtu: Annotated[StrictInt, Field(ge=576, le=9978)] | None = Field(
        default=None, description="MTU of the interface, in place of rails.mtu."
    )
    rate_gbps: Annotated[StrictInt, Field(gt=0)] | None = Field(
        default=None, description="Rate of the link in Gb/s, in place of rails.rate_gbps."
    )

    @model_validator(mode="after")
    def _one_identity(self) -> "Rail":
        given = [name for name in IDENTITIES if getattr(self, name) is not None]
        reject(
            [
                Finding((name,), getattr(self, name), f"one of {given[0]} and {name}, not both")
                for name in given[1:]
            ]
        )
        return self


class RailPlan(Spec):
    """The addresses of all rails of a site, from one prefix.

    With ``subnet_per_rail`` rail number r has the r-th subnet of ``rail_prefix_length`` in
    ``prefix``; with ``shared_subnet`` all rails lie in ``prefix``, and host h has the addresses
    h × rails + r. The host with index h has the h-th address after the gateway's.
    """

    prefix: IPv4Network | None = Field(
        default=None, description="The prefix that all rails lie in, such as 10.64.0.0/12."
    )
    layout: Literal["subnet_per_rail", "shared_subnet"] = Field(
        default="subnet_per_rail", description="A subnet for each rail, or one for all."
    )
    rail_prefix_length: Annotated[StrictInt, Field(ge=8, le=30)] | None = Field(
        default=None, description="Prefix length of each rail's subnet, such as 20."
    )
    routed: bool = Field(
        default=True,
        description="The first address of each subnet is a gateway to the other rails' subnets.",
    )
    host_index: Annotated[StrictInt, Field(ge=0)] | None = Field(
        default=None,
        description="The host's index, from 0; default: the number at the end of its name less 1.",
    )
    table_base: Annotated[StrictInt, Field(ge=1, le=2**31)] = Field(
        default=100, description="Rail r has the routing table table_base + r."
    )
    rule_priority: Annotated[StrictInt, Field(ge=1, lt=32766)] = Field(
        default=1000, description="Priority of each rail's routing rule, before the main table's."
    )

    @model_validator(mode="after")
    def _tables_are_free(self) -> "RailPlan":
        # 253 to 255 are the kernel's default, main and local tables.
        if self.table_base <= 255 and self.table_base + MAX_RAILS > 253:
            reject([Finding(("table_base",), self.table_base, "at most 189, or more than 255")])
        return self


class RailsSpec(Spec):
    """The rails of a node; a rail without a NIC here is not looked at."""

    nics: dict[RailNumber, Rail] = Field(default={}, description="Rail number to its NIC.")
    plan: RailPlan = Field(default=RailPlan(), description="Addresses and routes.")
    gpus: Annotated[StrictInt, Field(ge=0, le=64)] | None = Field(
        default=None, description="GPUs of the node; each must have its rail."
    )
    mtu: Annotated[StrictInt, Field(ge=576, le=9978)] = Field(
        default=9000, description="MTU of each rail's interface; RDMA of MTU 4096 needs 4200."
    )
    rate_gbps: Annotated[StrictInt, Field(gt=0)] | None = Field(
        default=None, description="Rate of each rail's link in Gb/s; null is not checked."
    )
    name: NameTemplate | None = Field(
        default="rail{rail}",
        description="Interface name by udev, from the PCI path; null keeps the names.",
    )

    @model_validator(mode="after")
    def _nics_are_distinct(self) -> "RailsSpec":
        reject(
            [
                Finding(
                    ("nics", str(rail), name),
                    getattr(nic, name),
                    f"another one than nics.{first}.{name}",
                )
                for name in (*IDENTITIES, "gpu", "address")
                for rail, nic, first in _repeated(self.nics, name)
            ]
        )
        return self


def _repeated(nics: dict[int, Rail], name: str) -> list[tuple[int, Rail, int]]:
    """Rails whose ``name`` is also that of an earlier one, which comes last in the tuple."""
    given = [(rail, nic) for rail, nic in sorted(nics.items()) if getattr(nic, name) is not None]
    counts = Counter(str(getattr(nic, name)) for _, nic in given)
    found = []
    first: dict[str, int] = {}
    for rail, nic in given:
        value = str(getattr(nic, name))
        if counts[value] > 1 and first.setdefault(value, rail) != rail:
            found.append((rail, nic, first[value]))
    return found
