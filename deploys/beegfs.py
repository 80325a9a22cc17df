"""BeeGFS's client: its configuration, its kernel module, its mounts, and how they reach servers.

Mounts are made by units of ours, of both packages and majors. beegfs-client.service (of the package
without dkms) mounts all of beegfs-mounts.conf in one script that ends at the first that fails, with
no limit to its time, and multi-user.target waits for it; the package with dkms has no service at
all. The service stays for what it alone does: it builds the module and loads it, before the units
mount. They are ordered after it, and after the helper of 7, and do not require them, for a restart
of either would then unmount what is in use.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from deploys.gpu_driver import COMPONENT as GPU_DRIVER
from deploys.ofed import COMPONENT as OFED
from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from deploys.rails import COMPONENT as RAILS
from facts.beegfs import (
    CLIENT,
    HELPERD,
    SECTIONS,
    STATE,
    UNITS,
    ConfFile,
    read_clients,
    read_files,
    read_module,
    read_offers,
)
from facts.mounts import SECTIONS as MOUNT_SECTIONS
from facts.nics import SECTIONS as NIC_SECTIONS
from facts.nics import read_nics
from facts.secret_files import SECRETS
from facts.units import Unit, read_units
from railwright.actions import Action, RemoveFile, Run
from railwright.component import Component
from railwright.files import FileRecord
from railwright.mounts import OwnedMount, mount_actions, mount_settings
from railwright.owned import OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve.beegfs_files import (
    Edited,
    edit_actions,
    key_settings,
    rival_actions,
    rival_lines,
    rival_settings,
    stale_lists,
    told_keys,
)
from railwright.resolve.beegfs_module import (
    ModuleView,
    missing,
    module_actions,
    module_settings,
)
from railwright.resolve.beegfs_running import (
    Clients,
    list_setting,
    running_keys,
    transport_settings,
)
from railwright.resolve.beegfs_units import unit_actions, unit_setting
from railwright.resolve.beegfs_wanted import (
    BUILD_FILES,
    HELPERD_CONFIG,
    MOUNTS_CONFIG,
    OURS,
    Lists,
    auth_keys,
    beegfs_mounts,
    build_keys,
    client_keys,
    interface_files,
    lists_of,
    nvidia_fs_source,
    owned_mounts,
    secret_files,
)
from railwright.resolve.nics import find_rails, rails_in_image
from railwright.schema import Node
from railwright.schema.beegfs import BeegfsMount
from railwright.schema.beegfs_keys import Major
from railwright.secret_files import secret_actions, secret_setting
from railwright.settings import Effect, Setting, Standing, enforces, persists
from railwright.snapshot import Snapshot

NAME = "beegfs"
_WHY = {
    "connTCPFallbackEnabled": "with it a fault of RDMA is slow, and nothing tells of it "
    "(ThinkParQ/beegfs#100)",
    "connRDMAInterfacesFile": "without it RDMA takes the first interface that reaches a server",
}


@dataclass(frozen=True)
class _View:
    """A node that is asked for BeeGFS, as one snapshot shows it."""

    node: Node
    snapshot: Snapshot
    major: Major
    mounts: dict[str, BeegfsMount]
    lists: dict[str, Lists]
    files: dict[str, ConfFile]
    state: list[FileRecord]
    units: dict[str, Unit]
    comes: bool

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot) -> "_View":
        """Raises ValueError where a section cannot be read."""
        mounts, inside = beegfs_mounts(node), snapshot.is_container
        if inside or not node.rails.nics:
            rails = rails_in_image(node)
        else:
            rails = find_rails(node, read_nics(snapshot))
        return cls(
            node=node,
            snapshot=snapshot,
            major=node.beegfs.major or 8,
            mounts=mounts,
            lists={where: lists_of(mount, rails) for where, mount in mounts.items()},
            files=read_files(snapshot),
            state=snapshot.files(STATE.name),
            units=read_units(snapshot, UNITS.name),
            comes=bool(arriving(node, snapshot) & node.beegfs.packages.keys()),
        )

    @property
    def services(self) -> tuple[str, ...]:
        """Units of the packages that come before a mount."""
        helper = (HELPERD,) if self.major == 7 else ()
        return (*helper, CLIENT) if self.node.beegfs.build == "autobuild" else helper

    @property
    def owned_mounts(self) -> list[OwnedMount]:
        return owned_mounts(self.mounts, after=self.services)

    def client_file(self, where: str) -> Edited:
        mount = self.mounts[where]
        wanted = client_keys(mount, self.major, self.lists[where])
        file = self._edited(mount.config, wanted, "client")
        return file.model_copy(update={"wanted": stale_lists(file) | wanted})

    @property
    def edited(self) -> list[Edited]:
        """The files beside those of the client, as far as anything is asked of them."""
        found, build = [], self.node.beegfs.build
        if self.major == 7:
            first = next(iter(self.mounts.values()))
            found.append(self._edited(HELPERD_CONFIG, auth_keys(first), "helperd"))
        keys = build_keys(self.node)
        if build == "autobuild":
            keys["buildEnabled"] = "true"
        if keys:
            found.append(self._edited(BUILD_FILES[build], keys, build))
        return found

    def _edited(self, path: str, wanted: dict[str, str | None], kind: str) -> Edited:
        return Edited(path=path, file=self.files.get(path), wanted=wanted, kind=kind)

    @property
    def rivals(self) -> dict[str, set[int]]:
        if self.node.beegfs.build != "autobuild":
            return {}
        configs = {mount.config for mount in self.mounts.values()}
        return rival_lines(self.files.get(MOUNTS_CONFIG), set(self.mounts), configs)

    def interface_files(self) -> dict[str, tuple[OwnedFile, str]]:
        """Our lists of interfaces by their path, each with the directory of its mount."""
        return {
            owned.path: (owned, where)
            for where, mount in self.mounts.items()
            for owned in interface_files(mount, self.lists[where])
        }

    def left_over(self) -> list[OwnedFile]:
        """Files of ours that no mount asks for any more."""
        wanted = self.interface_files().keys()
        return [
            OwnedFile(path=file.path, content=None)
            for file in self.state
            if file.path.startswith(f"{OURS}/") and file.path not in wanted
        ]

    def module(self, settings: list[Setting]) -> ModuleView:
        """``settings`` are those of the files: what changes there is built anew."""
        beegfs, path = self.node.beegfs, BUILD_FILES[self.node.beegfs.build]
        name = path.rpartition("/")[2]
        file = self.files.get(path)
        asked = build_keys(self.node)
        return ModuleView(
            build=beegfs.build,
            major=self.major,
            kernel=self.snapshot.facts("identity")["kernel"],
            module=read_module(self.snapshot),
            files=self.state,
            client=self.units.get(CLIENT),
            build_file=file.record if file else None,
            asked=bool(asked),
            rebuilt=any(s.key.startswith(f"{name} ") and persists(s) for s in settings),
            sources=nvidia_fs_source(self.node) if beegfs.gds else None,
            comes=self.comes,
        )


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    if not beegfs_mounts(node):
        return _left(node, snapshot)
    view = _View.of(node, snapshot)
    clients = _clients(snapshot)
    found = [secret_setting(NAME, file, snapshot) for file in secret_files(node)]
    found += _files(view, clients)
    if not snapshot.is_container:
        found += module_settings(NAME, view.module(found))
    found += [
        unit_setting(NAME, unit, view.units.get(unit), snapshot, comes=view.comes)
        for unit in view.services
    ]
    lacks = _lacks(view, found)
    found += mount_settings(NAME, view.owned_mounts, snapshot, node.effects.allow, lacks=lacks)
    offers = {} if snapshot.is_container else read_offers(snapshot)
    found += transport_settings(NAME, view.mounts, clients, offers)
    return found


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    by_key = {setting.key: setting for setting in settings}
    if not beegfs_mounts(node):
        yield from _remove(node, snapshot, by_key)
        return
    view = _View.of(node, snapshot)
    yield from secret_actions(secret_files(node), by_key)
    for owned, _ in view.interface_files().values():
        yield from owned_file_action(owned, by_key.get(owned.path))
    edited = [view.client_file(where) for where in view.mounts]
    for file in (*edited, *view.edited):
        yield from edit_actions(file, by_key)
    yield from rival_actions(view.files.get(MOUNTS_CONFIG), view.rivals, by_key)
    for owned in view.left_over():
        yield from owned_file_action(owned, by_key.get(owned.path))
    if not snapshot.is_container:
        yield from module_actions(view.module(settings), by_key)
    for unit in view.services:
        told_anew = unit == HELPERD and _writes(by_key, HELPERD_CONFIG)
        yield from unit_actions(by_key, unit, node.effects.allow, told_anew=told_anew)
    yield from mount_actions(NAME, view.owned_mounts, snapshot, by_key, node.effects.allow)
    yield from _mounted_anew(view, by_key)


def _clients(snapshot: Snapshot) -> Clients:
    if snapshot.is_container:
        return Clients(in_container=True)
    try:
        return Clients(found=read_clients(snapshot))
    except ValueError as error:
        return Clients(error=str(error))


def _files(view: _View, clients: Clients) -> Iterator[Setting]:
    for owned, where in view.interface_files().values():
        setting = owned_file_setting(NAME, owned, view.state)
        if setting is not None:
            mount = view.mounts[where]
            yield list_setting(setting, owned, mount, view.lists[where], clients)
    for where, mount in view.mounts.items():
        running = running_keys(mount, clients)
        file = view.client_file(where)
        yield from key_settings(NAME, file, running, Effect.REMOUNT, _WHY)
        yield from told_keys(NAME, file, view.major)
    for file in view.edited:
        yield from key_settings(NAME, file)
    yield from rival_settings(NAME, view.files.get(MOUNTS_CONFIG), view.rivals)
    for owned in view.left_over():
        setting = owned_file_setting(NAME, owned, view.state)
        if setting is not None:
            yield setting


def _lacks(view: _View, settings: list[Setting]) -> dict[str, str]:
    """Why a directory cannot have anything mounted on it yet."""
    by_key = {setting.key: setting for setting in settings}
    found = {}
    module = None if view.snapshot.is_container else missing(view.module(settings), by_key)
    for where, mount in view.mounts.items():
        unread = [
            setting.key
            for setting in settings
            if setting.persisted.standing is Standing.UNREADABLE
            and setting.key.startswith((f"{mount.config.rpartition('/')[2]} ", "secret "))
        ]
        reason = module or view.lists[where].error
        if reason is None and unread:
            reason = f"{unread[0]} cannot be read"
        if reason is not None:
            found[where] = reason
    return found


def _mounted_anew(view: _View, by_key: dict[str, Setting]) -> Iterator[Run]:
    """What is read when a BeeGFS is mounted comes into force by mounting it anew."""
    allowed = view.node.effects.allow
    for mount in view.owned_mounts:
        itself = by_key.get(mount.key)
        if itself is None or enforces(itself, allowed):
            continue
        paths = {
            path for path, (_, where) in view.interface_files().items() if where == mount.where
        }
        name = view.mounts[mount.where].config.rpartition("/")[2]
        due = [
            setting
            for key, setting in by_key.items()
            if (key in paths or key.startswith(f"{name} ")) and enforces(setting, allowed)
        ]
        if due:
            yield Run(command=("systemctl", "restart", mount.unit.name))


def _writes(by_key: dict[str, Setting], path: str) -> bool:
    name = path.rpartition("/")[2]
    return any(key.startswith(f"{name} ") and persists(s) for key, s in by_key.items())


def _left(node: Node, snapshot: Snapshot) -> list[Setting]:
    """What is left of mounts that nothing asks for any more."""
    found = mount_settings(NAME, (), snapshot, node.effects.allow)
    state = snapshot.left_over(STATE.name)
    owned = [OwnedFile(path=file.path, content=None) for file in _ours(state)]
    found += filter(None, (owned_file_setting(NAME, file, state) for file in owned))
    return found


def _ours(state: list[FileRecord]) -> list[FileRecord]:
    return [file for file in state if file.path.startswith(f"{OURS}/")]


def _remove(node: Node, snapshot: Snapshot, by_key: dict[str, Setting]) -> Iterator[Action]:
    yield from mount_actions(NAME, (), snapshot, by_key, node.effects.allow)
    for file in _ours(snapshot.left_over(STATE.name)):
        setting = by_key.get(file.path)
        if setting is not None and persists(setting):
            yield RemoveFile(path=file.path)


COMPONENT = Component(
    name=NAME,
    sections=(*SECTIONS, *MOUNT_SECTIONS, SECRETS, *NIC_SECTIONS, *PACKAGES.sections),
    settings=settings,
    actions=actions,
    # The client comes from packages, is built upon OFED and the GPU driver's sources, and goes
    # over the rails by their names.
    upon=frozenset({PACKAGES.name, OFED.name, GPU_DRIVER.name, RAILS.name}),
)
