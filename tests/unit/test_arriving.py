"""What is decided of a bare node whose packages are installed in the same run."""

import pytest

from deploys import gds, gpu_driver, holds, ofed
from deploys.packages import arriving
from facts.openibd import OPENIBD
from railwright.component import settings_of
from railwright.drivers.arriving import dkms_modules
from railwright.schema import Effect, Node
from railwright.settings import Standing, changes
from railwright.snapshot import Section, Snapshot
from tests.unit import gpu_host
from tests.unit.gpu_host import LIVE, NEW, OLD, VERSION, host, modinfo, node, units, with_section
from tests.unit.units import unit

WANTED = {
    "doca-ofed": "3.2.1", "mlnx-ofed-kernel-dkms": "25.10",
    "nvidia-kernel-open-dkms": VERSION, "nvidia-fabricmanager": VERSION,
    "libnvidia-ml1": VERSION, "nvidia-fs-dkms": "2.29.4", "libcufile-13-0": "1.15",
}  # fmt: skip
START = ("systemctl", "start")
REBOOT = LIVE | {Effect.REBOOT}
DRIVER = LIVE | {Effect.DRIVER, Effect.SERVICE}


def asked(allow: frozenset[Effect] = LIVE) -> Node:
    def packages(*heads: str) -> dict[str, str]:
        return {name: v for name, v in WANTED.items() if name.startswith(heads)}

    return node(
        allow,
        ofed={**gpu_host.DOCA, "packages": packages("doca", "mlnx")},
        gpu_driver={
            **gpu_host.GPU,
            "packages": packages("nvidia-k", "nvidia-fab", "libn"),
            "fabric_manager": True,
            "peer_memory": "nvidia_peermem",
        },
        gds={
            "mode": "nvidia-fs",
            "version": "2.29.4",
            "packages": packages("nvidia-fs", "libcufile"),
            "cufile": {"properties": {"allow_compat_mode": False}},
        },
    )


def with_packages(snapshot: Snapshot, **installed: str) -> Snapshot:
    there = {name.replace("_", "-"): version for name, version in installed.items()}
    lines = "".join(f"{name}\t{version}\thold\tinstalled\n" for name, version in there.items())
    text = {
        "packages": f"manager dpkg\n{lines}",
        "packages_audit": "manager dpkg\n",
        "packages_offered": "".join(f" {n} | {v} | repo Packages\n" for n, v in WANTED.items()),
        "packages_offered_rpm": "",
        "repositories_files": "",
        "repositories_entries": "",
        "gds_cufile": "",
        "gds_environment": "",
        "gds_platform": "machine=x86_64\nnvidia_fs=no\nvirtual=none\nmultipath=N\np2pdma=no\n",
    }
    sections = {name: Section(stdout=said, rc=0) for name, said in text.items()}
    return snapshot.model_copy(update={"sections": {**snapshot.sections, **sections}})


def bare(**installed: str) -> Snapshot:
    """A node as it is installed: the kernel's own stack, loaded or not, and no driver of GPUs."""
    inbox = "".join(
        modinfo(name, OLD, path=f"kernel/drivers/{name}.ko.zst")
        for name in gpu_host.OFED_MODULES[1:]
    )
    snapshot = host(
        drivers_disk=f"kernel {OLD}\n{inbox}",
        drivers_dkms="",
        drivers_loaded="loaded\tib_core\tS1\t-\t0\tlive\t-\n",
        drivers_files="",
        drivers_smi="",
        nvidia_firmware="",
        ofed_units=unit(OPENIBD, "inactive", "", "not-found"),
        gpu_units=units(fabric="", persistenced="", ours=""),
    )
    for name in ("drivers_ofed", "drivers_fabric_manager", "drivers_dkms"):
        snapshot = with_section(snapshot, name, stdout="", rc=127)
    return with_packages(snapshot, **installed)


def announced(component: gpu_host.Component, on: Node, snapshot: Snapshot) -> set[str]:
    return {
        f"{change.key} {change.state}"
        for setting in settings_of(component, on, snapshot)
        for change in changes(setting, on.effects.allow)
    }


def test_all_that_packages_bring_is_announced_before_they_are_there() -> None:
    told = announced(ofed.COMPONENT, asked(DRIVER), bare())
    assert told >= {
        "installed persisted",
        "mlx5_core persisted",
        "mlx5_core running",
        "ib_core running",
        f"{OPENIBD} persisted",
        f"{OPENIBD} running",
        f"dkms mlnx-ofed-kernel for {OLD} persisted",
        f"dkms nvidia for {OLD} persisted",
        f"dkms nvidia-fs for {OLD} persisted",
    }
    told = announced(gpu_driver.COMPONENT, asked(DRIVER), bare())
    assert told >= {
        "driver persisted",
        "driver running",
        "one version persisted",
        "fabric manager persisted",
        "fabric manager running",
        "peer memory running",
        "nvidia-fs persisted",
        "nvidia-fs running",
    }


def test_where_nothing_arrives_nothing_is_promised() -> None:
    without = asked(DRIVER).model_copy(
        update={
            name: getattr(asked(), name).model_copy(update={"packages": {}})
            for name in ("ofed", "gpu_driver", "gds")
        }
    )
    assert arriving(without, bare()) == frozenset()
    assert announced(ofed.COMPONENT, without, bare()) == set()
    told = announced(gpu_driver.COMPONENT, without, bare())
    assert not {line for line in told if line.startswith(("driver", "fabric", "one version"))}


def test_packages_that_are_refused_bring_nothing() -> None:
    # Another version is installed, and a service may not be restarted for the change.
    old = bare(doca_ofed="3.1.0")
    assert arriving(asked(LIVE), old) == frozenset()
    assert "installed persisted" not in announced(ofed.COMPONENT, asked(LIVE), old)
    assert "doca-ofed" in arriving(asked(DRIVER), old)


def test_once_packages_were_dealt_with_nothing_arrives_any_more() -> None:
    failed = bare().model_copy(update={"settled": True})
    assert arriving(asked(DRIVER), failed) == frozenset()
    assert gpu_host.commands(ofed.COMPONENT, asked(DRIVER), failed) == []
    assert gpu_host.commands(gpu_driver.COMPONENT, asked(DRIVER), failed) == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", "railwright-gpu.service"),
    ]
    # How far a run has come is nothing to save.
    assert "settled" not in failed.model_dump_json()


def test_a_loaded_module_of_another_stack_waits_for_what_is_allowed() -> None:
    def effect(allow: frozenset[Effect]) -> Effect:
        found = gpu_host.found(ofed.COMPONENT, asked(allow), bare())
        return found["ib_core"].effect

    assert effect(DRIVER) is Effect.DRIVER
    # Where only a reboot is allowed, it does what a reload would.
    assert effect(REBOOT) is Effect.REBOOT
    assert effect(LIVE) is Effect.DRIVER


def test_an_upgrade_tells_that_what_is_loaded_will_be_of_another_build() -> None:
    older = {name.replace("-", "_"): "1" for name in WANTED}
    upgraded = with_packages(host(), **older)
    found = gpu_host.found(ofed.COMPONENT, asked(DRIVER), upgraded)
    assert found["mlx5_core"].persisted.standing is Standing.STALE
    assert found["mlx5_core"].running.standing is Standing.WRONG
    assert found[f"dkms nvidia-fs for {OLD}"].persisted.standing is Standing.STALE
    # What comes without modules changes none.
    built = {name.replace("-", "_"): v for name, v in WANTED.items() if name.endswith("-dkms")}
    tools = with_packages(host(), **{**older, **built})
    assert arriving(asked(DRIVER), tools)
    assert gpu_host.wrong(ofed.COMPONENT, asked(DRIVER), tools) == {}


def test_an_upgrade_tells_what_its_packages_will_leave_to_be_put_right() -> None:
    older = {name.replace("-", "_"): "1" for name in WANTED}
    over = {"nvidia_peermem": f"S1 {VERSION} 0 -", "nvidia_fs": f"S1 {VERSION} 0 -"}
    # The image of the next kernel was not made, as a module did not build for it.
    upgraded = with_packages(host(OLD, NEW, drivers_loaded=gpu_host.loaded(**over)), **older)
    image = host(OLD, OLD).section("modules_initramfs").stdout
    upgraded = with_section(upgraded, "modules_initramfs", stdout=image)
    told = announced(ofed.COMPONENT, asked(DRIVER), upgraded)
    assert {f"{ofed.LINK} persisted", f"initramfs for {NEW} persisted"} <= told
    made = gpu_host.commands(ofed.COMPONENT, asked(DRIVER), upgraded)
    assert ("update-initramfs", "-c", "-k", NEW) in made
    told = announced(gpu_driver.COMPONENT, asked(DRIVER), upgraded)
    assert {"nvidia-fs running", "peer memory running"} <= told
    # With one kernel the builds of OFED lead the link nowhere else.
    single = with_packages(host(drivers_loaded=gpu_host.loaded(**over)), **older)
    assert f"{ofed.LINK} persisted" not in announced(ofed.COMPONENT, asked(DRIVER), single)


def test_cufile_keys_of_the_inventory_are_announced_and_those_that_follow_are_not() -> None:
    told = announced(gds.COMPONENT, asked(), bare())
    assert told == {"cufile properties.allow_compat_mode persisted"}


def test_a_masked_unit_is_not_unmasked_by_a_package() -> None:
    masked = with_section(
        bare(doca_ofed="3.1.0"), "ofed_units", stdout=unit(OPENIBD, file="masked", load="masked")
    )
    found = gpu_host.found(ofed.COMPONENT, asked(DRIVER), masked)[OPENIBD]
    assert found.persisted.standing is Standing.OVERRIDDEN


@pytest.mark.parametrize(
    ("package", "module"),
    [
        ("mlnx-ofed-kernel-dkms", "mlnx-ofed-kernel"),
        ("nvidia-fs-dkms", "nvidia-fs"),
        ("nvidia-dkms-580-server-open", "nvidia"),
        ("nvidia-dkms-580", "nvidia"),
        ("iser-dkms", "iser"),
    ],
)
def test_the_module_of_a_package_by_its_name(package: str, module: str) -> None:
    assert dkms_modules([package, "dkms", "doca-ofed"]) == {module}


def test_a_kernel_that_comes_is_built_for_too() -> None:
    both = with_section(
        bare(), "kernel_boot", stdout=host(coming=NEW).sections["kernel_boot"].stdout
    )
    disk = both.sections["drivers_disk"].stdout
    both = with_section(both, "drivers_disk", stdout=disk + disk.replace(OLD, NEW))
    both = with_section(
        both, "kernels_installed", stdout=host(OLD, NEW).sections["kernels_installed"].stdout
    )
    told = announced(ofed.COMPONENT, asked(DRIVER), both)
    assert {f"dkms nvidia-fs for {kernel} persisted" for kernel in (OLD, NEW)} <= told


def test_what_goes_over_a_stack_that_a_reboot_brings_waits_for_it_too() -> None:
    # ib_core of the kernel's own is loaded: nvidia-peermem does not fit it, nor would OFED's.
    found = gpu_host.found(gpu_driver.COMPONENT, asked(REBOOT), bare())
    assert found["peer memory"].effect is Effect.REBOOT
    assert found["nvidia-fs"].effect is Effect.LIVE
    assert found["start of railwright-gpu.service"].effect is Effect.REBOOT
    told = gpu_host.commands(gpu_driver.COMPONENT, asked(REBOOT), bare())
    assert ("systemctl", "restart", "railwright-gpu.service") not in told
    assert ("railwright-gpu", "/etc/railwright/gpu_driver/plan", "nvidia-fs") in told
    free = with_section(bare(), "drivers_loaded", stdout="loaded\tsunrpc\tS1\t-\t0\tlive\t-\n")
    found = gpu_host.found(gpu_driver.COMPONENT, asked(REBOOT), free)
    assert found["peer memory"].effect is Effect.LIVE


def test_the_hold_of_a_package_that_comes_is_announced_with_it() -> None:
    seen = bare()
    empty = {name: Section(stdout="", rc=0) for name in ("holds_files", "apt_history")}
    empty["apt_blacklist"] = Section(stdout="", rc=0)
    seen = seen.model_copy(update={"sections": {**seen.sections, **empty}})
    told = announced(holds.COMPONENT, asked(), seen)
    assert {f"hold {name} persisted" for name in WANTED} <= told
    settled = seen.model_copy(update={"settled": True})
    assert not [x for x in announced(holds.COMPONENT, asked(), settled) if x.startswith("hold ")]


def test_nouveau_keeps_the_gpus_until_a_reboot_and_all_that_needs_the_driver_waits() -> None:
    loaded = "loaded\tnouveau\tS1\t-\t1\tlive\t-\n"
    fresh = with_section(bare(), "drivers_loaded", stdout=loaded)
    found = gpu_host.found(gpu_driver.COMPONENT, asked(REBOOT), fresh)
    waits = ("driver", "fabric manager", "peer memory", "nvidia-fs")
    assert {found[key].effect for key in waits} == {Effect.REBOOT}
    told = gpu_host.commands(gpu_driver.COMPONENT, asked(REBOOT), fresh)
    assert not [words for words in told if words[0] == "modprobe" or words[:2] == START]
    # Without it nothing keeps the driver from being loaded now.
    found = gpu_host.found(gpu_driver.COMPONENT, asked(REBOOT), bare())
    assert found["driver"].effect is Effect.LIVE
