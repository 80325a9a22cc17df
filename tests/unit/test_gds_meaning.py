"""Each bad line of gdscheck has a cause and a remedy, and a good one has none."""

from hypothesis import given
from hypothesis import strategies as st

from facts.gdscheck import GdsCheck, GdsGpu, RdmaSupport, Storage, parse_gdscheck
from railwright.gds.meaning import Finding, GdsHost, findings

COMPAT = Storage(routes=("compat",))
DIRECT = Storage(routes=("nvfs", "compat"))
NAMES = (
    "NVMe",
    "NVMeOF",
    "SCSI",
    "NFS",
    "BeeGFS",
    "DDN EXAScaler",
    "WekaFS",
    "IBM Spectrum Scale",
    "VIRTIOFS",
)
HEALTHY = GdsCheck(
    gds="1.16.1.26",
    nvidia_fs="2.27",
    storages={"NVMe": DIRECT, "NFS": DIRECT},
    userspace_rdma=True,
    rdma=RdmaSupport(peerdirect=True, devices_configured=True, up=8, down=0),
    properties={"properties.use_compat_mode": "true"},
    gpus={0: GdsGpu(name="H100", bar_mib=131072, supported=True)},
    iommu="disabled",
    driver_info="Supported(Nvidia Open Driver Installed)",
    verified=True,
)


def told(host: GdsHost | None = None, **changes: object) -> dict[str, Finding]:
    report = HEALTHY.model_copy(update=changes)
    return {finding.subject: finding for finding in findings(report, host)}


def test_a_good_report_has_no_bad_line() -> None:
    assert told() == {}


def test_every_storage_that_the_cpu_copies_for_has_a_cause_a_remedy_and_a_source() -> None:
    found = told(storages=dict.fromkeys(NAMES, COMPAT))
    assert set(NAMES) <= found.keys()
    for name in NAMES:
        assert found[name].line == f"{name} : compat"
        assert all((found[name].cause, found[name].remedy, found[name].source))


def test_unsupported_of_older_releases() -> None:
    found = told(storages={"NVMe": Storage(supported=False), "NFS": Storage(supported=True)})
    assert found["NVMe"].line == "NVMe : Unsupported"
    assert "NFS" not in found


def test_peers_5_1_nvidia_fs_without_the_nvme_driver_is_told() -> None:
    """The row's host: the module is loaded and binds a hook that the driver no longer has."""
    storages = {"NVMe": COMPAT}
    missing = told(GdsHost(registered={"lustre": "1"}), storages=storages)
    assert "another generation (v1, v2)" in missing["NVMe"].cause
    assert "properties.allow_compat_mode to false" in missing["use_compat_mode"].remedy
    there = told(GdsHost(registered={"nvme": "1"}), storages=storages)
    assert "has registered" in there["NVMe"].cause
    assert told(GdsHost(registered={"nvme": "1"})) == {}


def test_peers_5_2_each_cause_of_an_unsupported_nvme_is_told_apart() -> None:
    storages = {"NVMe": Storage(supported=False)}
    not_loaded = told(storages=storages, nvidia_fs=None)
    assert not_loaded["NVMe"].cause.startswith("nvidia_fs is not loaded")
    assert "not built for this kernel" in not_loaded["nvidia_fs"].cause
    no_hook = told(storages=storages)
    assert no_hook["NVMe"].cause.startswith("the nvme driver has no hook")
    translated = told(storages=storages, iommu="enabled_or_pt")
    assert "IOMMU" in translated
    assert "IOMMU" not in no_hook


def test_peers_5_3_the_proprietary_driver_is_named() -> None:
    found = told(driver_info="Supported(Nvidia Proprietary Driver Installed)")
    assert "open flavour" in found["driver"].remedy
    assert "driver" not in told(driver_info=None)


VM = """\
 GDS release version: 1.18.1.6
 nvidia_fs version:   2.29
 Platform: x86_64
 =====================
 DRIVER CONFIGURATION:
 =====================
 NVMe                      : {route}
 Userspace RDMA            : Unsupported
 =====================
 CUFILE CONFIGURATION:
 =====================
 properties.use_pci_p2pdma : false
 properties.use_compat_mode : true
"""


def test_bug_55_a_guest_has_no_way_between_its_devices_though_the_module_is_loaded() -> None:
    guest = GdsHost(virtual="kvm", registered={"nvme": "1"})
    report = parse_gdscheck(VM.format(route="compat"))
    assert report.nvidia_fs == "2.29"
    found = {finding.subject: finding for finding in findings(report, guest)}
    assert "a guest of kvm has no PCIe peer-to-peer" in found["NVMe"].cause
    assert "use_compat_mode" in found
    bare = {finding.subject: finding for finding in findings(report)}
    assert "guest" not in bare["NVMe"].cause
    assert findings(parse_gdscheck(VM.format(route="nvfs, compat")), guest) == ()


def test_bug_46_a_config_that_cannot_be_read_stops_all() -> None:
    (finding,) = findings(GdsCheck(error="cufile_json", message="parse error at line 46"))
    assert (finding.subject, finding.line) == ("cufile.json", "parse error at line 46")
    assert "//" in finding.remedy
    assert findings(HEALTHY) == ()


def test_p2pdma_needs_no_nvidia_fs() -> None:
    asked = {"properties.use_pci_p2pdma": "true"}
    works = told(
        nvidia_fs=None, properties=asked, storages={"NVMe": Storage(routes=("p2pdma", "compat"))}
    )
    assert works == {}
    fails = told(
        nvidia_fs=None, properties=asked, storages={"NVMe P2PDMA": Storage(supported=False)}
    )
    assert "RMForceStaticBar1=1" in fails["NVMe P2PDMA"].remedy
    assert told(storages={"NVMe P2PDMA": Storage(supported=False), "NVMe": DIRECT}) == {}


def test_switches_that_cancel_each_other() -> None:
    properties = {"properties.use_pci_p2pdma": "false", "fs.virtiofs.use_pci_p2pdma": "true"}
    assert told(properties=properties).keys() == {"properties.use_pci_p2pdma"}
    assert told(properties={"properties.force_compat_mode": "true"}).keys() == {"force_compat_mode"}


def test_rdma_of_user_space() -> None:
    off = told(userspace_rdma=False, rdma=RdmaSupport(peerdirect=False, devices_configured=False))
    assert off.keys() == {"Userspace RDMA", "Mellanox PeerDirect"}
    dmabuf = RdmaSupport(peerdirect=False, dmabuf=True, devices_configured=True, up=8, down=0)
    assert told(rdma=dmabuf) == {}
    down = told(rdma=RdmaSupport(peerdirect=True, devices_configured=True, up=7, down=1))
    assert down["rdma devices"].line == "--rdma_device_status : Up: 7 Down: 1"


def test_gpus_and_platform() -> None:
    small = GdsGpu(name="K2200", bar_mib=256, supported=False)
    found = told(gpus={3: small}, acs_enabled=("0000:41:02.1",), verified=False)
    assert found.keys() == {"GPU 3", "ACS 0000:41:02.1", "platform"}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([COMPAT, DIRECT]), min_size=1),
    st.sampled_from([None, "2.27"]),
    st.sampled_from([None, GdsHost(virtual="kvm"), GdsHost(registered={"nvme": "1"})]),
)
def test_a_storage_is_told_of_if_and_only_if_the_cpu_copies_for_it(
    storages: dict[str, Storage], nvidia_fs: str | None, host: GdsHost | None
) -> None:
    report = HEALTHY.model_copy(update={"storages": storages, "nvidia_fs": nvidia_fs})
    subjects = {finding.subject for finding in findings(report, host)}
    assert subjects & set(NAMES) == {name for name in storages if not report.direct(name)}
