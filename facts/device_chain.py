"""Network, block, NVMe and RDMA devices, and the drivers on their way up to the bus.

A device stands on more than its own driver: a virtio disk on virtio_blk and virtio_pci, a disk of
an HBA on sd_mod and the HBA's driver. All of them lie on the device's path in sysfs.
"""

import re
from typing import ClassVar, Literal

from pydantic import Field

from facts.nics import pci_of
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.schema.base import module_name
from railwright.snapshot import Snapshot

CHAINS = Section(
    name="device_chains",
    for_drivers=True,
    script=r"""
# up PATH: the drivers of the device and of those above it, each once.
seen=' '
up() {
    dir=$1
    while [ "${dir#/sys/devices/}" != "$dir" ]; do
        case $seen in *" $dir "*) return 0 ;; esac
        seen="$seen$dir "
        # By cd, as that starts no process.
        if cd -P "$dir/driver" 2>/dev/null; then
            driver=${PWD##*/}
            module=-
            ! cd -P module 2>/dev/null || module=${PWD##*/}
            echo "driver $driver $module $dir"
        fi
        dir=${dir%/*}
    done
}
for link in /sys/class/net/* /sys/class/block/* /sys/class/nvme/* /sys/class/infiniband/* \
    /sys/bus/auxiliary/devices/*; do
    cd -P "$link" 2>/dev/null || continue
    kind=${link%/*}
    kind=${kind#/sys/*/}
    path=$PWD
    echo "device ${kind%/devices} ${link##*/} $path"
    up "$path"
    [ "$kind" = net ] || continue
    while read -r line; do
        case $line in DEVTYPE=*) echo "type ${link##*/} ${line#DEVTYPE=}" ;; esac
    done <"$link/uevent"
done
true
""",
)

Kind = Literal["net", "block", "nvme", "infiniband", "auxiliary"]

# Modules of interfaces without a device of their own. Source: SET_NETDEV_DEVTYPE in each.
_BY_TYPE = {
    "bond": "bonding",
    "vlan": "8021q",
    "bridge": "bridge",
    "team": "team",
    "macvlan": "macvlan",
    "ipvlan": "ipvlan",
}


class Device(Model):
    """A device; ``path`` is its own in sysfs, below /sys/devices. ``type`` is DEVTYPE of an
    interface, where it has one."""

    kind: Kind
    name: str
    path: str
    type: str | None = None

    @property
    def pci(self) -> str | None:
        """The PCI function that it is, or lies below."""
        return pci_of(self.path)


class Bound(Model):
    """A driver that is bound to a device; ``module`` is None where it is built into the kernel."""

    driver: str
    module: str | None


class Devices(Model):
    """``drivers`` are by the path of the device that each is bound to."""

    devices: tuple[Device, ...]
    drivers: dict[str, Bound] = Field(default={})

    def named(self, kind: Kind, name: str) -> Device | None:
        """The device ``name`` of a kind, None where there is none."""
        return next((d for d in self.devices if (d.kind, d.name) == (kind, name)), None)

    def modules_under(self, device: Device) -> tuple[str, ...]:
        """The modules that drive it, from its own up to the bus; none of what is built in."""
        found = [bound.module for bound in self.drivers_under(device) if bound.module]
        if device.kind == "net" and device.type in _BY_TYPE:
            found.insert(0, _BY_TYPE[device.type])
        return tuple(dict.fromkeys(found))

    def drivers_under(self, device: Device) -> tuple[Bound, ...]:
        """The drivers on its path, from its own up."""
        parts = device.path.split("/")
        paths = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
        return tuple(self.drivers[path] for path in paths if path in self.drivers)

    def rdma_modules(self, pci: str) -> tuple[str, ...]:
        """Modules that drive parts of a PCI function (mlx5_ib for mlx5_core.rdma.0)."""
        parts = [d for d in self.devices if d.kind == "auxiliary" and d.pci == pci]
        return tuple(dict.fromkeys(m for part in parts for m in self.modules_under(part)))


_DEVICE = re.compile(r"device (net|block|nvme|infiniband|auxiliary) (\S+) (/\S.*)")
_DRIVER = re.compile(r"driver (.+) (\S+) (/\S.*)")
_TYPE = re.compile(r"type (\S+) (\S+)")


def parse_chains(text: str) -> Devices:
    """Read section ``device_chains``. Raises ValueError for a line of another kind."""
    devices: list[tuple[str, str, str]] = []
    types: dict[str, str] = {}
    drivers: dict[str, Bound] = {}
    for line in text.splitlines():
        if found := _DEVICE.fullmatch(line):
            devices.append((found[1], found[2], found[3]))
        elif found := _DRIVER.fullmatch(line):
            module = None if found[2] == "-" else module_name(found[2])
            drivers[found[3]] = Bound(driver=found[1], module=module)
        elif found := _TYPE.fullmatch(line):
            types[found[1]] = found[2]
        else:
            raise ValueError(f"expected a device or a driver, got {line[:80]!r}")
    return Devices(
        devices=tuple(
            Device.model_validate(
                {
                    "kind": kind,
                    "name": name,
                    "path": path,
                    "type": types.get(name) if kind == "net" else None,
                }
            )
            for kind, name, path in devices
        ),
        drivers=drivers,
    )


class DeviceChain(SnapshotFact):
    """Devices and their drivers: ``pyinfra INVENTORY fact facts.device_chain.DeviceChain``."""

    sections: ClassVar[tuple[Section, ...]] = (CHAINS,)

    def read(self, snapshot: Snapshot) -> Devices:
        return parse_chains(snapshot.text(CHAINS.name))
