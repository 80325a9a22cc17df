"""What ``railwright parse`` prints of the tools for RDMA, PCI and topology: devices by their names.

A device with one port has the port's values beside its own, so that the usual case reads short.
"""

from collections.abc import Iterable, Mapping

from facts.firmware import parse_firmware
from facts.gids import Gid, parse_show_gids, roce_v2_ipv4_index, roce_v2_ipv6_index
from facts.ibdev2netdev import parse_ibdev2netdev
from facts.ibstat import parse_ibstat
from facts.ibstatus import parse_ibstatus
from facts.ibv_devinfo import parse_ibv_devinfo
from facts.lspci import PciDevice, parse_lspci
from facts.mlxconfig import ConfigDevice, parse_mlxconfig
from facts.mst import MstDevice, parse_mst_status
from facts.rdma import parse_rdma_links
from facts.topo import BrokenTopology, parse_topology
from railwright.model import Model

Json = dict[str, object]

_ORDINALS = ("first", "second", "third", "fourth")


def rdma_link(text: str, rc: int) -> Json:
    """Links by DEVICE/PORT. Raises ValueError also where the tool failed without a link."""
    links = parse_rdma_links(text)
    if rc and not links:
        raise ValueError(f"rdma link show failed without a link (exit status {rc})")
    named = {link.name: link.to_json() | {"phys": link.physical_state} for link in links}
    return {"count": len(links), **named}


def show_gids(text: str) -> Json:
    """Devices, their ports, and of each the indices that RoCE v2 would use."""
    table = parse_show_gids(text)
    devices: dict[str, dict[str, Json]] = {}
    for (device, port), gids in table.ports().items():
        devices.setdefault(device, {})[str(port)] = _gids(gids)
    return {"n": len(table.gids), "devices": devices, **devices}


def _gids(gids: tuple[Gid, ...]) -> Json:
    index = roce_v2_ipv4_index(gids)
    netdev = next((gid.netdev for gid in gids if gid.netdev), None)
    is_roce = netdev is not None or any(gid.version == "v2" for gid in gids)
    return {
        "link": "roce" if is_roce else "ib",
        "netdev": netdev,
        "ipv4": next((gid.ipv4 for gid in gids if gid.index == index), None),
        "v2_ipv4_index": index,
        "v2_ipv6_index": roce_v2_ipv6_index(gids),
        "gids": {str(gid.index): gid.to_json() for gid in gids},
    }


def _adapter(own: Model, ports: Mapping[int, Model]) -> Json:
    by_number: Json = {str(number): port.to_json() for number, port in ports.items()}
    only = next(iter(ports.values())).to_json() if len(ports) == 1 else {}
    return {**only, **own.to_json(), **by_number}


def _problem(error: str | None, message: str | None) -> Json:
    return {"error": error, "message": message} if error else {}


def ibstat(text: str) -> Json:
    """Adapters by name."""
    found = parse_ibstat(text)
    devices = {name: _adapter(entry, entry.ports) for name, entry in found.adapters.items()}
    return {**devices, "devices": devices, **_problem(found.error, found.message)}


def ibstatus(text: str) -> Json:
    """Ports by DEVICE/PORT."""
    found = parse_ibstatus(text)
    ports = {name: port.to_json() for name, port in found.ports.items()}
    return {**ports, "count": len(ports), **_problem(found.error, found.message)}


def ibv_devinfo(text: str) -> Json:
    """Devices by name."""
    found = parse_ibv_devinfo(text)
    devices = {name: _adapter(entry, entry.ports) for name, entry in found.devices.items()}
    return {**devices, "devices": devices, **_problem(found.error, found.message)}


def ibdev2netdev(text: str, rc: int) -> Json:
    """RDMA devices by name; those with several ports have each under its number as well."""
    found = parse_ibdev2netdev(text, rc)
    devices: dict[str, Json] = {}
    for port in found.ports:
        entry = devices.setdefault(port.device, port.to_json())
        entry[str(port.port)] = port.to_json()
    return {**devices, "count": len(found.ports), **_problem(found.error, None)}


def mlxconfig(text: str) -> Json:
    """One device with its settings, or several by their order and by what they are called."""
    found = parse_mlxconfig(text)
    problem = found.problems[0].to_json() if found.problems else {}
    if len(found.devices) == 1:
        return {**found.devices[0].to_json(), **problem}
    ordered = dict(zip(_ORDINALS, map(_config, found.devices), strict=False))
    named = {device.device or "": device.to_json() for device in found.devices}
    return {"devices": len(found.devices), **ordered, **named, **problem}


def _config(device: ConfigDevice) -> Json:
    """The settings at the next boot beside what the device is."""
    values = {name: parameter.next for name, parameter in device.params.items()}
    return {**values, **device.to_json()}


def mst_status(text: str) -> Json:
    """Devices by their RDMA name, else by their path, else by their PCI address."""
    found = parse_mst_status(text)
    devices = {
        next(iter(device.rdma), device.mst or device.pci or ""): _mst(device)
        for device in found.devices
    }
    return {"count": len(devices), "devices": devices, "modules": found.modules.to_json()}


def _mst(device: MstDevice) -> Json:
    return {**device.to_json(), "net": ",".join(device.nets) or None}


def firmware(text: str) -> Json:
    """Devices by the last part of what they are called; flint's one device without its name."""
    found = parse_firmware(text)
    problem = found.problems[0].to_json() if found.problems else {}
    devices = {
        (device.device or "").rpartition("/")[2]: device.to_json() for device in found.devices
    }
    only = found.devices[0].to_json() if len(found.devices) == 1 else {}
    named = {name: entry for name, entry in devices.items() if name}
    return {**only, **named, "count": len(found.devices), **problem}


def lspci(text: str) -> Json:
    """Devices by their address as printed; one alone also with its values at the top."""
    devices = parse_lspci(text)
    named: Json = {device.address: _pci(device) for device in devices}
    only = _pci(devices[0]) if len(devices) == 1 else {}
    return {**only, **named, "count": len(devices)}


def _pci(device: PciDevice) -> Json:
    acs: Json = {}
    if device.acs is not None:
        enabled = device.acs.enabled
        acs = {
            "redirect": device.acs.redirects,
            "any": any(enabled.values()),
            "src_valid": enabled.get("SrcValid"),
        }
    return {
        **device.to_json(),
        "pci": device.address,
        "degraded": device.degraded,
        "speed_degraded": device.speed_degraded,
        "width_degraded": device.width_degraded,
        **acs,
    }


def topology(text: str) -> Json:
    """The matrix, and which NIC is nearest to each GPU."""
    found = parse_topology(text)
    if isinstance(found, BrokenTopology):
        return found.to_json()
    near = {gpu: found.near_nics(gpu) for gpu in found.gpus}
    candidates = {gpu: list(nics) for gpu, (_, nics) in near.items()}
    best = {gpu: found.best_nic(gpu) for gpu in found.gpus}
    return {
        "gpus": len(found.gpus),
        "nics": len(found.nics),
        "nvlinks": found.nvlinks,
        "numa": {name: gpu.numa for name, gpu in found.gpus.items()},
        "cpus": {name: gpu.cpus for name, gpu in found.gpus.items()},
        "best_nic": best,
        "best_nic_level": {gpu: level for gpu, (level, _) in near.items()},
        "best_nic_candidates": candidates["GPU0"] if list(candidates) == ["GPU0"] else candidates,
        "shared_nic": _repeats(nic for nic in best.values() if nic),
        "links": found.links,
        "legend": found.legend,
    }


def _repeats(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) < len(listed)
