"""Lustre's client: its modules against the RDMA stack in use, LNet, mounts, parameters.

LNet comes up by lnet.service, from /etc/lnet.conf and nothing else (railwright.resolve.lnet says
why); mounts require it, so that none brings LNet up by itself with whatever interface is first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deploys.ofed import COMPONENT as OFED
from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from deploys.rails import COMPONENT as RAILS
from facts.drivers import SECTIONS as DRIVER_SECTIONS
from facts.lctl import Parameters
from facts.lustre import (
    DROP_IN,
    FILES,
    LNET_CONF,
    LNET_SCRIPT,
    LNET_UNIT,
    read_parameters,
    read_units,
)
from facts.lustre import SECTIONS as LUSTRE_SECTIONS
from facts.mounts import SECTIONS as MOUNT_SECTIONS
from facts.mounts import read_mounts
from facts.nics import SECTIONS as NIC_SECTIONS
from railwright.actions import Action, Run, RunScript
from railwright.component import Component
from railwright.drivers.arriving import brought
from railwright.files import FileRecord
from railwright.mounts import OwnedMount, mount_actions, mount_settings
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve.dkms import build_actions, build_setting
from railwright.resolve.lnet import LnetView, conf_content, conf_is_ours, ni_settings
from railwright.resolve.lnet_unit import MODULE_CONFIG, UNIT_KEY, module_networks, no_client
from railwright.resolve.lnet_unit import unit_setting as lnet_unit_setting
from railwright.resolve.lustre_modules import O2IB, Modules, module_settings
from railwright.resolve.lustre_parameters import (
    owned,
    parameter_actions,
    parameter_files,
    parameter_settings,
    unit_setting,
)
from railwright.resolve.lustre_targets import target_settings
from railwright.schema import Node
from railwright.schema.lustre import LustreMount, LustreSpec, is_o2ib, network_of
from railwright.settings import NOTHING, Effect, Setting, Standing, State, enforces, persists
from railwright.snapshot import Snapshot
from railwright.templates import render

NAME = "lustre"
_WAIT_S = 60
"""How long LNet waits for the interfaces of its networks at boot."""


@dataclass(frozen=True)
class _View:
    """What is asked of Lustre on a node, and what one snapshot shows."""

    node: Node
    snapshot: Snapshot
    files: list[FileRecord]
    mounts: dict[str, LustreMount]
    owned_mounts: tuple[OwnedMount, ...]
    mounted: tuple[str, ...]
    """Where any Lustre is mounted now."""

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot) -> "_View":
        """Raises ValueError where a section cannot be read."""
        mounts = node.storage.of(LustreMount)
        mounted: tuple[str, ...] = ()
        if not snapshot.is_container:
            entries = read_mounts(snapshot).entries
            mounted = tuple(entry.target for entry in entries if entry.fstype == "lustre")
        return cls(
            node=node,
            snapshot=snapshot,
            files=snapshot.files(FILES.name),
            mounts=mounts,
            owned_mounts=tuple(_owned_mount(where, one) for where, one in sorted(mounts.items())),
            mounted=mounted,
        )

    @property
    def allowed(self) -> frozenset[Effect]:
        return self.node.effects.allow

    @property
    def again(self) -> Effect:
        """What it takes to bring LNet up anew: what is mounted by others is left to a reboot."""
        if not self.mounted:
            return Effect.SERVICE
        ours = set(self.mounted) <= self.mounts.keys()
        return Effect.REMOUNT if ours else Effect.REBOOT

    @property
    def mount_units(self) -> list[str]:
        return [mount.unit.name for mount in self.owned_mounts]


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    if not _is_asked_for(node):
        return _left_over(node, snapshot)
    view = _View.of(node, snapshot)
    comes = arriving(node, snapshot) & node.lustre.packages.keys()
    lnet = LnetView.of(node, snapshot, view.files)
    modules = None if snapshot.is_container else Modules.of(node, snapshot, comes)
    client = None if comes else no_client(snapshot)
    found = [*filter(None, (owned_file_setting(NAME, one, view.files) for one in _owned(lnet)))]
    found += module_networks(NAME, snapshot)
    nis: list[Setting] = []
    if node.lustre.networks:
        lacks = {} if comes else _net_lacks(node, client, modules)
        nis = list(ni_settings(NAME, lnet, lacks, view.again))
        found += [lnet_unit_setting(NAME, snapshot, client, nis), *nis]
    if modules is not None:
        of_modules = [
            *module_settings(NAME, modules, view.again),
            *(build_setting(NAME, build) for build in modules.builds),
        ]
        found += brought(of_modules) if comes else of_modules
    cannot = {} if snapshot.is_container else _cannot_mount(view, lnet, nis)
    found += mount_settings(NAME, view.owned_mounts, snapshot, view.allowed, lacks=cannot)
    there = ((where, one) for where, one in view.mounts.items() if where in view.mounted)
    found += target_settings(NAME, there, snapshot)
    return found + _parameters(view)


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    by_key = {setting.key: setting for setting in settings}
    if not _is_asked_for(node):
        yield from _leave(node, snapshot, by_key)
        return
    view = _View.of(node, snapshot)
    yield from _files(_owned(LnetView.of(node, snapshot, view.files)), by_key)
    unit = by_key.get(UNIT_KEY)
    if unit is not None and persists(unit):
        yield Run(command=("systemctl", "enable", LNET_UNIT))
    if not snapshot.is_container:
        comes = arriving(node, snapshot) & node.lustre.packages.keys()
        builds = Modules.of(node, snapshot, comes).builds
        kernels = tuple(dict.fromkeys(build.kernel for build in builds))
        yield from build_actions(builds, kernels, linked=False)
    yield from _lnet(view, by_key)
    parameters = node.lustre.parameters
    yield from parameter_files(owned(parameters, view.mount_units), by_key, view.files)
    mounting = list(mount_actions(NAME, view.owned_mounts, snapshot, by_key, view.allowed))
    yield from mounting
    yield from parameter_actions(parameters, by_key, view.allowed, mounting)


def _is_asked_for(node: Node) -> bool:
    return node.lustre != LustreSpec() or bool(node.storage.of(LustreMount))


def _owned_mount(where: str, mount: LustreMount) -> OwnedMount:
    return OwnedMount(
        where=where,
        what=mount.device,
        fstype="lustre",
        options=(mount.flock, *mount.options),
        requires=(LNET_UNIT,),
        timeout_s=mount.timeout_s,
        # Older clients show nothing of noflock.
        shown=() if mount.flock == "noflock" else (mount.flock,),
    )


def _owned(lnet: LnetView) -> tuple[OwnedFile, ...]:
    conf = conf_content(lnet.wanted)
    unknown = any(ni.iface is None for ni in lnet.wanted)
    if unknown and (conf is None or lnet.conf_is_ours):
        # A NIC that is away takes its name along; what is there was written when it had one.
        return ()
    if conf is None:
        # What somebody has in lnet.conf stays where nothing is asked of LNet.
        gone = (DROP_IN, LNET_SCRIPT, *((LNET_CONF,) if lnet.conf_is_ours else ()))
        return tuple(OwnedFile(path=path, content=None) for path in gone)
    return (
        OwnedFile(path=LNET_CONF, content=conf),
        OwnedFile(
            path=LNET_SCRIPT,
            content=render("lustre/railwright-lnet.sh.j2", header=HEADER),
            mode="755",
        ),
        OwnedFile(
            path=DROP_IN,
            content=render(
                "lustre/90-railwright.conf.j2", header=HEADER, script=LNET_SCRIPT, seconds=_WAIT_S
            ),
        ),
    )


def _files(owned_files: tuple[OwnedFile, ...], by_key: Mapping[str, Setting]) -> Iterator[Action]:
    reload = False
    for one in owned_files:
        changes = owned_file_action(one, by_key.get(one.path))
        reload = reload or (bool(changes) and one.path == DROP_IN)
        yield from changes
    if reload:
        yield Run(command=("systemctl", "daemon-reload"))


def _lnet(view: _View, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Brings LNet up: what is missing beside what is there, all anew where something is wrong."""
    # What a reboot brings is left to it.
    due = {
        key: setting
        for key, setting in by_key.items()
        if enforces(setting, view.allowed) and setting.effect is not Effect.REBOOT
    }
    of_lnet = [setting for key, setting in due.items() if key.startswith(("ni ", "module "))]
    if any(setting.running.standing is Standing.WRONG for setting in of_lnet):
        yield RunScript(
            name="railwright-lnet-again",
            script=render("lustre/railwright-lnet-again.sh.j2"),
            arguments=tuple(view.mount_units),
        )
    elif UNIT_KEY in due:
        yield Run(command=("systemctl", "start", LNET_UNIT))
    elif of_lnet:
        yield Run(command=(LNET_SCRIPT,))


def _net_lacks(node: Node, client: str | None, modules: Modules | None) -> dict[str, str]:
    """Why a network cannot be brought up, by its name."""
    lacks = modules.lacks() if modules is not None else {}
    found = {}
    for net in node.lustre.networks:
        why = client or lacks.get("lnet") or (lacks.get(O2IB) if is_o2ib(net) else None)
        if why is not None:
            found[net] = why
    return found


def _cannot_mount(view: _View, lnet: LnetView, nis: Sequence[Setting]) -> dict[str, str]:
    """Why LNet reaches no MGS of a mount, also when this run has done what it may."""
    ready = set()
    by_key = {setting.key: setting for setting in nis}
    for ni in lnet.wanted:
        setting = by_key[ni.key]
        comes = enforces(setting, view.allowed) and setting.effect is not Effect.REBOOT
        if setting.running.standing is Standing.RIGHT or comes:
            ready.add(ni.net)
    found = {}
    for where, mount in view.mounts.items():
        nets = {network_of(nid) for nid in mount.nids}
        if not nets & ready:
            found[where] = f"LNet has no interface of {', '.join(sorted(nets))} that is up"
    return found


def _parameters(view: _View) -> list[Setting]:
    parameters = view.node.lustre.parameters
    ours = owned(parameters, view.mount_units)
    found = [*filter(None, (owned_file_setting(NAME, one, view.files) for one in ours))]
    asked = bool(parameters and view.mounts)
    unit = unit_setting(NAME, view.files, view.mount_units, asked=asked)
    found += [unit] if unit is not None else []
    seen: Parameters | str | None = None
    if not view.snapshot.is_container:
        try:
            seen = read_parameters(view.snapshot)
        except ValueError as error:
            seen = str(error)
    mounted = bool(view.mounted)
    if asked:
        found += parameter_settings(NAME, parameters, ours, view.files, unit, seen, mounted=mounted)
    return found


def _left_over(node: Node, snapshot: Snapshot) -> list[Setting]:
    """Files of ours on a node that asks for no Lustre any more."""
    if FILES.name not in snapshot.sections:
        return []
    files = snapshot.files(FILES.name)
    found = [*filter(None, (owned_file_setting(NAME, one, files) for one in _gone(files)))]
    if any(file.path == DROP_IN for file in files):
        found += _disabled(snapshot)
    unit = unit_setting(NAME, files, (), asked=False)
    found += [unit] if unit is not None else []
    return found + mount_settings(NAME, (), snapshot, node.effects.allow)


def _gone(files: Sequence[FileRecord]) -> tuple[OwnedFile, ...]:
    conf = (LNET_CONF,) if conf_is_ours(files) else ()
    lnet = (OwnedFile(path=path, content=None) for path in (*conf, DROP_IN, LNET_SCRIPT))
    return (*lnet, *owned({}, ()))


def _disabled(snapshot: Snapshot) -> Iterator[Setting]:
    """lnet.service would fail at each boot without its file."""
    unit = read_units(snapshot).lnet
    if unit is not None and unit.file_state == "enabled":
        yield Setting(
            component=NAME,
            key=UNIT_KEY,
            desired="disabled",
            persisted=State(standing=Standing.WRONG, value="enabled", decider=LNET_UNIT),
            running=NOTHING,
        )


def _leave(node: Node, snapshot: Snapshot, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    if not by_key:
        return
    files = snapshot.files(FILES.name)
    yield from mount_actions(NAME, (), snapshot, by_key, node.effects.allow)
    if UNIT_KEY in by_key and persists(by_key[UNIT_KEY]):
        yield Run(command=("systemctl", "disable", LNET_UNIT))
    yield from _files(_gone(files), by_key)
    yield from parameter_files(owned({}, ()), by_key, files)


COMPONENT = Component(
    name=NAME,
    sections=(
        *(*LUSTRE_SECTIONS, *MOUNT_SECTIONS, *NIC_SECTIONS),
        *(MODULE_CONFIG, *DRIVER_SECTIONS, *PACKAGES.sections),
    ),
    settings=settings,
    actions=actions,
    # Packages bring the client, OFED what it is built against, and rails the names of its ports.
    upon=frozenset({PACKAGES.name, OFED.name, RAILS.name}),
)
