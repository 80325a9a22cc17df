"""The known keys of cufile.json, each with its range, unit, default and source.

What is left out of a spec is left alone in the file. Defaults are those of the file that GDS 1.20
installs, but where ``default`` says otherwise.
"""

from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, model_validator
from pydantic.config import JsonDict, JsonValue

from railwright.schema.base import Finding, Spec, reject, word

if TYPE_CHECKING:
    RailName = str
    KeyPath = str
    MountPoint = str
else:
    RailName = word(r"rail(0|[1-9][0-9]?)", "a rail, such as rail0, or an IPv4 address")
    KeyPath = word(
        r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)+", "a key with its section, such as properties.io_priority"
    )
    MountPoint = word(r"/[^\"\\\x00-\x1f]*", "the absolute path of a mount point")

_GUIDE = "NVIDIA GDS benchmarking and configuration guide, table of cufile.json variables"
_FILE = "comments of the cufile.json that GDS installs"
_COMPAT = "NVIDIA cuFile API reference, compatibility mode"


def _key(
    description: str,
    default: JsonValue | tuple[int | str, ...],
    *,
    unit: str | None = None,
    source: str = _GUIDE,
    **limits: Any,
) -> Any:
    """A key of the file; ``default`` is what GDS takes where the key is not there."""
    told: JsonValue = [*default] if isinstance(default, tuple) else default
    known: JsonDict = {"cufile_default": told, "unit": unit, "source": source}
    return Field(default=None, description=description, json_schema_extra=known, **limits)


Switch = StrictBool | None
Count = StrictInt | None
Addresses = Literal["rails"] | tuple[IPv4Address | RailName, ...]
"""IPv4 addresses of this node: ``rails`` for those of all rails that serve a GPU, or a list of
addresses and of rails, whose addresses the plan has."""
Scalar = StrictBool | StrictInt | StrictFloat | str
OtherValue = Scalar | tuple[StrictInt | StrictFloat | str, ...]


class LoggingSpec(Spec):
    """``logging``: where and how much libcufile logs."""

    dir: str | None = _key("Directory of cufile.log.", "the process's directory")
    level: Literal["NOTICE", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"] | None = _key(
        "Least severity that is logged.", "ERROR"
    )
    max_file_size_mb: Count = _key("Size of the log; -1 is no limit.", 32, unit="MiB", ge=-1)


class ProfileSpec(Spec):
    """``profile``: statistics of each process, which gds_stats shows."""

    nvtx: Switch = _key("Ranges for NVIDIA's profilers.", False)
    cufile_stats: Count = _key("Level of statistics; the path of an IO needs 3.", 0, ge=0, le=3)


class ExecutionSpec(Spec):
    """``execution``: the threads that split large IO."""

    max_io_queue_depth: Count = _key("Work items that may wait.", 128, ge=1)
    max_io_threads: Count = _key("Threads for each GPU.", 4, ge=0)
    parallel_io: Switch = _key("Large IO is split over those threads.", True)
    min_io_threshold_size_kb: Count = _key("Size that IO is split into.", 8192, unit="KiB", ge=1)
    max_request_parallelism: Count = _key("Parts of one IO at once.", 4, ge=0)


class SlabSpec(Spec):
    """``properties.gpu_bounce_buffer_slab_config``: bounce buffers of several sizes."""

    slab_size_kb: tuple[StrictInt, ...] | None = _key(
        "Sizes.", (1024, 8192, 16384, 65536), unit="KiB", source=_FILE
    )
    slab_count: tuple[StrictInt, ...] | None = _key(
        "How many of each size.", (128, 8, 4, 2), source=_FILE
    )


class PropertiesSpec(Spec):
    """``properties``: buffers, the path that IO takes, and RDMA."""

    max_direct_io_size_kb: Count = _key(
        "Largest IO to the driver.", 16384, unit="KiB", ge=64, multiple_of=64, source=_FILE
    )
    max_device_cache_size_kb: Count = _key(
        "Bounce buffers on each GPU.", 131072, unit="KiB", ge=4, multiple_of=4
    )
    per_buffer_cache_size_kb: Count = _key(
        "One bounce buffer.", 1024, unit="KiB", ge=1024, le=16384, multiple_of=64, source=_FILE
    )
    gpu_bounce_buffer_slab_config: SlabSpec = Field(
        default=SlabSpec(), description="Bounce buffers of GDS 1.20; in place of the three above."
    )
    max_device_pinned_mem_size_kb: Count = _key(
        "GPU memory that a process may pin.", 33554432, unit="KiB", ge=4, multiple_of=4
    )
    posix_pool_slab_size_kb: tuple[StrictInt, ...] | None = _key(
        "Sizes of host buffers, for IO in compatibility mode.",
        (4, 1024, 16384),
        unit="KiB",
        source=_FILE,
    )
    posix_pool_slab_count: tuple[StrictInt, ...] | None = _key(
        "How many of each size.", (128, 64, 64), source=_FILE
    )
    use_poll_mode: Switch = _key("Wait for small IO by polling.", False)
    poll_mode_max_size_kb: Count = _key(
        "Largest IO that is polled for.", 4, unit="KiB", ge=4, multiple_of=4
    )
    use_pci_p2pdma: Switch = _key("Prefer the kernel's P2PDMA to nvidia-fs; see gds.mode.", False)
    allow_compat_mode: Switch = _key(
        "Where the direct path cannot be taken, IO goes through the host without a word.", True
    )
    force_compat_mode: Switch = _key("All IO goes through the host.", False)
    gds_rdma_write_support: Switch = _key("Writes by RDMA take the direct path.", True)
    io_batchsize: Count = _key("IOs of a batch.", 128, ge=1, le=256)
    io_priority: Literal["default", "low", "med", "high"] | None = _key(
        "Priority of IO against compute streams.", "default"
    )
    rdma_dev_addr_list: Addresses | None = _key("This node's addresses for RDMA.", ())
    rdma_load_balancing_policy: (
        Literal["FirstFit", "MaxMinFit", "RoundRobin", "RoundRobinMaxMin", "Randomized"] | None
    ) = _key("How memory is spread over the NICs.", "RoundRobin")
    rdma_dynamic_routing: Switch = _key("Route around NICs on another root port.", False)
    rdma_dynamic_routing_order: (
        tuple[Literal["GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P"], ...] | None
    ) = _key("Ways tried, best first.", ("GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P"))

    @model_validator(mode="after")
    def _buffers_fit(self) -> "PropertiesSpec":
        cache, each, batch = (
            self.max_device_cache_size_kb,
            self.per_buffer_cache_size_kb,
            self.io_batchsize,
        )
        found = []
        if cache and each and batch and cache // each < batch:
            expected = f"at most {cache // each}: the bounce buffers that fit the device cache"
            found.append(Finding(("io_batchsize",), batch, expected))
        found += [
            Finding((name,), getattr(self, name), "left out beside gpu_bounce_buffer_slab_config")
            for name in UNIFORM_BUFFERS
            if getattr(self, name) is not None and self.gpu_bounce_buffer_slab_config != SlabSpec()
        ]
        reject(found)
        return self


UNIFORM_BUFFERS = ("max_direct_io_size_kb", "max_device_cache_size_kb", "per_buffer_cache_size_kb")
"""Keys that may not stand beside ``gpu_bounce_buffer_slab_config``. Source: the guide's sample."""


class MountSpec(Spec):
    """One mount point of ``mount_table``."""

    rdma_dev_addr_list: Addresses | None = _key("Addresses of this mount.", ())


class NetworkFsSpec(Spec):
    """What all network file systems have: addresses for all mounts, or for each of them."""

    rdma_dev_addr_list: Addresses | None = _key("Addresses of all its mounts.", ())
    mount_table: dict[MountPoint, MountSpec] = Field(
        default={}, description="Mount point to its addresses."
    )

    @model_validator(mode="after")
    def _one_list(self) -> "NetworkFsSpec":
        if self.rdma_dev_addr_list and self.mount_table:
            # Source: GDS overview guide, configuration of dynamic routing.
            expected = "left out beside rdma_dev_addr_list: libcufile takes one of them"
            reject([Finding(("mount_table",), sorted(self.mount_table), expected)])
        return self


class PosixSmallSpec(NetworkFsSpec):
    """A client that small IO is left to: BeeGFS, Lustre."""

    posix_gds_min_kb: Count = _key(
        "IO up to this size goes through the host, whatever allow_compat_mode says.",
        0,
        unit="KiB",
        ge=0,
        multiple_of=4,
        source=_COMPAT,
    )


class LustreSpec(PosixSmallSpec):
    """Lustre, and EXAScaler."""

    use_pci_p2pdma: Switch = _key("P2PDMA for it; IO fails where its client cannot.", False)


class NfsSpec(NetworkFsSpec):
    """``fs.nfs``: NFS over RDMA."""

    use_pci_p2pdma: Switch = _key("P2PDMA for it; IO fails where its client cannot.", False)


class GpfsSpec(NetworkFsSpec):
    """``fs.gpfs``: IBM Storage Scale."""

    gds_write_support: Switch = _key("Writes take the direct path.", True)
    gds_async_support: Switch = _key("IO in CUDA streams takes the direct path.", True)


class WekaSpec(NetworkFsSpec):
    """``fs.weka``: WekaFS."""

    rdma_write_support: Switch = _key("Writes take the direct path.", False)


class GenericSpec(Spec):
    """``fs.generic``: all file systems."""

    posix_unaligned_writes: Switch = _key("Unaligned writes go through the host.", False)


class FsSpec(Spec):
    """``fs``: what differs from one file system to another."""

    generic: GenericSpec = Field(default=GenericSpec(), description="All file systems.")
    beegfs: PosixSmallSpec = Field(default=PosixSmallSpec(), description="BeeGFS.")
    lustre: LustreSpec = Field(default=LustreSpec(), description="Lustre, EXAScaler.")
    nfs: NfsSpec = Field(default=NfsSpec(), description="NFS by RDMA.")
    gpfs: GpfsSpec = Field(default=GpfsSpec(), description="IBM Storage Scale (GPFS).")
    weka: WekaSpec = Field(default=WekaSpec(), description="WEKA.")


class BlockDeviceSpec(Spec):
    """One kind of block device."""

    use_pci_p2pdma: Switch = _key("P2PDMA for it; IO fails where its driver cannot.", False)


class BlockSpec(Spec):
    """``block``, beside ``fs`` and not in it: block devices (GDS 1.20)."""

    nvme: BlockDeviceSpec = Field(default=BlockDeviceSpec(), description="Local NVMe drives.")
    nvmeof: BlockDeviceSpec = Field(default=BlockDeviceSpec(), description="NVMe over fabrics.")
    raid: BlockDeviceSpec = Field(default=BlockDeviceSpec(), description="RAID over NVMe.")


class DenylistSpec(Spec):
    """``denylist``: what libcufile keeps off."""

    drivers: tuple[str, ...] | None = _key("Drivers, such as nvme.", ())
    devices: tuple[str, ...] | None = _key("Block devices, such as /dev/nvme0n1.", ())
    mounts: tuple[str, ...] | None = _key("Mount points.", ())
    filesystems: tuple[str, ...] | None = _key("File systems, such as lustre.", ())


class MiscellaneousSpec(Spec):
    """``miscellaneous``."""

    api_check_aggressive: Switch = _key("Strict checks of each call, for debugging.", False)
    skip_topology_detection: Switch = _key(
        "In compatibility mode processes start without looking at PCI devices.", False
    )


class CufileSpec(Spec):
    """What /etc/cufile.json must say; what is not given stays as it stands there."""

    logging: LoggingSpec = Field(default=LoggingSpec(), description="Logging.")
    profile: ProfileSpec = Field(default=ProfileSpec(), description="Statistics.")
    execution: ExecutionSpec = Field(default=ExecutionSpec(), description="Threads.")
    properties: PropertiesSpec = Field(default=PropertiesSpec(), description="Buffers and paths.")
    fs: FsSpec = Field(default=FsSpec(), description="File systems.")
    block: BlockSpec = Field(default=BlockSpec(), description="Block devices.")
    denylist: DenylistSpec = Field(default=DenylistSpec(), description="What is kept off.")
    miscellaneous: MiscellaneousSpec = Field(
        default=MiscellaneousSpec(), description="Everything else."
    )
    other: dict[KeyPath, OtherValue] = Field(
        default={}, description="Keys that are not known here, with dots between section and key."
    )

    @model_validator(mode="after")
    def _other_is_unknown(self) -> "CufileSpec":
        known = {key.path for key in known_keys()}
        reject(
            [
                Finding(("other", path), value, "its own field, not other")
                for path, value in self.other.items()
                if path in known
            ]
        )
        return self


class KnownKey(Spec):
    """A key of cufile.json; ``path`` has dots, and * for a mount point."""

    path: str
    description: str
    unit: str | None
    default: Any
    source: str


def known_keys(spec: type[Spec] = CufileSpec, above: str = "") -> tuple[KnownKey, ...]:
    """All keys that have a field, in the order of the fields."""
    found: list[KnownKey] = []
    for name, field in spec.model_fields.items():
        path, kind, extra = f"{above}{name}", field.annotation, field.json_schema_extra
        if isinstance(kind, type) and issubclass(kind, Spec):
            found += known_keys(kind, f"{path}.")
        elif name == "mount_table":
            found += known_keys(MountSpec, f"{path}.*.")
        elif isinstance(extra, dict):
            found.append(
                KnownKey(
                    path=path,
                    description=field.description or "",
                    unit=str(extra["unit"]) if extra["unit"] else None,
                    default=extra["cufile_default"],
                    source=str(extra["source"]),
                )
            )
    return tuple(found)
