"""Which manager has a node's rails, and whether its files, as ours stand among them, decide."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from facts.network import Network, interfaces_files, keyfiles, netplan_files
from railwright.files import FileRecord
from railwright.model import Model
from railwright.netconfig import WRITERS, ManagerName, RailConfig, Said
from railwright.netconfig.ifupdown import INTERFACES, sources_directory, stanzas_of
from railwright.netconfig.ini import ini_sections, section_of
from railwright.netconfig.netplan import interfaces_of, renderer_of
from railwright.netconfig.networkmanager import PRIORITY
from railwright.resolve.networkd import Device, winner

Renderer = Literal["networkd", "NetworkManager"]

_TITLES = {
    "networkd": "systemd-networkd",
    "NetworkManager": "NetworkManager",
    "ifupdown": "ifupdown",
}


class UnknownManagerError(ValueError):
    """It cannot be told which manager has the rails."""


class Manager(Model):
    """The manager that files are written for; ``renderer`` carries out what netplan's say."""

    name: ManagerName
    renderer: Renderer | None = None


class Decided(Model):
    """What holds for a rail at boot, and who says so.

    ``said`` is None where no file of ours says anything; ``rival`` is the file that decides in
    place of ours, and ``why`` says how.
    """

    said: Said | None = None
    decider: str | None = None
    rival: str | None = None
    why: str | None = None


def manager_of(network: Network, interfaces: Iterable[str], is_container: bool) -> Manager:
    """The manager of the rails, of which ``interfaces`` are the names. Raises UnknownManagerError.

    A container has no running manager: there the one that is enabled counts.
    """
    running = {
        name
        for name, unit in network.units.items()
        if (
            unit.file_state in ("enabled", "enabled-runtime")
            if is_container
            else unit.active == "active"
        )
    }
    if network.has_netplan and netplan_files(network):
        renderer = _renderer(network)
        if renderer not in running:
            raise UnknownManagerError(f"netplan is for {_TITLES[renderer]}, which does not run")
        return Manager(name="netplan", renderer=renderer)
    if len(running) > 1:
        rails = set(interfaces)
        claimed = {name for name in running if _claims(network, name) & rails}
        if len(claimed) != 1:
            several = " and ".join(_TITLES[name] for name in sorted(running))
            which = "each have" if claimed else "none of them has"
            raise UnknownManagerError(f"{several} run, and {which} interfaces of the rails")
        running = claimed
    for name in running:
        found: ManagerName = _NAMES[name]
        return Manager(name=found)
    raise UnknownManagerError(f"none of {', '.join(_TITLES.values())} runs")


_NAMES: dict[str, ManagerName] = {
    "networkd": "networkd",
    "NetworkManager": "NetworkManager",
    "ifupdown": "ifupdown",
}


def _renderer(network: Network) -> Renderer:
    found = None
    for file in sorted(netplan_files(network), key=lambda file: file.name):
        try:
            found = renderer_of(file.content or "") or found
        except ValueError as error:
            raise UnknownManagerError(f"{file.path}: {error}") from None
    return "NetworkManager" if found == "NetworkManager" else "networkd"


def _claims(network: Network, manager: str) -> set[str]:
    if manager == "ifupdown":
        return {
            name for file in interfaces_files(network) for _, name in stanzas_of(file.content or "")
        }
    return set(network.claims.get(manager, frozenset()))


def decided(
    network: Network, manager: Manager, config: RailConfig, device: Device | None
) -> Decided:
    """What holds at boot for the rail ``config`` on ``device`` (None in a container).

    Raises ValueError where a file that could decide cannot be read.
    """
    writer = WRITERS[manager.name]
    path = writer.path(config.key)
    ours = next((file for file in network.files if file.path == path), None)
    rival = _rival(network, manager, config, device)
    if rival is not None:
        file, why = rival
        return Decided(rival=file, decider=file, why=why)
    if ours is None or ours.content is None:
        return Decided()
    return Decided(said=writer.read(ours.content), decider=path)


def _rival(
    network: Network, manager: Manager, config: RailConfig, device: Device | None
) -> tuple[str, str] | None:
    """The file that decides though ours is right, and how."""
    if manager.name == "ifupdown":
        return _ifupdown_rival(network, config)
    if manager.name == "netplan":
        found = _netplan_rival(network, config)
        if found is not None:
            return found
    if device is None:
        return None
    if "NetworkManager" in (manager.name, manager.renderer):
        return _profile_rival(network, manager, config, device)
    return _networkd_rival(network, manager, config, device)


def _networkd_rival(
    network: Network, manager: Manager, config: RailConfig, device: Device
) -> tuple[str, str] | None:
    if manager.name == "netplan":
        path = f"/run/systemd/network/10-netplan-{config.name}.network"
        content, at_boot = f"[Match]\nName={config.name}\n", config.name or device.name
    else:
        path, at_boot = WRITERS["networkd"].path(config.key), config.name or device.name
        content = WRITERS["networkd"].content(config) or ""
    ours = FileRecord(path=path, kind="file", content=content)
    others = [file for file in network.files if file.path != path]
    found = winner([ours, *others], "network", device.model_copy(update={"name": at_boot}))
    if found is None or found.path == path:
        return None
    return found.path, _first(found.surely)


def _first(surely: bool) -> str:
    return "it is the first file by name that " + (
        "matches the interface" if surely else "may match the interface: what it asks is not read"
    )


def link_rival(network: Network, path: str, content: str, device: Device) -> tuple[str, str] | None:
    """The .link file that names ``device`` though ours has ``content``. Raises ValueError."""
    ours = FileRecord(path=path, kind="file", content=content)
    others = [file for file in network.files if file.path != path]
    found = winner([ours, *others], "link", device)
    if found is None or found.path == path:
        return None
    return found.path, _first(found.surely)


def _netplan_rival(network: Network, config: RailConfig) -> tuple[str, str] | None:
    """Another file with the same entry: netplan merges the two."""
    ours = WRITERS["netplan"].path(config.key)
    for file in netplan_files(network):
        if file.path != ours and config.name in interfaces_of(file.content or ""):
            return file.path, f"it has an entry {config.name} too, and netplan merges the two"
    return None


def _profile_rival(
    network: Network, manager: Manager, config: RailConfig, device: Device
) -> tuple[str, str] | None:
    own = {WRITERS["NetworkManager"].path(config.key), generated_profile(config)[0]}
    # What netplan generates has no priority of its own.
    least = 0 if manager.name == "netplan" else PRIORITY
    for file in keyfiles(network):
        if file.path in own:
            continue
        sections = ini_sections(file.content or "")
        connection = section_of(sections, "connection")
        priority = connection.last("autoconnect-priority") or "0"
        if (
            connection.last("type") in ("ethernet", "802-3-ethernet", "infiniband")
            and connection.last("autoconnect") not in ("false", "no", "0")
            and _number(priority) >= least
            and _profile_fits(file.content or "", config, device)
        ):
            return file.path, f"its profile fits the interface, with priority {priority}"
    return None


def _number(text: str) -> int:
    return int(text) if text.removeprefix("-").isdecimal() else 0


def generated_profile(config: RailConfig) -> tuple[str, str]:
    """The file and the name of the profile that netplan generates."""
    name = f"netplan-{config.name}"
    return f"/run/NetworkManager/system-connections/{name}.nmconnection", name


def _profile_fits(text: str, config: RailConfig, device: Device) -> bool:
    sections = ini_sections(text)
    connection, match = section_of(sections, "connection"), section_of(sections, "match")
    name = connection.last("interface-name")
    if name and name != (config.name or device.name):
        return False
    mac = section_of(sections, connection.last("type") or "").last("mac-address")
    if mac and mac.lower() != device.permanent_mac:
        return False
    for key, value in (
        ("interface-name", config.name or device.name),
        ("path", device.path),
        ("driver", device.driver),
    ):
        globs = [glob for glob in (match.last(key) or "").split(";") if glob]
        if globs and not any(fnmatchcase(value or "", glob) for glob in globs):
            return False
    return True


def _ifupdown_rival(network: Network, config: RailConfig) -> tuple[str, str] | None:
    ours = WRITERS["ifupdown"].path(config.key)
    main = next((file for file in network.files if file.path == INTERFACES), None)
    if main is None or not sources_directory(main.content or ""):
        return INTERFACES, "it does not read interfaces.d: it needs `source interfaces.d/*`"
    for file in interfaces_files(network):
        for line, name in stanzas_of(file.content or ""):
            if file.path != ours and name == config.name:
                return f"{file.path}:{line}", f"it sets {name} up too"
    return None
