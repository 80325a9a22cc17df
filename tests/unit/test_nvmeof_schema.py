"""What a site may say about volumes over a fabric, and what does not fit together."""

from typing import Any

import pytest
from pydantic import ValidationError

from railwright.schema.nvmeof import NvmeofPortal, NvmeofVolume
from railwright.schema.nvmeof_consistency import shared
from tests.unit.nvme_host import RAILS, TARGETS, UUID, WHERE, node, volume, with_mounts

KEY = {"env": "KEY"}


def test_a_volume_has_defaults_that_outlast_a_reboot() -> None:
    found = NvmeofVolume.model_validate(volume(io_queues=None, keep_alive_s=None))
    assert (found.ctrl_loss_s, found.reconnect_delay_s) == (1800, 10)
    least = volume()
    del least["format"]
    assert NvmeofVolume.model_validate(least).format == "never"
    assert "kind" in found.model_fields_set


def test_a_portal_is_written_as_people_do() -> None:
    assert str(NvmeofPortal.model_validate({"address": "10.0.0.1"})) == "10.0.0.1:4420"
    assert str(NvmeofPortal.model_validate({"address": "fd00::1"})) == "[fd00::1]:4420"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nqn": "nqn.example:x"}, "an NQN"),
        ({"nqn": f"nqn.2014-08.org.x:{'y' * 223}"}, "an NQN"),
        ({"nqn": 'nqn.2014-08.org.x:"y"'}, "an NQN"),
        ({"portals": []}, "at least 1 item"),
        ({"portals": [{"address": "10.0.0.1"}] * 2}, "each portal once"),
        ({"portals": [{"address": "target1"}]}, "valid IPv"),
        ({"namespace": {}}, "one of uuid, nguid, eui64, nsid"),
        ({"namespace": {"uuid": UUID, "nsid": 1}}, "one of uuid, nguid, eui64, nsid"),
        ({"namespace": {"uuid": UUID.upper()}}, "a UUID in lower case"),
        ({"namespace": {"nguid": UUID}}, "an NGUID"),
        ({"namespace": {"eui64": "0x00"}}, "an EUI-64"),
        ({"namespace": {"nsid": 0}}, "greater than or equal to 1"),
        ({"io_queues": 0}, "greater than or equal to 1"),
        ({"io_queues": True}, "valid integer"),
        ({"tos": 256}, "less than or equal to 255"),
        ({"ctrl_loss_s": 5}, "reconnect_delay_s 10 at least"),
        ({"ctrl_loss_s": -1}, "ctrl_loss_s"),
        ({"controller_key": KEY}, "host_key beside it"),
        ({"host_key": "DHHC-1:00:x:"}, "host_key"),
        ({"host_key": {"env": "A", "file": "/b"}}, "either file or env"),
        ({"filesystem": "btrfs"}, "'ext4' or 'xfs'"),
        ({"format": "always"}, "'never' or 'if_blank'"),
        ({"options": ["a,b"]}, "one option"),
        ({"what": 1}, "Extra inputs"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        NvmeofVolume.model_validate(volume(**changes))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "host",
    [{"host_nqn": "host1"}, {"host_id": "1"}, {"iopolicy": "random"}, {"multipath": "Y"}],
)
def test_what_is_refused_of_the_host(host: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        node(host=host)


P2PDMA = {"gpu_driver": {"version": "580.95.05"}, "gds": {"mode": "p2pdma"}}
ONE = [{"address": TARGETS[0], "rail": 0}]


@pytest.mark.parametrize(
    ("changes", "more", "said"),
    [
        ({"portals": [{"address": "10.64.0.9", "rail": 5}]}, {}, "a rail of rails.nics"),
        ({"portals": [{"address": "fd00::1", "rail": 0}]}, {}, "rails have IPv4 addresses"),
        ({"tos": 8}, {}, "the priority of DSCP 2 is not in fabric.qos.lossless"),
        ({"portals": [{"address": "10.1.1.1"}]}, {"rails": {}}, "tcp, or a fabric and rails.nics"),
        ({}, {"modules": {"blacklist": ["nvme-rdma"]}}, f"storage.mounts {WHERE} goes over it"),
        ({}, {"modules": {"blacklist": ["nvme-fabrics"]}}, f"storage.mounts {WHERE} goes over it"),
        ({}, {"nvmeof": {"multipath": False}}, "each portal is a drive of its own"),
        (
            {"portals": ONE},
            {
                "nvmeof": {"multipath": False},
                "modules": {"options": {"nvme-core": {"multipath": True}}},
            },
            "false, as nvmeof.multipath says",
        ),
        ({}, P2PDMA, "which is for drives on PCIe"),
        ({}, {**P2PDMA, "nvmeof": {"multipath": True}}, "does not go with NVMe multipath"),
    ],
)
def test_what_does_not_fit_together(
    changes: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError) as error:
        with_mounts({WHERE: volume(**changes)}, **more)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"tos": 106}, {}),
        ({"portals": [{"address": "10.1.1.1"}], "transport": "tcp"}, {"rails": {}, "fabric": None}),
        ({"portals": ONE}, {"nvmeof": {"multipath": False}}),
        ({}, {"modules": {"options": {"nvme_core": {"multipath": "Y"}}}}),
    ],
)
def test_what_does_fit_together(changes: dict[str, Any], more: dict[str, Any]) -> None:
    assert with_mounts({WHERE: volume(**changes)}, **more).storage.mounts


def test_a_rail_without_an_address_is_told() -> None:
    rails = {**RAILS["rails"], "plan": {}}
    with pytest.raises(ValidationError, match=r"rails\.plan\.prefix, or rails\.nics 0 address"):
        with_mounts({WHERE: volume()}, rails=rails)


def test_a_namespace_is_mounted_once() -> None:
    with pytest.raises(ValidationError, match=r"another one than that of storage\.mounts"):
        with_mounts({"/mnt/a": volume(), "/mnt/b": volume()})
    other = {"uuid": UUID.replace("0a", "ff")}
    assert with_mounts({"/mnt/a": volume(), "/mnt/b": volume(namespace=other, options=["ro"])})


def test_the_connections_of_a_subsystem_are_the_same_for_all_of_its_namespaces() -> None:
    other = volume(namespace={"uuid": UUID.replace("0a", "ff")}, io_queues=2)
    with pytest.raises(ValidationError, match=r"as those of storage\.mounts /mnt/a"):
        with_mounts({"/mnt/a": volume(), "/mnt/b": other})


def test_two_nodes_with_one_namespace_are_found() -> None:
    one = NvmeofVolume.model_validate(volume())
    other = NvmeofVolume.model_validate(volume(namespace={"nsid": 2}))
    told = list(shared([("n1", {"/a": one}), ("n2", {"/b": other, "/c": one})]))
    assert told == [("n2", "/c", "n1", "/a")]
    assert list(shared([("n1", {"/a": one}), ("n2", {"/b": other})])) == []
