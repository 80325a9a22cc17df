"""Lossless RoCE on each rail, and the unit that keeps it through reboot, reload and link flap.

One script puts it in force: started by udev when a port or its RDMA device comes into being, by
a watch when a link has come up, and by a run. Its data is a file for each port, named by the
port's PCI address, for the interface may be renamed at any time.
"""

from collections.abc import Iterable, Iterator

from facts.nics import SECTIONS as NIC_SECTIONS
from facts.qos import (
    LLDPAD,
    SCRIPT_PATH,
    SECTIONS,
    WATCH,
    WATCH_SCRIPT_PATH,
    Problem,
    QosState,
    read_qos,
    read_qos_units,
)
from facts.units import Unit
from railwright.actions import Action, Run
from railwright.component import Component
from railwright.owned import owned_file_setting
from railwright.owned_unit import enabled_setting, failed, unit_actions
from railwright.qos import WHY, Name, wanted
from railwright.resolve.qos import View, is_left_out, not_applicable, running
from railwright.resolve.qos_unit import Plan, Target, persisted, plan_of
from railwright.schema import Effect, Node, RoceQos
from railwright.settings import (
    NO_PORTS,
    NOTHING,
    Setting,
    Standing,
    State,
    enforces,
    looked_at,
    persists,
)
from railwright.snapshot import Snapshot

_NAME = "qos"

# Only PFC's change toggles the link. Trust reopens the queues of the interface on ConnectX-4,
# which RoCE does not notice. Source: mlx5 en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc and
# mlx5e_set_trust_state; en_ethtool.c, mlx5e_set_pauseparam.
_EFFECTS: dict[Name, Effect] = {"pfc": Effect.LINK}


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    """The settings of each rail, the units, and each file of ours."""
    plan = plan_of(node, snapshot)
    if not plan.targets and not plan.owned and not WATCH.is_enabled(plan.records):
        return []
    state = None if snapshot.is_container or not plan.targets else read_qos(snapshot)
    units = read_qos_units(snapshot)
    rails = [s for target in plan.targets for s in _rail(target, plan, state, units)]
    return [
        *rails,
        *_files(plan),
        *_watch(plan, units, snapshot.is_container),
        *_lldpad(units, plan),
    ]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    """Files first, then the units, then lldpad is told, and last the ports are put right."""
    if not settings:
        return
    plan = plan_of(node, snapshot)
    by_key = {setting.key: setting for setting in settings}
    yield from unit_actions(WATCH, plan.owned, by_key)
    watch = by_key.get(WATCH.key)
    if plan.targets and watch is not None:
        outdated = watch.running.standing is Standing.RIGHT and any(
            persists(by_key[path]) for path in (WATCH_SCRIPT_PATH, WATCH.path)
        )
        if outdated or enforces(watch, node.effects.allow):
            yield Run(command=("systemctl", "restart", WATCH.name))
    yield from _port_actions(plan, by_key, node, read_qos_units(snapshot))


def _port_actions(
    plan: Plan, by_key: dict[str, Setting], node: Node, units: dict[str, Unit]
) -> Iterator[Action]:
    allowed = node.effects.allow
    due = {key for key, setting in by_key.items() if enforces(setting, allowed)}
    starts: list[Target] = []
    live: list[Target] = []
    for target in plan.targets:
        interface = target.found.interface if target.found else None
        lldpad = f"{target.key} lldpad"
        if lldpad in due and interface is not None:
            for tlv in ("PFC", "ETS-CFG"):
                tell = ("lldptool", "-T", "-i", interface.name, "-V", tlv, "willing=no")
                yield Run(command=tell)
        if not any(key.startswith(f"{target.key} ") for key in due - {lldpad}):
            continue
        pfc = by_key[f"{target.key} pfc"]
        # The unit does all there is to do; no more may be done than is allowed.
        whole = pfc.running.standing is Standing.RIGHT or pfc.key in due
        (starts if whole else live).append(target)
    # A unit that was started too often is not started again.
    failed = [t.unit for t in starts if t.unit in units and units[t.unit].active == "failed"]
    if failed:
        yield Run(command=("systemctl", "reset-failed", *failed))
    if starts:
        yield Run(command=("systemctl", "start", *(target.unit for target in starts)))
    for target in live:
        yield Run(command=(SCRIPT_PATH, "--live", str(target.pci)))


def _files(plan: Plan) -> Iterator[Setting]:
    untouched = {target.data_path for target in plan.targets if target.refusal}
    for owned in plan.owned:
        setting = owned_file_setting(_NAME, owned, plan.records)
        if setting is not None:
            yield setting.model_copy(update={"acts": owned.path not in untouched})


def _rail(
    target: Target,
    plan: Plan,
    state: QosState | None,
    units: dict[str, Unit],
) -> Iterator[Setting]:
    if target.lack is not None:
        yield _lacking(target)
        return
    view = _view(target, plan.qos, state)
    found = [
        _setting(
            target,
            name,
            value,
            view,
            persisted(name, value, target, plan, units.get(target.unit)),
        )
        for name, value in _wanted(plan.qos).items()
        if view is None or not is_left_out(name, view)
    ]
    if view is not None:
        found += _port_lldpad(target, view)
        is_set_up = any(record.path == target.data_path for record in plan.records)
        found.append(_unit(target, units.get(target.unit), found, is_set_up))
    for setting in found:
        if target.refusal is None:
            yield setting
        else:
            yield setting.model_copy(update={"acts": False, "remedy": target.refusal})


def _wanted(qos: RoceQos) -> dict[Name, str]:
    """What the unit sets, and the traffic class where the application has to."""
    return {**wanted(qos), "traffic class": str(qos.traffic_class)}


def _lacking(target: Target) -> Setting:
    running = State(standing=Standing.ABSENT, detail=target.lack)
    if target.found is None:
        running = State(standing=Standing.NOT_APPLICABLE, detail=target.lack)
    remedy = f"look for the NIC, or mend rails.nics.{target.plan.rail}" if target.found else None
    return looked_at(_NAME, f"{target.key} port", "present", running, remedy=remedy)


def _view(target: Target, qos: RoceQos, state: QosState | None) -> View | None:
    port = target.port
    if state is None or port is None or port.interface is None or target.pci is None:
        return None
    return View(
        interface=port.interface.name,
        pci=target.pci,
        driver=port.interface.driver,
        rdma=port.rdma,
        qos=qos,
        state=state,
    )


def _setting(target: Target, name: Name, value: str, view: View | None, holds: State) -> Setting:
    found = NO_PORTS if view is None else running(name, value, view)
    why_not = not_applicable(name, view) if view is not None else None
    if why_not is not None:
        holds = found = State(standing=Standing.NOT_APPLICABLE, detail=why_not)
    return Setting(
        component=_NAME,
        key=f"{target.key} {name}",
        desired=value,
        persisted=holds,
        running=found,
        effect=_EFFECTS.get(name, Effect.LIVE),
        why=WHY.get(name),
    )


def _port_lldpad(target: Target, view: View) -> list[Setting]:
    """lldpad keeps what it is told, so what runs is what is persisted."""
    told = view.state.willing.get(view.interface)
    if told is None:
        return []
    kept = found = State(standing=Standing.RIGHT, value="not willing", decider=LLDPAD)
    if isinstance(told, Problem):
        kept = found = State(standing=Standing.UNREADABLE, decider=LLDPAD, detail=told.reason)
    elif told:
        value = f"willing ({', '.join(told)})"
        kept = State(standing=Standing.OVERRIDDEN, value=value, decider=LLDPAD)
        found = State(standing=Standing.WRONG, value=value, decider=LLDPAD)
    return [
        Setting(
            component=_NAME,
            key=f"{target.key} lldpad",
            desired="not willing",
            persisted=kept,
            running=found,
            why="a willing port takes PFC and ETS from the switch, whatever was set",
        )
    ]


def _unit(target: Target, unit: Unit | None, found: list[Setting], is_set_up: bool) -> Setting:
    """Our unit of the port; it is active for a moment only, so all there is to see is a failure."""
    state = State(standing=Standing.RIGHT, value="not failed")
    if unit is None and is_set_up:
        state = State(standing=Standing.UNREADABLE, detail="systemctl tells nothing of it")
    elif unit is not None and unit.active == "failed":
        wrong = [s.key for s in found if s.running.standing is Standing.WRONG]
        detail = f"result {unit.result}; see journalctl -u {target.unit}"
        state = failed(wrong, detail)
    return Setting(
        component=_NAME,
        key=f"{target.key} unit",
        desired="not failed",
        persisted=NOTHING,
        running=state,
    )


def _watch(plan: Plan, units: dict[str, Unit], is_container: bool) -> Iterator[Setting]:
    unit = units.get(WATCH.name)
    active = unit is not None and unit.active == "active"
    running = State(
        standing=Standing.RIGHT if active else Standing.ABSENT,
        value="on" if active else None,
        detail=None if active or unit is None else f"it is {unit.active}",
    )
    setting = enabled_setting(
        _NAME,
        WATCH,
        plan.records,
        asked=bool(plan.targets),
        word="on",
        running=NO_PORTS if is_container else running,
    )
    if setting is None:
        return
    if plan.targets and unit is not None and unit.masked:
        masked = setting.persisted.model_copy(update={"standing": Standing.OVERRIDDEN})
        setting = setting.model_copy(update={"persisted": masked})
    yield setting


def _lldpad(units: dict[str, Unit], plan: Plan) -> Iterable[Setting]:
    """An lldpad that is off now and starts at the next boot, with what it was told before."""
    unit = units.get(LLDPAD)
    if unit is None or not plan.targets or unit.active == "active" or unit.file_state != "enabled":
        return
    detail = "it starts at boot, and is willing unless it was told otherwise"
    yield Setting(
        component=_NAME,
        key="lldpad",
        desired="off",
        persisted=State(
            standing=Standing.OVERRIDDEN, value="enabled", decider=LLDPAD, detail=detail
        ),
        running=State(standing=Standing.RIGHT, value="off"),
        acts=False,
        remedy=f"systemctl disable {LLDPAD}, or start it and run again: it is told then",
    )


COMPONENT = Component(
    name=_NAME, sections=(*NIC_SECTIONS, *SECTIONS), settings=settings, actions=actions
)
