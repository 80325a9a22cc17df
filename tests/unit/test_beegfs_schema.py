"""What an inventory may say of BeeGFS, and what does not go together."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from railwright.schema import DriverSet, RailsSpec
from railwright.schema.base import Finding
from railwright.schema.beegfs import FIELDS, BeegfsMount, BeegfsSpec
from railwright.schema.beegfs_consistency import beegfs_findings
from railwright.schema.beegfs_keys import KEYS, MISTAKEN, kind_of, majors_of, superseded

NICS = {"nics": {0: {"pci": "0000:10:00.0"}, 1: {"pci": "0000:20:00.0"}}}
RDMA = {"rdma": True, "rails": "all"}
SECRET, OTHER = {"file": "/srv/a"}, {"env": "B"}


def mount(**data: Any) -> BeegfsMount:
    return BeegfsMount.model_validate({"management": "mgmt01", "auth": "disabled", **data})


def findings(
    *mounts: BeegfsMount,
    beegfs: Mapping[str, Any] | None = None,
    rails: Mapping[str, Any] | None = None,
    **drivers: Any,
) -> dict[str, str]:
    """What is expected in place of what is refused, by the path that leads to it."""
    found: list[Finding] = beegfs_findings(
        BeegfsSpec.model_validate({"major": 8, **(beegfs or {})}),
        {f"/mnt/{name}": one for name, one in zip("abc", mounts, strict=False)},
        RailsSpec.model_validate(NICS if rails is None else rails),
        DriverSet.model_validate(drivers),
    )
    return {".".join(finding.path): finding.expected for finding in found}


def refused(**data: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        mount(**data)
    return str(caught.value)


def test_every_field_is_a_key_of_both_majors() -> None:
    assert {majors_of(key) for key in FIELDS.values()} == {(7, 8)}
    assert {field for field in FIELDS if field not in BeegfsMount.model_fields} == set()


def test_keys_are_those_of_the_client_and_no_others() -> None:
    assert kind_of("connUseRDMA") == "switch"
    assert kind_of("connMgmtdPort") == "number"
    assert majors_of("connMgmtdPort") == (8,)
    assert majors_of("connMgmtdPortUDP") == (7,)
    assert majors_of("sysSELinuxEnabled") == (8,)
    assert majors_of("logHelperdIP") == (7,)
    assert {key for key in MISTAKEN if kind_of(key) is not None} == set()
    assert all(kind_of(key) is not None for key in MISTAKEN.values())
    assert set(superseded(8)) <= KEYS[7].keys() - KEYS[8].keys()
    assert set(superseded(7)) <= KEYS[8].keys() - KEYS[7].keys()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"connRDMAEnabled": True}, "connUseRDMA: no release of BeeGFS has connRDMAEnabled"),
        ({"connUseRDMA": True}, "it to be set by rdma"),
        ({"connMgmtdPortTCP": 8008}, "it to be set by management_port"),
        ({"connInterfacesList": "ib0"}, "it to be set by rails and interfaces"),
        ({"noSuchKey": 1}, "a key that the client of BeeGFS 7.4 or 8 has"),
        ({"quotaEnabled": "yes"}, "true or false"),
        ({"logLevel": True}, "a number"),
        ({"sysTargetOfflineTimeoutSecs": 29}, "at least 30"),
        ({"tunePreferredMetaFile": "a\nb"}, "one line of printable ASCII"),
    ],
)
def test_other_keys_are_checked(other: dict[str, Any], said: str) -> None:
    assert said in refused(other=other)


@pytest.mark.parametrize(
    "data",
    [
        {"rdma_buf_num": 2},
        {"rdma_buf_size": 5000},
        {"rdma_type_of_service": 256},
        {"rdma_key_type": "unsafe"},
        {"config": "/etc/passwd"},
        {"config": "/etc/beegfs/../x.conf"},
        {"management": "a b"},
        {"auth": "the secret itself"},
        {"client_port": 0},
        {"interfaces": ("eth0 eth1",)},
    ],
)
def test_values_that_the_client_could_not_use_are_refused(data: dict[str, Any]) -> None:
    assert next(iter(data)) in refused(**data)


def test_authentication_is_never_left_out() -> None:
    with pytest.raises(ValidationError, match="auth"):
        BeegfsMount.model_validate({"management": "mgmt01"})


def test_a_mount_of_what_fits_together_has_no_findings() -> None:
    packages = {"beegfs-client-dkms": "20:8.3.1", "beegfs-tools": "20:8.3.1"}
    whole = mount(**RDMA, tcp_fallback=False, rdma_key_type="global", other={"quotaEnabled": True})
    assert findings(whole, beegfs={"packages": packages}) == {}
    of_7 = {"beegfs-client": "20:7.4.6", "beegfs-helperd": "20:7.4.6"}
    classic = {"major": 7, "build": "autobuild", "packages": of_7}
    assert findings(mount(auth=SECRET), beegfs=classic) == {}
    assert findings(beegfs={"major": None}) == {}


def test_a_mount_needs_to_know_the_major() -> None:
    told = findings(mount(), beegfs={"major": None})
    assert told == {"beegfs.major": "7 or 8: storage.mounts /mnt/a is a BeeGFS"}


@pytest.mark.parametrize(
    ("data", "rails", "path"),
    [
        ({"rdma": True}, None, "rails"),
        ({"rdma": True, "rails": "all"}, {}, "rdma"),
        ({"rails": "all"}, {}, "rails"),
        ({"rails": (0, 7)}, None, "rails"),
        ({"rails": ()}, None, "rails"),
        ({"tcp_fallback": False}, None, "tcp_fallback"),
    ],
)
def test_rdma_goes_over_rails(
    data: dict[str, Any], rails: dict[str, Any] | None, path: str
) -> None:
    assert f"storage.mounts./mnt/a.{path}" in findings(mount(**data), rails=rails)


def test_registered_keys_do_not_go_together_with_gds() -> None:
    path = "storage.mounts./mnt/a.rdma_key_type"
    gds = {"gds": {"mode": "nvidia-fs", "version": "2.26.6"}}
    assert "gds.mode" in findings(mount(**RDMA, rdma_key_type="register"), **gds)[path]
    assert path not in findings(mount(**RDMA, rdma_key_type="dma"), **gds)
    assert path not in findings(mount(**RDMA, rdma_key_type="register"))


def test_keys_of_the_other_major_are_refused() -> None:
    other = {"sysSELinuxEnabled": True}
    told = findings(mount(other=other), beegfs={"major": 7})
    assert "7 refuses to mount" in told["storage.mounts./mnt/a.other.sysSELinuxEnabled"]
    assert findings(mount(other=other)) == {}
    told = findings(mount(other={"logType": "syslog"}))
    assert "8 passes it over" in told["storage.mounts./mnt/a.other.logType"]
    certificate = mount(tls_certificate=SECRET)
    assert "storage.mounts./mnt/a.tls_certificate" in findings(certificate, beegfs={"major": 7})
    assert findings(certificate) == {}


@pytest.mark.parametrize(
    ("beegfs", "path"),
    [
        ({"packages": {"beegfs-client-dkms": "20:7.4.6"}}, "beegfs-client-dkms"),
        ({"packages": {"beegfs-client-dkms": "8.3", "beegfs-client": "8.3"}}, "beegfs-client"),
        ({"build": "autobuild", "packages": {"beegfs-client-dkms": "8.3"}}, "beegfs-client-dkms"),
        ({"packages": {"beegfs-tools": "8.3.1"}}, ""),
        ({"major": 7, "packages": {"beegfs-client-dkms": "7.4.6"}}, ""),
        ({"packages": {"beegfs-client-dkms": "8.3", "beegfs-helperd": "8.3"}}, "beegfs-helperd"),
    ],
)
def test_packages_are_of_one_major_and_one_way_to_build(beegfs: dict[str, Any], path: str) -> None:
    assert f"beegfs.packages.{path}".rstrip(".") in findings(mount(), beegfs=beegfs)


def test_it_is_built_against_the_stack_that_is_loaded() -> None:
    path = "beegfs.ofed_headers"
    ofed = {"kind": "doca_ofed", "version": "3.2.1"}
    assert "beegfs#64" in findings(mount(**RDMA), ofed=ofed)[path]
    assert path not in findings(mount(**RDMA), beegfs={"ofed_headers": True}, ofed=ofed)
    assert path not in findings(mount(), ofed=ofed)
    inbox = {"kind": "inbox"}
    assert path in findings(mount(**RDMA), beegfs={"ofed_headers": True}, ofed=inbox)
    assert findings(mount(**RDMA), beegfs={"ofed_headers": False}, ofed=inbox) == {}


def test_gds_needs_its_sources_and_ofeds() -> None:
    whole = {"gds": True, "ofed_headers": True}
    drivers = {
        "gds": {"mode": "nvidia-fs", "version": "2.26.6"},
        "gpu_driver": {"version": "580.95.05"},
    }
    assert findings(mount(), beegfs=whole, **drivers) == {}
    assert "beegfs.gds" in findings(mount(), beegfs=whole)
    assert "beegfs.gds" in findings(mount(), beegfs={"gds": True}, **drivers)
    assert "beegfs.nvidia_source" in findings(beegfs={"nvidia_source": "/usr/src/nvidia"})


def test_several_mounts_share_neither_configuration_nor_port() -> None:
    second = {"config": "/etc/beegfs/b.conf", "client_port": 8014}
    assert findings(mount(), mount(**second)) == {}
    assert findings(mount(), mount()).keys() == {
        "storage.mounts./mnt/b.config",
        "storage.mounts./mnt/b.client_port",
    }
    two = (mount(auth=SECRET), mount(auth=OTHER, **second))
    assert findings(*two) == {}
    told = findings(*two, beegfs={"major": 7})
    assert told["storage.mounts./mnt/b.auth"] == (
        "the one of all mounts: their beegfs-helperd has one secret"
    )
    both = (mount(tls_certificate=SECRET), mount(tls_certificate=OTHER, **second))
    assert findings(*both).keys() == {"storage.mounts./mnt/b.tls_certificate"}
