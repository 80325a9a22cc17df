"""NVMe over Fabrics: volumes connected by units of ours, formatted once at most, and mounted.

How connections come up, and why not by nvme-cli's own unit, is told in ``railwright.nvmeof``. A
file system is made in a run alone, never at boot, and only where nothing at all is found. What a
connection was given at its start (queues, keep alive, host identity) needs it to be made anew,
which takes the file system away for that moment: effect ``remount``.
"""

from collections.abc import Iterator, Mapping, Sequence

from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from facts import nvme as facts
from facts.mounts import SECTIONS as MOUNTS
from facts.mounts import read_mounts
from facts.nics import SECTIONS as NICS
from facts.nics import read_nics
from facts.nvme import AUTOCONNECT, HOSTID, HOSTNQN, NvmeofSeen
from facts.rdma_modules import SECTION as RDMA_MODULES
from facts.rdma_modules import read_rdma_modules
from facts.secret_files import SECRETS
from facts.units import Unit, read_units
from railwright.actions import Action
from railwright.component import Component
from railwright.files import FileRecord
from railwright.mounts import mount_actions, mount_settings, unit_name
from railwright.nvmeof import Volume, unit_of, volumes_of
from railwright.owned import owned_file_setting
from railwright.owned_unit import enabled_setting
from railwright.resolve.nics import find_rails
from railwright.resolve.nvmeof import (
    VolumeView,
    filesystem_setting,
    lack_of,
    volume_settings,
)
from railwright.resolve.nvmeof_actions import (
    connecting,
    dropping,
    keeping,
    leaving,
    linking,
    parting,
    persisting,
)
from railwright.resolve.nvmeof_files import COMPONENT as NAME
from railwright.resolve.nvmeof_files import (
    file_settings,
    identity_actions,
    identity_settings,
    is_whole,
    left_files,
    left_names,
    rival_settings,
)
from railwright.resolve.rdma_modules import Refusal, brings, refusal
from railwright.schema import Node
from railwright.secret_files import secret_setting
from railwright.settings import HOSTS_KERNEL, Effect, Setting, Standing, State, looked_at
from railwright.snapshot import Snapshot

_MULTIPATH = "native multipath"
_MODULE = "module nvme_rdma"


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    volumes, files = volumes_of(node), snapshot.left_over(facts.FILES.name)
    container = snapshot.is_container
    found = list(identity_settings(node.nvmeof, volumes, files, container=container))
    found += file_settings(node.nvmeof, volumes, files)
    found += _left(volumes, files, node, snapshot)
    if node.nvmeof.multipath is not None:
        found.append(_multipath(node.nvmeof.multipath, snapshot))
    for volume in volumes:
        if volume.keys is not None:
            found.append(secret_setting(NAME, volume.keys, snapshot))
        found += filter(None, [_unit(volume, files, snapshot)])
    views = [] if container else _views(node, volumes, files, snapshot)
    devices, lacks = {}, {}
    for view in views:
        found += volume_settings(view)
        lack = lack_of(view, filesystem_setting(view))
        if lack is not None:
            lacks[view.volume.where] = lack
        devices[view.volume.where] = _device(view)
    if views:
        found += _rivals(volumes, snapshot)
    if views and any(volume.spec.transport == "rdma" for volume in volumes):
        found.append(_module(node, snapshot))
    mounts = [volume.mount(devices.get(volume.where)) for volume in volumes]
    mounted = mount_settings(NAME, mounts, snapshot, node.effects.allow, lacks=lacks)
    held = {mount.key for mount in mounts if mount.where in lacks}
    return found + [_held_back(s) if s.key in held else s for s in mounted]


def _held_back(setting: Setting) -> Setting:
    """What is mounted while its volume is away, or in its place, is left mounted."""
    running = setting.running
    if running.standing is Standing.WRONG and (running.value or "").startswith("/dev/nvme"):
        detail = "its device is gone, and IO on it fails"
        running = State(standing=Standing.DEGRADED, value=running.value, detail=detail)
    return setting.model_copy(update={"acts": False, "running": running})


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    by_key = {setting.key: setting for setting in settings}
    volumes, files = volumes_of(node), snapshot.left_over(facts.FILES.name)
    container = snapshot.is_container
    yield from identity_actions(node.nvmeof, by_key)
    yield from persisting(node.nvmeof, volumes, by_key)
    views = [] if container else _views(node, volumes, files, snapshot)
    yield from linking(views, by_key)
    yield from parting(views, by_key)
    for view in views:
        yield from connecting(view, by_key)
    yield from dropping(views, by_key)
    devices = {view.volume.where: _device(view) for view in views}
    mounts = [volume.mount(devices.get(volume.where)) for volume in volumes]
    yield from mount_actions(NAME, mounts, snapshot, by_key, node.effects.allow)
    for view in views:
        yield from keeping(view, by_key)
    yield from leaving(node.nvmeof, volumes, files, by_key, container=container)


def _views(
    node: Node, volumes: Sequence[Volume], files: list[FileRecord], snapshot: Snapshot
) -> list[VolumeView]:
    """Raises ValueError where the node cannot be read."""
    if not volumes:
        return []
    seen, units = facts.read_nvmeof(snapshot), read_units(snapshot, facts.UNITS.name)
    spec = node.nvmeof
    identity = (spec.host_nqn or _text(files, HOSTNQN), spec.host_id or _text(files, HOSTID))
    rails = _rails(node, volumes, snapshot)
    return [
        VolumeView(
            spec=node.nvmeof,
            volume=volume,
            seen=seen,
            refused=_refused(volume, seen, node, snapshot),
            refused_ports={
                number: rails[portal.portal.rail]
                for number, portal in enumerate(volume.portals)
                if portal.portal.rail in rails
            },
            keeps=is_whole(node.nvmeof, volume, files) and _is_active(units, volume),
            identity=identity,
            allowed=node.effects.allow,
        )
        for volume in volumes
    ]


def _text(files: Sequence[FileRecord], path: str) -> str | None:
    content = next((file.content for file in files if file.path == path), None)
    return (content or "").strip() or None


def _rails(node: Node, volumes: Sequence[Volume], snapshot: Snapshot) -> dict[int | None, str]:
    """Rails that a portal is reached by and the node does not have, and why."""
    if not any(p.portal.rail is not None for volume in volumes for p in volume.portals):
        return {}
    found = find_rails(node, read_nics(snapshot))
    return {rail.plan.rail: rail.error for rail in found if rail.error is not None}


def _refused(volume: Volume, seen: NvmeofSeen, node: Node, snapshot: Snapshot) -> Refusal | None:
    without = seen.options is not None and "dhchap_secret" not in seen.options
    if volume.keys is not None and without:
        return Refusal(
            found="this kernel has no DH-HMAC-CHAP (CONFIG_NVME_HOST_AUTH)",
            remedy="boot a kernel that has it, as Debian's have from 13 on",
        )
    return _of_stack(node, snapshot) if volume.spec.transport == "rdma" else None


def _of_stack(node: Node, snapshot: Snapshot) -> Refusal | None:
    """Why nvme_rdma must not be used; None where packages of this run bring the right one."""
    if any(brings("nvme_rdma", package) for package in arriving(node, snapshot)):
        return None
    return refusal("nvme_rdma", read_rdma_modules(snapshot))


def _module(node: Node, snapshot: Snapshot) -> Setting:
    refused, desired = _of_stack(node, snapshot), "of the RDMA stack in use"
    state = State(standing=Standing.RIGHT, value=desired)
    if refused is not None:
        state = State(standing=Standing.WRONG, detail=refused.found)
    return looked_at(NAME, _MODULE, desired, state, remedy=refused.remedy if refused else None)


def _multipath(wanted: bool, snapshot: Snapshot) -> Setting:
    desired = "on" if wanted else "off"
    if snapshot.is_container:
        return looked_at(NAME, _MULTIPATH, desired, HOSTS_KERNEL)
    found = facts.read_nvmeof(snapshot).multipath
    remedy = None
    if found is None:
        state = State(standing=Standing.LATE, detail="the module nvme_core is not loaded")
    else:
        standing = Standing.RIGHT if found is wanted else Standing.WRONG
        state = State(standing=standing, value="on" if found else "off")
    if state.standing is Standing.WRONG:
        remedy = "a reboot: nvme_core reads it when it is loaded"
    return looked_at(NAME, _MULTIPATH, desired, state, remedy=remedy)


def _rivals(volumes: Sequence[Volume], snapshot: Snapshot) -> Iterator[Setting]:
    unit = read_units(snapshot, facts.UNITS.name).get(AUTOCONNECT)
    if unit is None or unit.file_state != "enabled":
        return
    foreign = facts.read_foreign(snapshot)
    for volume in volumes:
        yield from rival_settings(volume, foreign)


def _is_active(units: Mapping[str, Unit], volume: Volume) -> bool:
    unit = units.get(volume.unit.name)
    return unit is not None and unit.active == "active"


def _unit(volume: Volume, files: list[FileRecord], snapshot: Snapshot) -> Setting | None:
    running = HOSTS_KERNEL
    if not snapshot.is_container:
        unit = read_units(snapshot, facts.UNITS.name).get(volume.unit.name)
        # In the words of the one setting that it shares with its enablement.
        active = unit is not None and unit.active == "active"
        standing = Standing.RIGHT if active else Standing.ABSENT if unit is None else Standing.WRONG
        value = "enabled" if active else unit.active if unit else None
        running = State(standing=standing, value=value)
    return enabled_setting(NAME, volume.unit, files, asked=True, running=running)


def _device(view: VolumeView) -> str | None:
    return view.namespace.device if view.namespace else None


def _left(
    volumes: Sequence[Volume], files: list[FileRecord], node: Node, snapshot: Snapshot
) -> Iterator[Setting]:
    """Volumes that are not asked for any more; one that is mounted is taken from nobody."""
    for name in left_names(volumes, files):
        where = "/" + name.replace(":", "/")
        mounted = not snapshot.is_container and read_mounts(snapshot).on(where) is not None
        stays = mounted and Effect.REMOUNT not in node.effects.allow
        for setting in (
            *(owned_file_setting(NAME, one, files) for one in left_files(name)),
            enabled_setting(NAME, unit_of(name), files, asked=False),
        ):
            if setting is not None:
                remedy = f"it is mounted: allow remount, or systemctl stop {unit_name(where)}"
                yield setting.model_copy(
                    update={"acts": not stays, "remedy": remedy if stays else None}
                )


COMPONENT = Component(
    name=NAME,
    sections=(
        *(*facts.SECTIONS, *MOUNTS, *NICS, RDMA_MODULES, SECRETS),
        *PACKAGES.sections,
    ),
    settings=settings,
    actions=actions,
    upon=frozenset({PACKAGES.name, "ofed", "rails"}),
)
