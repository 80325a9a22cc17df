"""Faults that people reported of drivers, each across the components that it takes to tell it."""

from deploys.firmware import COMPONENT as FIRMWARE
from deploys.gds import COMPONENT as GDS
from deploys.gpu_driver import COMPONENT as GPU_DRIVER
from deploys.holds import COMPONENT as HOLDS
from deploys.ofed import COMPONENT as OFED
from railwright.component import gates_of, refusals
from railwright.drift import judge
from railwright.report.document import document
from railwright.schema import Node
from railwright.settings import Effect, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit import firmware_cases, gds_host
from tests.unit.gpu_host import (
    DOCA,
    GPU,
    GPUS,
    NEW,
    OLD,
    STATUS,
    bus,
    disk,
    found,
    host,
    smi,
    with_section,
    wrong,
)
from tests.unit.gpu_host import node as gpu_node
from tests.unit.ports_host import BOOT

ASKED = {
    "ofed": DOCA,
    "gpu_driver": GPU,
    "holds": {"packages": {"linux-image-generic": None, "linux-headers-generic": None}},
}
HELD = "linux-image-generic\t6.8.0-60.63\thold\tinstalled\n"
HELD += "linux-headers-generic\t6.8.0-60.63\thold\tinstalled\n"


def kernels(coming: str, held: str = HELD, **sections: str) -> Snapshot:
    """A node whose kernels of the usual name are held as ``held`` has it."""
    seen = host(OLD, coming, **sections)
    more = {
        "holds_files": "",
        "packages": f"manager dpkg\n{held}",
        "packages_offered": "",
        "apt_history": "",
        "apt_blacklist": "",
    }
    added = {name: Section(stdout=text, rc=0) for name, text in more.items()}
    return seen.model_copy(update={"sections": {**seen.sections, **added}})


def moved() -> Snapshot:
    """An unattended upgrade has brought a kernel for which dkms has built nothing."""
    return kernels(
        NEW,
        HELD.replace("\thold\t", "\tinstall\t"),
        drivers_dkms=STATUS.format(kernel=OLD),
        drivers_disk=disk(OLD)
        + f"kernel {NEW}\nvermagic {NEW} SMP preempt mod_unload\n"
        + f"sources /usr/src/ofa_kernel/x86_64/{OLD}\n",
    )


def test_peers_5_7_a_kernel_that_an_upgrade_moved_is_drift_against_dkms_and_the_hold_list() -> None:
    asked = gpu_node(**ASKED)
    components = (OFED, GPU_DRIVER, HOLDS)
    reports = judge([asked], {asked.name: moved()}, components)
    assert document("drift", reports, accept_pending=True).exit_code == 2
    told = {
        f"{finding.setting.component} {finding.setting.key}": finding.verdict
        for finding in reports[0].findings
    }
    # Not built for the kernel that comes, and that it came is because nothing held it.
    assert told[f"ofed dkms mlnx-ofed-kernel for {NEW}"] is Verdict.WRONG
    assert told[f"ofed dkms nvidia for {NEW}"] is Verdict.WRONG
    assert told["holds hold linux-image-generic"] is not Verdict.OK
    assert told["holds hold linux-headers-generic"] is not Verdict.OK
    # Nor may the node be rebooted into it.
    (said,) = refusals(gates_of(components, asked), asked, moved())
    assert said.startswith(f"ofed refuses the reboot: kernel {NEW} is not complete: ")


def test_peers_5_7_healthy_twin_a_kernel_that_is_held_and_built_for_is_no_drift() -> None:
    asked = gpu_node(**ASKED)
    seen = kernels(OLD)
    assert wrong(OFED, asked, seen) == {}
    assert wrong(GPU_DRIVER, asked, seen) == {}
    holds = found(HOLDS, asked, seen)
    assert holds["hold linux-image-generic"].persisted.standing is Standing.RIGHT
    assert refusals(gates_of((OFED,), asked), asked, seen) == []


def test_peers_5_13_what_is_wanted_of_a_nic_its_next_boot_and_what_is_in_force_are_three() -> None:
    asked = firmware_cases.ASKED_VFS
    seen = firmware_cases.nic(
        firmware_cases.vfs(16, 16, 12), notes=firmware_cases.note(BOOT)
    )  # default 16, current 16, next boot 12
    setting = firmware_cases.found(asked, seen)["rail0 NUM_OF_VFS"]
    assert (setting.desired, setting.persisted.value, setting.running.value) == ("12", "12", "16")
    taken = firmware_cases.nic(firmware_cases.vfs(16, 12, 12), notes=firmware_cases.note(BOOT))
    assert verdict(firmware_cases.found(asked, taken)["rail0 NUM_OF_VFS"], asked.effects.allow) is (
        Verdict.OK
    )


def test_peers_5_13_a_setting_that_a_reboot_did_not_bring_is_rebooted_for_once() -> None:
    asked = firmware_cases.ASKED_VFS
    once = firmware_cases.nic(firmware_cases.vfs(16, 16, 12), notes=firmware_cases.note(BOOT))
    assert firmware_cases.reboots(asked, once)
    again = firmware_cases.nic(
        firmware_cases.vfs(16, 16, 12), notes=firmware_cases.note(firmware_cases.OLD_BOOT)
    )
    assert not firmware_cases.reboots(asked, again)
    assert FIRMWARE.settings(asked, again)


def test_peers_5_13_healthy_twin_no_reboot_is_asked_for_what_is_in_force() -> None:
    asked = firmware_cases.ASKED_VFS
    taken = firmware_cases.nic(firmware_cases.vfs(16, 12, 12))
    assert not firmware_cases.reboots(asked, taken)
    assert [c for s in FIRMWARE.settings(asked, taken) for c in changes(s, frozenset(Effect))] == []


def test_bug_43_twin_all_gpus_that_the_bus_has_are_listed() -> None:
    asked = gpu_node(gpu_driver=GPU)
    assert wrong(GPU_DRIVER, asked, host(drivers_smi=smi(), gpu_bus=bus())) == {}
    assert found(GPU_DRIVER, asked, host())["gpus"].running.standing is Standing.RIGHT
    # The row's node: eight on the bus, and the last of them has no driver.
    lost = host(drivers_smi=smi(GPUS[:7]), gpu_bus=bus(gpu7="-"))
    detail = found(GPU_DRIVER, asked, lost)["gpus"].running.detail or ""
    assert GPUS[7] in detail
    assert not any(pci in detail for pci in GPUS[:7])


WITH_COMMENTS = """{
    // NOTE : a user's process may bring a file of its own
    "properties": {
            // falls back to POSIX where this is true
            "allow_compat_mode": true,
    },
}
"""


def test_bug_46_a_file_with_comments_and_trailing_commas_is_edited_and_keeps_them() -> None:
    asked = gds_host.node(properties={"allow_compat_mode": False})
    left = gds_host.written(asked, gds_host.snapshot(WITH_COMMENTS))
    assert left == WITH_COMMENTS.replace("true,\n", "false,\n")
    assert set(gds_host.verdicts(asked, gds_host.snapshot(left)).values()) == {Verdict.OK}


def test_bug_46_an_environment_that_points_to_a_missing_path_is_told() -> None:
    asked = gds_host.node(properties={"allow_compat_mode": False})
    line = "/etc/profile.d/gds.sh:1:export CUFILE_ENV_PATH_JSON=/opt/gone/cufile.json\n"
    faulty = gds_host.snapshot(WITH_COMMENTS, environment=line)
    key = "environment /etc/profile.d/gds.sh:1"
    assert gds_host.verdicts(asked, faulty)[key] is Verdict.OVERRIDDEN
    assert gds_host.of(key, asked, faulty).persisted.detail == "there is no such file"
    assert gds_host.written(asked, faulty) is not None
    # No file at all, as a package without one leaves it: one of ours has what is asked for.
    bare = gds_host.snapshot(None)
    assert gds_host.verdicts(asked, bare)["cufile properties.allow_compat_mode"] is Verdict.WRONG
    assert '"allow_compat_mode": false' in (gds_host.written(asked, bare) or "")
    assert key not in gds_host.verdicts(asked, gds_host.snapshot(WITH_COMMENTS))
    assert GDS.settings(Node(name="n1"), faulty) == []


def test_bug_55_a_guest_is_told_before_anything_is_promised_to_it() -> None:
    guest = gds_host.snapshot(told=gds_host.platform(virtual="kvm", nvidia_fs="yes"))
    asked = gds_host.node("p2pdma")
    assert gds_host.verdicts(asked, guest)["mode"] is Verdict.DEGRADED
    metal = gds_host.snapshot(told=gds_host.platform(virtual="none", nvidia_fs="yes"))
    assert gds_host.verdicts(asked, metal)["mode"] is Verdict.OK


def test_bug_4_of_two_nodes_the_one_without_peermem_is_named() -> None:
    driver = {**GPU, "peer_memory": "nvidia_peermem"}
    nodes = [gpu_node(ofed=DOCA, gpu_driver=driver).model_copy(update={"name": name})
             for name in ("gpu001", "gpu002")]  # fmt: skip
    whole = host()
    peermem = f"loaded\tnvidia_peermem\tS1\t{GPU['version']}\t0\tlive\t-\n"
    other = with_section(whole, "drivers_loaded", stdout=peermem + whole.text("drivers_loaded"))
    reports = judge(nodes, {"gpu001": whole, "gpu002": other}, [GPU_DRIVER])
    running = {
        report.host: finding.setting.running.standing
        for report in reports
        for finding in report.findings
        if finding.setting.key == "peer memory"
    }
    assert running["gpu001"] is Standing.ABSENT
    assert running["gpu002"] is Standing.RIGHT


def gds_users(*users: str, drives: tuple[str, ...] = ("nvme nvme0 pcie",)) -> Snapshot:
    """nvidia-fs is loaded, and these storage drivers have registered with it."""
    lines = ("users=read", *(f"user {name}: 1" for name in users), "iommu identity", *drives)
    return gds_host.snapshot(told=gds_host.platform(*lines, nvidia_fs="yes"))


def test_peers_5_1_a_nvidia_fs_that_no_storage_driver_uses_is_degraded() -> None:
    asked = gds_host.node("nvidia-fs")
    setting = gds_host.of("mode", asked, gds_users())
    assert gds_host.verdicts(asked, gds_users())["mode"] is Verdict.DEGRADED
    assert "no storage driver has registered with nvidia-fs" in (setting.running.detail or "")
    assert "gds-nvidia-fs#87" in (setting.running.detail or "")
    # The healthy twin, and one whose drives are left out while its file system is not.
    assert gds_host.verdicts(asked, gds_users("nvme"))["mode"] is Verdict.OK
    assert gds_host.of("mode", asked, gds_users("nvme")).running.detail is None
    doubt = gds_host.of("mode", asked, gds_users("lnet")).running
    assert doubt.standing is Standing.RIGHT
    assert "only lnet has registered with nvidia-fs" in (doubt.detail or "")
    assert gds_host.of("mode", asked, gds_users("lnet", drives=())).running.detail is None
