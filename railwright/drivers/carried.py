"""What must not be cut, and the modules that carry it: ssh, the root file system, mounts, swap.

Where it is not known what something goes over, every module that could carry it counts.
"""

from collections.abc import Iterable, Iterator

from facts.block_path import NETWORK, BlockStack, Mount
from facts.device_chain import Device, Devices
from facts.nics import Nics
from railwright.model import Model

_IN_MEMORY = frozenset({"tmpfs", "ramfs", "rootfs"})
_MODULE_OF = {"nfs4": "nfs", "smb3": "cifs"}
_BY_UUID = {"CRYPT": "dm_crypt", "mpath": "dm_multipath", "LVM": "dm_mod"}
_BY_TRANSPORT = {"tcp": "nvme_tcp", "rdma": "nvme_rdma"}
_FIBRE_CHANNEL = frozenset({"nvme_fc", "lpfc", "qla2xxx"})
_UNKNOWN = "of which it is not known what it is on"
_MD_LEVELS = {"raid4": "raid456", "raid5": "raid456", "raid6": "raid456"}
_SOFT_RDMA = ("rdma_rxe", "siw")


class Carried(Model):
    """Something that ends when one of ``modules`` is unloaded; ``over`` says what it goes over."""

    what: str
    over: str
    modules: frozenset[str]


def carried(nics: Nics, stack: BlockStack) -> tuple[Carried, ...]:
    """All that a reload of drivers may cut on this node, the way in first.

    Raises ValueError where an interface has no device, and so would seem to be carried by nothing.
    """
    if not any(device.kind == "net" for device in stack.devices.devices):
        raise ValueError("the drivers of network interfaces are not known")
    links = Links(nics, stack.devices)
    return (links.way_in(), *_Storage(stack, links).all())


class Links:
    """Interfaces, and the modules that drive them and what lies below them."""

    def __init__(self, nics: Nics, devices: Devices) -> None:
        self._nics, self._devices = nics, devices

    def way_in(self) -> Carried:
        """ssh, over the interfaces that it came in by."""
        names = self._nics.way_in
        if names is None:
            return Carried(
                what="ssh", over="an interface that is not known", modules=self.any_network()
            )
        modules = frozenset(m for name in names for m in self._own(name))
        return Carried(what="ssh", over=", ".join(map(self._shown, sorted(names))), modules=modules)

    def over(self, interface: str) -> tuple[str, frozenset[str]]:
        """An interface in words, and its modules with those of all interfaces below it."""
        modules: set[str] = set()
        todo, seen = [interface], {interface}
        while todo:
            name = todo.pop()
            modules |= self._own(name)
            new = [lower for lower in self._nics.lowers.get(name, ()) if lower not in seen]
            seen.update(new)
            todo += new
        return self._shown(interface), frozenset(modules)

    def rdma_over(self, interface: str) -> frozenset[str]:
        """Modules of RDMA on an interface's function, and of RDMA in software."""
        device = self._devices.named("net", interface)
        pci = device.pci if device else None
        modules = set(self._devices.rdma_modules(pci)) if pci else set()
        if any("/virtual/" in d.path for d in self._devices.devices if d.kind == "infiniband"):
            modules.update(_SOFT_RDMA)
        return frozenset(modules)

    def any_network(self) -> frozenset[str]:
        """Every module that drives an interface or a part of a NIC."""
        kinds = ("net", "infiniband", "auxiliary")
        return self._modules(d for d in self._devices.devices if d.kind in kinds)

    def any_storage(self) -> frozenset[str]:
        """Every module that drives a block device or a network."""
        kinds = ("block", "nvme")
        return self.any_network() | self._modules(
            d for d in self._devices.devices if d.kind in kinds
        )

    def _modules(self, devices: Iterable[Device]) -> frozenset[str]:
        return frozenset(m for device in devices for m in self._devices.modules_under(device))

    def _own(self, name: str) -> set[str]:
        device = self._devices.named("net", name)
        if device is None:
            raise ValueError(f"the drivers of {name} are not known")
        modules = set(self._devices.modules_under(device))
        found = self._nics.interfaces.get(name)
        if found is not None and found.is_infiniband:
            # An IPoIB interface shows its HCA's driver, and is of ib_ipoib.
            modules |= {"ib_ipoib", *(self._devices.rdma_modules(found.pci) if found.pci else ())}
        return modules

    def _shown(self, name: str) -> str:
        device = self._devices.named("net", name)
        return _with_pci(device) if device else name


class _Storage:
    """Mounts and swap down to modules."""

    def __init__(self, stack: BlockStack, links: Links) -> None:
        self._stack, self._links = stack, links
        self._by_number = {number: name for name, number in stack.numbers.items()}

    def all(self) -> Iterator[Carried]:
        seen: set[tuple[str, str]] = set()
        for mount in sorted(self._stack.mounts, key=lambda m: (m.target != "/", m.target)):
            # Of a device that is mounted in many places (bind mounts) the first tells.
            key = (mount.number, mount.source)
            if key in seen or mount.fstype in _IN_MEMORY:
                continue
            seen.add(key)
            what = "the root file system" if mount.target == "/" else f"the mount {mount.target}"
            over, modules = self._mount(mount)
            own = _MODULE_OF.get(mount.fstype, mount.fstype)
            yield Carried(what=what, over=over, modules=modules | {own})
        for swap in self._stack.swaps:
            over, modules = self._file_or_device(swap)
            yield Carried(what=f"the swap {swap}", over=over, modules=modules)

    def _mount(self, mount: Mount) -> tuple[str, frozenset[str]]:
        if mount.fstype in NETWORK:
            return self._network(mount.fstype, mount.server)
        names = self._devices_of(mount)
        if not names:
            return f"{mount.source} ({mount.fstype}), {_UNKNOWN}", self._links.any_storage()
        return self._stacked(names)

    def _devices_of(self, mount: Mount) -> tuple[str, ...]:
        name = self._by_number.get(mount.number)
        if name is None and mount.source.startswith("/dev/"):
            path = self._stack.sources.get(mount.source, mount.source)
            name = path.removeprefix("/dev/")
        if name is None or name not in self._stack.numbers:
            return ()
        return next((group for group in self._stack.btrfs if name in group), (name,))

    def _file_or_device(self, path: str) -> tuple[str, frozenset[str]]:
        name = self._stack.sources.get(path, path).removeprefix("/dev/")
        if name in self._stack.numbers:
            return self._stacked((name,))
        return self._file(path, set())

    def _file(self, path: str, seen: set[str]) -> tuple[str, frozenset[str]]:
        """A file, over the mount that it lies on."""
        under = [m for m in self._stack.mounts if path.startswith(f"{m.target.rstrip('/')}/")]
        if not under:
            return path, self._links.any_storage()
        mount = max(under, key=lambda m: len(m.target))
        names = tuple(name for name in self._devices_of(mount) if name not in seen)
        return self._stacked(names, seen) if names else self._mount_unless_seen(mount, seen)

    def _mount_unless_seen(self, mount: Mount, seen: set[str]) -> tuple[str, frozenset[str]]:
        if mount.fstype in NETWORK:
            return self._network(mount.fstype, mount.server)
        return mount.target, frozenset() if seen else self._links.any_storage()

    def _stacked(
        self, names: Iterable[str], seen: set[str] | None = None
    ) -> tuple[str, frozenset[str]]:
        """Block devices and all that they are made of."""
        seen = set() if seen is None else seen
        modules: set[str] = set()
        shown: list[str] = []
        todo = list(names)
        while todo:
            name = todo.pop(0)
            if name in seen:
                continue
            seen.add(name)
            over, own = self._single(name, seen)
            shown.append(over)
            modules |= own
            todo += self._stack.under.get(name, ())
        return " on ".join(shown), frozenset(modules)

    def _single(self, name: str, seen: set[str]) -> tuple[str, frozenset[str]]:
        if name in self._stack.loops:
            over, modules = self._file(self._stack.loops[name], seen)
            return f"{name}, a file on {over}", modules | {"loop"}
        if name.startswith("dm-"):
            prefix = self._stack.dm.get(name, "").partition("-")[0]
            return name, frozenset({"dm_mod", _BY_UUID.get(prefix, "dm_mod")})
        if name in self._stack.levels:
            level = self._stack.levels[name]
            return name, frozenset({"md_mod", _MD_LEVELS.get(level, level)})
        if name in self._stack.under:
            # A partition: the disk tells.
            return name, frozenset()
        device = self._stack.devices.named("block", name)
        controllers = self._controllers(device) if device else ()
        if controllers:
            parts = [self._controller(controller) for controller in controllers]
            over = ", ".join(dict.fromkeys(words for words, _ in parts))
            return f"{name} on {over}", frozenset().union(*(modules for _, modules in parts))
        if device is None or not self._is_known(device):
            return f"{name}, {_UNKNOWN}", self._links.any_storage()
        return _with_pci(device), frozenset(self._stack.devices.modules_under(device))

    def _is_known(self, device: Device) -> bool:
        """Whether the path leads to hardware or to memory; a session of iSCSI does not."""
        if device.pci is not None or device.name.startswith(("zram", "ram")):
            return True
        drivers = self._stack.devices.drivers_under(device)
        return bool(drivers) and "/virtual/" not in device.path and "/session" not in device.path

    def _controllers(self, device: Device) -> tuple[str, ...]:
        """NVMe controllers of a namespace: of its subsystem where it has several ways."""
        parts = device.path.split("/")
        for part in reversed(parts[:-1]):
            if part in self._stack.subsystems:
                return self._stack.subsystems[part]
            if part in self._stack.controllers:
                return (part,)
        return ()

    def _controller(self, name: str) -> tuple[str, frozenset[str]]:
        controller = self._stack.controllers.get(name)
        if controller is not None and controller.transport in _BY_TRANSPORT:
            transport = frozenset({_BY_TRANSPORT[controller.transport]})
            over, modules = self._network(name, controller.server)
            return over, modules | transport
        device = self._stack.devices.named("nvme", name)
        if device is None or device.pci is None:
            return f"{name}, {_UNKNOWN}", self._links.any_storage() | _FIBRE_CHANNEL
        return _with_pci(device), frozenset(self._stack.devices.modules_under(device))

    def _network(self, what: str, server: str | None) -> tuple[str, frozenset[str]]:
        """A server, over the interface that leads to it; over any where that is not known."""
        interface = self._stack.routes.get(server or "")
        if interface is None:
            return f"the network ({what})", self._links.any_network()
        over, modules = self._links.over(interface)
        return f"{over} to {server} ({what})", modules | self._links.rdma_over(interface)


def _with_pci(device: Device) -> str:
    return f"{device.name} ({device.pci})" if device.pci else device.name
