"""What a site may say of RDMA stack, GPU driver and GPUDirect Storage, alone and together."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from railwright.compat import Row, judge, tables
from railwright.schema.drivers import DriverSet, GpuDriverSpec, OfedSpec, PlatformSpec
from railwright.schema.drivers_compat import facts_of, refusal
from railwright.schema.drivers_consistency import driver_findings, nic_findings
from railwright.schema.fabric import RoceFabric, RoceQos
from railwright.schema.firmware import FirmwareSpec
from railwright.schema.gds import GdsSpec
from railwright.schema.holds import HoldsSpec
from railwright.schema.modules import ModulesSpec
from railwright.schema.repositories import AptRepository, DnfRepository, Repository

FINGERPRINT = "0123456789ABCDEF0123456789ABCDEF01234567"
DOCA = {
    "url": "https://linux.mellanox.com/public/repo/doca/3.2.1/ubuntu24.04/x86_64/",
    "suite": "./",
    "key": "https://linux.mellanox.com/public/repo/doca/GPG-KEY-Mellanox.pub",
    "fingerprint": FINGERPRINT,
}
CUDA = {
    "url": "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/",
    "key": "/etc/railwright/keys/cuda.asc",
    "fingerprint": FINGERPRINT,
}
# An HGX node as sites have them: DOCA-OFED, open modules, fabric manager, nvidia-fs.
HGX = DriverSet(
    platform=PlatformSpec(
        distribution="ubuntu",
        release="24.04",
        kernel="6.8.0-60-generic",
        architecture="x86_64",
        nic="connectx7",
    ),
    repositories={"doca": AptRepository(**DOCA)},
    ofed=OfedSpec(
        kind="doca_ofed",
        version="3.2.1",
        repository="doca",
        packages={"mlnx-ofed-kernel-dkms": "25.10.OFED.25.10.1.2.8.1-1"},
    ),
    gpu_driver=GpuDriverSpec(
        version="580.95.05",
        branch=580,
        gpu="h100",
        fabric_manager=True,
        persistence=True,
        peer_memory="dma_buf",
        packages={
            "nvidia-open-580": "580.95.05-0ubuntu1",
            "nvidia-fabricmanager": "580.95.05-1",
            "nvidia-container-toolkit": "1.17.8-1",
        },
    ),
    gds=GdsSpec(mode="nvidia-fs", version="2.29.4"),
)


def told(
    drivers: DriverSet, modules: ModulesSpec | None = None, holds: HoldsSpec | None = None
) -> list[str]:
    """All that is refused, a line each."""
    found = driver_findings(drivers, modules or ModulesSpec(), holds or HoldsSpec())
    return [f"{'.'.join(one.path)} is {one.value!r}: expected {one.expected}" for one in found]


def with_driver(**changes: Any) -> DriverSet:
    """The HGX node with another driver."""
    driver = HGX.gpu_driver.model_copy(update=changes)
    return HGX.model_copy(update={"gpu_driver": driver})


def test_nothing_is_asked_of_a_node_that_says_nothing() -> None:
    assert told(DriverSet()) == []
    assert judge(facts_of(DriverSet())) == []


def test_a_whole_node_is_accepted() -> None:
    assert told(HGX) == []


def test_what_is_not_known_of_a_whole_node_is_no_refusal() -> None:
    warnings = judge(facts_of(HGX))
    assert {one.verdict for one in warnings} == {"unknown"}
    assert "doca-nvidia_fs" in {one.table for one in warnings}


def test_a_p2pdma_node_on_the_inbox_stack_is_accepted() -> None:
    gds = GdsSpec(mode="p2pdma")
    assert told(HGX.model_copy(update={"ofed": OfedSpec(kind="inbox"), "gds": gds})) == []


def test_proprietary_modules_are_accepted_where_the_gpu_takes_them() -> None:
    driver = GpuDriverSpec(version="535.247.01", gpu="v100", modules="proprietary")
    assert told(DriverSet(gpu_driver=driver)) == []


def test_bug_38_fabric_manager_of_another_patch_level_is_refused() -> None:
    packages = {"nvidia-fabricmanager-530": "530.30.02-1"}
    drivers = DriverSet(gpu_driver=GpuDriverSpec(version="530.41.03", packages=packages))
    assert told(drivers) == [
        "gpu_driver.packages.nvidia-fabricmanager-530 is '530.30.02-1': expected 530.41.03, as "
        "gpu_driver.version says: these are of one version or do not run"
    ]


def test_bug_38_fabric_manager_of_the_same_version_is_accepted() -> None:
    packages = {"nvidia-fabricmanager-530": "530.41.03-1"}
    assert told(DriverSet(gpu_driver=GpuDriverSpec(version="530.41.03", packages=packages))) == []


def test_bug_39_libraries_held_at_another_version_than_the_driver_are_refused() -> None:
    drivers = DriverSet(gpu_driver=GpuDriverSpec(version="460.56", modules="proprietary"))
    held = HoldsSpec(packages={"libnvidia-compute-460-server": "460.73.01-0ubuntu0.20.04.1"})
    assert told(drivers, holds=held) == [
        "holds.packages.libnvidia-compute-460-server is '460.73.01-0ubuntu0.20.04.1': expected "
        "460.56, as gpu_driver.version says: these are of one version or do not run"
    ]
    same = HoldsSpec(packages={"libnvidia-compute-460-server": "460.56-0ubuntu0.20.04.1"})
    assert told(drivers, holds=same) == []


def test_a_held_package_without_a_version_is_accepted() -> None:
    assert told(HGX, holds=HoldsSpec(packages={"nvidia-open-580": None})) == []


def test_packages_that_only_sound_like_the_drivers_may_have_versions_of_their_own() -> None:
    packages = {
        "nvidia-container-toolkit": "1.17.8-1",
        "libnvidia-container1": "1.17.8-1",
        "nvidia-driver-assistant": "0.21.57.08-1",
        "nvidia-fs-dkms": "2.29.4-1",
        "nvidia-gds-12-8": "12.8.1-1",
    }
    assert told(with_driver(packages=packages)) == []


@pytest.mark.parametrize(
    "version", ["580.95.05-0ubuntu1", "1:580.95.05-1", "580.95.05", "580.95.05~bpo12-1"]
)
def test_a_packages_own_numbers_are_left_out_of_the_drivers_version(version: str) -> None:
    assert told(with_driver(packages={"nvidia-open": version})) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"modules": "proprietary"}, "gds.version is '2.29.4': expected another beside"),
        ({"modules": "proprietary"}, "gpu_driver.peer_memory is 'dma_buf': expected another"),
        ({"gpu": "b200", "modules": "proprietary"}, "gpu_driver.modules is 'proprietary'"),
        ({"gpu": "v100"}, "gpu_driver.modules is 'open': expected another beside gpu_driver.gpu"),
        ({"branch": 570}, "expected a version of branch 570, as gpu_driver.branch says"),
        ({"gpu": "l40s"}, "gpu_driver.fabric_manager is True: expected false or null"),
        ({"version": None}, "gds.mode is 'nvidia-fs': expected gpu_driver.version beside it"),
        ({"version": None}, "gpu_driver.peer_memory is 'dma_buf': expected gpu_driver.version"),
        ({"mig": "on"}, "gpu_driver.mig_profiles is (): expected a profile at least"),
    ],
)
def test_changes_that_do_not_fit_the_rest_are_refused(
    changes: dict[str, Any], expected: str
) -> None:
    assert any(expected in line for line in told(with_driver(**changes)))


@pytest.mark.parametrize(
    ("gpu", "profiles"),
    [
        ("h100", ("1g.10gb",) * 7),
        ("h100", ("3g.40gb", "4g.40gb")),
        ("a30", ("2g.12gb", "2g.12gb+me")),
        ("b200", ("7g.180gb",)),
    ],
)
def test_mig_with_profiles_that_fit_is_accepted(gpu: str, profiles: tuple[str, ...]) -> None:
    driver = GpuDriverSpec.model_validate(
        {"version": "580.95.05", "gpu": gpu, "mig": "on", "mig_profiles": profiles}
    )
    assert told(DriverSet(gpu_driver=driver)) == []


@pytest.mark.parametrize("gpu", ["a30", "h100"])
def test_mig_with_more_slices_than_the_gpu_has_is_refused(gpu: str) -> None:
    driver = GpuDriverSpec.model_validate(
        {"version": "580.95.05", "gpu": gpu, "mig": "on", "mig_profiles": ("4g.24gb",) * 2}
    )
    (line,) = told(DriverSet(gpu_driver=driver))
    assert "not 8" in line


def test_nothing_is_said_of_nvidias_interfaces_where_its_stack_is() -> None:
    fabric = RoceFabric(qos=RoceQos(backend="nvidia"))
    firmware = FirmwareSpec(tool="mlxconfig")
    assert list(nic_findings(HGX, fabric, firmware)) == []
    inbox = DriverSet(ofed=OfedSpec(kind="inbox"))
    assert [one.path for one in nic_findings(inbox, fabric, firmware)] == [
        ("fabric", "qos", "backend"),
        ("firmware", "tool"),
    ]


BAD_ROWS = [row for table in tables() for row in table.rows if row.verdict == "bad"]


@pytest.mark.parametrize("row", BAD_ROWS, ids=lambda row: row.name)
def test_a_bad_row_that_an_inventory_can_ask_for_is_told_by_a_field(row: Row) -> None:
    told = refusal(DriverSet(), row, row.when)
    assert told.path[0] in {"ofed", "gpu_driver", "gds", "lustre", "beegfs"}
    assert row.name in told.expected
    assert row.source in told.expected


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprint": FINGERPRINT[:-1]},
        {"fingerprint": FINGERPRINT.lower()},
        {"fingerprint": "0123 4567 89AB CDEF 0123  4567 89AB CDEF 0123 4567"},
        {"key": "http://linux.mellanox.com/GPG-KEY-Mellanox.pub"},
        {"key": "GPG-KEY-Mellanox.pub"},
        {"key": "https://example.org/a key"},
        {"url": "linux.mellanox.com/public/repo"},
        {"url": "https://example.org/$(reboot)"},
        {"url": 'https://example.org/"'},
        {"suite": "noble main"},
        {"priority": -1},
        {"never": {"dkms; reboot"}},
        {"trusted": True},
    ],
)
def test_repositories_that_are_none_or_not_safe_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AptRepository(**{**DOCA, **changes})


@pytest.mark.parametrize("missing", ["url", "key", "fingerprint", "suite"])
def test_a_repository_says_where_it_is_and_whose(missing: str) -> None:
    with pytest.raises(ValidationError, match="Field required"):
        AptRepository(**{name: value for name, value in DOCA.items() if name != missing})


def test_a_key_may_be_a_file_and_repositories_are_told_apart_by_their_kind() -> None:
    adapter: TypeAdapter[Repository] = TypeAdapter(Repository)
    assert adapter.validate_python({"kind": "dnf", **CUDA}) == DnfRepository(**CUDA)
    assert adapter.validate_python({"kind": "apt", **DOCA}) == AptRepository(**DOCA)
    with pytest.raises(ValidationError, match="kind"):
        adapter.validate_python({"kind": "zypper", **CUDA})
    assert "kind" in DnfRepository(**CUDA).model_fields_set


@pytest.mark.parametrize(
    ("spec", "field", "value", "expected"),
    [
        (OfedSpec, "version", "3.2", "an exact version"),
        (OfedSpec, "version", "latest", "an exact version"),
        (OfedSpec, "version", "3.2.*", "an exact version"),
        (OfedSpec, "profile", "doca-cx", "doca-ofed"),
        (OfedSpec, "packages", {"doca-ofed": "3.2.1*"}, "an exact version"),
        (OfedSpec, "packages", {"doca-ofed; reboot": "3.2.1"}, "a package's name"),
        (OfedSpec, "repository", "DOCA!", "a name of a-z"),
        (GpuDriverSpec, "version", "580", "an exact version"),
        (GpuDriverSpec, "version", "580.*", "an exact version"),
        (GpuDriverSpec, "gpu", "h1000", "h100"),
        (GpuDriverSpec, "mig_profiles", ("8g.80gb",), "a MIG profile"),
        (GpuDriverSpec, "graphics_clock_mhz", (1980, 1200), "the lower clock first"),
        (GpuDriverSpec, "power_limit_w", 0, "greater than"),
        (GpuDriverSpec, "options", {"NVreg_RegistryDwords": "a=1"}, "registry_dwords"),
        (GpuDriverSpec, "options", {"NVreg_X": 'a"b'}, "ASCII text"),
        (GpuDriverSpec, "registry_dwords", {"RM=1;x": 1}, "a registry key"),
        (GpuDriverSpec, "registry_dwords", {"RMForceStaticBar1": -1}, "greater than"),
        (GdsSpec, "version", "2.29", "an exact version"),
        (GdsSpec, "mode", "nvidia_fs", "nvidia-fs"),
        (PlatformSpec, "release", 9.6, "valid string"),
        (PlatformSpec, "kernel", "6.8", "uname -r"),
        (PlatformSpec, "distribution", "rocky", "rhel"),
    ],
)
def test_words_that_are_none_are_refused(spec: Any, field: str, value: Any, expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        spec(**{field: value})


@pytest.mark.parametrize("version", ["580.95.05", "535.247.01", "460.56", "590.48.01", "595.91.07"])
def test_driver_versions_as_nvidia_writes_them_are_accepted(version: str) -> None:
    assert GpuDriverSpec(version=version).version == version


@pytest.mark.parametrize("version", ["3.2.1", "2.9.3", "24.10-1.1.4.0", "5.8-7.0.6.1"])
def test_ofed_versions_as_nvidia_writes_them_are_accepted(version: str) -> None:
    assert OfedSpec(version=version).version == version
