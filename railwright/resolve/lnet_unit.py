"""lnet.service: it comes up at boot, and what keeps LNet from being as it brings it up."""

from collections.abc import Iterator, Sequence

from facts.lustre import LNET_CONF, LNET_UNIT, LustreUnits, read_units
from facts.modules import SECTIONS as MODULE_SECTIONS
from facts.units import Unit
from railwright.resolve.modules import modprobe_config
from railwright.settings import HOSTS_KERNEL, NOTHING, Setting, Standing, State
from railwright.snapshot import Snapshot

MODULE_CONFIG = next(one for one in MODULE_SECTIONS if one.name == "modules_config")
UNIT_KEY = f"unit {LNET_UNIT}"


def no_client(snapshot: Snapshot) -> str | None:
    """Why there is no client to bring LNet up with; None where there is, or systemd is silent."""
    try:
        unit = read_units(snapshot).lnet
    except ValueError:
        return None
    return None if unit is not None and unit.loaded else f"there is no {LNET_UNIT}"


def unit_setting(
    component: str, snapshot: Snapshot, client: str | None, nis: Sequence[Setting]
) -> Setting:
    """``client`` says why there is none; ``nis`` are the interfaces that it brings up."""
    try:
        units = read_units(snapshot)
    except ValueError as error:
        units = None
        persisted = running = State(standing=Standing.UNREADABLE, detail=str(error))
    if units is not None:
        persisted = _enabled(units.lnet)
        running = HOSTS_KERNEL if snapshot.is_container else _started(units, client, nis)
    return Setting(
        component=component,
        key=UNIT_KEY,
        desired="enabled",
        persisted=persisted,
        running=running,
        acts=client is None,
        remedy="install the client's packages (lustre-client-utils, lustre-client)"
        if client is not None
        else f"journalctl -u {LNET_UNIT}"
        if running.standing is Standing.DEGRADED
        else None,
    )


def _enabled(unit: Unit | None) -> State:
    if unit is None or not unit.loaded:
        return State(standing=Standing.ABSENT)
    if unit.masked:
        return State(standing=Standing.OVERRIDDEN, value="masked", decider=LNET_UNIT)
    if unit.file_state == "enabled":
        return State(standing=Standing.RIGHT, value="enabled", decider=LNET_UNIT)
    return State(standing=Standing.WRONG, value=unit.file_state or "disabled", decider=LNET_UNIT)


def _started(units: LustreUnits, client: str | None, nis: Sequence[Setting]) -> State:
    unit = units.lnet
    if client is not None or unit is None:
        return State(standing=Standing.LATE, detail=client)
    if unit.active == "active":
        return State(standing=Standing.RIGHT, value="enabled")
    if units.skipped:
        detail = "passed over at boot: whoever loaded lnet before it has LNet as it is"
        return State(standing=Standing.WRONG, value="skipped", detail=detail)
    if unit.active == "failed":
        # A start helps where it could bring an interface up, and where all are up by now.
        helps = any(ni.running.standing is Standing.ABSENT for ni in nis) or all(
            ni.running.standing is Standing.RIGHT for ni in nis
        )
        standing = Standing.WRONG if helps else Standing.DEGRADED
        return State(standing=standing, value="failed", detail=unit.result)
    return State(standing=Standing.ABSENT, value=unit.active)


def module_networks(component: str, snapshot: Snapshot) -> Iterator[Setting]:
    """Networks of modprobe.d, which hold wherever a mount loads the modules before lnet.service."""
    config = modprobe_config(snapshot.files(MODULE_CONFIG.name))
    for parameter in ("networks", "ip2nets"):
        found = config.option("lnet", parameter)
        if found is None or not found.value:
            continue
        yield Setting(
            component=component,
            key=f"option lnet.{parameter}",
            desired="absent",
            persisted=State(
                standing=Standing.OVERRIDDEN,
                value=found.value,
                decider=found.decider,
                detail=f"holds in place of {LNET_CONF} where a mount comes before {LNET_UNIT}",
            ),
            running=NOTHING,
            acts=False,
            remedy=f"take it out of {found.decider.rpartition(':')[0]}",
        )
