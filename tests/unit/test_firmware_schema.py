"""Which firmware keys and values a site may name, alone and beside the fabric."""

from typing import Any

import pytest
from pydantic import ValidationError

from railwright.schema import FirmwareSpec, InfinibandFabric, Node, RoceFabric, RoceQos
from railwright.schema.firmware import KNOWN, effect_of, known_key, number_of
from railwright.settings import Effect


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"LINK_TYPE_P1": "ETH", "LINK_TYPE_P2": 1},
        {"SRIOV_EN": "False", "NUM_OF_VFS": 0},
        {"SOME_NEW_KEY": 7, "SOME_ARRAY[3]": "DEVICE_DEFAULT"},
        {"CNP_DSCP_P1": 48, "CNP_802P_PRIO_P1": 6, "ROCE_CC_PRIO_MASK_P1": 255},
        {"EXP_ROM_UEFI_x86_ENABLE": 0},
    ],
)
def test_accepted(keys: dict[str, Any]) -> None:
    assert FirmwareSpec(keys=keys).keys == keys


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"LINK_TYPE_P1": "VPI"}, r"1 \(IB\) or 2 \(ETH\)"),
        ({"LINK_TYPE": "ETH"}, "with the port at its end"),
        ({"SRIOV_EN_P1": 1}, "without a port"),
        ({"MAX_ACC_OUT_READ": 44}, "deprecated"),
        ({"ATS_ENABLED": 1}, "bare metal"),
        ({"LLDP_NB_DCBX_P1": 1}, "over that of the host"),
        ({"CNP_DSCP_P1": 64}, "0 to 63"),
        ({"link_type_p1": 1}, "a key of mlxconfig"),
        ({"A; reboot": 1}, "a key of mlxconfig"),
        ({"A_KEY": "x; reboot"}, "a value's name"),
        ({"A_KEY": -1}, "greater than or equal to 0"),
        ({"A_KEY": True}, "valid integer"),
        ({"A_KEY": 1.5}, "valid integer"),
    ],
)
def test_refused(keys: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        FirmwareSpec(keys=keys)


@pytest.mark.parametrize(
    ("fabric", "keys", "expected"),
    [
        (RoceFabric(), {"CNP_DSCP_P1": 4}, "48, as fabric.qos.cnp_dscp says"),
        (RoceFabric(), {"CNP_DSCP_P2": 4}, "48, as fabric.qos.cnp_dscp says"),
        (RoceFabric(), {"CNP_802P_PRIO_P1": 3}, "6, as fabric.qos.cnp_priority says"),
        (RoceFabric(), {"ROCE_CC_PRIO_MASK_P1": 7}, r"the bits of fabric.qos.ecn \{3\} \(8\)"),
        (RoceFabric(), {"LINK_TYPE_P1": "IB"}, "2, as fabric.kind says"),
        (InfinibandFabric(), {"LINK_TYPE_P1": 2}, "1, as fabric.kind says"),
        (None, {"NUM_OF_VFS": 8}, "SRIOV_EN 1 beside it"),
        (None, {"NUM_OF_VFS": 8, "SRIOV_EN": "False"}, "SRIOV_EN 1 beside it"),
        (None, {"MAX_ACC_OUT_READ": 0}, "ADVANCED_PCI_SETTINGS 1 beside it"),
    ],
)
def test_refused_beside(
    fabric: RoceFabric | InfinibandFabric | None, keys: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValidationError, match=expected):
        Node(name="n1", fabric=fabric, firmware=FirmwareSpec(keys=keys))


@pytest.mark.parametrize(
    ("fabric", "keys"),
    [
        (RoceFabric(), {"CNP_DSCP_P1": 48, "ROCE_CC_PRIO_MASK_P1": 8, "LINK_TYPE_P1": "eth"}),
        (RoceFabric(qos=RoceQos(cnp_dscp=50)), {"CNP_DSCP_P1": 50}),
        (InfinibandFabric(), {"CNP_DSCP_P1": 4, "LINK_TYPE_P1": "IB", "LINK_TYPE_P2": "ETH"}),
        (None, {"NUM_OF_VFS": 8, "SRIOV_EN": "True"}),
        (None, {"MAX_ACC_OUT_READ": 0, "ADVANCED_PCI_SETTINGS": 1}),
    ],
)
def test_accepted_beside(
    fabric: RoceFabric | InfinibandFabric | None, keys: dict[str, Any]
) -> None:
    node = Node(name="n1", fabric=fabric, firmware=FirmwareSpec(keys=keys))
    assert node.firmware.keys == keys


def test_every_known_key_has_its_reason_and_source() -> None:
    for known in KNOWN:
        assert known.why
        assert known.source
        assert known.accepted
        assert set(known.names.values()) >= (known.accepted if known.names else set())
        at = f"{known.name}_P1" if known.per_port else known.name
        assert known_key(at) == known
        assert effect_of(at) in (Effect.FIRMWARE_RESET, Effect.REBOOT, Effect.COLD_CYCLE)


def test_what_is_not_known_takes_a_reboot() -> None:
    assert known_key("SOME_NEW_KEY") is None
    assert effect_of("SOME_NEW_KEY") is Effect.REBOOT
    assert number_of("SOME_NEW_KEY", "x") is None
    assert number_of("LINK_TYPE_P1", "Eth") == 2
