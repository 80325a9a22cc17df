"""openibd as a setting: it loads OFED's modules at boot, and has not failed."""

from facts.openibd import FAILURES, OPENIBD, UNITS
from facts.unit_failures import read_failures
from facts.units import Unit, read_units
from railwright.drivers.holders import Reload
from railwright.settings import HOSTS_KERNEL, Effect, Setting, Standing, State
from railwright.snapshot import Snapshot

_ENABLED = frozenset({"enabled", "generated"})
"""A script of init.d that is enabled has a unit that systemd has generated."""


def openibd_setting(
    component: str, snapshot: Snapshot, reload: Reload | None, effect: Effect
) -> Setting:
    """``reload`` is what a restart of openibd does to the node, None in a container; ``effect`` is
    what a start of it takes: with the modules that it loads there already it loads none anew.
    """
    unit, unread = None, None
    try:
        unit = read_units(snapshot, UNITS.name).get(OPENIBD)
    except ValueError as error:
        unread = State(standing=Standing.UNREADABLE, detail=str(error))
    there = unit is not None and unit.loaded
    running = HOSTS_KERNEL
    remedy = None if there or unread else "install OFED: nothing else loads its modules at boot"
    if reload is not None:
        running = _running(unit, snapshot)
        if running.standing is Standing.WRONG and effect is Effect.REBOOT and not reload.live:
            remedy = reload.words
    return Setting(
        component=component,
        key=OPENIBD,
        desired="enabled",
        persisted=unread or _persisted(unit),
        running=unread or running,
        effect=effect,
        acts=there,
        remedy=remedy,
    )


def _persisted(unit: Unit | None) -> State:
    if unit is None or not unit.loaded:
        return State(standing=Standing.ABSENT)
    if unit.masked:
        return State(standing=Standing.OVERRIDDEN, value="masked", decider=OPENIBD)
    if unit.file_state in _ENABLED:
        return State(standing=Standing.RIGHT, value="enabled", decider=OPENIBD)
    return State(standing=Standing.WRONG, value=unit.file_state or "disabled", decider=OPENIBD)


def _running(unit: Unit | None, snapshot: Snapshot) -> State:
    if unit is None or not unit.loaded:
        return State(standing=Standing.ABSENT)
    if unit.active == "failed":
        said = read_failures(snapshot, FAILURES.name).get(OPENIBD) or "it gave no reason"
        return State(standing=Standing.DEGRADED, value="failed", detail=said)
    if unit.active == "active":
        return State(standing=Standing.RIGHT, value="enabled")
    return State(standing=Standing.WRONG, value=unit.active)
