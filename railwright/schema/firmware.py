"""Settings in the NVRAM of the rails' NICs, and what is known of them.

What a key does, which values are accepted for it, and what it takes until a new value is in force
is data below, each with its reason and source.
"""

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StrictInt, model_validator

from railwright.model import Model
from railwright.schema.base import Finding, Spec, reject, word
from railwright.settings import Effect

if TYPE_CHECKING:
    KeyName = str
    ValueName = str
else:
    # Arrays are set by element: KEY[3].
    KeyName = word(r"[A-Z][A-Za-z0-9_]*(\[[0-9]+\])?", "a key of mlxconfig, such as LINK_TYPE_P1")
    ValueName = word(r"[A-Za-z_][A-Za-z0-9_]*", "a number, or a value's name such as ETH")

_SWITCH = {"False": 0, "True": 1}
_OPERATOR = "Mellanox/nic-configuration-operator, pkg/configuration"


class KnownKey(Model):
    """A key of mlxconfig; where ``per_port``, it ends in _P1, _P2 for each port of the card.

    ``accepted`` are the values that are taken, ``names`` what the tool calls numbers. ``effect``
    is the least that brings a new value into force; a reboot does what a firmware reset does.
    """

    name: str
    accepted: frozenset[int]
    names: dict[str, int] = Field(default={})
    per_port: bool = False
    effect: Effect = Effect.FIRMWARE_RESET
    why: str
    source: str


def _key(
    name: str,
    accepted: range | tuple[int, ...],
    why: str,
    source: str,
    *,
    names: dict[str, int] | None = None,
    per_port: bool = False,
    effect: Effect = Effect.FIRMWARE_RESET,
) -> KnownKey:
    return KnownKey(
        name=name,
        accepted=frozenset(accepted),
        names=names or {},
        per_port=per_port,
        effect=effect,
        why=why,
        source=source,
    )


_BARS = "the firmware of the host gives out PCI resources at boot"
_MFT = "NVIDIA MFT documentation, mlxconfig"

KNOWN = (
    _key(
        "LINK_TYPE",
        (1, 2),
        "the protocol of the port; absent on cards that have but one",
        _MFT,
        names={"IB": 1, "ETH": 2},
        per_port=True,
    ),
    _key("SRIOV_EN", (0, 1), _BARS, _MFT, names=_SWITCH, effect=Effect.REBOOT),
    _key("NUM_OF_VFS", range(1024), _BARS, _MFT, effect=Effect.REBOOT),
    _key(
        "ADVANCED_PCI_SETTINGS",
        (0, 1),
        "shows the PCI keys, which are hidden otherwise",
        _OPERATOR,
        names=_SWITCH,
    ),
    _key(
        "MAX_ACC_OUT_READ",
        (0,),
        "0 lets the firmware choose; the 44 and 128 of old guides are deprecated",
        _OPERATOR,
        effect=Effect.REBOOT,
    ),
    _key(
        "PCI_WR_ORDERING",
        (0, 1),
        "0: relaxed ordering as each memory region asks for it, which NCCL does",
        "NVIDIA/nccl, NCCL_IB_PCI_RELAXED_ORDERING",
        names={"per_mkey": 0, "force_relax": 1},
        effect=Effect.REBOOT,
    ),
    _key(
        "ATS_ENABLED",
        (0,),
        "on bare metal address translation of the NIC's own only costs; it is for VMs with ACS",
        f"{_OPERATOR} (gpuDirectOptimized, Baremetal)",
        names=_SWITCH,
        effect=Effect.REBOOT,
    ),
    _key("ROCE_CC_PRIO_MASK", range(256), "priorities with ECN, by bit", _OPERATOR, per_port=True),
    _key("CNP_DSCP", range(64), "DSCP of congestion notifications", _OPERATOR, per_port=True),
    _key("CNP_802P_PRIO", range(8), "priority of the same", _OPERATOR, per_port=True),
    _key(
        "LLDP_NB_DCBX",
        (0,),
        "a NIC that speaks DCBX itself puts its peer's QoS over that of the host",
        _MFT,
        names=_SWITCH,
        per_port=True,
    ),
    _key(
        "DCBX_WILLING",
        (0,),
        "a willing NIC takes its peer's QoS for that of the host",
        _MFT,
        names=_SWITCH,
        per_port=True,
    ),
    _key("LLDP_NB_RX_MODE", range(3), "which LLDP frames it takes", _MFT, per_port=True),
    _key("LLDP_NB_TX_MODE", range(3), "which LLDP frames it sends", _MFT, per_port=True),
    _key("DCBX_IEEE", (0, 1), "DCBX of IEEE", _MFT, names=_SWITCH, per_port=True),
    _key("DCBX_CEE", (0, 1), "DCBX before IEEE", _MFT, names=_SWITCH, per_port=True),
    _key(
        "KEEP_ETH_LINK_UP",
        (0, 1),
        "0: the link is down while no driver runs",
        _MFT,
        names=_SWITCH,
        per_port=True,
    ),
    _key("KEEP_IB_LINK_UP", (0, 1), "as KEEP_ETH_LINK_UP", _MFT, names=_SWITCH, per_port=True),
    _key("ROCE_ADAPTIVE_ROUTING_EN", (0, 1), "for Spectrum-X switches", _OPERATOR, names=_SWITCH),
    _key("USER_PROGRAMMABLE_CC", (0, 1), "for Spectrum-X switches", _OPERATOR, names=_SWITCH),
    _key(
        "INTERNAL_CPU_OFFLOAD_ENGINE",
        (0, 1),
        "1 makes a BlueField a plain NIC; its own processor starts with the power alone",
        "NVIDIA BlueField DPU documentation, modes of operation",
        names={"ENABLED": 0, "DISABLED": 1},
        effect=Effect.COLD_CYCLE,
    ),
    _key(
        "INTERNAL_CPU_MODEL",
        (0, 1),
        "as INTERNAL_CPU_OFFLOAD_ENGINE",
        "NVIDIA BlueField DPU documentation, modes of operation",
        names={"SEPARATED_HOST": 0, "EMBEDDED_CPU": 1},
        effect=Effect.COLD_CYCLE,
    ),
)

_BY_NAME = {known.name: known for known in KNOWN}


def known_key(key: str) -> KnownKey | None:
    """What is known of ``key`` (``CNP_DSCP_P1``), None where nothing is."""
    port = re.fullmatch(r"(.+)_P[0-9]+", key)
    known = _BY_NAME.get(port[1] if port else key)
    return known if known is not None and known.per_port == bool(port) else None


def number_of(key: str, value: int | str) -> int | None:
    """The number that ``value`` stands for, None where only the NIC's tool knows its name."""
    if isinstance(value, int):
        return value
    known = known_key(key)
    names = {} if known is None else {name.lower(): n for name, n in known.names.items()}
    return names.get(value.lower())


def effect_of(key: str) -> Effect:
    """The least that brings a new value of ``key`` into force; a reboot for one not known."""
    known = known_key(key)
    return Effect.REBOOT if known is None else known.effect


def ports_with(keys: dict[str, int | str], name: str) -> dict[str, int | str]:
    """Those of ``keys`` that are ``name`` of some port (CNP_DSCP: CNP_DSCP_P1, CNP_DSCP_P2)."""
    return {k: v for k, v in sorted(keys.items()) if re.fullmatch(rf"{name}_P[0-9]+", k)}


class FirmwareSpec(Spec):
    """Keys in the NVRAM of every rail's NIC; what is not named is left alone."""

    keys: dict[KeyName, Annotated[StrictInt, Field(ge=0, le=2**32 - 1)] | ValueName] = Field(
        default={}, description="Key of mlxconfig to its value, a number or its name."
    )
    tool: Literal["auto", "mlxconfig", "mstconfig"] = Field(
        default="auto",
        description="Tool on the node; auto takes NVIDIA's mlxconfig, else mstflint's mstconfig.",
    )

    @model_validator(mode="after")
    def _values_are_accepted(self) -> "FirmwareSpec":
        findings = [
            Finding(("keys", key), value, found)
            for key, value in sorted(self.keys.items())
            if (found := _refused(key, value)) is not None
        ]
        reject(findings)
        return self


def _refused(key: str, value: int | str) -> str | None:
    known = known_key(key)
    if known is None:
        bare = re.sub(r"_P[0-9]+$", "", key)
        if bare in _BY_NAME:
            return f"{bare} with the port at its end" if bare == key else f"{bare} without a port"
        return None
    if number_of(key, value) in known.accepted:
        return None
    names = {number: name for name, number in known.names.items()}
    low, high = min(known.accepted), max(known.accepted)
    values = (
        f"{low} to {high}"
        if len(known.accepted) > 4
        else " or ".join(
            f"{number} ({names[number]})" if number in names else str(number)
            for number in sorted(known.accepted)
        )
    )
    return f"{values}: {known.why} ({known.source})"
