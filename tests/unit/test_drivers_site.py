"""Drivers of a site: said in parts by its groups, judged as each merged node has them."""

from pathlib import Path

import pytest

from railwright.compat import judge
from railwright.schema.drivers_compat import facts_of
from railwright.schema.repositories import AptRepository
from railwright.site import SiteError, load_inventory

SITE = """
all:
  repositories:
    doca:
      kind: apt
      url: https://linux.mellanox.com/public/repo/doca/3.1.0/ubuntu24.04/x86_64/
      suite: ./
      key: https://linux.mellanox.com/public/repo/doca/GPG-KEY-Mellanox.pub
      fingerprint: 0123456789ABCDEF0123456789ABCDEF01234567
groups:
  noble:
    hosts: gpu[001-002]
    platform: {distribution: ubuntu, release: "24.04", kernel: 6.8.0-60-generic}
    ofed: {kind: doca_ofed, repository: doca}
  hgx:
    hosts: gpu[001-002]
    ofed: {version: 3.1.0}
    gpu_driver: {version: 580.95.05, gpu: h100, fabric_manager: true}
    gds: {mode: nvidia-fs, version: 2.29.4}
hosts:
  gpu002:
    gpu_driver: {packages: {nvidia-fabricmanager: 580.95.05-1}}
"""


def test_groups_say_parts_of_a_set_and_the_merged_node_has_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE, encoding="utf-8")
    nodes = load_inventory(path).nodes
    drivers = nodes["gpu002"].drivers
    assert (drivers.ofed.kind, drivers.ofed.version) == ("doca_ofed", "3.1.0")
    assert isinstance(drivers.repositories["doca"], AptRepository)
    assert drivers.gpu_driver.packages == {"nvidia-fabricmanager": "580.95.05-1"}
    assert nodes["gpu001"].gpu_driver.packages == {}


def test_what_no_table_knows_of_a_node_is_a_warning_and_the_site_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE.replace("580.95.05", "575.57.08"), encoding="utf-8")
    warnings = judge(facts_of(load_inventory(path).nodes["gpu001"].drivers))
    assert [(one.verdict, one.table) for one in warnings] == [("unknown", "kernel-driver")]


def test_a_set_that_only_the_merged_node_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE.replace("gpu: h100", "gpu: v100"), encoding="utf-8")
    with pytest.raises(SiteError, match="compat gpu-modules/before-turing-open"):
        load_inventory(path)
