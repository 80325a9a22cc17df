"""The RDMA stack: which one is on disk, for each kernel that may boot, and which one is loaded.

Packages bring it; here its modules are built by dkms for the running kernel and for the next, what
is built upon them after them, and what is loaded is brought to what is on disk. A reload that
would cut ssh, the root file system or a mount is left to a reboot. What the next kernel lacks
refuses that reboot (``railwright.drivers.kernels.refusal``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from facts import drivers as facts
from facts.drivers import Drivers, read_drivers
from facts.initramfs import IMAGES
from facts.modinfo import LoadedModule, ModuleFile
from facts.modules import SECTIONS as MODULE_SECTIONS
from facts.modules import images_of
from facts.openibd import OPENIBD
from facts.openibd import SECTIONS as UNIT_SECTIONS
from railwright.actions import Action, Run
from railwright.component import Component, RebootGate
from railwright.drivers import dkms_order, staging
from railwright.drivers.arriving import brought, dkms_modules
from railwright.drivers.dkms_order import Build
from railwright.drivers.holders import Reload
from railwright.drivers.kernels import checks_of, kernels_of, refusal
from railwright.drivers.next_kernel import OFED_CORE, KernelCheck
from railwright.drivers.options import asks_for_drivers, has_ofed
from railwright.drivers.versions import OFED_LOADED, loaded_findings, ofed_findings
from railwright.files import FileRecord
from railwright.resolve.dkms import build_actions, build_setting
from railwright.resolve.driver_images import image_actions, image_settings
from railwright.resolve.openibd import openibd_setting
from railwright.schema import Node
from railwright.settings import (
    NOTHING,
    Effect,
    Setting,
    Standing,
    State,
    enforces,
    looked_at,
    persists,
)
from railwright.snapshot import Snapshot

NAME = "ofed"
LINK = "/usr/src/ofa_kernel/default"
_MODULES = ("ib_core", "mlx5_core")


@dataclass(frozen=True)
class _View:
    """A node of its own kernel, as one snapshot shows it."""

    node: Node
    drivers: Drivers
    kernels: tuple[str, ...]
    checks: dict[str, KernelCheck]
    builds: tuple[Build, ...]
    reload: Reload
    images: dict[str, FileRecord]
    arriving: frozenset[str]

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot) -> "_View":
        """Raises ValueError where a section cannot be read."""
        drivers = read_drivers(snapshot)
        checks = checks_of(node, drivers)
        coming = arriving(node, snapshot) if has_ofed(node) else frozenset()
        # The link to OFED's sources ends where the last build was: at the kernel that boots next.
        kernels = tuple(sorted(kernels_of(drivers), key=lambda k: k == drivers.next_boot.version))
        disks = {kernel: drivers.kernels[kernel].disk for kernel in kernels}
        builds = (
            dkms_order.builds(drivers.dkms, kernels, checks, disks, dkms_modules(coming))
            if has_ofed(node)
            else ()
        )
        return cls(
            node=node,
            drivers=drivers,
            kernels=kernels,
            checks=checks,
            builds=builds,
            reload=staging.reload_of(OFED_LOADED, drivers, snapshot),
            images=images_of(snapshot.files("modules_initramfs")),
            arriving=coming & node.ofed.packages.keys(),
        )

    @property
    def wanted(self) -> str:
        return _of(self.node)

    @property
    def effect(self) -> Effect:
        return staging.effect_of(self.reload)


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    if node.ofed.kind is None:
        return []
    if snapshot.is_container:
        if not has_ofed(node):
            return []
        there = [openibd_setting(NAME, snapshot, None, Effect.LIVE)]
        comes = arriving(node, snapshot) & node.ofed.packages.keys()
        return list(brought(there)) if comes else there
    view = _View.of(node, snapshot)
    modules = list(_modules(view))
    outdated = any(setting.running.standing is Standing.WRONG for setting in modules)
    effect = view.effect if outdated else Effect.LIVE
    there = [
        *([openibd_setting(NAME, snapshot, view.reload, effect)] if has_ofed(node) else ()),
        _installed(view),
        *modules,
        *(_one_stack(view, kernel) for kernel in view.kernels),
        *(build_setting(NAME, build) for build in view.builds),
        *_images(view),
        *_link(view),
    ]
    return list(brought(there)) if view.arriving else there


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    if not settings:
        return
    by_key = {setting.key: setting for setting in settings}
    if OPENIBD in by_key and persists(by_key[OPENIBD]):
        yield Run(command=("systemctl", "enable", OPENIBD))
    if snapshot.is_container:
        return
    view = _View.of(node, snapshot)
    linked = LINK in by_key and persists(by_key[LINK])
    yield from build_actions(view.builds, view.kernels, linked=linked)
    yield from image_actions(view.images, settings)
    due = [s for s in settings if enforces(s, node.effects.allow)]
    for setting in due:
        if setting.effect is Effect.LIVE and setting.key == OPENIBD:
            yield Run(command=("systemctl", "start", OPENIBD))
        if setting.effect is Effect.LIVE and setting.key in OFED_LOADED:
            yield Run(command=("modprobe", setting.key))
    # What cuts ssh or a disk has the effect REBOOT, and is not among these.
    if any(setting.effect is Effect.DRIVER for setting in due):
        yield from _reload(view, openibd=OPENIBD in by_key and by_key[OPENIBD].acts)


def _reload(view: _View, *, openibd: bool) -> Iterator[Run]:
    if not openibd:
        yield Run(command=("modprobe", "-r", *view.reload.unload))
        for module in view.reload.load:
            yield Run(command=("modprobe", module))
        return
    # openibd knows its own modules, and fails on others that hold them (nvidia_peermem).
    others = [module for module in view.reload.unload if module not in OFED_CORE]
    if others:
        yield Run(command=("modprobe", "-r", *others))
    yield Run(command=("systemctl", "restart", OPENIBD))
    for module in reversed(others):
        yield Run(command=("modprobe", module))


def _of(node: Node) -> str:
    return "OFED's" if has_ofed(node) else "the kernel's own"


def _installed(view: _View) -> Setting:
    """What ofed_info says, which packages alone change."""
    spec, ofed = view.node.ofed, view.drivers.ofed
    found: str = ofed.kind or "OFED of a kind that ofed_info does not tell"
    value, desired = found, str(spec.kind)
    if spec.kind == "mlnx_ofed":
        # DOCA-Host's own version is not in ofed_info: that of its packages is pinned instead.
        value, desired = f"{found} {ofed.version or ''}".strip(), f"{spec.kind} {spec.version}"
    right = value == desired
    return Setting(
        component=NAME,
        key="installed",
        desired=desired,
        persisted=State(
            standing=Standing.RIGHT if right else Standing.WRONG,
            value=value,
            decider="ofed_info -s" if ofed.installed else None,
            detail=f"{ofed.product} {ofed.version}" if ofed.installed else "there is no ofed_info",
        ),
        running=NOTHING,
        acts=right,
        remedy=None if right else f"{desired} has to be installed, and {value} removed",
    )


def _modules(view: _View) -> Iterator[Setting]:
    """The modules of the stack, of which two must be loaded and none from another source.

    Of the kernel's own those that matter are enough, for it has more than OFED builds.
    """
    for name in OFED_LOADED:
        setting = _module(view, name)
        # What is rebuilt is of another build than what is loaded.
        if dkms_modules(view.arriving) and setting.persisted.standing is Standing.RIGHT:
            setting = _outdated(setting)
        foreign = setting.running.standing in (Standing.WRONG, Standing.UNREADABLE)
        if has_ofed(view.node) or name in _MODULES or foreign:
            yield setting


def _module(view: _View, name: str) -> Setting:
    persisted, remedy = _on_disk(view, name)
    running = _loaded(view, name)
    right = persisted.standing is Standing.RIGHT
    effect = view.effect
    if running.standing is Standing.ABSENT:
        effect = Effect.LIVE
    elif right and running.standing is Standing.WRONG and not view.reload.live:
        remedy = view.reload.words
    return Setting(
        component=NAME,
        key=name,
        desired=view.wanted,
        persisted=persisted,
        running=running,
        effect=effect,
        # What is not right on disk is not loaded either.
        acts=right,
        remedy=remedy,
    )


def _outdated(setting: Setting) -> Setting:
    """A module of OFED's as it is while its successor is about to be installed."""
    running = setting.running
    if running.standing is Standing.RIGHT:
        running = running.model_copy(update={"standing": Standing.WRONG, "value": running.detail})
    persisted = setting.persisted.model_copy(
        update={"standing": Standing.STALE, "value": setting.persisted.detail}
    )
    return setting.model_copy(update={"persisted": persisted, "running": running})


def _on_disk(view: _View, name: str) -> tuple[State, str | None]:
    """How a module stands for the kernel that boots next, and what puts it right."""
    coming, upcoming = view.drivers.coming, view.drivers.next_boot
    if coming is None:
        detail = upcoming.problem or f"kernel {upcoming.version} has no modules"
        return State(standing=Standing.UNREADABLE, detail=detail), None
    file = coming.disk.files.get(name)
    do = f"install {view.wanted} modules for kernel {coming.kernel}"
    if file is None:
        return State(standing=Standing.ABSENT, detail=f"kernel {coming.kernel} has none"), do
    said = f"{file.path} is {_build(file)}"
    if file.is_inbox == has_ofed(view.node):
        value = "the kernel's own" if file.is_inbox else "OFED's"
        return State(standing=Standing.WRONG, value=value, decider=file.filename, detail=said), do
    for finding in ofed_findings(view.drivers.ofed, coming.kernel, coming.disk.files, {}):
        if finding.subject == name and has_ofed(view.node):
            unreadable = finding.kind == "unreadable"
            standing = Standing.UNREADABLE if unreadable else Standing.WRONG
            state = State(standing=standing, value=_build(file), detail=finding.found)
            return state, finding.remedy
    right = State(standing=Standing.RIGHT, value=view.wanted, decider=file.filename, detail=said)
    return right, None


def _loaded(view: _View, name: str) -> State:
    """How what is loaded stands to what is on disk for the kernel that runs."""
    kernel, running = view.drivers.next_boot.running, view.drivers.running
    files = running.disk.files if running else {}
    loaded, file = view.drivers.loaded.get(name), files.get(name)
    if loaded is None:
        if file is not None and file.is_builtin:
            return State(standing=Standing.RIGHT, value=view.wanted, detail="built into the kernel")
        if not has_ofed(view.node):
            detail = "not loaded: no device of the node asks for it"
            return State(standing=Standing.NOT_APPLICABLE, detail=detail)
        if name not in _MODULES:
            detail = "not loaded: nothing has asked for it"
            return State(standing=Standing.RIGHT, value=view.wanted, detail=detail)
        return State(standing=Standing.ABSENT, detail="not loaded")
    for finding in loaded_findings((name,), kernel, files, view.drivers.loaded):
        standing = Standing.UNREADABLE if finding.kind == "unreadable" else Standing.WRONG
        return State(standing=standing, value=_build(loaded), detail=finding.found)
    if file is not None and file.is_inbox == has_ofed(view.node):
        value = "the kernel's own" if file.is_inbox else "OFED's"
        return State(standing=Standing.WRONG, value=value, detail=_build(loaded))
    return State(standing=Standing.RIGHT, value=view.wanted, detail=_build(loaded))


def _build(module: LoadedModule | ModuleFile) -> str:
    return f"{module.version or 'without a version'}, srcversion {module.srcversion or 'none'}"


def _one_stack(view: _View, kernel: str) -> Setting:
    """OFED's modules and the kernel's own do not go together."""
    mixed = [f for f in view.checks[kernel].whole if f.kind == "mixed"]
    desired = "one stack"
    state = State(standing=Standing.RIGHT, value=desired)
    if mixed:
        said = "; ".join(f"{finding.subject} {finding.found}" for finding in mixed)
        state = State(standing=Standing.WRONG, value="a mix", detail=said)
    return looked_at(
        NAME,
        f"stack for {kernel}",
        desired,
        state,
        remedy="; ".join(dict.fromkeys(finding.remedy for finding in mixed)) or None,
    )


def _images(view: _View) -> list[Setting]:
    if not has_ofed(view.node):
        return []
    return list(image_settings(NAME, view.drivers, view.kernels, view.builds, view.images))


def _link(view: _View) -> Iterator[Setting]:
    """Where what is built upon OFED takes its symbols from."""
    kernel, leads = view.drivers.next_boot.version, view.drivers.ofa_sources
    own = [b for b in view.builds if b.module in dkms_order.ORDER[0]]
    if kernel is None or not has_ofed(view.node) or not (leads or own):
        return
    standing = Standing.RIGHT if leads == kernel else Standing.WRONG if leads else Standing.ABSENT
    state = State(standing=standing, value=leads or None, decider=LINK if leads else None)
    if state.standing is Standing.RIGHT and len(view.kernels) > 1 and dkms_modules(view.arriving):
        # Each build of OFED's leads it to its own kernel, and which is the last is the package's.
        state = State(standing=Standing.STALE, value="where its packages lead it", decider=LINK)
    can = bool(leads) or any(build.kernel == kernel for build in own)
    yield Setting(
        component=NAME,
        key=LINK,
        desired=kernel,
        persisted=state,
        running=NOTHING,
        acts=can,
        remedy=None if can else f"install OFED's modules for kernel {kernel}",
        why="nvidia-peermem, nvidia-fs, Lustre and BeeGFS are built against the symbols there "
        "(Mellanox/nv_peer_memory#39)",
    )


COMPONENT = Component(
    name=NAME,
    sections=(
        *(*facts.SECTIONS, *staging.SECTIONS, *MODULE_SECTIONS),
        *(*UNIT_SECTIONS, *PACKAGES.sections),
    ),
    settings=settings,
    actions=actions,
    reboot_gate=RebootGate(asked=asks_for_drivers, sections=(IMAGES,), refusal=refusal),
    upon=frozenset({PACKAGES.name}),
)
