"""The component gpu_driver: one version everywhere, modes of the GPUs, GPUs that are lost."""

import pytest

from deploys.gpu_driver import COMPONENT
from facts.gpu_driver import (
    DROP_IN,
    FABRIC_MANAGER,
    PERSISTENCED,
    PLAN_PATH,
    SCRIPT_PATH,
    UNIT,
)
from railwright.actions import RemoveFile
from railwright.component import settings_of, unread
from railwright.owned import HEADER
from railwright.settings import Effect, Standing, Verdict, changes
from tests.unit import gpu_host
from tests.unit.gpu_cases import ALL, asked, commands, converged, found, ours, wrong
from tests.unit.gpu_host import (
    DRIVER,
    GPU,
    GPUS,
    LIVE,
    OLD,
    SERVICE,
    SHIPPED,
    VERSION,
    bus,
    disk,
    files,
    host,
    loaded,
    modinfo,
    node,
    smi,
    state,
    units,
    with_section,
)
from tests.unit.records import records


def test_a_node_that_asks_for_no_driver_is_left_alone() -> None:
    assert COMPONENT.settings(node(), host()) == []
    assert gpu_host.done(COMPONENT, node(), host()) == []


def test_our_files_go_with_what_asked_for_them() -> None:
    there = converged()
    actions = gpu_host.done(COMPONENT, node(), there)
    removed = {a.path for a in actions if isinstance(a, RemoveFile)}
    assert removed == {PLAN_PATH, SCRIPT_PATH, UNIT.path, UNIT.link, DROP_IN}
    assert ("systemctl", "disable", "--now", UNIT.name) in gpu_host.commands(
        COMPONENT, node(), there
    )


def test_a_bare_node_is_set_up() -> None:
    bare = host(
        drivers_smi=smi(persistence_mode="Disabled"),
        gpu_units=units(fabric="inactive/disabled", persistenced="active", ours=""),
    )
    assert set(ours(**ALL)) == {PLAN_PATH, SCRIPT_PATH, UNIT.path, DROP_IN}
    assert ours(**ALL)[PLAN_PATH] == f"{HEADER}peermem\nmig off\npower 650\nclocks 1200 1980\n"
    assert commands(bare, **ALL) == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", UNIT.name),
        ("systemctl", "enable", FABRIC_MANAGER),
        ("systemctl", "start", FABRIC_MANAGER),
        ("systemctl", "start", PERSISTENCED),
        ("nvidia-smi", "-pm", "1"),
        ("systemctl", "restart", UNIT.name),
    ]


def test_a_converged_node_is_ok_and_left_alone() -> None:
    assert wrong(converged(), **ALL) == {}
    assert commands(converged(), frozenset(Effect), **ALL) == []


def test_what_is_announced_of_a_bare_node_is_what_the_run_makes_of_it() -> None:
    before, after = found(host(), **ALL), found(converged(), **ALL)
    for key, setting in before.items():
        for change in changes(setting, LIVE):
            assert getattr(after[key], change.state).value == change.after


@pytest.mark.parametrize(
    ("sections", "key", "value"),
    [
        ({"drivers_smi": smi(power_limit="700.00")}, "power limit", "700 W"),
        ({"gpu_state": state(clock=2010)}, "graphics clock", "2010 MHz"),
    ],
)
def test_what_drifted_is_set_again(sections: dict[str, str], key: str, value: str) -> None:
    drifted = converged(**sections)
    assert wrong(drifted, **ALL) == {key: Verdict.NOT_RUNNING}
    assert found(drifted, **ALL)[key].running.value == value
    assert commands(drifted, **ALL) == [("systemctl", "restart", UNIT.name)]


def test_bug_4_peermem_that_is_not_loaded_is_loaded_now_and_at_boot_after_openibd() -> None:
    driver: dict[str, object] = {"peer_memory": "nvidia_peermem"}
    faulty = host(gpu_units=units(ours=""))
    assert wrong(faulty, **driver)["peer memory"] is Verdict.WRONG
    assert commands(faulty, **driver)[-1] == ("systemctl", "restart", UNIT.name)
    unit = ours(**driver)[UNIT.path]
    assert "After=openibd.service" in unit
    after_reboot = converged(driver, drivers_loaded=loaded())
    assert wrong(after_reboot, **driver) == {"peer memory": Verdict.NOT_RUNNING}
    assert wrong(converged(driver), **driver) == {}


def test_bug_4_dma_buf_is_taken_where_kernel_and_driver_have_it() -> None:
    driver: dict[str, object] = {"peer_memory": "dma_buf"}
    assert wrong(host(), **driver) == {}
    closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Release\n"
    proprietary = host(drivers_files=records({"/proc/driver/nvidia/version": closed}))
    setting = found(proprietary, **driver)["peer memory"]
    assert setting.running.standing is Standing.WRONG
    assert "proprietary" in str(setting.running.detail)
    without = host(gpu_kernel_config="CONFIG_DMA_SHARED_BUFFER=y\nread\n")
    assert wrong(without, **driver) == {"peer memory": Verdict.NOT_RUNNING}
    unknown = host(gpu_kernel_config="")
    assert wrong(unknown, **driver) == {"peer memory": Verdict.UNREADABLE}


def test_peers_5_12_peermem_without_its_file_is_told_with_the_kernel() -> None:
    driver: dict[str, object] = {"peer_memory": "nvidia_peermem"}
    lacking = converged(
        driver,
        drivers_loaded=loaded(),
        drivers_disk=disk(OLD, "nvidia_peermem") + f"sources /usr/src/ofa_kernel/{OLD}\n",
    )
    setting = found(lacking, **driver)["peer memory"]
    assert setting.running.detail == f"kernel {OLD} has no module nvidia_peermem"
    assert not setting.acts
    assert commands(lacking, **driver) == []


def test_bug_39_libraries_that_were_upgraded_under_the_loaded_module() -> None:
    old, new = "460.56", "460.73.01"
    module = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {old}  Thu\n"
    said = {
        name: modinfo(name, OLD, new).replace("Dual MIT/GPL", "NVIDIA")
        for name in ("nvidia", "nvidia_uvm", "nvidia_peermem")
    }
    driver: dict[str, object] = {"version": new, "modules": "proprietary"}
    lib = f"library\t/usr/lib/x/libnvidia-ml.so.{new}\n"
    mismatch = "Failed to initialize NVML: Driver/library version mismatch\n"
    faulty = host(
        drivers_disk=disk(OLD, **said),
        drivers_loaded=loaded(nvidia=f"S0 {old} 1 nvidia_uvm", nvidia_uvm=f"S0 {old} 0 -").replace(
            f"library\t/usr/lib/x/libnvidia-ml.so.{VERSION}\n", lib
        ),
        drivers_files=records({"/proc/driver/nvidia/version": module}),
        nvidia_firmware=f"{old}\n{new}\n",
        drivers_fabric_manager=f"Fabric Manager version is : {new}\n",
    )
    faulty = with_section(faulty, "drivers_smi", stdout=mismatch, rc=18)
    settings = found(faulty, **driver)
    assert settings["driver"].running.value == f"{old} proprietary"
    assert settings["one version"].persisted.standing is Standing.RIGHT
    assert settings["one version"].running.standing is Standing.WRONG
    assert f"is {new}, and the module loaded is {old}" in str(
        settings["one version"].running.detail
    )
    assert settings["gpus"].running.standing is Standing.UNREADABLE
    assert "user libraries were upgraded" in str(settings["gpus"].running.detail)
    # nvidia has no users but its own: it may be reloaded, if that is allowed.
    assert commands(faulty, **driver) == []
    assert commands(faulty, DRIVER, **driver) == [
        ("modprobe", "-r", "nvidia_uvm", "nvidia"),
        ("modprobe", "nvidia"),
        ("modprobe", "nvidia_uvm"),
    ]
    assert wrong(host()) == {}


def test_a_driver_that_is_in_use_is_reloaded_by_a_reboot() -> None:
    busy = host(
        drivers_loaded=loaded(nvidia=f"S0 {VERSION} 9 nvidia_uvm", nvidia_uvm=f"S0 {VERSION} 4 -")
    )
    setting = found(busy)["driver"]
    assert setting.effect is Effect.REBOOT
    assert "in use" in str(setting.remedy)
    assert commands(busy, frozenset(Effect)) == []


def test_bug_43_a_gpu_that_its_driver_did_not_take() -> None:
    lost, others = "000a:00:00.0", GPUS[1:]
    eight = bus().replace(f"{GPUS[0]} nvidia", f"{lost} -")
    faulty = host(drivers_smi=smi(others), gpu_bus=eight)
    setting = found(faulty)["gpus"]
    assert (setting.desired, setting.running.value) == ("8 GPUs", "7 GPUs")
    assert f"{lost} (no driver took it)" in str(setting.running.detail)
    assert not setting.acts
    assert wrong(faulty) == {"gpus": Verdict.NOT_RUNNING}
    assert found(host())["gpus"].running.value == "8 GPUs"


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"gpu_state": state(gpu2="Yes, No")}, f"{GPUS[2]}: a row waits to be remapped"),
        ({"gpu_state": state(gpu2="No, Yes")}, f"{GPUS[2]}: a row could not be remapped"),
        (
            {
                "drivers_smi": smi(GPUS[:7])
                + gpu_host.gpu_row(GPUS[7], power_limit="[GPU requires reset]")
            },
            f"{GPUS[7]}: it asks for a reset",
        ),
    ],
)
def test_gpus_that_need_help_are_told_and_left_alone(sections: dict[str, str], said: str) -> None:
    setting = found(host(**sections))["gpu health"]
    assert setting.running.standing is Standing.WRONG
    assert said in str(setting.running.detail)
    assert not setting.acts
    assert found(host())["gpu health"].running.standing is Standing.RIGHT


def test_nvidia_smi_that_hangs_is_unreadable_and_moves_nothing() -> None:
    hangs = with_section(converged(), "drivers_smi", stdout="", rc=None, ended="deadline")
    verdicts = wrong(hangs, **ALL)
    assert verdicts["gpus"] is Verdict.UNREADABLE
    assert verdicts["power limit"] is Verdict.UNREADABLE
    assert commands(hangs, frozenset(Effect), **ALL) == []


def test_a_module_that_is_not_loaded_is_loaded_where_it_is_on_disk() -> None:
    off = host(drivers_loaded=loaded(nvidia="", nvidia_uvm=""), drivers_files="", drivers_smi="")
    setting = found(off)["driver"]
    assert (setting.running.standing, setting.effect) == (Standing.ABSENT, Effect.LIVE)
    assert commands(off) == [("modprobe", "nvidia"), ("modprobe", "nvidia-uvm")]


def test_the_flavour_is_part_of_the_driver() -> None:
    setting = found(host(), modules="proprietary")["driver"]
    assert (setting.desired, setting.persisted.value) == (
        f"{VERSION} proprietary",
        f"{VERSION} open",
    )
    assert not setting.acts


def test_mig_is_switched_only_where_a_driver_effect_is_allowed() -> None:
    driver: dict[str, object] = {"mig": "on", "mig_profiles": ("1g.10gb", "3g.40gb")}
    snapshot = converged(driver, drivers_smi=smi())
    assert wrong(snapshot, **driver) == {"mig": Verdict.PENDING, "mig instances": Verdict.PENDING}
    assert commands(snapshot, **driver) == []
    assert commands(snapshot, DRIVER, **driver) == [("systemctl", "restart", UNIT.name)]


def test_what_may_be_set_now_is_set_while_mig_waits() -> None:
    driver: dict[str, object] = {"mig": "on", "mig_profiles": ("1g.10gb",), "power_limit_w": 500}
    snapshot = converged(driver, drivers_smi=smi())
    assert commands(snapshot, **driver) == [("railwright-gpu", PLAN_PATH, "power")]


def test_mig_instances_are_held_against_the_list() -> None:
    driver: dict[str, object] = {"mig": "on", "mig_profiles": ("1g.10gb", "3g.40gb")}
    text = ""
    for line in state().splitlines():
        text += f"{line}\n"
        if line.startswith("list GPU"):
            text += "list   MIG 3g.40gb     Device  0: (UUID: MIG-1)\n"
            text += "list   MIG 1g.10gb     Device  1: (UUID: MIG-2)\n"
    on = smi(mig_mode_current="Enabled", mig_mode_pending="Enabled")
    right = converged(driver, drivers_smi=on, gpu_state=text)
    assert wrong(right, **driver) == {}
    none = converged(driver, drivers_smi=on)
    assert commands(none, **driver) == [("systemctl", "restart", UNIT.name)]


def test_a_power_limit_that_the_board_does_not_take_is_refused() -> None:
    setting = found(converged(), power_limit_w=900)["power limit"]
    assert not setting.acts
    assert "takes 200 W to 700 W" in str(setting.remedy)


def test_limits_that_are_no_longer_asked_for_are_taken_back() -> None:
    there = converged()
    assert ("nvidia-smi", "-rgc") in commands(there)
    assert ("nvidia-smi", "-i", GPUS[0], "-pl", "700") in commands(there)


def test_in_a_container_files_are_written_and_nothing_is_set() -> None:
    bare = host(container=True, gpu_units=units(ours=""))
    assert {s.running.standing for s in found(bare, **ALL).values()} == {Standing.NOT_APPLICABLE}
    assert set(gpu_host.ours_of(COMPONENT, asked(**ALL), bare)) == {  # type: ignore[arg-type]
        PLAN_PATH, SCRIPT_PATH, UNIT.path, DROP_IN,
    }  # fmt: skip
    content = {SERVICE: SHIPPED, **ours(**ALL)}
    right = host(container=True, gpu_files=files(content, enabled=True))
    assert wrong(right, **ALL) == {}
    assert commands(right, frozenset(Effect), **ALL) == []


def test_without_ofed_the_driver_s_own_builds_are_made_here() -> None:
    alone = node(gpu_driver=GPU)
    text = f"nvidia/{VERSION}, {OLD}, x86_64: added\n".replace(f", {OLD}, x86_64", "")
    snapshot = host(drivers_dkms=text)
    assert gpu_host.commands(COMPONENT, alone, snapshot) == [
        ("railwright-dkms", OLD, f"nvidia/{VERSION}"),
        ("update-initramfs", "-u", "-k", OLD),
    ]
    assert not any(c[0] == "railwright-dkms" for c in commands(snapshot))


def test_what_cannot_be_read_is_one_unreadable_setting() -> None:
    broken = with_section(host(), "gpu_bus", stdout="what?\n")
    assert unread(settings_of(COMPONENT, asked(), broken))


def test_firmware_of_the_driver_s_version_must_be_there() -> None:
    other = found(host(nvidia_firmware="550.90.07\n"))["one version"]
    assert other.persisted.standing is Standing.WRONG
    assert f"there is none of {VERSION}" in str(other.persisted.detail)
    assert found(host())["one version"].persisted.standing is Standing.RIGHT


def test_a_unit_that_failed_says_why() -> None:
    failed = converged(
        drivers_smi=smi(power_limit="700.00"),
        gpu_units=units(ours="failed"),
        gpu_failures=f"failed {UNIT.name}\nsaid 00000000:18:00.0: power limit failed: no\n",
    )
    setting = found(failed, **ALL)[UNIT.started_key]
    assert setting.running.standing is Standing.DEGRADED
    assert "power limit failed: no" in str(setting.running.detail)
    assert commands(failed, **ALL) == [("systemctl", "restart", UNIT.name)]
