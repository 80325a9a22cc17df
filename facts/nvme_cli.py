"""What nvme-cli prints of drives (``nvme list``) and subsystems (``nvme list-subsys``).

The shapes follow its releases: flat drives (1.x, and 2.x without ``-v``), hosts with subsystems
(2.x with ``-v``, and always from 2.11 on); one object of subsystems (1.x), a list of hosts (2.x).
1.x prints nothing at all where there is no drive. For decisions sysfs is read, not this tool.
Source: nvme-print-json.c of 1.16, 2.3 and 2.13.
"""

import re
from collections.abc import Iterator

from pydantic import Field

from facts.json_text import as_object, as_objects, load_json
from railwright.model import Model


class Drive(Model):
    """A namespace as ``nvme list`` has it; ``size`` is in bytes, ``sector`` a block of it."""

    device: str
    nsid: int | None = None
    model: str | None = None
    serial: str | None = None
    fw: str | None = None
    size: int | None = None
    sector: int | None = None
    subsystem: str | None = None
    transport: str | None = None


class Path(Model):
    """A controller by which a subsystem is reached; ``traddr`` is None of one on PCI."""

    name: str
    transport: str
    address: str
    state: str | None = None

    @property
    def traddr(self) -> str | None:
        return fields_of(self.address).get("traddr")


class Subsystem(Model):
    """``state`` is live where one of its paths is, else that of the first, as are ``transport`` and
    ``traddr``."""

    name: str
    nqn: str
    paths: tuple[Path, ...] = ()
    state: str | None = None
    transport: str | None = None
    traddr: str | None = None


class NvmeCli(Model):
    """What one call told: drives by their device, or subsystems by their name."""

    devices: dict[str, Drive] = Field(default={})
    subsys: dict[str, Subsystem] = Field(default={})


def fields_of(address: str) -> dict[str, str]:
    """``traddr=10.0.0.1,trsvcid=4420`` by key; nothing of a PCI address.

    Releases before 2.0 parted them by a blank. Source: nvmf_get_address() in fabrics.c.
    """
    words = re.split(r"[,\s]+", address)
    return dict(word.split("=", 1) for word in words if "=" in word)


def parse_nvme(text: str, rc: int = 0) -> NvmeCli:
    """Read ``nvme list -o json`` or ``nvme list-subsys -o json``. Raises ValueError."""
    if rc != 0:
        raise ValueError(f"nvme failed with {rc}: {text.strip()[:80] or 'no word'}")
    if not text.strip():
        return NvmeCli()
    told = load_json(text, "nvme -o json")
    if isinstance(told, dict) and "Devices" in told:
        drives = {drive.device: drive for drive in _drives(told["Devices"])}
        return NvmeCli(devices=drives)
    hosts = [told] if isinstance(told, dict) else as_objects(told, "nvme list-subsys")
    found = {
        subsystem.name: subsystem
        for host in hosts
        for subsystem in _subsystems(as_object(host, "nvme list-subsys"))
    }
    return NvmeCli(subsys=found)


def _drives(listed: object) -> Iterator[Drive]:
    for entry in as_objects(listed, "nvme list: Devices"):
        if "Subsystems" not in entry:
            yield _flat(entry)
            continue
        for subsystem in as_objects(entry["Subsystems"], "nvme list: Subsystems"):
            yield from _of_subsystem(subsystem)


def _flat(entry: dict[str, object]) -> Drive:
    return Drive(
        device=_text(entry, "DevicePath"),
        nsid=_number(entry, "NameSpace"),
        model=_word(entry, "ModelNumber"),
        serial=_word(entry, "SerialNumber"),
        fw=_word(entry, "Firmware"),
        size=_number(entry, "PhysicalSize"),
        sector=_number(entry, "SectorSize"),
    )


def _of_subsystem(subsystem: dict[str, object]) -> Iterator[Drive]:
    """Namespaces hang below the subsystem where it has several paths, else below a controller."""
    controllers = as_objects(subsystem.get("Controllers", []), "nvme list: Controllers")
    first = controllers[0] if controllers else {}
    places = [(first, subsystem), *((one, one) for one in controllers)]
    for controller, place in places:
        for entry in as_objects(place.get("Namespaces", []), "nvme list: Namespaces"):
            yield Drive(
                device=f"/dev/{_text(entry, 'NameSpace')}",
                nsid=_number(entry, "NSID"),
                model=_word(controller, "ModelNumber"),
                serial=_word(controller, "SerialNumber"),
                fw=_word(controller, "Firmware"),
                size=_number(entry, "PhysicalSize"),
                sector=_number(entry, "SectorSize"),
                subsystem=_word(subsystem, "SubsystemNQN"),
                transport=_word(controller, "Transport"),
            )


def _subsystems(host: dict[str, object]) -> Iterator[Subsystem]:
    if "Subsystems" not in host:
        raise ValueError(f"nvme list-subsys: expected Subsystems, got {', '.join(host) or 'none'}")
    entries = as_objects(host["Subsystems"], "nvme list-subsys: Subsystems")
    name = nqn = None
    for entry in entries:
        # 1.x has the paths of a subsystem in an object of their own, after its name.
        name, nqn = _word(entry, "Name") or name, _word(entry, "NQN") or nqn
        if name is None or nqn is None:
            raise ValueError(f"nvme list-subsys: expected Name and NQN, got {', '.join(entry)}")
        if "Paths" in entry:
            paths = as_objects(entry["Paths"], "nvme list-subsys: Paths")
            yield _subsystem(name, nqn, tuple(map(_path, paths)))


def _subsystem(name: str, nqn: str, paths: tuple[Path, ...]) -> Subsystem:
    first = paths[0] if paths else None
    live = any(path.state == "live" for path in paths)
    return Subsystem(
        name=name,
        nqn=nqn,
        paths=paths,
        state="live" if live else first and first.state,
        transport=first and first.transport,
        traddr=first and first.traddr,
    )


def _path(entry: dict[str, object]) -> Path:
    return Path(
        name=_text(entry, "Name"),
        transport=_text(entry, "Transport"),
        address=_text(entry, "Address"),
        state=_word(entry, "State"),
    )


def _word(entry: dict[str, object], key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) else None


def _text(entry: dict[str, object], key: str) -> str:
    value = _word(entry, key)
    if value is None:
        raise ValueError(f"nvme: expected {key}, got {', '.join(entry) or 'an empty object'}")
    return value


def _number(entry: dict[str, object], key: str) -> int | None:
    """Numbers beyond 64 bits are text in some releases."""
    value = entry.get(key)
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch("[0-9]{1,40}", value):
        return int(value)
    return value if isinstance(value, int) else None
