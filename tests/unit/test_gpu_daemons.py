"""Fabric manager and the persistence daemon, as the component gpu_driver has them."""

from deploys.gpu_driver import COMPONENT
from facts.gpu_driver import (
    DROP_IN,
    FABRIC_MANAGER,
    PERSISTENCED,
)
from railwright.owned import HEADER
from railwright.resolve.persistenced import FLAG
from railwright.settings import Effect, Standing
from tests.unit import gpu_host
from tests.unit.gpu_cases import asked, commands, converged, found, ours, wrong
from tests.unit.gpu_host import (
    OLD,
    SERVICE,
    SHIPPED,
    VERSION,
    disk,
    files,
    host,
    loaded,
    modinfo,
    units,
)
from tests.unit.records import records


def test_bug_38_fabric_manager_of_another_patch_level() -> None:
    driver: dict[str, object] = {"version": "530.41.03", "fabric_manager": True}
    said = {name: modinfo(name, OLD, "530.41.03") for name in ("nvidia", "nvidia_uvm")}
    said |= {"nvidia_peermem": modinfo("nvidia_peermem", OLD, "530.41.03")}
    one = loaded(nvidia="S1 530.41.03 1 nvidia_uvm", nvidia_uvm="S1 530.41.03 0 -")
    one = one.replace(f"ml.so.{VERSION}", "ml.so.530.41.03")
    module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  530.41.03  Release\n"
    sections = {
        "drivers_disk": disk(OLD, **said),
        "drivers_loaded": one,
        "drivers_files": records({"/proc/driver/nvidia/version": module}),
        "nvidia_firmware": "530.41.03\n",
    }
    journal = (
        "fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver "
    )
    journal += "version 530.41.03. Please update with matching NVIDIA driver package."
    faulty = host(
        **sections,
        drivers_fabric_manager="Fabric Manager version is : 530.30.02\n",
        gpu_units=units(fabric="failed/enabled"),
        gpu_failures=f"failed {FABRIC_MANAGER}\nsaid {journal}\n",
    )
    settings = found(faulty, **driver)
    assert settings["one version"].persisted.standing is Standing.WRONG
    assert "530.30.02" in str(settings["one version"].persisted.detail)
    manager = settings["fabric manager"]
    assert manager.running.standing is Standing.DEGRADED
    assert "don't match with driver version" in str(manager.running.detail)
    # Another start would fail in the same way.
    assert commands(faulty, **driver) == []
    healthy = host(**sections, drivers_fabric_manager="Fabric Manager version is : 530.41.03\n")
    assert wrong(healthy, **driver) == {}


def test_a_fabric_manager_that_failed_for_a_reason_that_is_gone_is_started_again() -> None:
    failed = host(gpu_units=units(fabric="failed/enabled", ours=""))
    assert commands(failed, fabric_manager=True) == [
        ("systemctl", "reset-failed", FABRIC_MANAGER),
        ("systemctl", "start", FABRIC_MANAGER),
    ]


def test_the_drop_in_drops_no_persistence_mode_and_nothing_else() -> None:
    assert ours(persistence=True) == {
        DROP_IN: f"{HEADER}# The distribution's unit starts the daemon without persistence mode.\n"
        "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced "
        "--user nvidia-persistenced --verbose\n"
    }
    plain = SHIPPED.replace(" --no-persistence-mode", "")
    bare = host(gpu_files=files({SERVICE: plain}, enabled=False), gpu_units=units(ours=""))
    assert gpu_host.ours_of(COMPONENT, asked(persistence=True), bare) == {}
    assert wrong(bare, persistence=True) == {}


def test_a_drop_in_that_comes_after_ours_overrides_it() -> None:
    later = f"/etc/systemd/system/{PERSISTENCED}.d/zzz.conf"
    content = {
        SERVICE: SHIPPED,
        later: f"[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced {FLAG}\n",
        **ours(persistence=True),
    }
    snapshot = host(gpu_files=files(content, enabled=False), gpu_units=units(ours=""))
    setting = found(snapshot, persistence=True)["persistence"]
    assert setting.persisted.standing is Standing.OVERRIDDEN
    assert setting.persisted.decider == later


def test_a_static_unit_is_started_by_its_udev_rule() -> None:
    static = converged(
        {"persistence": True}, gpu_units=units(persistenced="active/static", ours="")
    )
    assert wrong(static, persistence=True) == {}


def test_daemons_that_are_not_wanted_are_stopped_where_that_is_allowed() -> None:
    driver: dict[str, object] = {"fabric_manager": False}
    assert commands(host(), **driver) == [("systemctl", "disable", FABRIC_MANAGER)]
    every = commands(host(), frozenset(Effect), **driver)
    assert every[-1] == ("systemctl", "stop", FABRIC_MANAGER)
    off = host(gpu_units=units(fabric="", ours=""))
    assert wrong(off, **driver) == {}
