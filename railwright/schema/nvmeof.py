"""NVMe over Fabrics: volumes on other machines, and what a host has once for all of them."""

from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, model_validator

from railwright.schema.base import Finding, Spec, reject, word
from railwright.schema.mounted import Mounted, Secret
from railwright.schema.rails import RailNumber

if TYPE_CHECKING:
    Nqn = str
    Uuid = str
    Nguid = str
    Eui64 = str
else:
    # 223 bytes. Source: NVM Express Base Specification 2.0, 4.5, and NVMF_NQN_SIZE.
    Nqn = word(
        r"nqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.:_-]{1,211}",
        "an NQN of at most 223 characters, such as nqn.2014-08.org.example:volume1",
    )
    Uuid = word(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "a UUID in lower case, such as 0a0b0c0d-0102-0304-0506-0708090a0b0c",
    )
    Nguid = word(r"[0-9a-f]{32}", "an NGUID: 32 of 0-9 and a-f")
    Eui64 = word(r"[0-9a-f]{16}", "an EUI-64: 16 of 0-9 and a-f")

IoPolicy = Literal["numa", "round-robin", "queue-depth"]


class NvmeofSpec(Spec):
    """What a host of NVMe over Fabrics has once."""

    host_nqn: Nqn | None = Field(
        default=None,
        description="Its name to targets (/etc/nvme/hostnqn). Null keeps the one that is there, "
        "and makes one where none is; it must differ between nodes.",
    )
    host_id: Uuid | None = Field(
        default=None,
        description="Its identifier (/etc/nvme/hostid), likewise. One identifier with two names "
        "is refused by Linux 6.6 and later.",
    )
    iopolicy: IoPolicy | None = Field(
        default=None,
        description="Which path of several IO takes: that of the nearest NUMA node, each in turn, "
        "or the least busy (Linux 6.11). Null leaves the kernel's.",
    )
    multipath: StrictBool | None = Field(
        default=None,
        description="Whether the kernel itself makes one drive of several paths; null leaves "
        "it alone. It is written as the parameter multipath of nvme_core.",
    )


class NvmeofPortal(Spec):
    """One address of a target."""

    address: IPv4Address | IPv6Address = Field(description="Address of the target.")
    port: Annotated[StrictInt, Field(ge=1, le=65535)] = Field(
        default=4420, description="Port of the target's subsystem."
    )
    rail: RailNumber | None = Field(
        default=None,
        description="Rail that it is reached by: connections leave from that rail's address.",
    )

    def __str__(self) -> str:
        host = str(self.address) if self.address.version == 4 else f"[{self.address}]"
        return f"{host}:{self.port}"


class NvmeofNamespace(Spec):
    """Which namespace of a subsystem, by the one identifier that is given."""

    uuid: Uuid | None = Field(default=None, description="Its UUID.")
    nguid: Nguid | None = Field(default=None, description="Its NGUID.")
    eui64: Eui64 | None = Field(default=None, description="Its EUI-64.")
    nsid: Annotated[StrictInt, Field(ge=1, le=2**32 - 2)] | None = Field(
        default=None,
        description="Its number, which a target may give to another one: prefer the others.",
    )

    @model_validator(mode="after")
    def _one(self) -> "NvmeofNamespace":
        given = self.model_dump(exclude_none=True)
        if len(given) != 1:
            reject([Finding((), given or None, "one of uuid, nguid, eui64, nsid")])
        return self

    @property
    def kind(self) -> str:
        return next(iter(self.model_dump(exclude_none=True)))

    @property
    def value(self) -> str:
        return str(getattr(self, self.kind))


class NvmeofVolume(Mounted):
    """A namespace of a subsystem over a fabric, and the file system on it.

    It is this node's alone: ext4 and xfs on two nodes at once destroy what is on them.
    """

    kind: Literal["nvmeof"] = Field(default="nvmeof", description="NVMe over Fabrics.")
    transport: Literal["rdma", "tcp"] = Field(description="How the target is reached.")
    nqn: Nqn = Field(description="Name of the subsystem.")
    portals: Annotated[tuple[NvmeofPortal, ...], Field(min_length=1, max_length=64)] = Field(
        description="Addresses of the target, each a path of its own."
    )
    namespace: NvmeofNamespace = Field(description="Which namespace of the subsystem.")
    io_queues: Annotated[StrictInt, Field(ge=1, le=1024)] | None = Field(
        default=None,
        description="Queues of each path; null is one for each processor. The kernel takes no "
        "more than there are processors, nor more than the target grants.",
    )
    keep_alive_s: Annotated[StrictInt, Field(ge=1, le=3600)] | None = Field(
        default=None, description="Seconds between signs of life; null is the kernel's 5."
    )
    reconnect_delay_s: Annotated[StrictInt, Field(ge=1, le=3600)] = Field(
        default=10, description="Seconds between attempts to reach a target that is away."
    )
    ctrl_loss_s: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | Literal["never"] = Field(
        default=1800,
        description="Seconds that a target may be away before its paths are given up, and IO on "
        "the file system fails; 'never' waits for ever. It must outlast the target's reboot: the "
        "kernel's 600 do not where a server checks its memory.",
    )
    tos: Annotated[StrictInt, Field(ge=0, le=255)] | None = Field(
        default=None,
        description="ToS byte (DSCP × 4 and the ECN bits); null takes that of RDMA connections of "
        "the device, which fabric.qos sets.",
    )
    host_key: Secret | None = Field(
        default=None,
        description="This host's DH-HMAC-CHAP key, in the form DHHC-1:00:...: that nvme "
        "gen-dhchap-key prints.",
    )
    controller_key: Secret | None = Field(
        default=None, description="The target's key, where it has to prove itself too."
    )
    filesystem: Literal["ext4", "xfs"] = Field(default="ext4", description="The file system on it.")
    format: Literal["never", "if_blank"] = Field(
        default="never",
        description="Whether the file system is made, once, where nothing at all is found on the "
        "namespace. Whatever holds something is never formatted.",
    )

    def model_post_init(self, _: Any) -> None:
        self.__pydantic_fields_set__.add("kind")

    @model_validator(mode="after")
    def _fits(self) -> "NvmeofVolume":
        found = []
        seen: set[tuple[str, int]] = set()
        for number, portal in enumerate(self.portals):
            place = (str(portal.address), portal.port)
            if place in seen:
                found.append(Finding(("portals", str(number)), str(portal), "each portal once"))
            seen.add(place)
        if self.controller_key is not None and self.host_key is None:
            expected = "host_key beside it: the target proves itself only to a host that does"
            found.append(Finding(("controller_key",), str(self.controller_key), expected))
        loss = self.ctrl_loss_s
        if loss != "never" and loss < self.reconnect_delay_s:
            expected = f"reconnect_delay_s {self.reconnect_delay_s} at least, or 'never'"
            found.append(Finding(("ctrl_loss_s",), loss, expected))
        reject(found)
        return self
