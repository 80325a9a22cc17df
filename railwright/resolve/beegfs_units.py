"""Services of BeeGFS's packages that a mount needs: enabled, and running."""

from collections.abc import Iterator, Mapping

from facts.units import Unit
from railwright.actions import Run
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

_ENABLED = "enabled"


def unit_key(name: str) -> str:
    return f"unit {name}"


def unit_setting(
    component: str, name: str, unit: Unit | None, snapshot: Snapshot, *, comes: bool
) -> Setting:
    """How a service of a package is there; ``comes``: its package is installed in this run."""
    there = unit is not None and unit.loaded and not unit.masked
    return Setting(
        component=component,
        key=unit_key(name),
        desired=_ENABLED,
        persisted=_persisted(unit),
        running=HOSTS_KERNEL if snapshot.is_container else _running(unit, comes),
        effect=Effect.LIVE,
        acts=there or (comes and not (unit and unit.masked)),
        remedy=_remedy(name, unit) if not there else None,
    )


def _remedy(name: str, unit: Unit | None) -> str:
    if unit is not None and unit.masked:
        return f"systemctl unmask {name}"
    return f"install {name.removesuffix('.service')}"


def _persisted(unit: Unit | None) -> State:
    if unit is None or not unit.loaded:
        return State(standing=Standing.ABSENT, detail="there is no such unit")
    right = unit.file_state in (_ENABLED, "generated")
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=_ENABLED if right else unit.file_state or "not enabled",
    )


def _running(unit: Unit | None, comes: bool) -> State:
    if unit is None or not unit.loaded:
        standing = Standing.ABSENT if comes else Standing.LATE
        return State(standing=standing, detail="there is no such unit")
    if unit.active == "active":
        return State(standing=Standing.RIGHT, value=_ENABLED)
    detail = f"it ended by {unit.result}" if unit.active == "failed" else None
    return State(standing=Standing.WRONG, value=unit.active, detail=detail)


def unit_actions(
    by_key: Mapping[str, Setting],
    name: str,
    allowed: frozenset[Effect],
    *,
    told_anew: bool,
) -> Iterator[Run]:
    """Enables and starts the service; ``told_anew``: its configuration changes."""
    setting = by_key.get(unit_key(name))
    if setting is None:
        return
    if persists(setting):
        yield Run(command=("systemctl", "enable", name))
    if enforces(setting, allowed):
        yield Run(command=("systemctl", "start", name))
    elif told_anew and setting.running.standing is Standing.RIGHT:
        yield Run(command=("systemctl", "restart", name))
