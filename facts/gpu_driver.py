"""GPUs on the bus and as nvidia-smi lists them, the daemons of the driver, and our unit.

Versions, modules and the GPUs' modes are in facts.drivers.
"""

import re
from typing import Literal

from pydantic import Field

from facts.nvidia_smi import Gpu, parse_query
from facts.probe import Section
from facts.unit_failures import failures
from railwright.model import Model
from railwright.owned_unit import OwnedUnit
from railwright.snapshot import Snapshot

UNIT = OwnedUnit(name="railwright-gpu.service", target="multi-user.target")
SCRIPT_PATH = "/usr/local/sbin/railwright-gpu"
PLAN_PATH = "/etc/railwright/gpu_driver/plan"
FABRIC_MANAGER = "nvidia-fabricmanager.service"
PERSISTENCED = "nvidia-persistenced.service"
DROP_IN = f"/etc/systemd/system/{PERSISTENCED}.d/zz-railwright.conf"
"""Sorts last: of several settings of ExecStart= the last holds."""

_CLOCKS = ("pci.bus_id", "clocks.sm")
_ROWS = ("gpu_bus_id", "remapped_rows.pending", "remapped_rows.failure")
_SMI = "timeout -k 2 20 nvidia-smi"

FILES = Section(
    name="gpu_files",
    for_drivers=True,
    script=f"""
files {SCRIPT_PATH} {UNIT.path} {PLAN_PATH}
meta {UNIT.link}
for folder in /etc /run /usr/local/lib /usr/lib /lib; do
    # Where /lib is a link to /usr/lib, as it mostly is, its files have been read.
    [ "$folder" != /lib ] || [ ! -L /lib ] || continue
    folder=$folder/systemd/system
    files "$folder/{PERSISTENCED}" "$folder/{PERSISTENCED}".d/*.conf
done
""",
)
UNITS = Section(
    name="gpu_units", for_drivers=True, script=f"units {FABRIC_MANAGER} {PERSISTENCED} {UNIT.name}"
)
FAILURES = failures("gpu_failures", FABRIC_MANAGER, PERSISTENCED, UNIT.name)
BUS = Section(
    name="gpu_bus",
    for_drivers=True,
    script="""
for device in /sys/bus/pci/devices/*; do
    first "$device/vendor"
    [ "$first" = 0x10de ] || continue
    first "$device/class"
    # Display and 3D controllers; NVSwitches are bridges.
    case $first in 0x0300* | 0x0302*) ;; *) continue ;; esac
    driver=-
    ! cd -P "$device/driver" 2>/dev/null || driver=${PWD##*/}
    echo "${device##*/} $driver"
done
true
""",
)
STATE = Section(
    name="gpu_state",
    for_drivers=True,
    deadline_s=90,
    script=f"""
[ -r /proc/driver/nvidia/version ] || return 0
command -v nvidia-smi >/dev/null || return 127
{_SMI} --query-gpu={",".join(_CLOCKS)} --format=csv,noheader,nounits | sed 's/^/clock /'
{_SMI} --query-remapped-rows={",".join(_ROWS)} --format=csv,noheader | sed 's/^/rows /'
{_SMI} -L | sed 's/^/list /'
true
""",
)
# What ib_umem_dmabuf_get is built by. Source: drivers/infiniband/core/Makefile and Kconfig.
CONFIG = Section(
    name="gpu_kernel_config",
    for_drivers=True,
    script="""
kernel=$(uname -r)
for config in /proc/config.gz "/boot/config-$kernel" "/lib/modules/$kernel/config"; do
    [ -r "$config" ] || continue
    case $config in
        *.gz) gzip -dc "$config" ;;
        *) cat "$config" ;;
    esac | grep -E '^CONFIG_(DMA_SHARED_BUFFER|INFINIBAND_USER_MEM)='
    echo read
    break
done
true
""",
)

SECTIONS = (FILES, UNITS, FAILURES, BUS, STATE, CONFIG)


class GpuState(Model):
    """What nvidia-smi says beyond facts.drivers, by PCI address as sysfs has it.

    ``clocks`` is the SM clock now, in MHz. ``rows`` are GPUs with what is pending of their rows
    (None where they have no row remapping). ``instances`` is a GPU's UUID to the profiles of its
    MIG instances, sorted. ``problems`` are answers that were no table.
    """

    clocks: dict[str, int] = Field(default={})
    rows: dict[str, Gpu] = Field(default={})
    instances: dict[str, tuple[str, ...]] = Field(default={})
    problems: tuple[str, ...] = ()


def read_bus(snapshot: Snapshot) -> dict[str, str | None]:
    """GPUs on the bus: PCI address to the driver that is bound. Raises ValueError."""
    found = {}
    for line in filter(None, snapshot.text(BUS.name).splitlines()):
        address, _, driver = line.partition(" ")
        if not re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", address) or not driver:
            raise ValueError(f"expected a GPU's address and driver, got {line[:80]!r}")
        found[address] = None if driver == "-" else driver
    return found


def read_state(snapshot: Snapshot) -> GpuState:
    """Raises ValueError where the section did not end."""
    return parse_state(snapshot.text(STATE.name))


def parse_state(text: str) -> GpuState:
    """Read section ``gpu_state``; a table that cannot be read is a problem of its own."""
    tables: dict[str, list[str]] = {"clock": [], "rows": [], "list": []}
    for line in filter(None, text.splitlines()):
        kind, _, rest = line.partition(" ")
        if kind not in tables:
            raise ValueError(f"expected what nvidia-smi says of a GPU, got {line[:80]!r}")
        tables[kind].append(rest)
    clocks, unread = _table(tables["clock"], _CLOCKS)
    rows, odd = _table(tables["rows"], _ROWS)
    return GpuState(
        clocks={pci: gpu.clocks_sm for pci, gpu in clocks.items() if gpu.clocks_sm is not None},
        rows=rows,
        instances=_instances(tables["list"]),
        problems=tuple(filter(None, (unread, odd))),
    )


def _table(lines: list[str], fields: tuple[str, ...]) -> tuple[dict[str, Gpu], str | None]:
    try:
        report = parse_query("\n".join(lines), fields)
    except ValueError as error:
        return {}, str(error)
    if report.problem is not None:
        return {}, report.problem.cause
    return {gpu.pci: gpu for gpu in report.gpus if gpu.pci is not None}, None


_GPU = re.compile(r"GPU \d+: .*\(UUID: (GPU-[0-9a-f-]+)\)")
_INSTANCE = re.compile(r"\s*MIG (\S+)\s+Device\s+\d+: \(UUID: MIG-\S+\)")


def _instances(lines: list[str]) -> dict[str, tuple[str, ...]]:
    """``nvidia-smi -L``: a GPU, and below it its MIG devices."""
    found: dict[str, tuple[str, ...]] = {}
    uuid = ""
    for line in lines:
        if gpu := _GPU.match(line):
            uuid = gpu[1]
            found[uuid] = ()
        elif (instance := _INSTANCE.match(line)) and uuid:
            found[uuid] = tuple(sorted((*found[uuid], instance[1])))
    return found


DmaBuf = Literal["yes", "no", "unknown"]


def read_dma_buf(snapshot: Snapshot) -> DmaBuf:
    """Whether the running kernel was built with DMA-BUF for RDMA. Raises ValueError."""
    lines = snapshot.text(CONFIG.name).split()
    if "read" not in lines:
        return "unknown"
    wanted = {"CONFIG_DMA_SHARED_BUFFER=y", "CONFIG_INFINIBAND_USER_MEM=y"}
    return "yes" if wanted <= set(lines) else "no"
