"""The GPU driver: one version on disk, loaded and in all its parts, and what keeps GPUs as asked.

Packages bring it. nouveau and the options of the module nvidia are in component modules' one file
(``railwright.drivers.options.modules_of``). Peer memory, MIG, power limit and clocks are lost at a
reboot: railwright-gpu.service brings them back. With OFED the builds of dkms are component ofed's,
for they go in its order.
"""

from collections.abc import Iterator

from deploys.ofed import COMPONENT as OFED
from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from facts import drivers as facts
from facts.gpu_driver import (
    FABRIC_MANAGER,
    FILES,
    PERSISTENCED,
    PLAN_PATH,
    SECTIONS,
    UNIT,
    UNITS,
)
from facts.modules import SECTIONS as MODULE_SECTIONS
from facts.nvidia_firmware import FIRMWARE
from railwright.actions import Action, Run, RunScript
from railwright.component import Component
from railwright.drivers import staging
from railwright.drivers.arriving import brought
from railwright.drivers.options import NOUVEAU
from railwright.files import FileRecord
from railwright.owned import OwnedFile, owned_file_setting
from railwright.owned_unit import enabled_setting, started, started_setting, unit_actions
from railwright.resolve.dkms import build_actions, build_setting
from railwright.resolve.driver_images import image_actions, image_settings
from railwright.resolve.gpu_checks import dma_buf, gpu_count, gpu_health, one_version
from railwright.resolve.gpu_daemons import (
    FABRIC_KEY,
    OFF,
    PERSISTENCE_KEY,
    daemon_settings,
    owned_drop_in,
)
from railwright.resolve.gpu_modes import KEYS, MODULE_KEYS, mode_settings
from railwright.resolve.gpu_unit import owned_files, plan_of, script
from railwright.resolve.gpu_view import GpuView, Seen
from railwright.schema import Node
from railwright.schema.drivers import DriverSet
from railwright.settings import (
    HOSTS_KERNEL,
    Effect,
    Setting,
    Standing,
    State,
    enforces,
    persists,
)
from railwright.snapshot import Snapshot

NAME = "gpu_driver"
_DRIVER = "driver"
_DAEMONS = {FABRIC_KEY: FABRIC_MANAGER, PERSISTENCE_KEY: PERSISTENCED}
_OPEN_LICENSE = "Dual MIT/GPL"


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    if node.gpu_driver.version is None:
        return _files(node.drivers, snapshot.left_over(FILES.name))
    view = GpuView.of(node, snapshot, arriving(node, snapshot))
    found = list(_staged(_settings(node, snapshot, view)))
    if not view.arriving & node.gpu_driver.packages.keys():
        return found
    # Limits that GPUs do not take stay refused; the GPUs were there to say so.
    fixed = [s for s in found if s.key in KEYS and not s.acts]
    return [*fixed, *brought(s for s in found if s not in fixed)]


def _staged(found: list[Setting]) -> Iterator[Setting]:
    """What needs the driver waits with it, where a reboot brings that one."""
    driver = next((s for s in found if s.key == _DRIVER), None)
    waits = (
        driver is not None
        and driver.effect is Effect.REBOOT
        and driver.running.standing in (Standing.ABSENT, Standing.LATE)
    )
    for setting in found:
        lacks = setting.running.standing in (Standing.ABSENT, Standing.WRONG)
        if waits and lacks:
            setting = setting.model_copy(update={"effect": Effect.REBOOT})
        yield setting


def _settings(node: Node, snapshot: Snapshot, view: GpuView) -> list[Setting]:
    modes = list(mode_settings(NAME, view))
    found = [*modes, *daemon_settings(NAME, view), *_unit(node.drivers, view, snapshot, modes)]
    if view.seen is None:
        return found
    if node.gpu_driver.peer_memory == "dma_buf":
        found.append(dma_buf(NAME, view.seen, snapshot.facts("identity").get("os", "")))
    return [
        *found,
        _driver(view, view.seen),
        one_version(NAME, view.driver, view.seen),
        gpu_count(NAME, view.seen),
        gpu_health(NAME, view.seen),
        *(build_setting(NAME, build) for build in view.seen.builds),
        *_images(view.seen),
    ]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    if not settings:
        return
    by_key = {setting.key: setting for setting in settings}
    files = snapshot.left_over(FILES.name)
    yield from unit_actions(UNIT, _owned(node.drivers, files), by_key)
    if node.gpu_driver.version is None:
        return
    view = GpuView.of(node, snapshot, arriving(node, snapshot))
    # What a reboot brings is left to it.
    due = {
        s.key: s
        for s in settings
        if enforces(s, node.effects.allow) and s.effect is not Effect.REBOOT
    }
    for key, unit in _DAEMONS.items():
        if key in by_key and persists(by_key[key]):
            yield from _enabled(by_key[key], unit)
    if view.seen is None:
        return
    yield from build_actions(view.seen.builds, view.seen.kernels, linked=False)
    yield from image_actions(view.seen.images, settings)
    yield from _load(view.seen, due.get(_DRIVER))
    for key, unit in _DAEMONS.items():
        if key in due:
            yield from _brought(due[key], unit)
    for key, module in MODULE_KEYS.items():
        stale = key in due and due[key].running.standing is Standing.WRONG
        if stale and not _reloads(due.get(_DRIVER)):
            # Our unit loads it again, as it is on disk. modprobe -r would take nvidia along.
            yield Run(command=("rmmod", module))
    yield from _take_back(view.seen, due)
    yield from _modes(settings, due, reloaded=_reloads(due.get(_DRIVER)))


def _owned(drivers: DriverSet, files: list[FileRecord]) -> tuple[OwnedFile, ...]:
    return (*owned_files(plan_of(drivers)), owned_drop_in(drivers.gpu_driver, files))


def _files(drivers: DriverSet, files: list[FileRecord]) -> list[Setting]:
    """Our files and the enablement; with no driver asked for there must be none of them."""
    owned = (owned_file_setting(NAME, one, files) for one in _owned(drivers, files))
    enabled = enabled_setting(NAME, UNIT, files, asked=not plan_of(drivers).is_empty)
    return [setting for setting in (*owned, enabled) if setting is not None]


def _unit(
    drivers: DriverSet, view: GpuView, snapshot: Snapshot, modes: list[Setting]
) -> Iterator[Setting]:
    yield from _files(drivers, view.files)
    if view.plan.is_empty:
        return
    lacks = [s.key for s in modes if s.running.standing in (Standing.WRONG, Standing.ABSENT)]
    running = started(UNIT, snapshot, UNITS.name, lacks) if view.seen else HOSTS_KERNEL
    if running.standing is Standing.DEGRADED:
        said = "; ".join(filter(None, (view.failures.get(UNIT.name), running.detail)))
        running = running.model_copy(update={"detail": said or None})
    left = [s for s in modes if s.key in lacks]
    # A start sets all of the plan, and so takes what the most of it takes.
    effects = {s.effect for s in left}
    heavy = next((e for e in (Effect.REBOOT, Effect.DRIVER) if e in effects), Effect.LIVE)
    refused = [s.key for s in left if not s.acts]
    yield started_setting(NAME, UNIT, running).model_copy(
        update={
            "effect": heavy,
            "acts": not refused,
            "remedy": f"it would fail: see {', '.join(refused)}" if refused else None,
        }
    )


def _images(seen: Seen) -> Iterator[Setting]:
    return image_settings(NAME, seen.drivers, seen.kernels, seen.builds, seen.images)


def _driver(view: GpuView, seen: Seen) -> Setting:
    desired = f"{view.driver.version} {view.driver.modules}"
    persisted = _on_disk(seen, desired)
    running = _loaded(seen, desired)
    right = persisted.standing is Standing.RIGHT
    remedy = None if right else f"{desired} has to be installed for that kernel"
    effect = Effect.LIVE
    if NOUVEAU in seen.drivers.loaded and seen.drivers.nvidia is None:
        # It has the GPUs, and lets go of them at a reboot.
        effect = Effect.REBOOT
    elif running.standing is Standing.LATE and not view.arriving:
        effect = Effect.REBOOT
    elif running.standing not in (Standing.ABSENT, Standing.LATE):
        effect = staging.effect_of(seen.reload)
        if right and running.standing is Standing.WRONG and not seen.reload.live:
            remedy = seen.reload.words
    return Setting(
        component=NAME,
        key=_DRIVER,
        desired=desired,
        persisted=persisted,
        running=running,
        effect=effect,
        # What is not right on disk is not loaded either.
        acts=right,
        remedy=remedy,
    )


def _on_disk(seen: Seen, desired: str) -> State:
    """The module for the kernel that boots next: its version, and its flavour by its licence."""
    coming, upcoming = seen.drivers.coming, seen.drivers.next_boot
    if coming is None:
        detail = upcoming.problem or f"kernel {upcoming.version} has no modules"
        return State(standing=Standing.UNREADABLE, detail=detail)
    file = coming.disk.files.get("nvidia")
    if file is None:
        return State(standing=Standing.ABSENT, detail=f"kernel {coming.kernel} has none")
    flavour = "open" if file.license == _OPEN_LICENSE else "proprietary"
    value = f"{file.version} {flavour}"
    standing = Standing.RIGHT if value == desired else Standing.WRONG
    return State(
        standing=standing, value=value, decider=file.filename, detail=f"for kernel {coming.kernel}"
    )


def _loaded(seen: Seen, desired: str) -> State:
    module = seen.drivers.nvidia
    if module is None:
        kernel, running = seen.drivers.next_boot.running, seen.drivers.running
        if running is None or "nvidia" not in running.disk.files:
            return State(standing=Standing.LATE, detail=f"kernel {kernel} has no module nvidia")
        return State(standing=Standing.ABSENT, detail="the module nvidia is not loaded")
    value = f"{module.version} {module.flavour}"
    said = [f.found for f in seen.findings if f.kind == "loaded" and f.subject == "nvidia"]
    right = value == desired and not said
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=value,
        detail="; ".join(said) or None,
    )


def _reloads(driver: Setting | None) -> bool:
    return driver is not None and driver.effect in (Effect.DRIVER, Effect.LIVE)


def _load(seen: Seen, driver: Setting | None) -> Iterator[Run]:
    if driver is None:
        return
    if driver.effect is Effect.LIVE:
        yield Run(command=("modprobe", "nvidia"))
        yield Run(command=("modprobe", "nvidia-uvm"))
        return
    yield Run(command=("modprobe", "-r", *seen.reload.unload))
    for module in reversed(seen.reload.unload):
        yield Run(command=("modprobe", module))


def _enabled(setting: Setting, unit: str) -> Iterator[Run]:
    if setting.desired == OFF:
        yield Run(command=("systemctl", "disable", unit))
    elif setting.persisted.value == OFF:
        yield Run(command=("systemctl", "enable", unit))


def _brought(setting: Setting, unit: str) -> Iterator[Run]:
    """Starts a daemon, or stops one that must not run; a daemon that runs is told its mode."""
    if setting.desired == OFF:
        yield Run(command=("systemctl", "stop", unit))
        return
    if setting.running.value == "failed":
        yield Run(command=("systemctl", "reset-failed", unit))
    yield Run(command=("systemctl", "start", unit))
    if unit == PERSISTENCED:
        # By way of the daemon, which a restart would let go of idle GPUs.
        yield Run(command=("nvidia-smi", "-pm", "1"))


def _take_back(seen: Seen, due: dict[str, Setting]) -> Iterator[Run]:
    """What a former plan has set, and this one does not ask for."""
    if "graphics clock" in due and due["graphics clock"].desired == "absent":
        yield Run(command=("nvidia-smi", "-rgc"))
    if "power limit" in due and due["power limit"].desired == "absent":
        for gpu in seen.gpus:
            if gpu.pci and gpu.power_default_limit_w is not None:
                watts = f"{gpu.power_default_limit_w:g}"
                yield Run(command=("nvidia-smi", "-i", gpu.pci, "-pl", watts))


def _modes(
    settings: list[Setting], due: dict[str, Setting], *, reloaded: bool
) -> Iterator[Run | RunScript]:
    """By the unit where all that it sets may be set now, else by its script for what may be."""
    words = {KEYS[key] for key in KEYS if key in due and due[key].desired != "absent"}
    waits = [
        s
        for s in settings
        if s.key in KEYS
        and s.key not in due
        and s.running.standing in (Standing.WRONG, Standing.ABSENT)
    ]
    planned = any(s.key == UNIT.started_key for s in settings)
    if waits and words:
        yield RunScript(
            name="railwright-gpu", script=script(), arguments=(PLAN_PATH, *sorted(words))
        )
    elif not waits and planned and (words or UNIT.started_key in due or reloaded):
        yield Run(command=("systemctl", "restart", UNIT.name))


COMPONENT = Component(
    name=NAME,
    sections=(
        *(*facts.SECTIONS, *staging.SECTIONS, *MODULE_SECTIONS),
        *(FIRMWARE, *SECTIONS, *PACKAGES.sections),
    ),
    settings=settings,
    actions=actions,
    upon=frozenset({PACKAGES.name, OFED.name}),
)
