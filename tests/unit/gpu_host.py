"""A node as the components ofed and gpu_driver see it, built by hand: eight GPUs, DOCA-OFED."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from facts.drivers import QUERY
from facts.gpu_driver import FABRIC_MANAGER, PERSISTENCED, UNIT
from facts.openibd import OPENIBD
from railwright.actions import Action, InstallFile, Run, RunScript
from railwright.component import Component, settings_of
from railwright.owned import HEADER
from railwright.schema import Effect, EffectsSpec, Node
from railwright.settings import Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from railwright.templates import render
from tests.unit.records import MARKER, enablement, metadata, records
from tests.unit.units import unit

OLD, NEW = "6.8.0-60-generic", "6.8.0-79-generic"
LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
DRIVER = LIVE | {Effect.DRIVER}
VERSION, OFED_VERSION = "580.95.05", "25.10-1.2.8"
FLAGS = "SMP preempt mod_unload"
RAIL, ADMIN, DISK = "0000:1a:00.0", "0000:41:00.0", "0000:01:00.0"
GPUS = tuple(f"0000:{bus:02x}:00.0" for bus in (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB))
OFED_MODULES = ("mlx_compat", "ib_core", "ib_uverbs", "rdma_cm", "mlx5_core", "mlx5_ib")
GPU_MODULES = ("nvidia", "nvidia_uvm")
SERVICE = f"/usr/lib/systemd/system/{PERSISTENCED}"
SHIPPED = (
    "[Service]\nType=forking\nExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced"
)
SHIPPED += " --no-persistence-mode --verbose\n[Install]\nWantedBy=multi-user.target\n"
STATUS = """\
mlnx-ofed-kernel/25.10.OFED.25.10.1.2.8.1, {kernel}, x86_64: installed
nvidia/580.95.05, {kernel}, x86_64: installed
nvidia-fs/2.29.4, {kernel}, x86_64: installed
"""


def grub(kernel: str) -> str:
    return f"88:menuentry 'Ubuntu' {{\n94:\tlinux\t/boot/vmlinuz-{kernel} root=x\n96:}}\n"


def gpu_row(pci: str, **values: str) -> str:
    """A row of nvidia-smi; keys are those of the query, with ``_`` for ``.``."""
    index = GPUS.index(pci)
    shown = {
        "index": str(index), "uuid": f"GPU-{index:04d}", "name": "NVIDIA H100 80GB HBM3",
        "pci.bus_id": f"0000{pci.upper()}", "driver_version": VERSION,
        "persistence_mode": "Enabled", "compute_mode": "Default", "mig.mode.current": "Disabled",
        "mig.mode.pending": "Disabled", "ecc.mode.current": "Enabled",
        "ecc.mode.pending": "Enabled", "power.limit": "700.00", "power.default_limit": "700.00",
        "power.min_limit": "200.00", "power.max_limit": "700.00", "clocks.max.sm": "1980",
    }  # fmt: skip
    for name in QUERY:
        shown[name] = values.get(name.replace(".", "_"), shown[name])
    return ", ".join(shown[name] for name in QUERY)


def smi(gpus: tuple[str, ...] = GPUS, **values: str) -> str:
    return "\n".join(gpu_row(pci, **values) for pci in gpus) + "\n"


def state(clock: int = 345, **rows: str) -> str:
    """``rows`` is ``gpuN`` to PENDING,FAILURE."""
    lines = []
    for index, pci in enumerate(GPUS):
        bus = f"0000{pci.upper()}"
        lines += [f"clock {bus}, {clock}", f"rows {bus}, {rows.get(f'gpu{index}', 'No, No')}"]
        lines.append(f"list GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index:04d})")
    return "\n".join(lines) + "\n"


def modinfo(
    name: str, kernel: str, version: str = "", path: str = "", srcversion: str = "S1"
) -> str:
    """What modinfo says of a module; of OFED's and the GPU driver's in their own folder."""
    path = path or f"updates/dkms/{name}.ko.zst"
    gpl = "Dual MIT/GPL" if name.startswith("nvidia") else "GPL"
    lines = [f"filename:       /lib/modules/{kernel}/{path}", f"license:        {gpl}"]
    lines += [f"version:        {version}"] if version else []
    lines += [f"srcversion:     {srcversion}"] if srcversion else []
    lines += [f"name:           {name}", f"vermagic:       {kernel} {FLAGS}"]
    return "".join(f"modinfo {line}\n" for line in lines)


Said = Callable[[str], str]


def disk(kernel: str, *without: str, written: int = 100, **said: str) -> str:
    """Modules for ``kernel``; ``said`` is what modinfo says of one in place of the usual."""
    text = f"kernel {kernel}\nvermagic {kernel} {FLAGS}\n"
    for name in (*OFED_MODULES, *GPU_MODULES, "nvidia_peermem", "nvidia_fs"):
        if name in without:
            continue
        version = OFED_VERSION if name in OFED_MODULES else VERSION
        text += said.get(name, modinfo(name, kernel, version))
    text += modinfo("nvme", kernel, path="kernel/drivers/nvme/host/nvme.ko.zst", srcversion="")
    for name in (*OFED_MODULES, *GPU_MODULES, "nvidia_peermem", "nvidia_fs"):
        if name not in without:
            text += f"written {written} updates/dkms/{name}.ko.zst\n"
            owner = _OWNERS.get(name, "mlnx-ofed-kernel")
            text += f"built {owner}/1/{kernel}/x86_64/module/{name}.ko.zst\n"
    return text


_OWNERS = {
    "nvidia": "nvidia", "nvidia_uvm": "nvidia", "nvidia_peermem": "nvidia",
    "nvidia_fs": "nvidia-fs",
}  # fmt: skip


def loaded(**changes: str) -> str:
    """Loaded modules: ``srcversion version references holders``; "" for one that is not loaded."""
    lines = dict.fromkeys(OFED_MODULES, f"S1 {OFED_VERSION} 0 -")
    lines |= {"mlx5_core": f"S1 {OFED_VERSION} 1 mlx5_ib", "nvidia": f"S1 {VERSION} 1 nvidia_uvm"}
    lines |= {"nvidia_uvm": f"S1 {VERSION} 0 -", "ib_core": f"S1 {OFED_VERSION} 1 mlx5_ib"}
    text = ""
    for name, words in {**lines, **changes}.items():
        if words:
            source, version, references, holders = words.split()
            text += f"loaded\t{name}\t{source}\t{version}\t{references}\tlive\t{holders}\n"
    return text + f"library\t/usr/lib/x/libnvidia-ml.so.{VERSION}\n"


def network(way_in: str = "eno1") -> dict[str, str]:
    """ssh came in by ``way_in``: eno1 is of tg3, ens1 of mlx5_core. The disk is NVMe, over PCIe."""
    ports, entries, chains = [], [], []
    for name, pci, driver, address in (
        ("eno1", ADMIN, "tg3", "192.0.2.5"), ("ens1", RAIL, "mlx5_core", "10.64.0.2"),
    ):  # fmt: skip
        path = f"/sys/devices/pci0000:00/{pci}"
        ports.append(f"port net {name} {path} {driver} 02:00:00:00:00:01 1500 up 1000 0 1\n")
        info = [{"local": address, "prefixlen": 24, "scope": "global"}]
        entries.append({"ifname": name, "flags": ["UP"], "addr_info": info})
        chains += [f"device net {name} {path}/net/{name}\n", f"driver {driver} {driver} {path}\n"]
    path = f"/sys/devices/pci0000:00/{DISK}"
    chains += [
        f"device block nvme0n1 {path}/nvme/nvme0/nvme0n1\n",
        f"driver nvme nvme {path}\n",
        f"device nvme nvme0 {path}/nvme/nvme0\n",
    ]
    server = "192.0.2.5" if way_in == "eno1" else "10.64.0.2"
    route = json.dumps([{"dst": "192.0.2.9", "dev": way_in}])
    return {
        "nic_ports": "".join(ports),
        "nic_rdma": "",
        "nic_addresses": json.dumps(entries),
        "way_in": f"ssh 192.0.2.9 50000 {server} 22\n{route}\n",
        "device_chains": "".join(chains),
        "block_mounts": "mount 259:0 / ext4 /dev/nvme0n1 -\n",
        "block_stack": f"number nvme0n1 259:0\ncontroller nvme0 pcie {DISK}\n",
    }


def files(content: Mapping[str, str], *, enabled: bool) -> str:
    return records(content) + (enablement(UNIT) if enabled else "")


def bus(**drivers: str) -> str:
    return "".join(f"{pci} {drivers.get(f'gpu{i}', 'nvidia')}\n" for i, pci in enumerate(GPUS))


def units(**active: str) -> str:
    """``fabric``, ``persistenced``, ``ours``: ACTIVE or ACTIVE/FILE; "" where it is not there."""
    named = {"fabric": FABRIC_MANAGER, "persistenced": PERSISTENCED, "ours": UNIT.name}
    return "\n".join(_unit(name, active.get(key, "active/enabled")) for key, name in named.items())


def _unit(name: str, words: str) -> str:
    if not words:
        return unit(name, "inactive", "", "not-found")
    active, _, file = words.partition("/")
    return unit(name, active, file or "enabled")


def host(
    kernel: str = OLD, coming: str = OLD, *, container: bool = False, **sections: str
) -> Snapshot:
    """A node on which all is right with OFED and the driver, but for ``sections``."""
    kernels = dict.fromkeys((kernel, coming))
    text = {
        "identity": f"kernel={kernel}\nboot_id=b1\nos=ubuntu\n"
        + ("container=podman\n" if container else ""),
        "reboot_ledger": "",
        "kernel_boot": records({"/boot/grub/grub.cfg": grub(coming)}),
        "kernels_installed": "".join(f"image {k}\nmodules {k}\n" for k in kernels),
        "drivers_loaded": loaded(),
        "drivers_files": records(
            {
                "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for "
                f"x86_64  {VERSION}  Release Build\n"
            }
        ),
        "drivers_ofed": f"OFED-internal-{OFED_VERSION}:\n",
        "drivers_dkms": "".join(STATUS.format(kernel=k) for k in kernels),
        "drivers_fabric_manager": f"Fabric Manager version is : {VERSION}\n",
        "drivers_smi": smi(),
        "drivers_disk": "".join(disk(k) for k in kernels)
        + f"sources /usr/src/ofa_kernel/x86_64/{coming}\n",
        "drivers_symbols": "",
        "nvidia_firmware": f"{VERSION}\n",
        "modules_initramfs": "".join(metadata(f"/boot/initrd.img-{k}", mtime=200) for k in kernels),
        "ofed_units": unit(OPENIBD),
        "ofed_failures": "",
        "gpu_files": files({SERVICE: SHIPPED}, enabled=False),
        "gpu_units": units(ours=""),
        "gpu_failures": "",
        "gpu_bus": bus(),
        "gpu_state": state(),
        "gpu_kernel_config": "CONFIG_DMA_SHARED_BUFFER=y\nCONFIG_INFINIBAND_USER_MEM=y\nread\n",
        **network(),
        **sections,
    }
    return Snapshot(
        host="gpu001",
        marker=MARKER,
        sections={name: Section(stdout=said, rc=0) for name, said in text.items()},
    )


def with_section(snapshot: Snapshot, name: str, **fields: Any) -> Snapshot:
    section = snapshot.sections[name].model_copy(update=fields)
    return snapshot.model_copy(update={"sections": {**snapshot.sections, name: section}})


def node(allow: frozenset[Effect] = LIVE, **specs: Any) -> Node:
    return Node.model_validate({"name": "gpu001", "effects": EffectsSpec(allow=allow), **specs})


DOCA = {"kind": "doca_ofed", "version": "3.2.1"}
GPU = {"version": VERSION, "modules": "open"}


def found(component: Component, node: Node, snapshot: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings_of(component, node, snapshot)}


def verdicts(component: Component, node: Node, snapshot: Snapshot) -> dict[str, Verdict]:
    allowed = node.effects.allow
    return {k: verdict(s, allowed) for k, s in found(component, node, snapshot).items()}


def wrong(component: Component, node: Node, snapshot: Snapshot) -> dict[str, Verdict]:
    """Verdicts that are drift."""
    fine = (Verdict.OK, Verdict.NOT_APPLICABLE)
    return {k: v for k, v in verdicts(component, node, snapshot).items() if v not in fine}


def done(component: Component, node: Node, snapshot: Snapshot) -> list[Action]:
    return list(component.actions(node, snapshot, settings_of(component, node, snapshot)))


def commands(component: Component, node: Node, snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Commands, and scripts by their name."""
    return list(_commands(done(component, node, snapshot)))


def _commands(actions: list[Action]) -> Iterator[tuple[str, ...]]:
    for action in actions:
        if isinstance(action, Run):
            yield action.command
        elif isinstance(action, RunScript):
            yield (action.name, *action.arguments)


def ours_of(component: Component, node: Node, snapshot: Snapshot) -> dict[str, str]:
    """Our files as a run puts them on the node."""
    actions = done(component, node, snapshot)
    return {a.path: a.content for a in actions if isinstance(a, InstallFile)}


def run_script(
    root: Path,
    template: str,
    arguments: tuple[str, ...],
    tools: Mapping[str, str],
    **environment: str,
) -> tuple[int, list[str]]:
    """A script of ours over stubs: its exit code, and the lines that the stubs wrote to $LOG."""
    bin_, log = root / "bin", root / "log"
    bin_.mkdir(exist_ok=True)
    for name, text in tools.items():
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    log.write_text("")
    path = f"{bin_}:/usr/sbin:/usr/bin:/sbin:/bin"
    known = {
        "PATH": path, "RAILWRIGHT_PATH": path, "LOG": str(log), "RAILWRIGHT_OFA": f"{root}/ofa",
        "RAILWRIGHT_ALTERNATIVES": f"{root}/alternatives", "RAILWRIGHT_PROC": f"{root}/proc",
        "RAILWRIGHT_DKMS": f"{root}/dkms",
    }  # fmt: skip
    ended = subprocess.run(
        ["sh", "-s", "--", *arguments],
        input=render(template, header=HEADER),
        capture_output=True,
        text=True,
        timeout=60,
        env={**known, **environment},
    )
    return ended.returncode, log.read_text().splitlines()
