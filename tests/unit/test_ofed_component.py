"""The component ofed: which RDMA stack is on disk and loaded, and what is built and reloaded."""

import pytest

from deploys.ofed import COMPONENT, LINK
from facts.openibd import OPENIBD
from railwright.drivers.kernels import refusal
from railwright.settings import Effect, Standing, Verdict, enforces
from railwright.snapshot import Section, Snapshot
from tests.unit import gpu_host
from tests.unit.gpu_host import (
    DOCA,
    DRIVER,
    GPU,
    LIVE,
    NEW,
    OFED_VERSION,
    OLD,
    STATUS,
    disk,
    host,
    loaded,
    modinfo,
    network,
    node,
    with_section,
)
from tests.unit.records import metadata
from tests.unit.units import unit

ASKED = node(ofed=DOCA, gpu_driver=GPU)
STALE = "S0 24.10-1.1.4 1 mlx5_ib"
EVERY = frozenset(Effect)


def found(snapshot: Snapshot, asked: object = ASKED) -> dict[str, gpu_host.Setting]:
    return gpu_host.found(COMPONENT, asked, snapshot)  # type: ignore[arg-type]


def commands(snapshot: Snapshot, allow: frozenset[Effect] = LIVE) -> list[tuple[str, ...]]:
    return gpu_host.commands(COMPONENT, node(allow, ofed=DOCA, gpu_driver=GPU), snapshot)


def wrong(snapshot: Snapshot, asked: object = ASKED) -> dict[str, Verdict]:
    return gpu_host.wrong(COMPONENT, asked, snapshot)  # type: ignore[arg-type]


def test_a_node_that_asks_for_no_stack_is_left_alone() -> None:
    assert COMPONENT.settings(node(), host()) == []
    assert gpu_host.done(COMPONENT, node(), host()) == []


def test_a_converged_node_is_ok_and_left_alone() -> None:
    assert wrong(host()) == {}
    assert set(found(host())) >= {"ib_core", "mlx5_core", OPENIBD, LINK, "installed"}
    assert commands(host(), EVERY) == []


def test_a_bare_node_asks_for_packages_and_does_nothing_itself() -> None:
    inbox = "".join(
        modinfo(name, OLD, path=f"kernel/drivers/{name}.ko.zst")
        for name in gpu_host.OFED_MODULES[1:]
    )
    bare = host(
        drivers_disk=f"kernel {OLD}\n{inbox}",
        drivers_dkms="",
        drivers_loaded=loaded(mlx_compat="", mlx5_core="S1 - 1 mlx5_ib", ib_core="S1 - 1 mlx5_ib"),
        ofed_units=unit(OPENIBD, "inactive", "", "not-found"),
    )
    bare = with_section(bare, "drivers_ofed", stdout="", rc=127)
    settings = found(bare)
    assert settings["installed"].persisted.value == "inbox"
    assert settings["mlx5_core"].persisted.value == "the kernel's own"
    assert {"installed", "mlx5_core", "ib_core", OPENIBD} <= set(wrong(bare))
    assert commands(bare, EVERY) == []


def test_openibd_is_enabled_where_the_stack_brings_it() -> None:
    off = host(ofed_units=unit(OPENIBD, file="disabled"))
    assert wrong(off) == {OPENIBD: Verdict.NOT_PERSISTED}
    assert commands(off) == [("systemctl", "enable", OPENIBD)]
    masked = host(ofed_units=unit(OPENIBD, file="masked", load="masked"))
    assert found(masked)[OPENIBD].persisted.standing is Standing.OVERRIDDEN


def test_openibd_is_started_where_all_its_modules_are_loaded_already() -> None:
    # udev has loaded them: neither a reload nor a reboot is needed.
    inactive = host(ofed_units=unit(OPENIBD, "inactive"))
    for allow in (LIVE, LIVE | {Effect.REBOOT}):
        assert commands(inactive, allow) == [("systemctl", "start", OPENIBD)]
    other = host(ofed_units=unit(OPENIBD, "inactive"), drivers_loaded=loaded(mlx5_core=STALE))
    assert commands(other, LIVE) == []
    assert found(other)[OPENIBD].effect is Effect.DRIVER


def test_why_openibd_failed_is_told() -> None:
    failed = host(
        ofed_units=unit(OPENIBD, "failed"),
        ofed_failures=f"failed {OPENIBD}\nsaid Module mlx_compat is in use by: nvme_core\n"
        "said openibd.service: Failed with result 'exit-code'.\n",
    )
    setting = found(failed)[OPENIBD]
    assert setting.running.standing is Standing.DEGRADED
    assert setting.running.detail == "Module mlx_compat is in use by: nvme_core"
    assert commands(failed, EVERY) == []


def test_what_is_loaded_from_another_source_waits_for_a_reload_that_must_be_allowed() -> None:
    old = host(drivers_loaded=loaded(mlx5_core=STALE))
    setting = found(old)["mlx5_core"]
    assert (setting.effect, setting.running.standing) == (Effect.DRIVER, Standing.WRONG)
    assert setting.running.value == "24.10-1.1.4, srcversion S0"
    assert wrong(old) == {"mlx5_core": Verdict.PENDING}
    assert commands(old) == []
    assert commands(old, DRIVER) == [("systemctl", "restart", OPENIBD)]


def test_peers_5_12_peermem_goes_before_openibd_is_restarted_and_comes_after_it() -> None:
    held = loaded(
        mlx5_core=STALE,
        ib_core="S0 24.10-1.1.4 2 mlx5_ib,nvidia_peermem",
        nvidia_peermem=f"S1 {gpu_host.VERSION} 0 -",
    )
    assert commands(host(drivers_loaded=held), DRIVER) == [
        ("modprobe", "-r", "nvidia_peermem"),
        ("systemctl", "restart", OPENIBD),
        ("modprobe", "nvidia_peermem"),
    ]


def test_peers_5_8_a_restart_that_would_cut_ssh_is_staged_for_reboot() -> None:
    over_mlx5 = host(drivers_loaded=loaded(mlx5_core=STALE), **network("ens1"))
    setting = found(over_mlx5)["mlx5_core"]
    assert setting.effect is Effect.REBOOT
    assert setting.remedy is not None
    assert "ssh goes over ens1" in setting.remedy
    assert commands(over_mlx5, DRIVER) == []
    # By the reboot, where that is allowed, for what is on disk is right.
    assert enforces(setting, EVERY)
    assert commands(over_mlx5, EVERY) == []
    elsewhere = host(drivers_loaded=loaded(mlx5_core=STALE), **network("eno1"))
    assert found(elsewhere)["mlx5_core"].effect is Effect.DRIVER


def test_peers_5_9_a_restart_under_the_root_disk_is_staged_for_reboot() -> None:
    # OFED's nvme is over mlx_compat, and the root disk is on it.
    held = loaded(mlx_compat="S0 24.10 1 nvme", nvme="S1 - 2 -")
    on_nvme = host(drivers_loaded=held)
    setting = found(on_nvme)["mlx_compat"]
    assert setting.effect is Effect.REBOOT
    assert setting.remedy is not None
    assert "the root file system goes over nvme0n1" in setting.remedy
    assert commands(on_nvme, DRIVER) == []
    free = host(drivers_loaded=loaded(mlx_compat="S0 24.10 0 -"))
    assert found(free)["mlx_compat"].effect is Effect.DRIVER


def test_peers_5_11_mlx_compat_that_stayed_loaded_after_an_upgrade_is_told() -> None:
    stayed = host(drivers_loaded=loaded(mlx_compat="S0 24.10 1 nvme_core", nvme_core="S1 - 0 -"))
    setting = found(stayed)["mlx_compat"]
    assert setting.running.standing is Standing.WRONG
    assert setting.running.detail is not None
    assert "srcversion S0" in setting.running.detail
    # On a node that came up whole it is right, and so it is where nothing has loaded it.
    for whole in (host(), host(drivers_loaded=loaded(mlx_compat=""))):
        assert found(whole)["mlx_compat"].running.standing is Standing.RIGHT


def test_bug_6_the_link_to_ofed_s_sources_leads_to_the_old_kernel() -> None:
    before, after = "4.4.0-97-generic", "4.4.0-116-generic"
    text = disk(after) + f"sources /usr/src/ofa_kernel/{before}\n"
    faulty = host(after, after, drivers_disk=text)
    setting = found(faulty)[LINK]
    assert (setting.persisted.value, setting.desired) == (before, after)
    assert wrong(faulty) == {LINK: Verdict.WRONG}
    assert commands(faulty) == [("railwright-dkms", after, "headers")]
    assert wrong(host(after, after)) == {}


def test_bug_6_modules_are_built_for_the_next_kernel_in_their_order() -> None:
    faulty = host(OLD, NEW, drivers_dkms=STATUS.format(kernel=OLD))
    keys = {f"dkms {m} for {NEW}" for m in ("mlnx-ofed-kernel", "nvidia", "nvidia-fs")}
    assert keys <= set(wrong(faulty))
    ((name, kernel, *steps), *images) = commands(faulty)
    assert (name, kernel) == ("railwright-dkms", NEW)
    assert [step.partition("/")[0] for step in steps] == [
        "mlnx-ofed-kernel", "headers", "nvidia", "nvidia-fs",
    ]  # fmt: skip
    # The initramfs holds OFED's modules too.
    assert images == [("update-initramfs", "-u", "-k", NEW)]
    assert commands(host(OLD, NEW)) == []


def test_what_lies_upon_a_module_that_is_built_anew_is_built_after_it() -> None:
    text = STATUS.format(kernel=OLD).replace("x86_64: installed", "x86_64: built", 1)
    settings = found(host(drivers_dkms=text))
    above = settings[f"dkms nvidia for {OLD}"]
    assert above.persisted.standing is Standing.STALE
    assert above.persisted.detail == "mlnx-ofed-kernel is built anew, upon which it lies"


def test_peers_5_12_a_module_with_other_symbol_versions_is_built_anew() -> None:
    symbols = (
        f"kernel {OLD}\nneeds nvidia_peermem\n0x00000001\tmodule_layout\n"
        "0x000000aa\tib_register_peer_memory_client\nexports ib_core\n"
        "{crc}\tib_register_peer_memory_client\n"
    )
    text = disk(OLD).replace(gpu_host.FLAGS, f"{gpu_host.FLAGS} modversions")
    text += f"sources /usr/src/ofa_kernel/{OLD}\n"
    asked = node(ofed=DOCA, gpu_driver={**GPU, "peer_memory": "nvidia_peermem"})
    needs = "".join(
        f"needs {name}\n0x00000001\tmodule_layout\n"
        for name in (*gpu_host.OFED_MODULES, *gpu_host.GPU_MODULES)
    )
    sections = {"drivers_disk": text}
    head = symbols.replace("needs nvidia_peermem", f"{needs}needs nvidia_peermem")
    kernel = "table kernel\n0x00000001\tmodule_layout\tvmlinux\tEXPORT_SYMBOL\t\n"
    old = host(**sections, drivers_symbols=head.format(crc="0x000000bb") + kernel)
    key = f"dkms nvidia for {OLD}"
    assert wrong(old, asked) == {
        key: Verdict.NOT_GENERATED,
        f"dkms nvidia-fs for {OLD}": Verdict.NOT_GENERATED,
        f"initramfs for {OLD}": Verdict.NOT_GENERATED,
    }
    detail = found(old, asked)[key].persisted.detail
    assert detail is not None
    assert "ib_register_peer_memory_client" in detail
    fits = host(**sections, drivers_symbols=head.format(crc="0x000000aa") + kernel)
    assert wrong(fits, asked) == {}


def test_a_module_that_dkms_calls_installed_and_modinfo_does_not_find_is_built_anew() -> None:
    built = f"built nvidia/1/{OLD}/x86_64/module/nvidia_uvm.ko.zst\n"
    emptied = host(
        drivers_disk=disk(OLD, "nvidia_uvm") + built + f"sources /usr/src/ofa_kernel/{OLD}\n"
    )
    setting = found(emptied)[f"dkms nvidia for {OLD}"]
    assert setting.persisted.standing is Standing.STALE
    assert (setting.persisted.detail or "").startswith("nvidia_uvm is not there")
    assert "nvidia/580.95.05" in commands(emptied)[0]


def test_peers_5_12_peermem_that_was_built_without_ofed_is_built_anew() -> None:
    symbols = f"kernel {OLD}\nneeds nvidia_peermem\n0x00000001\tmodule_layout\n"
    asked = node(ofed=DOCA, gpu_driver={**GPU, "peer_memory": "nvidia_peermem"})
    stub = host(drivers_symbols=symbols)
    assert wrong(stub, asked)[f"dkms nvidia for {OLD}"] is Verdict.NOT_GENERATED
    said = refusal(asked, stub)
    assert said is not None
    assert "was built without OFED" in said
    real = host(drivers_symbols=f"{symbols}0x00000002\tib_register_peer_memory_client\n")
    assert wrong(real, asked) == {}


def test_an_initramfs_with_older_modules_is_made_anew() -> None:
    old = host(modules_initramfs=metadata(f"/boot/initrd.img-{OLD}", mtime=50))
    assert wrong(old) == {f"initramfs for {OLD}": Verdict.NOT_GENERATED}
    assert commands(old) == [("update-initramfs", "-u", "-k", OLD)]


def test_inbox_and_ofed_modules_do_not_mix() -> None:
    said = {"ib_uverbs": modinfo("ib_uverbs", OLD, path="kernel/drivers/infiniband/ib_uverbs.ko")}
    mixed = host(drivers_disk=disk(OLD, **said) + f"sources /usr/src/ofa_kernel/{OLD}\n")
    setting = found(mixed)[f"stack for {OLD}"]
    assert setting.running.standing is Standing.WRONG
    assert setting.running.detail is not None
    assert "ib_uverbs" in setting.running.detail
    assert not setting.acts


def test_the_version_of_mlnx_ofed_is_held_against_ofed_info() -> None:
    asked = node(ofed={"kind": "mlnx_ofed", "version": "24.10-1.1.4.0"})
    right = host(drivers_ofed="MLNX_OFED_LINUX-24.10-1.1.4.0:\n")
    assert found(right, asked)["installed"].persisted.standing is Standing.RIGHT
    other = host(drivers_ofed="MLNX_OFED_LINUX-24.07-0.6.1.0:\n")
    assert found(other, asked)["installed"].persisted.value == "mlnx_ofed 24.07-0.6.1.0"


def test_modules_of_another_release_than_ofed_info_s_are_wrong() -> None:
    said = {"mlx5_core": modinfo("mlx5_core", OLD, "24.10-1.1.4")}
    other = host(drivers_disk=disk(OLD, **said) + f"sources /usr/src/ofa_kernel/{OLD}\n")
    setting = found(other)["mlx5_core"]
    assert setting.persisted.standing is Standing.WRONG
    assert setting.remedy == f"build OFED anew for kernel {OLD}"


def test_inbox_asked_for_with_ofed_installed() -> None:
    asked = node(ofed={"kind": "inbox"})
    assert {"installed", "ib_core", "mlx5_core"} <= set(wrong(host(), asked))
    assert gpu_host.commands(COMPONENT, asked, host()) == []


def test_in_a_container_openibd_alone_is_looked_at() -> None:
    off = host(container=True, ofed_units=unit(OPENIBD, file="disabled"))
    (setting,) = found(off).values()
    assert setting.running.standing is Standing.NOT_APPLICABLE
    assert commands(off) == [("systemctl", "enable", OPENIBD)]
    assert wrong(host(container=True)) == {}


def test_what_cannot_be_read_is_no_reason_to_reload() -> None:
    snapshot = host(drivers_loaded=loaded(mlx5_core=STALE), way_in="")
    setting = found(snapshot)["mlx5_core"]
    assert setting.effect is Effect.REBOOT
    assert setting.remedy is not None
    assert "an interface that is not known" in setting.remedy


@pytest.mark.parametrize("section", ["device_chains", "block_mounts", "nic_addresses"])
def test_a_node_whose_devices_were_not_seen_is_reloaded_by_a_reboot(section: str) -> None:
    unseen = host(drivers_loaded=loaded(mlx5_core=STALE), **{section: ""})
    setting = found(unseen)["mlx5_core"]
    assert setting.effect is Effect.REBOOT
    assert "what they carry cannot be read" in str(setting.remedy)
    assert commands(unseen, DRIVER) == []


def test_a_tool_that_fails_is_unreadable() -> None:
    broken = with_section(host(), "drivers_dkms", stdout="what?\n", rc=1)
    with pytest.raises(ValueError, match="expected a row of dkms status"):
        COMPONENT.settings(ASKED, broken)


def test_a_reboot_into_a_kernel_without_the_drivers_is_refused() -> None:
    ready = host(OLD, NEW)
    assert refusal(ASKED, ready) is None
    lacking = host(
        OLD, NEW,
        drivers_disk=disk(OLD) + disk(NEW, "nvidia", "mlx5_core"),
        drivers_dkms=STATUS.format(kernel=OLD),
    )  # fmt: skip
    said = refusal(ASKED, lacking)
    assert said is not None
    assert said.startswith(f"kernel {NEW} is not complete: ")
    assert "nvidia" in said
    assert "mlx5_core" in said
    gate = COMPONENT.reboot_gate
    assert gate is not None
    assert gate.asked(ASKED)
    assert not gate.asked(node())


def test_a_reboot_is_refused_where_nothing_can_be_read() -> None:
    cut = Section(stdout="kernel", rc=None, ended="deadline")
    sections = {**host().sections, "drivers_disk": cut}
    said = refusal(ASKED, host().model_copy(update={"sections": sections}))
    assert said is not None
    assert "cannot be read" in said


def test_the_version_of_the_tests_is_that_of_the_module() -> None:
    assert OFED_VERSION in found(host())["mlx5_core"].running.detail  # type: ignore[operator]
