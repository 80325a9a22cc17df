"""One version of module, libraries, fabric manager and firmware; OFED's modules of its release."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.dkms import Dkms
from facts.driver_kernels import DriversOnDisk
from facts.drivers import Drivers
from facts.modinfo import LoadedModule, ModuleFile
from facts.next_boot import NextKernel
from facts.nvidia_proc import NvidiaModule
from facts.ofed import INBOX, Ofed, parse_ofed_info
from railwright.drivers.finding import Finding
from railwright.drivers.peer_memory import peermem_findings
from railwright.drivers.symbols import OnDisk
from railwright.drivers.versions import (
    NVIDIA,
    GpuVersions,
    gpu_findings,
    gpu_versions,
    loaded_findings,
    nouveau_findings,
    ofed_findings,
    upstream,
)
from railwright.files import FileRecord
from railwright.resolve.modules import modprobe_config

KERNEL = "6.8.0-60-generic"
OLD, NEW = "580.65.06", "580.95.05"


def file(name: str, version: str | None, source: str | None = "AAAA", path: str = "") -> ModuleFile:
    path = path or f"updates/dkms/{name}.ko"
    return ModuleFile(
        name=name,
        filename=f"/lib/modules/{KERNEL}/{path}",
        version=version,
        srcversion=source,
    )


def gpu(version: str = NEW, **changes: object) -> GpuVersions:
    """A driver of one version in all its parts, and what ``changes`` says otherwise."""
    values: dict[str, object] = {
        "kernel": KERNEL,
        "files": {name: file(name, version) for name in NVIDIA},
        "loaded": {n: LoadedModule(version=version, srcversion="AAAA") for n in NVIDIA},
        "driver": version,
        "libraries": {"libnvidia-compute-580": f"{version}-0ubuntu0.24.04.1"},
        "fabric_manager": f"{version}-1",
        "firmware": frozenset({version}),
    }
    return GpuVersions.model_validate(values | changes)


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.subject, finding.kind) for finding in findings]


def test_a_driver_of_one_version_has_no_findings() -> None:
    assert gpu_findings(gpu()) == ()


def test_bug_38_a_fabric_manager_of_another_patch_level() -> None:
    findings = gpu_findings(gpu("530.41.03", fabric_manager="530.30.02-1"))
    assert told(findings) == [("nvidia-fabricmanager", "version")]
    assert findings[0].words == (
        "nvidia-fabricmanager: is 530.30.02, and the driver on disk is 530.41.03: it will not "
        "start; install it in version 530.41.03, and hold both together"
    )
    assert gpu_findings(gpu("530.41.03", fabric_manager="1:530.41.03-1")) == ()
    # A node without NVSwitch has none.
    assert gpu_findings(gpu("530.41.03", fabric_manager=None)) == ()


def test_bug_39_libraries_were_upgraded_under_a_loaded_module() -> None:
    old = {name: LoadedModule(version="460.56", srcversion="OLD") for name in NVIDIA[:2]}
    upgraded = gpu(
        "460.73.01",
        loaded=old,
        driver="460.56",
        fabric_manager=None,
        firmware=frozenset({"460.73.01", "460.56"}),
    )
    findings = gpu_findings(upgraded)
    assert told(findings) == [
        ("nvidia", "loaded"),
        ("nvidia_modeset", "loaded"),
        ("libnvidia-compute-580", "loaded"),
    ]
    assert "version 460.56 (srcversion OLD) is loaded" in findings[0].found
    assert findings[2].found == ("is 460.73.01, and the module loaded is 460.56: NVML refuses that")
    assert gpu_findings(gpu("460.56")) == ()


def test_the_versions_of_a_node_s_facts() -> None:
    files = {name: file(name, NEW) for name in NVIDIA}
    drivers = Drivers(
        next_boot=NextKernel(version=KERNEL, running=KERNEL),
        loaded={"nvidia": LoadedModule(version=OLD, srcversion="BBBB")},
        kernels={KERNEL: DriversOnDisk(kernel=KERNEL, disk=OnDisk(files=files))},
        ofed=INBOX,
        dkms=Dkms(),
        nvidia=NvidiaModule(version=OLD, flavour="open"),
        libraries=(NEW,),
        fabric_manager=NEW,
    )
    findings = gpu_findings(gpu_versions(drivers, frozenset({OLD, NEW})))
    assert told(findings) == [
        ("nvidia", "loaded"),
        (f"libnvidia-ml.so.{NEW}", "loaded"),
        ("nvidia-fabricmanager", "loaded"),
    ]
    fresh = drivers.model_copy(
        update={
            "loaded": {"nvidia": LoadedModule(version=NEW, srcversion="AAAA")},
            "nvidia": NvidiaModule(version=NEW, flavour="open"),
        }
    )
    assert gpu_findings(gpu_versions(fresh, frozenset({NEW}))) == ()


def test_libraries_of_another_version_than_the_module_on_disk() -> None:
    findings = gpu_findings(gpu(libraries={"libnvidia-ml.so.1": OLD}))
    assert told(findings) == [("libnvidia-ml.so.1", "version")]
    assert findings[0].remedy == f"install libnvidia-ml.so.1 in version {NEW}"


def test_peermem_of_another_version_than_nvidia() -> None:
    files = {name: file(name, NEW) for name in NVIDIA} | {
        "nvidia_peermem": file("nvidia_peermem", OLD)
    }
    assert ("nvidia_peermem", "version") in told(gpu_findings(gpu(files=files)))


@pytest.mark.parametrize(
    ("firmware", "kind"),
    [(frozenset({OLD}), "version"), (frozenset[str](), "version"), (None, "unreadable")],
)
def test_firmware_of_another_version(firmware: frozenset[str] | None, kind: str) -> None:
    assert told(gpu_findings(gpu(firmware=firmware))) == [("GSP firmware", kind)]


def test_a_loaded_driver_needs_its_own_firmware_until_it_is_reloaded() -> None:
    stale = {name: LoadedModule(version=OLD, srcversion="BBBB") for name in NVIDIA}
    findings = gpu_findings(gpu(loaded=stale, driver=OLD))
    assert ("GSP firmware", "version") in told(findings)
    assert any(OLD in f.found for f in findings if f.subject == "GSP firmware")


@pytest.mark.parametrize(
    ("files", "kind"),
    [({}, "absent"), ({"nvidia": file("nvidia", None)}, "unreadable")],
)
def test_without_a_version_on_disk_nothing_is_taken_for_right(
    files: dict[str, ModuleFile], kind: str
) -> None:
    assert told(gpu_findings(gpu(files=files))) == [("nvidia", kind)]


@pytest.mark.parametrize(
    ("version", "source", "found"),
    [
        (NEW, "AAAA", []),
        (NEW, "BBBB", [("nvidia", "loaded")]),
        (OLD, "AAAA", [("nvidia", "loaded")]),
        (None, None, [("nvidia", "loaded")]),
    ],
)
def test_loaded_against_on_disk(
    version: str | None, source: str | None, found: list[tuple[str, str]]
) -> None:
    loaded = {"nvidia": LoadedModule(version=version, srcversion=source)}
    findings = loaded_findings(["nvidia"], KERNEL, {"nvidia": file("nvidia", NEW)}, loaded)
    assert told(tuple(findings)) == found


def test_modules_of_the_kernel_s_own_without_versions_are_known_by_their_place() -> None:
    bare = {"ib_core": LoadedModule()}
    inbox = {"ib_core": file("ib_core", None, None, "kernel/drivers/infiniband/core/ib_core.ko")}
    assert not tuple(loaded_findings(["ib_core"], KERNEL, inbox, bare))
    theirs = {"ib_core": file("ib_core", None, None)}
    assert told(tuple(loaded_findings(["ib_core"], KERNEL, theirs, bare))) == [
        ("ib_core", "unreadable")
    ]


def test_a_loaded_module_that_is_gone_from_disk() -> None:
    findings = tuple(loaded_findings(["nvidia"], KERNEL, {}, {"nvidia": LoadedModule()}))
    assert told(findings) == [("nvidia", "loaded")]
    assert "is loaded and not on disk" in findings[0].found


OFED = parse_ofed_info("MLNX_OFED_LINUX-24.10-1.1.4.0:\n")
DOCA = parse_ofed_info("OFED-internal-25.10-1.2.8:\n")
INBOX_PATH = "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.zst"


@pytest.mark.parametrize(
    ("ofed", "on_disk", "kinds"),
    [
        (OFED, file("mlx5_core", "24.10-1.1.4"), []),
        (DOCA, file("mlx5_core", "25.10-1.2.8"), []),
        (INBOX, file("mlx5_core", None, None, INBOX_PATH), []),
        (DOCA, file("mlx5_core", "24.10-1.1.4"), ["version"]),
        (OFED, file("mlx5_core", "24.10"), ["version"]),
        (DOCA, file("mlx5_core", None, None, INBOX_PATH), ["mixed"]),
        (INBOX, file("mlx5_core", "25.10-1.2.8"), ["mixed"]),
        (DOCA, file("mlx5_core", None), ["unreadable"]),
        (DOCA, None, ["absent"]),
        (INBOX, None, ["absent"]),
    ],
)
def test_ofed_against_mlx5_core(ofed: Ofed, on_disk: ModuleFile | None, kinds: list[str]) -> None:
    files = {} if on_disk is None else {"mlx5_core": on_disk}
    assert [f.kind for f in ofed_findings(ofed, KERNEL, files, {})] == kinds


def test_peers_5_11_the_inbox_driver_runs_although_ofed_s_is_on_disk() -> None:
    files = {"mlx5_core": file("mlx5_core", "25.10-1.2.8", "OFED")}
    findings = ofed_findings(DOCA, KERNEL, files, {"mlx5_core": LoadedModule()})
    assert told(findings) == [("mlx5_core", "loaded")]
    assert findings[0].found == (
        "version none (no srcversion) is loaded, and updates/dkms/mlx5_core.ko is version "
        "25.10-1.2.8 (srcversion OFED)"
    )
    same = {"mlx5_core": LoadedModule(version="25.10-1.2.8", srcversion="OFED")}
    assert ofed_findings(DOCA, KERNEL, files, same) == ()


def test_nouveau_is_neither_loaded_nor_loadable() -> None:
    line = "blacklist nouveau\n"
    listed = modprobe_config(
        [FileRecord(path="/etc/modprobe.d/x.conf", kind="file", content=line, size=len(line))]
    )
    holds = {"nouveau": LoadedModule(refcnt=1)}
    assert nouveau_findings({}, listed) == ()
    assert told(nouveau_findings(holds, listed)) == [("nouveau", "loaded")]
    assert told(nouveau_findings({}, modprobe_config([]))) == [("nouveau", "config")]
    assert nouveau_findings({}, modprobe_config([], "quiet modprobe.blacklist=nouveau")) == ()


PEERMEM = {"nvidia_peermem": LoadedModule(refcnt=0)}
LISTED = {"nvidia_peermem": "/etc/modules-load.d/nvidia-peermem.conf:1"}


def test_bug_4_peermem_is_not_loaded_after_a_reboot() -> None:
    bare = tuple(peermem_findings({"nvidia": LoadedModule(refcnt=0)}, {}))
    assert told(bare) == [("nvidia_peermem", "loaded"), ("nvidia_peermem", "config")]
    assert bare[1].words == (
        "nvidia_peermem: nothing loads it at boot; list nvidia-peermem in modules-load.d"
    )
    # Loaded by hand, it is gone after the next reboot.
    assert told(tuple(peermem_findings(PEERMEM, {}))) == [("nvidia_peermem", "config")]
    assert told(tuple(peermem_findings({}, LISTED))) == [("nvidia_peermem", "loaded")]
    assert not tuple(peermem_findings(PEERMEM, LISTED))


@given(st.from_regex(r"[1-9][0-9]{2}\.[0-9]{2,3}(\.[0-9]{2})?", fullmatch=True))
def test_a_package_s_version_without_epoch_and_revision(version: str) -> None:
    for text in (version, f"{version}-1", f"1:{version}-0ubuntu0.24.04.1", f"3:{version}"):
        assert upstream(text) == version
