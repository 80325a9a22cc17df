"""QEMU: the command line of a virtual node, its start and its stop."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .layout import RAILS, LabError, Node

Accelerator = Literal["kvm", "tcg"]

_QEMU = "qemu-system-x86_64"
MEMORY_MIB = 4096
"""Memory of one node, half of it on each NUMA node; what the guest never touches costs nothing.

Two GiB on NUMA node 1 hold one aligned 1 GiB page beside what the kernel itself puts there.
"""

SPARE_MIB = 1024
"""Size of a spare disk."""

_ROOT_BUSES = (0x10, 0x80)
_RAIL_MTU = 9216
# No disk controller, keyboard or mouse that the guest would look for.
_MACHINE = "q35,sata=off,smbus=off,i8042=off,vmport=off"
# Ends when QEMU fails. SIGTERM ends QEMU first, so that its port and disk are free afterwards.
_LOOP = """\
trap 'kill "$qemu"; wait "$qemu"; exit' TERM
while "$@" & qemu=$!; wait "$qemu"; do :; done
"""

_PROBE_SECONDS = 20
# A kernel without a root disk panics here, at the end of its start.
_PROBE_END = b"Unable to mount root fs"
_ACCELERATORS: dict[Accelerator, list[str]] = {
    "kvm": ["-accel", "kvm", "-cpu", "host"],
    # Linux trusts the TSC of this processor (that of `-cpu max` makes it read an emulated HPET),
    # and an Atom is not mitigated against Meltdown and Spectre: a fifth less to emulate.
    # One thread for all processors (thread=single) boots faster, yet gave soft lockups.
    "tcg": [
        *("-accel", "tcg,thread=multi"),
        *("-cpu", "Westmere,pdpe1gb=on,model=28,stepping=10"),
    ],
}


@dataclass(frozen=True)
class Boot:
    """A kernel that QEMU loads itself, in place of the disk's boot loader."""

    kernel: Path
    initrd: Path
    arguments: str


def machine(accelerator: Accelerator, console: Path) -> list[str]:
    """The part that every start has in common: processor, console, no display, no network."""
    return [
        *(_QEMU, "-nodefaults", "-no-user-config", "-machine", _MACHINE),
        *_ACCELERATORS[accelerator],
        *("-chardev", f"file,id=console,path={console},append=on", "-serial", "chardev:console"),
        *("-display", "none", "-device", "virtio-rng-pci", "-no-reboot"),
    ]


def build_command(accelerator: Accelerator, console: Path, disk: Path, boot: Boot) -> list[str]:
    """QEMU with a raw ``disk`` and a kernel from outside; it ends when the guest powers off."""
    return [
        *machine(accelerator, console),
        *("-m", "1024", "-smp", "2"),
        *("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"),
        *("-kernel", str(boot.kernel), "-initrd", str(boot.initrd), "-append", boot.arguments),
    ]


def node_command(accelerator: Accelerator, node: Node, authorized_key: Path) -> list[str]:
    """QEMU for ``node``: two NUMA nodes of one processor each, booting from its own disk."""
    half = MEMORY_MIB // 2
    given = "name=opt/railwright-lab/"
    return [
        *machine(accelerator, node.console),
        *("-name", node.name, "-m", str(MEMORY_MIB), "-smp", "2,sockets=2"),
        *("-object", f"memory-backend-ram,id=memory0,size={half}M"),
        *("-object", f"memory-backend-ram,id=memory1,size={half}M"),
        *("-numa", "node,memdev=memory0,cpus=0", "-numa", "node,memdev=memory1,cpus=1"),
        *("-drive", f"file={node.disk},format=qcow2,if=none,id=disk0,cache=unsafe"),
        *("-device", "virtio-blk-pci,drive=disk0,bus=pcie.0"),
        *("-netdev", f"user,id=net0,hostfwd=tcp:127.0.0.1:{node.port}-:22"),
        *("-device", "virtio-net-pci,netdev=net0,bus=pcie.0,romfile="),
        *_rails(node),
        *_spares(node),
        *("-fw_cfg", f"{given}hostname,string={node.name}"),
        *("-fw_cfg", f"{given}host_key,file={node.host_key}"),
        *("-fw_cfg", f"{given}authorized_keys,file={authorized_key}"),
    ]


def _rails(node: Node) -> Iterator[str]:
    """Each NUMA node has a PCIe switch with four slots, and a NIC in each slot.

    All bus numbers follow from those of the root buses: the root port is on the root bus itself,
    the switch takes the next two, and its slots the four after those. The addresses stand in
    image/root/usr/local/lib/railwright-lab/rails as well.
    """
    for numa, bus in enumerate(_ROOT_BUSES):
        yield from ("-device", f"pxb-pcie,id=root{numa},bus=pcie.0,bus_nr={bus},numa_node={numa}")
        yield from (
            "-device",
            f"pcie-root-port,id=port{numa},bus=root{numa},chassis={numa + 1},hotplug=off",
        )
        yield from ("-device", f"x3130-upstream,id=switch{numa},bus=port{numa}")
    for rail in range(RAILS):
        numa, slot = divmod(rail, RAILS // len(_ROOT_BUSES))
        yield from (
            "-device",
            f"xio3130-downstream,id=slot{rail},bus=switch{numa},addr={slot},"
            f"chassis={len(_ROOT_BUSES) + rail + 1},hotplug=off",
        )
        # Packets to a peer that is not running are lost, so that neither need start first.
        yield from (
            "-netdev",
            f"dgram,id=rail{rail},local.type=unix,local.path={node.rail(rail)},"
            f"remote.type=unix,remote.path={node.peer_rail(rail)}",
        )
        yield from (
            "-device",
            f"virtio-net-pci,netdev=rail{rail},bus=slot{rail},disable-legacy=on,romfile=,"
            f"host_mtu={_RAIL_MTU},mac=52:54:00:a1:{node.number:02x}:{rail:02x}",
        )


def _spares(node: Node) -> Iterator[str]:
    """Each spare disk is an NVMe drive; its serial number has the node's name and its own."""
    for number, disk in enumerate(node.spares):
        yield from ("-drive", f"file={disk},format=qcow2,if=none,id=spare{number},cache=unsafe")
        serial = f"{node.name}s{number}"
        yield from ("-device", f"nvme,drive=spare{number},serial={serial},bus=pcie.0")


def accelerator(answer: Path, kernel: Path) -> Accelerator:
    """KVM where a kernel really starts with it, else TCG; ``answer`` keeps what was found.

    /dev/kvm is no proof: there are machines that have it and whose guests hang at boot.
    """
    if answer.exists():
        return "kvm" if answer.read_text().split()[0] == "kvm" else "tcg"
    found, reason = _probe_kvm(answer.with_suffix(".console"), kernel)
    answer.write_text(f"{found} ({reason})\n")
    return found


def _probe_kvm(console: Path, kernel: Path) -> tuple[Accelerator, str]:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg", "/dev/kvm cannot be opened"
    console.unlink(missing_ok=True)
    command = [
        *machine("kvm", console),
        *("-m", "512", "-kernel", str(kernel)),
        *("-append", "console=ttyS0 panic=-1"),
    ]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return "tcg", f"with KVM a kernel did not get through its start in {_PROBE_SECONDS} s"
    if console.exists() and _PROBE_END in console.read_bytes():
        return "kvm", "a kernel started with it"
    return "tcg", f"KVM: {ended.stderr.strip() or 'the guest stopped before its kernel was up'}"


def create_overlay(disk: Path, base: Path) -> None:
    """An empty copy-on-write disk over the raw image ``base``."""
    disk.unlink(missing_ok=True)
    _call(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base), str(disk)])


def create_spare(disk: Path) -> None:
    """An empty disk; what is never written costs nothing."""
    disk.unlink(missing_ok=True)
    _call(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), f"{SPARE_MIB}M"])


def start(node: Node, command: list[str]) -> None:
    """Run ``command`` in the background, again whenever the guest powers off or reboots.

    A reboot gets a new QEMU: in one that goes on, the translated code of the last boot makes the
    next one more than twice as slow. The pid file holds the loop's process.
    """
    if shutil.which(command[0]) is None:
        raise LabError(f"{command[0]} is not installed: see tests/lab/packages.txt")
    node.console.unlink(missing_ok=True)
    with node.log.open("wb") as log:
        loop = subprocess.Popen(
            ["sh", "-c", _LOOP, str(node.pid_file), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    node.pid_file.write_text(f"{loop.pid}\n")


def is_running(node: Node) -> bool:
    return _process(node) is not None


def stop(node: Node) -> None:
    """Pull the plug of ``node``."""
    process = _process(node)
    if process is not None:
        os.kill(process, signal.SIGTERM)
    while is_running(node):
        time.sleep(0.05)


def _process(node: Node) -> int | None:
    """The node's loop; a number that another process has taken since does not count."""
    try:
        number = int(node.pid_file.read_text())
        arguments = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return number if str(node.pid_file).encode() in arguments else None


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"{command[0]}: {done.stderr.strip()}")
