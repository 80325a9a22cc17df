"""Fabric manager and the persistence daemon: started at boot, running, and doing their work."""

from collections.abc import Iterator

from facts.gpu_driver import DROP_IN, FABRIC_MANAGER, PERSISTENCED
from facts.units import Unit
from railwright.files import FileRecord
from railwright.owned import OwnedFile, owned_file_setting
from railwright.resolve.gpu_checks import fabric_manager_fault
from railwright.resolve.gpu_view import GpuView
from railwright.resolve.persistenced import FLAG, command, drop_in, is_installed, overriding
from railwright.schema.drivers import GpuDriverSpec
from railwright.settings import HOSTS_KERNEL, Effect, Setting, Standing, State

FABRIC_KEY = "fabric manager"
PERSISTENCE_KEY = "persistence"
OFF = "off"
_ON, _MODE = "active", "persistence mode"
_AT_BOOT = frozenset({"enabled", "static", "indirect", "generated"})
"""Ubuntu's nvidia-persistenced.service is static: a udev rule starts it with the driver."""


def owned_drop_in(driver: GpuDriverSpec, files: list[FileRecord]) -> OwnedFile:
    """Our drop-in of nvidia-persistenced; none where the daemon does without, or is not asked."""
    wanted = driver.version is not None and driver.persistence
    return OwnedFile(path=DROP_IN, content=drop_in(files) if wanted else None)


def daemon_settings(component: str, view: GpuView) -> Iterator[Setting]:
    if view.driver.fabric_manager is not None:
        yield _fabric_manager(component, view)
    if view.driver.persistence is not None:
        yield _persistence(component, view)


def _fabric_manager(component: str, view: GpuView) -> Setting:
    asked = bool(view.driver.fabric_manager)
    unit = view.unit(FABRIC_MANAGER)
    running = HOSTS_KERNEL if view.seen is None else _fabric_running(view, unit, asked=asked)
    return Setting(
        component=component,
        key=FABRIC_KEY,
        desired=_ON if asked else OFF,
        persisted=_at_boot(view, FABRIC_MANAGER, asked=asked, word=_ON),
        running=running,
        # It is started where nothing works without it; it is stopped under jobs that run.
        effect=Effect.LIVE if asked else Effect.SERVICE,
        acts=unit is not None and not unit.masked,
        remedy=None if unit or not asked else "install nvidia-fabricmanager",
        why="GPUs on NVSwitch fail with CUDA error 802 without it" if asked else None,
    )


def _fabric_running(view: GpuView, unit: Unit | None, *, asked: bool) -> State:
    if view.units is None:
        return State(standing=Standing.UNREADABLE, detail="systemd did not answer")
    active = unit.active if unit else None
    if not asked:
        wrong = active in ("active", "activating")
        standing = Standing.WRONG if wrong else Standing.RIGHT
        return State(standing=standing, value=_ON if wrong else OFF)
    if active == "active":
        return State(standing=Standing.RIGHT, value=_ON)
    fault = fabric_manager_fault(view.seen.findings) if view.seen else None
    said = view.failures.get(FABRIC_MANAGER)
    detail = "; ".join(filter(None, (fault, said))) or None
    if active == "failed":
        # What is wrong with it still holds, or another start may do.
        standing = Standing.DEGRADED if fault else Standing.WRONG
        return State(standing=standing, value="failed", detail=detail)
    return State(standing=Standing.WRONG if active else Standing.ABSENT, value=active, detail=fault)


def _at_boot(view: GpuView, name: str, *, asked: bool, word: str) -> State:
    """Whether a daemon starts at boot; ``word`` is what it is called where it does."""
    unit = view.unit(name)
    if view.units is None:
        return State(standing=Standing.UNREADABLE, detail="systemd did not answer")
    if unit is None:
        absent = Standing.ABSENT if asked else Standing.RIGHT
        return State(standing=absent, value=None if asked else OFF)
    if unit.masked and asked:
        return State(standing=Standing.OVERRIDDEN, value="masked", decider=name)
    starts = unit.file_state in _AT_BOOT and not unit.masked
    standing = Standing.RIGHT if starts == asked else Standing.WRONG
    return State(standing=standing, value=word if starts else OFF, decider=name)


def _persistence(component: str, view: GpuView) -> Setting:
    asked = bool(view.driver.persistence)
    unit = view.unit(PERSISTENCED)
    persisted = _at_boot(view, PERSISTENCED, asked=asked, word=_MODE)
    if asked and persisted.standing is Standing.RIGHT:
        persisted = _mode_at_boot(view, persisted)
    return Setting(
        component=component,
        key=PERSISTENCE_KEY,
        desired=_MODE if asked else OFF,
        persisted=persisted,
        running=HOSTS_KERNEL if view.seen is None else _mode(view, unit, asked=asked),
        effect=Effect.LIVE if asked else Effect.SERVICE,
        acts=unit is not None and not unit.masked,
        remedy=None if unit or not asked else "install nvidia-persistenced",
        why="without it each first use of an idle GPU initialises it anew, and clocks are lost"
        if asked
        else None,
    )


def _mode_at_boot(view: GpuView, right: State) -> State:
    if not is_installed(view.files):
        return right
    other = overriding(view.files)
    if other is not None:
        return State(standing=Standing.OVERRIDDEN, value=FLAG, decider=other.decider)
    setting = owned_file_setting("", owned_drop_in(view.driver, view.files), view.files)
    if setting is None or setting.persisted.standing is Standing.RIGHT:
        return right
    decided = command(view.files)
    without = decided is not None and FLAG in decided.value.split()
    return State(
        standing=Standing.WRONG,
        value=FLAG if without else _MODE,
        decider=decided.decider if decided else None,
    )


def _mode(view: GpuView, unit: Unit | None, *, asked: bool) -> State:
    if view.units is None:
        return State(standing=Standing.UNREADABLE, detail="systemd did not answer")
    active = unit is not None and unit.active == "active"
    if not asked:
        standing = Standing.WRONG if active else Standing.RIGHT
        return State(standing=standing, value=_MODE if active else OFF)
    if unit is None:
        return State(standing=Standing.ABSENT)
    assert view.seen is not None
    if unit.active == "failed":
        said = view.failures.get(PERSISTENCED) or None
        standing = Standing.DEGRADED if view.seen.unread else Standing.WRONG
        return State(standing=standing, value="failed", detail=said or view.seen.unread)
    if view.seen.unread:
        standing = Standing.UNREADABLE if view.seen.drivers.gpus else Standing.LATE
        return State(standing=standing, detail=view.seen.unread)
    if not active:
        return State(standing=Standing.WRONG, value=unit.active)
    off = [str(gpu.pci) for gpu in view.seen.gpus if gpu.persistence is False]
    unknown = [str(gpu.pci) for gpu in view.seen.gpus if gpu.persistence is None]
    if off:
        detail = f"off on {', '.join(off)}"
        return State(standing=Standing.WRONG, value=OFF, detail=detail)
    if unknown:
        detail = f"not told of {', '.join(unknown)}"
        return State(standing=Standing.UNREADABLE, detail=detail)
    return State(standing=Standing.RIGHT, value=_MODE)
