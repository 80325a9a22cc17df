"""The fabric that the rails form: RoCE with its lossless QoS, or InfiniBand."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt

from railwright.schema.base import Spec

Priority = Annotated[int, Field(ge=0, le=7)]
Dscp = Annotated[StrictInt, Field(ge=0, le=63)]
# A class with 0 % is served only when no other has anything to send.
Percent = Annotated[StrictInt, Field(ge=1, le=100)]


class RoceQos(Spec):
    """Lossless RoCE as both ends of a link must have it.

    The defaults are what NVIDIA's Cumulus and Onyx set by ``roce lossless``: RoCE on DSCP 26 and
    priority 3 with PFC and ECN, CNP on DSCP 48 and priority 6, the rest lossy.
    """

    trust: Literal["dscp", "pcp"] = Field(
        default="dscp", description="What of a packet decides its priority."
    )
    roce_dscp: Dscp = Field(default=26, description="DSCP of RoCE data.")
    cnp_dscp: Dscp = Field(default=48, description="DSCP of congestion notifications.")
    cnp_priority: Priority = Field(default=6, description="Priority of congestion notifications.")
    lossless: frozenset[Priority] = Field(
        default=frozenset({3}), description="Priorities with PFC; a NIC has buffers for few."
    )
    dscp_to_priority: dict[Annotated[int, Field(ge=0, le=63)], Priority] = Field(
        default={},
        description="DSCP to priority, where it is another than dscp >> 3 (the NIC's own map).",
    )
    ecn: frozenset[Priority] = Field(
        default=frozenset({3}), description="Priorities with ECN (DCQCN), both NP and RP."
    )
    ets_percent: dict[Priority, Percent] = Field(
        default={0: 50, 3: 50},
        description="Priority to its share of the link, and a traffic class of its own; "
        "priorities neither here nor in strict have the class of priority 0.",
    )
    strict: frozenset[Priority] = Field(
        default=frozenset({6}), description="Priorities served before all others."
    )
    traffic_class: Annotated[StrictInt, Field(ge=0, le=255)] = Field(
        default=106,
        description="ToS byte of RoCE packets: DSCP × 4, and the two ECN bits (2 is ECT(0)).",
    )
    # mlx5 passes over 1000 m and more. Source: en_dcbnl.c, MLX5E_MAX_CABLE_LENGTH.
    cable_length_m: Annotated[StrictInt, Field(ge=1, le=999)] | None = Field(
        default=None, description="Length of the cable in m: the headroom in buffer_bytes' buffers."
    )
    buffer_bytes: dict[Priority, Annotated[StrictInt, Field(ge=0)]] = Field(
        default={}, description="Receive buffer (0 to 7) to its bytes; empty leaves them alone."
    )
    priority_to_buffer: dict[Priority, Priority] = Field(
        default={}, description="Priority to its receive buffer; the others are in buffer 0."
    )
    backend: Literal["inbox", "nvidia"] = Field(
        default="inbox",
        description="Kernel interfaces alone, or those that NVIDIA's driver adds to them too.",
    )
    ecn_in_firmware: StrictBool = Field(
        default=True,
        description="With the inbox backend the firmware's mask decides ECN; false leaves it out.",
    )

    def priority_of(self, dscp: int) -> int:
        """The priority of packets with ``dscp``."""
        return self.dscp_to_priority.get(dscp, dscp >> 3)


class _Kind(Spec):
    """A branch of the fabric. Its ``kind`` counts as given: merging keeps what was given."""

    def model_post_init(self, _: Any) -> None:
        self.__pydantic_fields_set__.add("kind")


class RoceFabric(_Kind):
    """RoCE v2 over Ethernet."""

    kind: Literal["roce"] = Field(default="roce", description="RoCE.")
    qos: RoceQos = Field(default=RoceQos(), description="Lossless QoS.")


class Opensm(Spec):
    """OpenSM run on this node, for fabrics whose switches have no subnet manager."""

    priority: Annotated[StrictInt, Field(ge=0, le=15)] = Field(
        default=14, description="Of several subnet managers the one with the highest is master."
    )
    routing_engine: Literal["minhop", "updn", "ftree", "lash", "dor", "torus-2QoS"] = Field(
        default="ftree", description="Routing; a rail-optimised tree is a fat tree."
    )


class InfinibandFabric(_Kind):
    """InfiniBand."""

    kind: Literal["infiniband"] = Field(default="infiniband", description="InfiniBand.")
    pkeys: frozenset[Annotated[int, Field(ge=0x1, le=0x7FFF)]] = Field(
        default=frozenset(),
        description="Partitions (without the membership bit) that each rail must be in.",
    )
    mtu: Literal[2048, 4096] = Field(default=4096, description="MTU that a port must have.")
    ipoib_mode: Literal["datagram", "connected"] | None = Field(
        default=None, description="IPoIB mode of each rail's interface; null leaves it alone."
    )
    opensm: Opensm | None = Field(default=None, description="OpenSM on this node; null has none.")


def _named(value: object) -> object:
    """``fabric = "roce"`` is the fabric with its defaults."""
    return {"kind": value} if isinstance(value, str) else value


Fabric = Annotated[
    RoceFabric | InfinibandFabric, Field(discriminator="kind"), BeforeValidator(_named)
]


FabricKind = Literal["roce", "infiniband"]


def fabric_kind(value: object) -> FabricKind | None:
    """The kind of a fabric, validated or as a mapping that was merged from its layers."""
    if isinstance(value, Mapping):
        return value.get("kind")
    return getattr(value, "kind", None)
