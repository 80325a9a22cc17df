"""gdscheck's report, old and new. The recorded corpus is read in test_parse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.gdscheck import GdsCheck, parse_gdscheck

HEAD = """\
 GDS release version: 1.16.1.26
 nvidia_fs version:  2.27 nvidia_fs minimum version: 2.12
 Platform: x86_64
 ============
 ENVIRONMENT:
 ============
 CUFILE_LOGGING_LEVEL : TRACE
 =====================
 DRIVER CONFIGURATION:
 =====================
"""
ROUTES = """\
 NVMe               : nvfs, compat
 NVMeOF             : compat
 IBM Spectrum Scale : p2pdma, compat
 WekaFS             : dmabuf, compat
 Userspace RDMA     : Supported
 --Mellanox PeerDirect : Disabled
 --DmaBuf support      : Enabled
 --rdma library        : Loaded (libcufile_rdma.so)
 --rdma devices        : Configured
 --rdma_multipath      : Disabled
 --rdma_device_status  : Up: 7 Down: 1
"""
SUPPORTED = """\
 NVMe P2PDMA        : Unsupported
 NVMe               : Supported
 Userspace RDMA     : Unsupported
 --rdma library        : Not Loaded (libcufile_rdma.so)
 --rdma devices        : Not configured
"""
TAIL = """\
 =====================
 CUFILE CONFIGURATION:
 =====================
 properties.use_pci_p2pdma : false
 properties.use_compat_mode : true
 properties.posix_pool_slab_size_kb : 4 1024 16384 
 fs.lustre.posix_gds_min_kb: 0
 block.nvme.use_pci_p2pdma : true
 =========
 GPU INFO:
 =========
 GPU index 0 NVIDIA H100 80GB HBM3 bar:1 bar size (MiB):131072 supports GDS, IOMMU State: Disabled
 GPU index 1 Quadro RTX 4000 bar:1 bar size (MiB):256 supports GDS
 GPU index 2 Quadro K2200 bar:1 bar size (MiB):256 does not support GDS
 ==============
 PLATFORM INFO:
 ==============
 IOMMU: Pass-through or enabled
 WARN: GDS is not guaranteed to work functionally or in a performant way with iommu=on/pt
 Found ACS enabled for switch 0000:41:02.1
 Nvidia Driver Info Status: Supported(Nvidia Open Driver Installed)
 Cuda Driver Version Installed:  12080
 Platform: R0000 G1, Arch: x86_64(Linux 5.15.0-105-generic)
 Platform verification succeeded
"""  # noqa: W291
REPORT = HEAD + ROUTES + TAIL
LINES = [*REPORT.splitlines(), *SUPPORTED.splitlines(), "parse error: expecting ','"]


def test_the_head_and_the_environment() -> None:
    found = parse_gdscheck(REPORT)
    assert (found.gds, found.nvidia_fs, found.nvidia_fs_minimum) == ("1.16.1.26", "2.27", "2.12")
    assert (found.libcufile, found.platform) == (None, "x86_64")
    assert found.environment == {"CUFILE_LOGGING_LEVEL": "TRACE"}


def test_routes_and_which_of_them_are_direct() -> None:
    found = parse_gdscheck(REPORT)
    assert found.storages["NVMe"].routes == ("nvfs", "compat")
    direct = {name: found.direct(name) for name in found.storages}
    assert direct == {
        "NVMe": True,
        "NVMeOF": False,
        "IBM Spectrum Scale": False,
        "WekaFS": True,
    }


def test_older_releases_say_supported() -> None:
    found = parse_gdscheck(HEAD + SUPPORTED + TAIL)
    assert {name: found.direct(name) for name in found.storages} == {
        "NVMe P2PDMA": False,
        "NVMe": True,
    }
    assert found.userspace_rdma is False


def test_rdma_of_user_space() -> None:
    rdma = parse_gdscheck(REPORT).rdma
    assert (rdma.peerdirect, rdma.dmabuf, rdma.library_loaded) == (False, True, True)
    assert (rdma.devices_configured, rdma.up, rdma.down) == (True, 7, 1)
    older = parse_gdscheck(HEAD + SUPPORTED + TAIL).rdma
    assert (older.peerdirect, older.library_loaded, older.devices_configured) == (
        None,
        False,
        False,
    )


def test_properties_and_what_they_keep_from_working() -> None:
    found = parse_gdscheck(REPORT)
    assert found.compat_allowed
    assert found.properties["properties.posix_pool_slab_size_kb"] == "4 1024 16384"
    assert found.properties["fs.lustre.posix_gds_min_kb"] == "0"
    assert found.p2pdma_blockers == ("properties.use_pci_p2pdma",)
    on = REPORT.replace("properties.use_pci_p2pdma : false", "properties.use_pci_p2pdma : true")
    assert parse_gdscheck(on).p2pdma_blockers == ()


def test_gpus_and_platform() -> None:
    found = parse_gdscheck(REPORT)
    assert {index: gpu.supported for index, gpu in found.gpus.items()} == {
        0: True,
        1: True,
        2: False,
    }
    assert (found.gpus[0].bar_mib, found.gpus[0].iommu, found.gpus[1].iommu) == (
        131072,
        "Disabled",
        None,
    )
    assert (found.iommu, found.acs_enabled) == ("enabled_or_pt", ("0000:41:02.1",))
    assert (found.open_driver, found.cuda_driver, found.verified) == (True, 12080, True)
    assert len(found.warnings) == 1


@pytest.mark.parametrize(
    ("said", "iommu"),
    [
        ("disabled", "disabled"),
        ("enabled", "enabled"),
        ("Pass-through or enabled", "enabled_or_pt"),
    ],
)
def test_the_iommu(said: str, iommu: str) -> None:
    text = REPORT.replace("IOMMU: Pass-through or enabled\n", f"IOMMU: {said}\n")
    assert parse_gdscheck(text).iommu == iommu


def test_a_module_that_is_not_loaded_has_no_version() -> None:
    text = REPORT.replace("nvidia_fs version:  2.27 ", "")
    found = parse_gdscheck(f" No GPU found in the system, use this library only for sysmem\n{text}")
    assert (found.nvidia_fs, found.nvidia_fs_minimum) == (None, "2.12")


def test_what_is_not_told_is_not_taken_for_good() -> None:
    short = parse_gdscheck(HEAD + ROUTES)
    assert (short.iommu, short.verified, short.open_driver, short.compat_allowed) == (None,) * 4


def test_no_report_at_all() -> None:
    broken = " cuFile configuration load error\n config file: /etc/cufile.json\n parse error: x\n"
    assert parse_gdscheck(broken, 1).error == "cufile_json"
    with pytest.raises(ValueError, match="expected gdscheck's report"):
        parse_gdscheck(broken, 0)
    absent = parse_gdscheck("sh: 1: gdscheck: not found\n", 127)
    assert absent == GdsCheck(error="not_installed", message="sh: 1: gdscheck: not found")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Segmentation fault\n",
        HEAD,
        HEAD + " NVMe               : Perhaps So\n",
        HEAD + " NVMe\n",
        REPORT.replace("bar size (MiB):131072", "bar size (MiB):large"),
        REPORT.replace("IOMMU: Pass-through or enabled", "IOMMU: who knows"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_gdscheck(text)


@given(
    st.dictionaries(
        st.sampled_from(["NVMe", "NVMeOF", "NFS", "BeeGFS", "DDN EXAScaler"]),
        st.lists(st.sampled_from(["nvfs", "p2pdma", "c2c", "compat"]), min_size=1, unique=True),
        min_size=1,
    )
)
def test_routes_are_read_back(routes: dict[str, list[str]]) -> None:
    lines = [f" {name:<18} : {', '.join(listed)}" for name, listed in routes.items()]
    found = parse_gdscheck(HEAD + "\n".join(lines) + "\n" + TAIL)
    assert {name: s.routes for name, s in found.storages.items()} == {
        name: tuple(listed) for name, listed in routes.items()
    }
    for name, listed in routes.items():
        assert found.direct(name) == (listed != ["compat"])


@given(st.lists(st.sampled_from(LINES) | st.text()), st.sampled_from([0, 1, 127]))
def test_nothing_but_a_value_error_is_raised(lines: list[str], rc: int) -> None:
    try:
        found = parse_gdscheck("\n".join(lines), rc)
    except ValueError:
        return
    assert found.storages or found.error
