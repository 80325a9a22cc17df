"""The client's modules: built for the kernel, against the RDMA stack in use, and loaded."""

from typing import Any

import pytest

from deploys.lustre import settings
from railwright.actions import RunScript
from railwright.settings import Effect, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.gpu_host import loaded, modinfo
from tests.unit.lustre_host import (
    KERNEL,
    LIVE,
    MOUNT_UNIT,
    REMOUNT,
    client,
    commands,
    converged,
    done,
    drivers,
    host,
    node,
    of,
    verdicts,
)
from tests.unit.units import unit

ASKED = node(lustre={"version": "2.16.1"})
REFUSED = (
    "said [   52.1] ko2iblnd: disagrees about version of symbol ib_fmr_pool_unmap\n"
    "said [   52.1] ko2iblnd: Unknown symbol ib_fmr_pool_unmap (err -22)\n"
)
# The kernel's own ib_core has the symbol in another version than ko2iblnd was built against.
OTHER_STACK = f"""\
kernel {KERNEL}
needs ko2iblnd
0x00000001\tmodule_layout
0x000000bb\trdma_create_id
table kernel
0x00000001\tmodule_layout\tvmlinux\tEXPORT_SYMBOL\t
0x000000aa\trdma_create_id\tdrivers/infiniband/core/ib_core\tEXPORT_SYMBOL\t
"""
SAME_STACK = OTHER_STACK.replace("0x000000bb", "0x000000aa")
ADDED = "lustre-client-modules/2.12.6: added\n"
INSTALLED = f"lustre-client-modules/2.16.1, {KERNEL}, x86_64: installed\n"


def test_what_is_there_and_loaded_is_right() -> None:
    seen = converged(ASKED, **drivers(dkms=INSTALLED, symbols=SAME_STACK))
    found = verdicts(ASKED, seen)
    assert {found[f"module {name}"] for name in ("lnet", "ko2iblnd", "lustre")} == {Verdict.OK}
    assert of("module lustre", ASKED, seen).persisted.value == "2.16.1"
    assert done(ASKED, seen) == []


def test_bug_48_a_build_that_was_only_added_is_told_with_what_the_kernel_said() -> None:
    asked = node(lustre={"version": "2.12.6"})
    seen = host(
        kernel=f"loaded lnet 2.12.6\n{REFUSED}",
        units=unit("lnet.service", "failed", "enabled"),
        **drivers(client("2.12.6", "ko2iblnd"), ADDED),
    )
    setting = of("module ko2iblnd", asked, seen)
    assert verdict(setting, LIVE) is Verdict.DEGRADED
    assert setting.persisted.standing is Standing.ABSENT
    assert setting.persisted.detail == (
        f"kernel {KERNEL} has none; dkms has lustre-client-modules/2.12.6 added, "
        "and not built for it"
    )
    assert setting.running.detail == (
        "the kernel refuses it: disagrees about version of symbol ib_fmr_pool_unmap and 1 more"
    )
    # dkms has its source, and with the kernel's own RDMA stack nobody else would build it.
    build = of(f"dkms lustre-client-modules for {KERNEL}", asked, seen)
    assert build.persisted.standing is Standing.ABSENT
    (script,) = [a for a in done(asked, seen) if isinstance(a, RunScript)]
    assert script.arguments == (KERNEL, "lustre-client-modules/2.12.6")


def test_bug_48_a_module_of_another_rdma_stack_is_told_before_it_is_loaded() -> None:
    seen = host(**drivers(dkms=INSTALLED, symbols=OTHER_STACK))
    setting = of("module ko2iblnd", ASKED, seen)
    assert (setting.persisted.standing, setting.persisted.value) == (
        Standing.WRONG,
        "of another build",
    )
    assert setting.persisted.detail is not None
    assert "disagrees about the version of rdma_create_id with ib_core" in setting.persisted.detail
    assert setting.remedy is not None
    assert setting.remedy.startswith("build ko2iblnd anew")


def test_bug_48_a_network_whose_module_the_kernel_would_refuse_is_not_brought_up() -> None:
    # No dkms that could build it anew: the modules came with a package.
    seen = host(**drivers(client(path="updates"), symbols=OTHER_STACK))
    setting = of("ni o2ib rail0", ASKED, seen)
    assert setting.running.standing is Standing.LATE
    assert setting.running.detail is not None
    assert "disagrees about the version of rdma_create_id" in setting.running.detail
    healthy = host(**drivers(client(path="updates"), symbols=SAME_STACK))
    assert of("ni o2ib rail0", ASKED, healthy).running.standing is Standing.ABSENT


def test_with_ofed_the_build_is_the_component_ofeds() -> None:
    asked = node(ofed={"kind": "doca_ofed", "version": "3.2.1"}, lustre={"version": "2.16.1"})
    seen = host(**drivers(client("2.16.1", "ko2iblnd"), ADDED))
    assert not any(s.key.startswith("dkms ") for s in settings(asked, seen))
    assert "railwright-dkms" not in " ".join(commands(asked, seen))


def test_a_network_of_tcp_needs_no_ko2iblnd() -> None:
    asked = node(networks={"tcp": {"rails": "all"}}, mounts={})
    seen = host(**drivers(client("2.16.1", "ko2iblnd")))
    assert "module ko2iblnd" not in verdicts(asked, seen)
    assert of("ni tcp rail0", asked, seen).running.standing is Standing.ABSENT


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("2.16.1", Verdict.OK),
        ("2.16.1_ddn43", Verdict.OK),
        ("2.16.10", Verdict.WRONG),
        ("2.15.7", Verdict.WRONG),
    ],
)
def test_the_version_is_that_of_the_module(version: str, verdict: Verdict) -> None:
    kernel = f"loaded lnet {version}\nloaded ko2iblnd {version}\nloaded lustre {version}\n"
    more = drivers(client(version))
    assert verdicts(ASKED, converged(ASKED, kernel=kernel, **more))["module lustre"] is verdict


def test_what_is_loaded_of_an_older_build_comes_anew_with_lnet() -> None:
    seen = converged(ASKED, **drivers())
    old = loaded(mlx_compat="", mlx5_core="", ib_core="", lustre="S0 2.16.1 1 -")
    section = seen.sections["drivers_loaded"].model_copy(update={"stdout": old})
    seen = seen.model_copy(update={"sections": {**seen.sections, "drivers_loaded": section}})
    setting = of("module lustre", ASKED, seen)
    assert (setting.running.standing, setting.effect) == (Standing.WRONG, Effect.REMOUNT)
    assert setting.running.detail is not None
    assert "srcversion S0" in setting.running.detail
    assert commands(ASKED, seen) == []
    assert commands(node(REMOUNT, lustre={"version": "2.16.1"}), seen) == [
        f"railwright-lnet-again {MOUNT_UNIT}"
    ]


def test_a_kernel_without_the_client_is_told() -> None:
    seen = host(**drivers(modinfo("ib_uverbs", KERNEL, path="kernel/ib_uverbs.ko")))
    found = of("module lustre", ASKED, seen)
    assert found.persisted.standing is Standing.ABSENT
    assert found.remedy == f"install the client's modules for kernel {KERNEL}"
    assert of("ni o2ib rail0", ASKED, seen).running.detail == f"kernel {KERNEL} has no module lnet"


def test_drivers_that_cannot_be_read_blind_nothing_else() -> None:
    seen = converged(ASKED, **drivers())
    broken = seen.sections["drivers_disk"].model_copy(update={"stdout": "rubbish\n"})
    seen = seen.model_copy(update={"sections": {**seen.sections, "drivers_disk": broken}})
    found = verdicts(ASKED, seen)
    assert found["module lustre"] is Verdict.UNREADABLE
    assert found["ni o2ib rail0"] is Verdict.OK


PACKAGES = {"lustre-client-modules-dkms": "2.16.1-1", "lustre-client-utils": "2.16.1-1"}
BUILD = f"dkms lustre-client-modules for {KERNEL}"


def bare(**installed: str) -> Snapshot:
    """A node without the client, whose repositories have it."""
    lines = "".join(f"{name}\t{version}\thold\tinstalled\n" for name, version in installed.items())
    text = {
        "packages": f"manager dpkg\n{lines}",
        "packages_audit": "manager dpkg\n",
        "packages_offered": "".join(f" {n} | {v} | repo Packages\n" for n, v in PACKAGES.items()),
        "packages_offered_rpm": "",
        "repositories_files": "",
        "repositories_entries": "",
    }
    sections: dict[str, Any] = {n: Section(stdout=said, rc=0) for n, said in text.items()}
    disk = modinfo("ib_uverbs", KERNEL, path="kernel/ib_uverbs.ko")
    gone = unit("lnet.service", "inactive", "", "not-found")
    return host(units=gone, **sections, **drivers(disk))


def test_with_its_packages_the_client_comes_in_one_run() -> None:
    asked = node(lustre={"version": "2.16.1", "packages": PACKAGES})
    told = {f"{c.key} {c.state}" for s in settings(asked, bare()) for c in changes(s, LIVE)}
    assert {
        "module lustre persisted",
        "unit lnet.service persisted",
        "unit lnet.service running",
        "ni o2ib rail0 running",
        "mount /mnt/scr running",
        f"{BUILD} persisted",
    } <= told
    assert {"systemctl start lnet.service", f"systemctl start {MOUNT_UNIT}"} <= set(
        commands(asked, bare())
    )


def test_without_packages_to_come_the_client_is_asked_for() -> None:
    asked = node(lustre={"version": "2.16.1"})
    told = {f"{c.key} {c.state}" for s in settings(asked, bare()) for c in changes(s, LIVE)}
    assert not {"module lustre persisted", "unit lnet.service running"} & told
    late = of("ni o2ib rail0", asked, bare()).running
    assert (late.standing, late.detail) == (Standing.LATE, "there is no lnet.service")
