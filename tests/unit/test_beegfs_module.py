"""BeeGFS's kernel module: what it is built against, for which kernels, and what is loaded."""

from dataclasses import replace

from facts.beegfs import FORCED
from railwright.actions import RunScript
from railwright.schema import Effect
from railwright.settings import Verdict
from tests.unit.beegfs_host import (
    AUTOBUILD,
    BUILD_MK,
    KERNEL,
    MODULE,
    WHERE,
    commands,
    converged,
    done,
    found,
    node,
    stock,
    value,
    verdicts,
    written,
)
from tests.unit.records import MTIME


def test_it_is_built_against_ofed_and_the_next_run_builds_nothing() -> None:
    asked = node(ofed_headers=True)
    assert verdicts(asked, stock())[f"module for {KERNEL}"] is Verdict.NOT_GENERATED
    todo = done(asked, stock())
    built = [a for a in todo if isinstance(a, RunScript) and a.name == "railwright-dkms"]
    assert [a.arguments for a in built] == [(KERNEL, "beegfs/8.3.1")]
    text = written(asked, stock(), BUILD_MK)
    assert text.endswith("\nOFED_INCLUDE_PATH=/usr/src/ofa_kernel/default/include\n")
    assert done(asked, converged(asked, stock())) == []


def test_arguments_of_the_classic_build_keep_what_is_foreign() -> None:
    files = {**stock(build="autobuild").files, AUTOBUILD: "buildArgs=-j16 BEEGFS_DEBUG=1\n"}
    world = replace(stock(build="autobuild"), files=files)
    asked = node(build="autobuild", ofed_headers=True)
    text = written(asked, world, AUTOBUILD)
    assert text == (
        "buildArgs=-j16 BEEGFS_DEBUG=1 OFED_INCLUDE_PATH=/usr/src/ofa_kernel/default/include\n"
        "buildEnabled=true\n"
    )
    assert ("/etc/init.d/beegfs-client", "rebuild") in commands(done(asked, world))


def test_gds_is_built_with_the_sources_of_nvidia_fs_once_they_are_configured() -> None:
    data = {
        "gds": {"mode": "nvidia-fs", "version": "2.26.6"},
        "gpu_driver": {"version": "580.95.05"},
    }
    asked = node(data=data, ofed_headers=True, gds=True)
    world = replace(stock(), others=("/usr/src/nvidia-fs-2.26.6/nvfs-dma.h",))
    text = written(asked, world, BUILD_MK)
    assert value(text, "NVFS_INCLUDE_PATH") == "/usr/src/nvidia-fs-2.26.6"
    assert value(text, "NVIDIA_INCLUDE_PATH") == "/usr/src/nvidia-580.95.05/nvidia"
    names = [a.name for a in done(asked, world) if isinstance(a, RunScript)]
    assert names.index("railwright-beegfs-configure") < names.index("railwright-dkms")
    lacking = found(asked, stock())["/usr/src/nvidia-fs-2.26.6/config-host.h"]
    assert (lacking.acts, lacking.remedy) == (False, "install nvidia-fs-dkms")


def test_a_module_that_was_built_before_its_options_changed_is_built_anew() -> None:
    asked = node(ofed_headers=True)
    world = converged(asked, stock())
    old = replace(world, modules={MODULE: world.mtime - 60})
    setting = found(asked, old)[f"module for {KERNEL}"]
    assert setting.persisted.detail == f"built before {BUILD_MK} was changed"
    assert [a.name for a in done(asked, old) if isinstance(a, RunScript)] == ["railwright-dkms"]


def test_a_forced_build_of_the_service_is_due() -> None:
    asked = node(build="autobuild")
    world = replace(converged(asked, stock(build="autobuild")), others=(FORCED,))
    assert verdicts(asked, world)[f"module for {KERNEL}"] is Verdict.NOT_GENERATED
    assert commands(done(asked, world)) == [("/etc/init.d/beegfs-client", "rebuild")]


def test_without_a_module_nothing_is_mounted() -> None:
    asked = node()
    world = replace(stock(), modules={}, dkms="")
    there = found(asked, world)
    assert there[f"module for {KERNEL}"].remedy == "install beegfs-client-dkms"
    assert there[f"mount {WHERE}"].running.detail == (
        f"there is no module of BeeGFS 8 for kernel {KERNEL}"
    )
    assert ("systemctl", "start", "mnt-beegfs.mount") not in commands(done(asked, world))


def test_the_module_of_another_major_is_told() -> None:
    world = replace(stock(7), loaded="disk_version=7.4.6\n")
    setting = found(node(), world)[f"module for {KERNEL}"]
    assert (setting.persisted.value, setting.acts) == ("BeeGFS 7.4.6", False)


def test_a_build_that_is_not_loaded_yet_waits_for_a_reboot() -> None:
    loaded = "loaded_version=8.3.0\nloaded_srcversion=A\ndisk_version=8.3.1\ndisk_srcversion=B\n"
    world = replace(converged(node(), stock()), loaded=loaded)
    setting = found(node(), world)[f"module for {KERNEL}"]
    assert setting.effect is Effect.REBOOT
    assert verdicts(node(), world)[setting.key] is Verdict.PENDING
    assert done(node(), world) == []


def test_another_kernel_is_built_for_where_it_has_its_headers() -> None:
    other = "6.8.0-79-generic"
    path = MODULE.replace(KERNEL, other)
    world = replace(stock(), modules={**stock().modules, path: MTIME})
    asked = node(ofed_headers=True)
    setting = found(asked, world)[f"module for {other}"]
    assert (setting.acts, setting.remedy) == (False, f"install the headers of kernel {other}")
    whole = replace(world, others=(f"/lib/modules/{other}/build",))
    built = [a for a in done(asked, whole) if isinstance(a, RunScript)]
    assert [a.arguments[0] for a in built if a.name == "railwright-dkms"] == [KERNEL, other]
