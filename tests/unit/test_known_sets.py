"""The set that a node really is: refused where it is known to be bad, told where nobody knows."""

import json
from pathlib import Path
from typing import Any

import pytest
from junitparser import Failure, JUnitXml

from railwright.cli import main
from railwright.drivers.known_sets import gpu_of, judgement, real_set, refusal
from railwright.reading import save
from railwright.schema import Node
from railwright.snapshot import Snapshot
from tests.unit import fake_site
from tests.unit.gpu_host import (
    DOCA,
    GPU,
    NEW,
    OLD,
    STATUS,
    disk,
    host,
    modinfo,
    node,
    smi,
    with_section,
)

PINS = {"gpu_driver": GPU, "gds": {"mode": "nvidia-fs", "version": "2.29.4"}}
BEFORE_2_19_6 = "kernel-nvidia_fs/before-2.19.6-on-6.5"
INSIDE = f"kernel={OLD}\nmachine=x86_64\nos=ubuntu\nos_version=24.04\n"


def warnings(node: Node, snapshot: Snapshot) -> list[str]:
    return list(judgement(node, snapshot).warnings)


def old_gds() -> Node:
    """What no table refuses without the node's kernel."""
    return node(gpu_driver=GPU, gds={"mode": "nvidia-fs", "version": "2.18.3"})


def with_client(name: str, dkms_name: str, version: str, *, built: bool = True) -> Snapshot:
    """The usual node, with a storage client that dkms has."""
    status = STATUS.format(kernel=OLD)
    if not built:
        return host(drivers_dkms=f"{status}{dkms_name}/{version}: added\n")
    status += f"{dkms_name}/{version}, {OLD}, x86_64: installed\n"
    return host(drivers_dkms=status, drivers_disk=disk(OLD) + modinfo(name, OLD, version))


def test_what_the_inventory_leaves_open_is_judged_by_the_kernel_of_the_node() -> None:
    (said,) = refusal(old_gds(), host())
    assert BEFORE_2_19_6 in said
    assert f"kernel {OLD}" in said
    assert "https://github.com/NVIDIA/gds-nvidia-fs/issues/35" in said


def test_healthy_twin_a_set_that_is_known_to_work_is_not_refused() -> None:
    assert refusal(node(**PINS), host()) == []
    assert warnings(node(**PINS), host()) == []
    assert refusal(node(**PINS), host(kernel=OLD, coming=NEW)) == []


def test_the_kernel_that_boots_next_refuses_and_the_one_that_runs_is_told() -> None:
    old, new = "6.2.0-39-generic", "6.5.0-44-generic"
    (said,) = refusal(old_gds(), host(kernel=old, coming=new))
    assert f"kernel {new}" in said
    # The bad kernel is the one that is being left.
    assert refusal(old_gds(), host(kernel=new, coming=old)) == []
    told = [line for line in warnings(old_gds(), host(kernel=new, coming=old)) if new in line]
    (bad,) = [line for line in told if "not known" not in line]
    assert bad.startswith("until it is rebooted: ")
    assert BEFORE_2_19_6 in bad


def test_what_is_bad_with_both_kernels_is_said_of_each() -> None:
    both = host(kernel=OLD, coming=NEW)
    (said,) = refusal(old_gds(), both)
    assert f"kernel {NEW}" in said
    told = [line for line in warnings(old_gds(), both) if line.startswith("until it is")]
    assert len(told) == 1
    assert f"kernel {OLD}" in told[0]


@pytest.mark.parametrize("built", [True, False])
def test_peers_5_4_a_beegfs_client_that_has_no_such_kernel_is_refused_before_any_change(
    built: bool,
) -> None:
    asked = node(ofed=DOCA, gpu_driver=GPU)
    (said,) = refusal(asked, with_client("beegfs", "beegfs", "7.4.4", built=built))
    assert "kernel-beegfs/before-7.4.5-on-6.8" in said
    assert refusal(asked, with_client("beegfs", "beegfs", "7.4.6", built=built)) == []


def test_peers_5_5_a_lustre_client_that_has_no_such_kernel_is_refused_before_any_change() -> None:
    rocky = INSIDE.replace("os=ubuntu", "os=rocky").replace("24.04", "9.8")
    seen = with_section(
        with_client("lustre", "lustre-client-modules", "2.17.0"), "identity", stdout=rocky
    )
    asked = node(gpu_driver=GPU)
    (said,) = refusal(asked, seen)
    assert "distribution-lustre/rhel9.8-with-2.16-and-2.17.0" in said
    healthy = with_section(seen, "identity", stdout=rocky.replace("9.8", "9.7"))
    assert refusal(asked, healthy) == []


def test_peers_5_6_a_kernel_that_the_group_did_not_choose_is_refused_early() -> None:
    asked = node(platform={"kernel": OLD}, gpu_driver=GPU)
    (said,) = refusal(asked, host(kernel=OLD, coming=NEW))
    assert said.startswith(f"platform.kernel is {OLD}, and the node boots {NEW} next: ")
    # The healthy twin: the chosen one boots, and the one that runs is left by a reboot.
    chosen = node(platform={"kernel": NEW}, gpu_driver=GPU)
    assert refusal(chosen, host(kernel=OLD, coming=NEW)) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"distribution": "ubuntu", "release": "24.04"}, []),
        ({"distribution": "rhel"}, ["platform.distribution is rhel, and the node is ubuntu"]),
        ({"release": "22.04"}, ["platform.release is 22.04, and the node is 24.04"]),
        ({"architecture": "aarch64"}, ["platform.architecture is aarch64, and the node is x86_64"]),
    ],
)
def test_another_platform_than_the_one_it_was_judged_by_is_refused(
    said: dict[str, str], expected: list[str]
) -> None:
    found = refusal(node(platform=said, gpu_driver=GPU), host(identity=INSIDE))
    assert [line.partition(":")[0] for line in found] == expected


def test_a_point_release_that_os_release_does_not_tell_is_the_inventory_s() -> None:
    debian = INSIDE.replace("os=ubuntu", "os=debian").replace("24.04", "12")
    asked = node(platform={"distribution": "debian", "release": "12.5"}, gpu_driver=GPU)
    assert refusal(asked, host(identity=debian)) == []
    assert real_set(asked, host(identity=debian)).coming.release == "12.5"


def test_a_container_is_judged_by_the_kernel_that_the_inventory_names() -> None:
    inside = f"kernel={NEW}\ncontainer=podman\nos=ubuntu\nos_version=24.04\n"
    seen = host(identity=inside)
    assert refusal(old_gds(), seen) == []
    named = node(platform={"kernel": "6.2.0-39-generic"}, **PINS)
    assert refusal(named, seen) == []
    assert real_set(named, seen).coming.kernel == "6.2.0-39-generic"


def test_a_node_that_asks_for_no_drivers_is_never_refused() -> None:
    seen = with_client("beegfs", "beegfs", "7.4.4")
    assert refusal(node(), seen) == []
    assert warnings(node(), seen) == []


def test_the_gpus_that_are_there_are_judged_where_none_are_named() -> None:
    older = node(gpu_driver={"version": "550.163.01", "modules": "open"})
    blackwell = host(drivers_smi=smi(name="NVIDIA B200"))
    assert any("gpu-driver/" in said for said in refusal(older, blackwell))
    assert refusal(older, host()) == []
    named = node(gpu_driver={**GPU, "gpu": "h200"})
    assert "gpu_driver.gpu is h200, and nvidia-smi lists h100" in warnings(named, host())
    right = node(gpu_driver={**GPU, "gpu": "h100"})
    assert not any("nvidia-smi lists" in told for told in warnings(right, host()))


@pytest.mark.parametrize(
    ("names", "model"),
    [
        (["NVIDIA H100 80GB HBM3"] * 8, "h100"),
        (["NVIDIA A100-SXM4-80GB"], "a100"),
        (["Tesla V100-PCIE-16GB"], "v100"),
        (["NVIDIA L40S"], "l40s"),
        (["NVIDIA GH200 480GB"], "gh200"),
        (["NVIDIA H100 80GB HBM3", "NVIDIA L40S"], None),
        (["NVIDIA GeForce RTX 4090"], None),
        ([], None),
    ],
)
def test_the_model_is_a_word_of_what_nvidia_smi_calls_it(
    names: list[str], model: str | None
) -> None:
    assert gpu_of(names) == model


def test_a_set_that_nobody_has_run_is_a_warning_with_its_table() -> None:
    asked = node(ofed={"kind": "doca_ofed", "version": "9.9.9"}, gpu_driver=GPU)
    seen = host(identity=INSIDE)
    assert refusal(asked, seen) == []
    told = warnings(asked, seen)
    assert "distribution ubuntu with release 24.04, doca 9.9.9: not known to work, " in told[0]


def test_what_the_node_has_and_nobody_asks_for_is_part_of_the_set() -> None:
    mlnx = host(drivers_ofed="MLNX_OFED_LINUX-24.10-1.1.4.0:\n")
    seen = real_set(node(gpu_driver=GPU), mlnx).coming
    assert (seen.rdma, seen.mlnx_ofed) == ("mlnx_ofed", "24.10-1.1.4.0")
    # It goes when the inventory asks for another.
    asked = real_set(node(ofed=DOCA, gpu_driver=GPU), mlnx).coming
    assert (asked.rdma, asked.doca, asked.mlnx_ofed) == ("doca_ofed", "3.2.1", None)


def test_a_client_that_no_dkms_knows_is_judged_by_its_module_on_disk() -> None:
    asked = node(gpu_driver=GPU)
    text = disk(OLD) + modinfo("beegfs", OLD, "7.4.4")
    (said,) = refusal(asked, host(drivers_disk=text))
    assert "kernel-beegfs/before-7.4.5-on-6.8" in said
    lustre = disk(OLD) + modinfo("lustre", OLD, "2.17.0")
    rocky = INSIDE.replace("os=ubuntu", "os=rocky").replace("24.04", "9.8")
    (said,) = refusal(asked, host(drivers_disk=lustre, identity=rocky))
    assert "distribution-lustre/" in said
    # What its maker wrote is no version: it is not judged, and nothing breaks.
    odd = disk(OLD) + modinfo("beegfs", OLD, "next")
    assert refusal(asked, host(drivers_disk=odd)) == []


def test_a_nvidia_fs_that_p2pdma_does_without_is_no_part_of_the_set() -> None:
    text = modinfo("nvidia_fs", OLD, "2.18.3")
    seen = host(drivers_disk=disk(OLD, nvidia_fs=text))
    (said,) = refusal(node(gpu_driver=GPU), seen)
    assert BEFORE_2_19_6 in said
    asked = node(gpu_driver=GPU, gds={"mode": "p2pdma"})
    assert refusal(asked, seen) == []


@pytest.mark.parametrize("section", ["drivers_ofed", "drivers_dkms", "drivers_smi", "drivers_disk"])
def test_what_cannot_be_read_is_told_and_the_rest_is_judged(section: str) -> None:
    broken = with_section(host(), section, stdout="no such thing\n", rc=0)
    (said,) = refusal(old_gds(), broken)
    assert BEFORE_2_19_6 in said
    told = warnings(old_gds(), broken)
    assert any(line.startswith("a part of the set could not be read, and was") for line in told)


def test_a_next_boot_that_is_not_known_is_told_and_the_running_kernel_judged() -> None:
    unknown = with_section(host(), "kernel_boot", stdout="")
    (said,) = refusal(old_gds(), unknown)
    assert BEFORE_2_19_6 in said
    assert warnings(old_gds(), unknown)[0].startswith("it is not known which kernel boots next: ")


SITE = """
from railwright.site import inventory

globals().update(inventory(__file__, {"hgx": "gpu001"}))
"""
GROUP = """
from railwright.schema import *

gpu_driver = GpuDriverSpec(version="580.95.05")
gds = GdsSpec(mode="nvidia-fs", version="VERSION")
"""


def site(tmp_path: Path, version: str) -> list[str]:
    """The arguments for a site of one node, which the usual snapshot is replayed of."""
    for folder in ("inventories", "group_data", "saved"):
        (tmp_path / folder).mkdir()
    (tmp_path / "group_data/hgx.py").write_text(GROUP.replace("VERSION", version))
    path = tmp_path / "inventories/site.py"
    path.write_text(SITE)
    save(host(), tmp_path / "saved")
    return [str(path), "--from", str(tmp_path / "saved")]


@pytest.fixture
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is judged is the set alone."""
    monkeypatch.setattr("deploys.components.COMPONENTS", fake_site.COMPONENTS[1:])


@pytest.mark.usefixtures("_no_settings")
def test_plan_refuses_a_bad_set_and_names_row_and_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = site(tmp_path, "2.18.3")
    assert main(["validate", arguments[0]]) == 0
    assert "not known" not in capsys.readouterr().out
    assert main(["plan", *arguments]) == 1
    out = capsys.readouterr().out
    assert out.startswith("gpu001: refused: ")
    assert BEFORE_2_19_6 in out
    assert "https://github.com/NVIDIA/gds-nvidia-fs/issues/35" in out
    assert out.splitlines()[-1].endswith("; refused: gpu001")
    assert main(["drift", *arguments, "--accept-pending"]) == 2
    capsys.readouterr()


@pytest.mark.usefixtures("_no_settings")
def test_plan_tells_an_unknown_set_as_a_warning_and_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = site(tmp_path, "9.9.9")
    assert main(["plan", *arguments]) == 0
    out = capsys.readouterr().out
    assert "gpu001: warning: " in out
    assert "nvidia_fs 9.9.9: not known to work" in out
    assert main(["drift", *arguments]) == 0
    capsys.readouterr()


@pytest.mark.usefixtures("_no_settings")
def test_the_forms_for_machines_have_it_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = site(tmp_path, "2.18.3")
    assert main(["plan", *arguments, "--format", "json"]) == 1
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["summary"]["refused"] == ["gpu001"]
    (said,) = report["hosts"][0]["refused"]
    assert BEFORE_2_19_6 in said
    assert main(["drift", *arguments, "--format", "junit"]) == 2
    suites = JUnitXml.fromstring(capsys.readouterr().out.encode())
    (case,) = [case for suite in suites for case in suite if case.name == "known set"]
    assert [type(result) for result in case.result] == [Failure]
    assert BEFORE_2_19_6 in case.result[0].message
