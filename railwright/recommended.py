"""Recommended values per fabric, each with its reason and its source.

They are the lowest layer of a site: a group or a host that says otherwise wins, and a sysctl that
is set to null is left alone.
"""

from railwright.model import Model
from railwright.schema import KernelSpec, LimitsSpec, Overlay, PcieSpec, SysctlSpec
from railwright.schema.fabric import FabricKind
from railwright.schema.sysctl import SysctlValue


class Recommendation(Model):
    """A sysctl worth setting on a GPU node. Buffers are in bytes."""

    key: str
    value: SysctlValue
    why: str
    source: str


_IP_SYSCTL = "kernel documentation, networking/ip-sysctl"
_VM = "kernel documentation, admin-guide/sysctl/vm"
_NET = "kernel documentation, admin-guide/sysctl/net"
_FS = "kernel documentation, admin-guide/sysctl/fs"
_AZHPC = "Azure azhpc-images, hpc-tuning.sh (2026-07)"

COMMON = (
    Recommendation(
        key="net.core.rmem_max",
        value=134217728,
        why="TCP storage and checkpoint streams: 100 Gb/s × 5 ms is 62.5 MB in flight; RDMA "
        "itself passes the socket layer by",
        source=_NET,
    ),
    Recommendation(
        key="net.core.wmem_max",
        value=134217728,
        why="as net.core.rmem_max, for the sender",
        source=_NET,
    ),
    Recommendation(
        key="net.ipv4.tcp_rmem",
        value=(4096, 131072, 134217728),
        why="autotuning is bounded by the third value, not by rmem_max; the second stays at the "
        "kernel's default (87380, often copied, lowers it)",
        source=_IP_SYSCTL,
    ),
    Recommendation(
        key="net.ipv4.tcp_wmem",
        value=(4096, 16384, 134217728),
        why="as net.ipv4.tcp_rmem, for the sender",
        source=_IP_SYSCTL,
    ),
    Recommendation(
        key="net.core.netdev_max_backlog",
        value=250000,
        why="bursts of small packets on 100 Gb/s and more overrun 1000 entries per CPU",
        source=_NET,
    ),
    Recommendation(
        key="net.core.somaxconn",
        value=65535,
        why="the rendezvous of a job of more than 1000 ranks connects at once",
        source=_NET,
    ),
    Recommendation(
        key="net.ipv4.tcp_slow_start_after_idle",
        value=0,
        why="storage connections idle between checkpoints and must not start slowly each time",
        source=_IP_SYSCTL,
    ),
    Recommendation(
        key="net.ipv4.neigh.default.gc_thresh1",
        value=4096,
        why="more than 1000 neighbours in one segment overflow the table's default of 128",
        source=_AZHPC,
    ),
    Recommendation(
        key="net.ipv4.neigh.default.gc_thresh2",
        value=8192,
        why="as gc_thresh1, soft maximum",
        source=_AZHPC,
    ),
    Recommendation(
        key="net.ipv4.neigh.default.gc_thresh3",
        value=16384,
        why="as gc_thresh1, hard maximum",
        source=_AZHPC,
    ),
    Recommendation(
        key="vm.swappiness",
        value=1,
        why="the page cache goes before pages of a job do; 0 would not switch swapping off",
        source=_VM,
    ),
    Recommendation(
        key="vm.zone_reclaim_mode",
        value=0,
        why="reclaim on one NUMA node stalls the page cache while another has memory free; some "
        "cloud images set 1",
        source=_VM,
    ),
    Recommendation(
        key="vm.max_map_count",
        value=1048576,
        why="processes that map many files and buffers; it does not bound pinned memory",
        source=_VM,
    ),
    Recommendation(
        key="vm.overcommit_memory",
        value=0,
        why="2 breaks the large reservations of CUDA unified memory",
        source=_VM,
    ),
    Recommendation(
        key="vm.dirty_background_bytes",
        value=2 << 30,
        why="the default of 10 % is 200 GB on a host of 2 TB: writeback starts too late",
        source=_VM,
    ),
    Recommendation(
        key="vm.dirty_bytes",
        value=8 << 30,
        why="the default of 20 % is 400 GB on a host of 2 TB: a checkpoint then stalls on it",
        source=_VM,
    ),
    Recommendation(
        key="fs.aio-max-nr",
        value=1048576,
        why="data loaders and GPUDirect Storage open many asynchronous contexts",
        source=_FS,
    ),
    Recommendation(
        key="fs.inotify.max_user_instances",
        value=8192,
        why="container runtimes and loggers on one host exceed 128",
        source="inotify(7)",
    ),
    Recommendation(
        key="fs.inotify.max_user_watches",
        value=1048576,
        why="as max_user_instances",
        source="inotify(7)",
    ),
)

ROCE = (
    Recommendation(
        key="net.ipv4.conf.all.arp_ignore",
        value=1,
        why="with several ports in one subnet any of them answers ARP for any address of the "
        "host, and RDMA goes to the wrong NIC",
        source=_IP_SYSCTL,
    ),
    Recommendation(
        key="net.ipv4.conf.all.arp_announce",
        value=2,
        why="the source address of an ARP request must belong to the port that it leaves by",
        source=_IP_SYSCTL,
    ),
    Recommendation(
        key="net.ipv4.conf.all.rp_filter",
        value=2,
        why="strict filtering drops replies that come in on another rail; the effective value is "
        "the larger of all and interface",
        source=_IP_SYSCTL,
    ),
    Recommendation(
        key="net.ipv4.conf.default.rp_filter",
        value=2,
        why="as net.ipv4.conf.all.rp_filter, for interfaces that come later",
        source=_IP_SYSCTL,
    ),
)

INFINIBAND = (
    Recommendation(
        key="net.ipv4.conf.all.rp_filter",
        value=2,
        why="several IPoIB ports in one subnet reply asymmetrically",
        source=_IP_SYSCTL,
    ),
)

SYSCTLS: dict[FabricKind, tuple[Recommendation, ...]] = {
    "roce": COMMON + ROCE,
    "infiniband": COMMON + INFINIBAND,
}


def recommended(fabric: FabricKind) -> Overlay:
    """The lowest layer of a node on ``fabric``.

    Beside the sysctls: unlimited locked memory, without which RDMA registration fails
    (NVIDIA/nccl-tests#206), 1048576 open files, NUMA balancing off (its page migrations cost tens
    of milliseconds: deepseek-ai/DeepEP#624), and iommu=pt, without which peer-to-peer DMA is
    translated (NVIDIA/nccl#1737). On the PCIe path no bridge redirects peer traffic, links are
    as wide as they can be, and each rail is near its GPU; see PcieSpec for the sources.
    """
    return Overlay(
        sysctl=SysctlSpec(values={entry.key: entry.value for entry in SYSCTLS[fabric]}),
        limits=LimitsSpec(memlock="unlimited", nofile=1048576),
        kernel=KernelSpec(arguments={"iommu": "pt"}, numa_balancing=False),
        pcie=PcieSpec(acs="clear", links="full", affinity="nearest", iommu="passthrough"),
    )


def reason(fabric: FabricKind | None, key: str, value: object) -> str | None:
    """Why the sysctl ``key`` has ``value``, where that is what railwright recommends."""
    for entry in SYSCTLS[fabric] if fabric else ():
        if entry.key == key and entry.value == value:
            return f"{entry.why} ({entry.source})"
    return None
