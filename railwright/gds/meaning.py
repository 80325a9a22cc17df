"""What a bad line of gdscheck comes from, what helps, and where that is known from.

A line is told of whether or not the node uses that storage: which ones matter is the caller's to
say. Sources name the chapters of NVIDIA's GDS Installation and Troubleshooting Guide, whose numbers
change from release to release.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import Field

from facts.gdscheck import GdsCheck
from railwright.model import Model

_GUIDE = "GDS Installation and Troubleshooting Guide"
_IOMMU_SAID = {"enabled": "enabled", "enabled_or_pt": "Pass-through or enabled"}
P2PDMA_ROW = "NVMe P2PDMA"


class GdsHost(Model):
    """What else is known of the host: ``registered`` as /proc/driver/nvidia-fs/modules lists it
    (None where it was not read), ``virtual`` the hypervisor that it is a guest of."""

    registered: dict[str, str] | None = Field(default=None)
    virtual: str | None = None


class Finding(Model):
    """A bad line: ``subject`` is what it is about (``NVMe``, ``IOMMU``), ``line`` what it says."""

    subject: str
    line: str
    cause: str
    remedy: str
    source: str


class _Need(NamedTuple):
    """What a storage needs to hand its IO to nvidia-fs."""

    modules: tuple[str, ...]
    cause: str
    remedy: str
    source: str


_NVME = (
    "install the nvme driver of OFED (mlnx-nvme-dkms of DOCA-OFED, --with-nvmf of MLNX_OFED), "
    "rebuild the initramfs and reboot; or use P2PDMA, which needs no such driver"
)
_LUSTRE = _Need(
    ("lustre",),
    "the Lustre client is not loaded, or was built without nvidia-fs' headers",
    "build the client against nvidia-fs and OFED, and load lustre after nvidia_fs",
    f"gds-nvidia-fs, src/nvfs-dma.c, modules_list; {_GUIDE}, EXAScaler",
)
_NEEDS = {
    "NVMe": _Need(
        ("nvme",),
        "the nvme driver has no hook for nvidia-fs, or one of another generation (v1, v2) than "
        "nvidia-fs was built for",
        _NVME,
        f"{_GUIDE}, NVMe and NVMe-oF; gds-nvidia-fs issues 8, 31, 87; src/nvfs-dma.c, modules_list",
    ),
    "NVMeOF": _Need(
        ("nvme_rdma",),
        "nvme_rdma is not loaded, or has no hook for nvidia-fs",
        _NVME.partition(";")[0],
        f"{_GUIDE}, NVMe and NVMe-oF; gds-nvidia-fs, src/nvfs-dma.c, modules_list",
    ),
    "NFS": _Need(
        ("rpcrdma",),
        "rpcrdma is not loaded, or is the kernel's own, which has no hook for nvidia-fs",
        "install NFS over RDMA of OFED (mlnx-nfsrdma-dkms, --with-nfsrdma), and mount with "
        "proto=rdma",
        f"{_GUIDE}, NVMe and NVMe-oF; gds-nvidia-fs, src/nvfs-dma.c, modules_list",
    ),
    "DDN EXAScaler": _LUSTRE,
    "FSx Lustre": _LUSTRE,
    "BeeGFS": _Need(
        ("beegfs",),
        "the BeeGFS client is not loaded, or was built without nvidia-fs' headers",
        "set NVFS_INCLUDE_PATH and NVIDIA_INCLUDE_PATH in beegfs-client-autobuild.conf and "
        "rebuild the client",
        "BeeGFS documentation, GPUDirect Storage Support",
    ),
    "WekaFS": _Need(
        ("wekafsio",),
        "the WekaFS client is not loaded, or userspace RDMA is not set up",
        "start the client, and set rdma_dev_addr_list in cufile.json to the rails' addresses",
        f"{_GUIDE}, WekaFS; gds-nvidia-fs, src/nvfs-dma.c, modules_list",
    ),
    "IBM Spectrum Scale": _Need(
        (),
        "Spectrum Scale is older than 5.1.2 or not mounted, or userspace RDMA is not set up",
        "mount it with verbsRdma and GDS enabled, and set rdma_dev_addr_list in cufile.json",
        f"{_GUIDE}, IBM Spectrum Scale",
    ),
    P2PDMA_ROW: _Need(
        (),
        "the driver has no static BAR1, NVMe multipath is on, or cufile.json does not ask for it",
        'set NVreg_RegistryDwords="RMForceStaticBar1=1;RmForceDisableIomapWC=1;" for nvidia and '
        "multipath=N for nvme_core, rebuild the initramfs, reboot, and set use_pci_p2pdma; it "
        "needs Linux newer than 6.2 and the open driver",
        f"{_GUIDE}, NVMe P2PDMA",
    ),
}
_OTHER = _Need(
    (),
    "no driver of it has registered with nvidia-fs",
    "load its client after nvidia_fs, in a release that supports GDS",
    "gds-nvidia-fs, src/nvfs-dma.c, modules_list",
)


def findings(report: GdsCheck, host: GdsHost | None = None) -> tuple[Finding, ...]:
    """The bad lines of ``report`` in its order. One that has no fault has none."""
    if report.error is not None:
        return (_no_report(report),)
    return (
        *_module(report),
        *_storages(report, host or GdsHost()),
        *_rdma(report),
        *_properties(report),
        *_gpus(report),
        *_platform(report),
    )


def _no_report(report: GdsCheck) -> Finding:
    if report.error == "not_installed":
        return Finding(
            subject="gdscheck",
            line=report.message or "",
            cause="gds-tools is not installed",
            remedy="install gds-tools of the CUDA release in use",
            source=f"{_GUIDE}, Installing GDS",
        )
    return Finding(
        subject="cufile.json",
        line=report.message or "",
        cause="cufile.json cannot be read, so that no program can use GDS",
        remedy="mend its syntax: it is JSON with // comments, and a comma too many is an error",
        source=f"{_GUIDE}, JSON Config Parameters",
    )


def _module(report: GdsCheck) -> Iterator[Finding]:
    if report.nvidia_fs is None and report.gds is not None and not _uses_p2pdma(report):
        yield Finding(
            subject="nvidia_fs",
            line="no nvidia_fs version",
            cause="the module nvidia_fs is not loaded: not built for this kernel, or refused for "
            "symbols that the nvidia module lacks",
            remedy="build nvidia-fs after the open GPU driver and OFED, and load nvidia_fs",
            source="gds-nvidia-fs issues 34 and 72; ChangeLog 2.17.5",
        )


def _uses_p2pdma(report: GdsCheck) -> bool:
    return report.properties.get("properties.use_pci_p2pdma") == "true"


def _storages(report: GdsCheck, host: GdsHost) -> Iterator[Finding]:
    for name, storage in report.storages.items():
        if report.direct(name) or (name == P2PDMA_ROW and not _uses_p2pdma(report)):
            continue
        said = ", ".join(storage.routes) if storage.routes is not None else "Unsupported"
        cause, remedy, source = _why(name, report, host)
        yield Finding(
            subject=name, line=f"{name} : {said}", cause=cause, remedy=remedy, source=source
        )


def _why(name: str, report: GdsCheck, host: GdsHost) -> tuple[str, str, str]:
    need = _NEEDS.get(name, _OTHER)
    if host.virtual is not None and name in ("NVMe", "NVMeOF", P2PDMA_ROW):
        return (
            f"a guest of {host.virtual} has no PCIe peer-to-peer between its devices",
            "run on bare metal, or pass GPU and NVMe through below one virtual switch with ACS "
            "off in the hypervisor",
            f"{_GUIDE}, Before You Install GDS",
        )
    if need.modules and report.nvidia_fs is None and not _uses_p2pdma(report):
        return (
            "nvidia_fs is not loaded, and without it the CPU copies",
            "load nvidia_fs, then look again",
            f"{_GUIDE}, GDS Does Not Work for a Mount",
        )
    registered = host.registered or {}
    if need.modules and any(module in registered for module in need.modules):
        return (
            f"{need.modules[0]} has registered with nvidia-fs, and gdscheck still refuses it: the "
            "IOMMU translates, or cufile.json denies the storage",
            "see the lines IOMMU and denylist, then cufile.log at level TRACE",
            f"{_GUIDE}, Before You Install GDS; GDS Does Not Work for a Mount",
        )
    return need.cause, need.remedy, need.source


def _rdma(report: GdsCheck) -> Iterator[Finding]:
    rdma = report.rdma
    if report.userspace_rdma is False and rdma.devices_configured is False:
        yield Finding(
            subject="Userspace RDMA",
            line="--rdma devices : Not configured",
            cause="cufile.json has no rdma_dev_addr_list: WekaFS and Spectrum Scale cannot use "
            "RDMA to GPU memory (other storages do not need it)",
            remedy="set properties.rdma_dev_addr_list to the addresses of the rails",
            source=f"{_GUIDE}, Configuration File Changes to Support Dynamic Routing",
        )
    if rdma.peerdirect is False and not rdma.dmabuf:
        yield Finding(
            subject="Mellanox PeerDirect",
            line="--Mellanox PeerDirect : Disabled",
            cause="NICs cannot reach GPU memory: nvidia_peermem was not loaded, or nvidia-fs was "
            "built before OFED",
            remedy="load nvidia_peermem, or build nvidia-fs again after OFED",
            source=f"{_GUIDE}, IBM Spectrum Scale; gds-nvidia-fs, src/nvfs-stat.c",
        )
    if rdma.down:
        yield Finding(
            subject="rdma devices",
            line=f"--rdma_device_status : Up: {rdma.up or 0} Down: {rdma.down}",
            cause="addresses in rdma_dev_addr_list belong to ports that are down, or to none",
            remedy="bring the rails up, or list the addresses that they have",
            source=f"{_GUIDE}, Configuration File Changes to Support Dynamic Routing",
        )


def _properties(report: GdsCheck) -> Iterator[Finding]:
    if report.properties.get("properties.force_compat_mode") == "true":
        yield Finding(
            subject="force_compat_mode",
            line="properties.force_compat_mode : true",
            cause="cufile.json, or CUFILE_FORCE_COMPAT_MODE, has the CPU copy all IO",
            remedy="set properties.force_compat_mode to false and unset the variable",
            source=f"{_GUIDE}, Enabling Compatibility Mode",
        )
    if report.compat_allowed and not any(map(report.direct, report.storages)):
        yield Finding(
            subject="use_compat_mode",
            line="properties.use_compat_mode : true",
            cause="no storage has a direct route, and IO is copied by the CPU without a word",
            remedy="set properties.allow_compat_mode to false wherever GDS has to be proven",
            source=f"{_GUIDE}, GDS and Compatibility Mode",
        )
    for key in report.p2pdma_blockers:
        yield Finding(
            subject=key,
            line=f"{key} : false",
            cause="P2PDMA is asked for by a storage's own switch, and this one keeps it off",
            remedy=f"set {key} to true, or take the storage's switch out",
            source=f"{_GUIDE}, NVMe P2PDMA",
        )


def _gpus(report: GdsCheck) -> Iterator[Finding]:
    for index, gpu in report.gpus.items():
        if not gpu.supported:
            yield Finding(
                subject=f"GPU {index}",
                line=f"GPU index {index} {gpu.name}",
                cause="GDS needs a data-centre or workstation GPU of compute capability 6 or more",
                remedy="leave this GPU to other work",
                source=f"{_GUIDE}, API Errors",
            )


def _platform(report: GdsCheck) -> Iterator[Finding]:
    if report.iommu in _IOMMU_SAID:
        yield Finding(
            subject="IOMMU",
            line=f"IOMMU: {_IOMMU_SAID[report.iommu]}",
            cause="DMA between peers goes through the IOMMU, or may: it can be slow or fail",
            remedy="boot with amd_iommu=off or intel_iommu=off; iommu=pt where the platform is "
            "known to work with it (DGX)",
            source=f"{_GUIDE}, Before You Install GDS",
        )
    for switch in report.acs_enabled:
        yield Finding(
            subject=f"ACS {switch}",
            line=f"Found ACS enabled for switch {switch}",
            cause="the switch sends traffic between GPU and storage up to the root complex",
            remedy="clear ACS redirection on it at each boot (component pcie)",
            source=f"{_GUIDE}, Verifying a Successful GDS Installation; NVIDIA/nccl issue 304",
        )
    if report.open_driver is False:
        yield Finding(
            subject="driver",
            line=f"Nvidia Driver Info Status: {report.driver_info}",
            cause="nvidia-fs from 2.17.5 on works with the open kernel module alone",
            remedy="install the open flavour of the same driver version, and build nvidia-fs again",
            source="gds-nvidia-fs, ChangeLog 2.17.5",
        )
    if report.verified is False:
        yield Finding(
            subject="platform",
            line="Platform verification",
            cause="gdscheck found the platform wanting: see the lines above",
            remedy="mend what the other lines name, then run gdscheck as root again",
            source=f"{_GUIDE}, Verifying a Successful GDS Installation",
        )
