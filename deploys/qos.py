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
    UNIT_PATH,
    WATCH_ENABLED_PATH,
    WATCH_SCRIPT_PATH,
    WATCH_UNIT,
    WATCH_UNIT_PATH,
    Problem,
    QosState,
    UnitState,
    read_qos,
    read_unit_states,
)
from railwright.actions import Action, RemoveFile, Run
from railwright.component import Component
from railwright.owned import owned_file_action, owned_file_setting
from railwright.qos import RDMA_MTU, WHY, Name, wanted
from railwright.resolve.qos import View, is_left_out, not_applicable, rdma_mtu, running
from railwright.resolve.qos_unit import Plan, Target, persisted, plan_of
from railwright.schema import Effect, Node, RoceQos
from railwright.schema.consistency import RDMA_MTU_4096
from railwright.settings import Setting, Standing, State, enforces, persists
from railwright.snapshot import Snapshot

_NAME = "qos"
_WATCH_KEY = f"unit {WATCH_UNIT}"
_CONTAINER = State(standing=Standing.NOT_APPLICABLE, detail="a container has no ports of its own")
_NOTHING = State(standing=Standing.NOT_APPLICABLE)

# Only PFC's change toggles the link. Trust reopens the queues of the interface on ConnectX-4,
# which RoCE does not notice. Source: mlx5 en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc and
# mlx5e_set_trust_state; en_ethtool.c, mlx5e_set_pauseparam.
_EFFECTS: dict[Name, Effect] = {"pfc": Effect.LINK}


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    """The settings of each rail, the units, and each file of ours."""
    plan = plan_of(node, snapshot)
    if not plan.targets and not plan.owned and not plan.watched:
        return []
    state = None if snapshot.is_container or not plan.targets else read_qos(snapshot)
    units = read_unit_states(snapshot)
    rails = [s for target in plan.targets for s in _rail(target, plan, state, units)]
    return [
        *rails,
        *_files(plan),
        *_watch(plan, units, snapshot.is_container),
        *_lldpad(units, plan),
    ]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    """Files first, then the units, then lldpad is told, and last the ports are put right."""
    plan = plan_of(node, snapshot)
    by_key = {setting.key: setting for setting in settings}
    written = {key for key, setting in by_key.items() if persists(setting)}
    watch = by_key.get(_WATCH_KEY)
    if not plan.targets and watch is not None:
        if WATCH_UNIT_PATH in by_key:
            yield Run(command=("systemctl", "disable", "--now", WATCH_UNIT))
        yield RemoveFile(path=WATCH_ENABLED_PATH)
    for owned in plan.owned:
        yield from owned_file_action(owned, by_key.get(owned.path))
    if written & {UNIT_PATH, WATCH_UNIT_PATH}:
        yield Run(command=("systemctl", "daemon-reload"))
    if plan.targets and watch is not None:
        yield from _watch_actions(watch, written, node)
    yield from _port_actions(plan, by_key, node, read_unit_states(snapshot))


def _watch_actions(watch: Setting, written: set[str], node: Node) -> Iterator[Action]:
    if persists(watch):
        yield Run(command=("systemctl", "enable", WATCH_UNIT))
    outdated = watch.running.standing is Standing.RIGHT and written & {
        WATCH_SCRIPT_PATH,
        WATCH_UNIT_PATH,
    }
    if outdated or enforces(watch, node.effects.allow):
        yield Run(command=("systemctl", "restart", WATCH_UNIT))


def _port_actions(
    plan: Plan, by_key: dict[str, Setting], node: Node, units: dict[str, UnitState]
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
    units: dict[str, UnitState],
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
    found.append(_mtu(target, view))
    if view is not None:
        found += _port_lldpad(target, view)
        found += _unit(target, units, found)
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
    return Setting(
        component=_NAME,
        key=f"{target.key} port",
        desired="present",
        persisted=_NOTHING,
        running=running,
        acts=False,
        remedy=None
        if target.found is None
        else f"look for the NIC, or mend rails.nics.{target.plan.rail}",
    )


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
    found = _CONTAINER if view is None else running(name, value, view)
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


def _mtu(target: Target, view: View | None) -> Setting:
    """Read-only: it follows from the interface's MTU, which is the component rails'."""
    found = _CONTAINER if view is None else rdma_mtu(view)
    interface = target.port.interface if target.port else None
    remedy = None
    if found.standing is Standing.WRONG and interface is not None:
        remedy = f"the MTU of {interface.name} is {interface.mtu}: it needs {RDMA_MTU_4096}"
    return Setting(
        component=_NAME,
        key=f"{target.key} rdma mtu",
        desired=str(RDMA_MTU),
        persisted=_NOTHING,
        running=found,
        acts=False,
        remedy=remedy,
        why="both ends must have the same, or messages are lost; NVIDIA/nccl#1524",
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


def _unit(target: Target, units: dict[str, UnitState], found: list[Setting]) -> list[Setting]:
    """Our unit of the port; it is active for a moment only, so all there is to see is a failure."""
    unit = units.get(target.unit)
    if unit is None:
        return []
    state = State(standing=Standing.RIGHT, value="not failed")
    if unit.active == "failed":
        wrong = [s.key for s in found if s.running.standing is Standing.WRONG]
        detail = f"result {unit.result}; see journalctl -u {target.unit}"
        # One that failed at boot and has what it was to set since is put right by a start.
        standing = Standing.DEGRADED if wrong else Standing.WRONG
        state = State(standing=standing, value="failed", detail=detail)
    return [
        Setting(
            component=_NAME,
            key=f"{target.key} unit",
            desired="not failed",
            persisted=_NOTHING,
            running=state,
        )
    ]


def _watch(plan: Plan, units: dict[str, UnitState], is_container: bool) -> Iterator[Setting]:
    enabled = plan.watched
    if not plan.targets and not enabled:
        return
    value = "on" if enabled else None
    unit = units.get(WATCH_UNIT)
    standing = Standing.RIGHT if enabled else Standing.ABSENT
    if unit is not None and unit.load == "masked":
        standing = Standing.OVERRIDDEN
    active = unit is not None and unit.active == "active"
    running = State(
        standing=Standing.RIGHT if active else Standing.ABSENT,
        value="on" if active else None,
        detail=None if active or unit is None else f"it is {unit.active}",
    )
    yield Setting(
        component=_NAME,
        key=_WATCH_KEY,
        desired="on" if plan.targets else "absent",
        persisted=State(standing=standing if plan.targets else Standing.WRONG, value=value),
        running=_CONTAINER if is_container else running if plan.targets else _NOTHING,
    )


def _lldpad(units: dict[str, UnitState], plan: Plan) -> Iterable[Setting]:
    """An lldpad that is off now and starts at the next boot, with what it was told before."""
    unit = units.get(LLDPAD)
    if unit is None or not plan.targets or unit.active == "active" or unit.enabled != "enabled":
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
