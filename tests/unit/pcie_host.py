"""An HGX H100 as sysfs has it, with invented addresses: as the text of the probe, and as files.

Two sockets of two PCIe switches each; under a switch two GPUs, two NICs and an NVMe drive. Beside
them a boot drive, a management NIC and the graphics of the BMC under ports of their own.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from facts.pcie import DEVICES_SCRIPT, READER

GEN5 = ("32.0", "16", "32.0", "16")
ISOLATING = 0x1D
"""SrcValid, ReqRedir, CmpltRedir, UpstreamFwd: what the kernel sets with an IOMMU."""
_NO_LINK = ("-", "-", "-", "-")
_EXPRESS, _ACS = 0x60, 0x148


@dataclass(frozen=True)
class Device:
    """``above`` leads to it from its host bridge. ``acs`` None: no such capability."""

    above: tuple[str, ...]
    address: str
    kind: str
    ids: tuple[str, str]
    pci_class: str
    numa: int = 0
    link: tuple[str, str, str, str] = GEN5
    control: int | None = 0x5930
    acs: int | None = None
    driver: str | None = None
    iommu: str | None = "identity"

    @property
    def path(self) -> str:
        return "/".join((*self.above, self.address))


_KINDS = {
    "gpu": (("0x10de", "0x2330"), "0x030200", "nvidia"),
    "nic": (("0x15b3", "0x1021"), "0x020000", "mlx5_core"),
    "nvme": (("0x144d", "0xa80a"), "0x010802", "nvme"),
    "bridge": (("0x1000", "0xc030"), "0x060400", "pcieport"),
    "vga": (("0x1a03", "0x2000"), "0x030000", None),
}

Devices = dict[str, Device]


def device(kind: str, above: Iterable[str], address: str, numa: int = 0, **more: Any) -> Device:
    ids, pci_class, driver = _KINDS[kind]
    made = Device(
        above=tuple(above),
        address=address,
        kind=kind,
        ids=ids,
        pci_class=pci_class,
        numa=numa,
        driver=driver,
    )
    return replace(made, **more)


def switch(base: int, numa: int, acs: int = 0) -> list[Device]:
    """A host bridge with one root port, and a switch under it with five functions."""
    host, root = f"pci0000:{base:02x}", f"0000:{base:02x}:01.0"
    upstream = f"0000:{base + 1:02x}:00.0"
    found = [
        device("bridge", [host], root, numa, acs=0),
        device("bridge", [host, root], upstream, numa),
    ]
    for slot, kind in enumerate(("gpu", "gpu", "nic", "nic", "nvme")):
        port = f"0000:{base + 2:02x}:{slot:02x}.0"
        link = ("32.0", "4", "32.0", "4") if kind == "nvme" else GEN5
        above = [host, root, upstream]
        found.append(device("bridge", above, port, numa, acs=acs, link=link))
        address = f"0000:{base + 3 + slot:02x}:00.0"
        found.append(device(kind, [*above, port], address, numa, link=link))
    return found


SWITCHES = ((0x15, 0), (0x37, 0), (0x97, 1), (0xB7, 1))
GPUS = tuple(f"0000:{base + 3 + n:02x}:00.0" for base, _ in SWITCHES for n in (0, 1))
NICS = tuple(f"0000:{base + 5 + n:02x}:00.0" for base, _ in SWITCHES for n in (0, 1))
PORTS = tuple(f"0000:{base + 2:02x}:{slot:02x}.0" for base, _ in SWITCHES for slot in range(5))
MANAGEMENT = "0000:02:00.0"


def hgx(acs: int = 0) -> Devices:
    """The node; ``acs`` is the ACS control register of the ports below its switches."""
    found = [one for base, numa in SWITCHES for one in switch(base, numa, acs)]
    host = "pci0000:00"
    for bus, (kind, port) in enumerate((("nvme", "10"), ("nic", "1c"), ("vga", "1d")), 1):
        root = f"0000:00:{port}.0"
        found.append(device("bridge", [host], root, acs=ISOLATING))
        found.append(device(kind, [host, root], f"0000:{bus:02x}:00.0"))
    return {one.address: one for one in found}


def changed(devices: Devices, address: str, **more: Any) -> Devices:
    return {**devices, address: replace(devices[address], **more)}


def section_text(
    devices: Devices, virtual: str = "none", assigned: Iterable[str] = (), lockdown: str = ""
) -> str:
    """What the section ``pcie_devices`` prints of the devices."""
    lines, bridges = [f"virtual {virtual}"], {}
    if lockdown:
        lines.append(f"lockdown {lockdown}")
    for address in sorted(devices):
        one = devices[address]
        if one.kind in ("bridge", "vga"):
            continue
        control = "none" if one.kind != "nic" or one.control is None else str(one.control)
        words = (one.kind, one.path.removeprefix("pci"), *one.ids, str(one.numa), one.iommu or "-")
        lines.append(" ".join(("function", *words, *one.link, one.driver or "-", control)))
        bridges.update(dict.fromkeys(one.above[1:]))
    for address in bridges:
        one = devices[address]
        acs = "none" if one.acs is None else str(one.acs)
        lines.append(" ".join(("bridge", address, *one.link, acs)))
    lines += [f"assigned {devices[address].path.removeprefix('pci')}" for address in assigned]
    return "".join(f"{line}\n" for line in lines)


def config_space(one: Device) -> bytes:
    """A header, power management, PCI Express; then error reporting and ACS."""
    space = bytearray(4096)
    struct.pack_into("<HH", space, 0, int(one.ids[0], 16), int(one.ids[1], 16))
    space[0x34] = 0x40
    struct.pack_into("<BB", space, 0x40, 0x01, _EXPRESS if one.control is not None else 0)
    if one.control is not None:
        struct.pack_into("<BB", space, _EXPRESS, 0x10, 0)
        struct.pack_into("<H", space, _EXPRESS + 8, one.control)
    struct.pack_into("<I", space, 0x100, 1 | 2 << 16 | (_ACS << 20 if one.acs is not None else 0))
    if one.acs is not None:
        struct.pack_into("<IHH", space, _ACS, 13 | 1 << 16, 0x5F, one.acs)
    return bytes(space)


def acs_of(tree: Path, address: str) -> int:
    """The ACS control register as a file of the tree has it."""
    space = (tree / "bus/pci/devices" / address / "config").read_bytes()
    return int(struct.unpack_from("<H", space, _ACS + 6)[0])


def control_of(tree: Path, address: str) -> int:
    space = (tree / "bus/pci/devices" / address / "config").read_bytes()
    return int(struct.unpack_from("<H", space, _EXPRESS + 8)[0])


def build(tree: Path, devices: Devices, assigned: Iterable[str] = ()) -> Path:
    """The devices as files under ``tree``, which stands for /sys."""
    bus, guests = tree / "bus/pci/devices", tree / "bus/pci/drivers/vfio-pci"
    bus.mkdir(parents=True)
    guests.mkdir(parents=True)
    for one in devices.values():
        folder = tree / "devices" / one.path
        folder.mkdir(parents=True, exist_ok=True)
        speed, width, max_speed, max_width = one.link
        values = {
            "class": one.pci_class,
            "vendor": one.ids[0],
            "device": one.ids[1],
            "numa_node": str(one.numa),
        }
        if one.link != _NO_LINK:
            values |= {
                "current_link_speed": f"{speed} GT/s PCIe",
                "current_link_width": width,
                "max_link_speed": f"{max_speed} GT/s PCIe",
                "max_link_width": max_width,
            }
        for name, value in values.items():
            (folder / name).write_text(f"{value}\n")
        (folder / "config").write_bytes(config_space(one))
        if one.iommu:
            (folder / "iommu_group").mkdir()
            (folder / "iommu_group/type").write_text(f"{one.iommu}\n")
        if one.driver:
            driver = tree / "bus/pci/drivers" / one.driver
            driver.mkdir(parents=True, exist_ok=True)
            (folder / "driver").symlink_to(driver)
        (bus / one.address).symlink_to(folder)
    for address in assigned:
        (guests / address).symlink_to(tree / "devices" / devices[address].path)
    return tree


def section_script(tree: Path) -> str:
    """The section ``pcie_devices`` over the tree, on bare metal."""
    text = f"PCI={tree}/bus/pci/devices\n{READER}{DEVICES_SCRIPT}"
    text = text.replace("systemd-detect-virt --vm", "echo none")
    return text.replace("/sys/kernel/security", str(tree))
