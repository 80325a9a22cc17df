"""The rail plan on the host: names, addresses, rules and routes of the rails' interfaces.

Files are those of the manager that the node runs; what is put in force is put in force for the
rails alone. ``netplan apply`` and a restart of a manager are never run: they reach every
interface. Where a manager's own command would drop what a rail already has, or reach further
than the rails, ``ip`` sets the same by hand (railwright.resolve.rails_apply).
"""

from collections.abc import Iterator

from facts.network import SECTIONS as NETWORK
from facts.nics import SECTIONS as NICS
from railwright.actions import Action, RunScript
from railwright.component import Component
from railwright.model import Model
from railwright.netconfig import Said
from railwright.netconfig.networkd import link_content, link_path, name_of
from railwright.netconfig.plan import routes_text, rule_text
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve.network import Decided, decided, link_rival
from railwright.resolve.networkd import winner
from railwright.resolve.rails_apply import operations
from railwright.resolve.rails_checks import checks
from railwright.resolve.rails_view import RailsView, RailView, our_key
from railwright.schema import Node
from railwright.settings import (
    NO_PORTS,
    Effect,
    Setting,
    Standing,
    State,
    enforces,
    is_drift,
    looked_at,
    verdict,
)
from railwright.snapshot import Snapshot
from railwright.templates import render

NAME = "rails"
SCRIPT = "railwright-rails"


class Observed(Model):
    """One part of a rail's configuration: what is asked, what is there, and what it takes."""

    part: str
    desired: str
    running: State
    effect: Effect = Effect.LIVE
    remedy: str | None = None


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    files = snapshot.files("network_files")
    if not node.rails.nics and not any(our_key(file.path) for file in files):
        return []
    view = RailsView.of(node, snapshot)
    found = [setting for rail in view.rails for setting in _rail_settings(view, rail)]
    stale = (owned_file_setting(NAME, owned, files) for owned in view.stale())
    missing = (
        looked_at(
            NAME,
            f"{rail.key} nic",
            "there",
            State(standing=Standing.ABSENT, detail=rail.error),
            remedy=f"look for the NIC, or mend rails.nics.{rail.plan.rail}",
        )
        for rail in view.missing
    )
    return [*found, *filter(None, stale), *missing]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    if not settings:
        return
    view = RailsView.of(node, snapshot)
    by_key = {setting.key: setting for setting in settings}
    for owned in _all_owned(view):
        yield from owned_file_action(owned, by_key.get(owned.path), _check(owned.path))
    due = {key for key, setting in by_key.items() if enforces(setting, node.effects.allow)}
    todo = operations(view, due)
    if todo:
        script = render("rails/railwright-rails.sh.j2", header=HEADER)
        yield RunScript(name=SCRIPT, script=script, arguments=tuple(todo))


# netplan reads all its files as one, so the new one is judged among the others.
_NETPLAN_CHECK = """\
root=$(mktemp -d) && mkdir -p "$root/etc/netplan" || exit 1
cp /etc/netplan/*.yaml "$root/etc/netplan/" 2>/dev/null
cp "$2" "$root/etc/netplan/$1" && netplan generate --root-dir "$root"
status=$?
rm -rf "$root"
exit "$status"
"""


def _check(path: str) -> tuple[str, ...] | None:
    """The command that judges a new file of ours before it takes its place."""
    directory, _, name = path.rpartition("/")
    if directory == "/etc/netplan":
        return ("sh", "-c", _NETPLAN_CHECK, "railwright-netplan", name)
    return ("ifquery", "--list", "-i") if directory == "/etc/network/interfaces.d" else None


def _all_owned(view: RailsView) -> Iterator[OwnedFile]:
    for rail in view.rails:
        yield from view.owned(rail)
    yield from view.stale()


def _rail_settings(view: RailsView, rail: RailView) -> Iterator[Setting]:
    refusal = rail.found.port.refusal if rail.found.port else None
    cuts = None if _planned_address_is_there(rail) else view.cuts_way_in(rail)
    link = link_path(rail.key)
    for owned in view.owned(rail):
        setting = owned_file_setting(NAME, owned, view.network.files)
        if setting is not None:
            yield _refused(setting, refusal or (None if owned.path == link else cuts))
    if view.node.rails.name is not None:
        yield _refused(_name(view, rail), refusal)
    if rail.interface is None and view.nics is not None:
        yield _without_interface(rail)
        return
    if view.is_configured(rail):
        for setting in _configured(view, rail):
            yield _refused(setting, refusal or cuts)
    yield from checks(NAME, view, rail)


def _refused(setting: Setting, refusal: str | None) -> Setting:
    if refusal is None or not is_drift(verdict(setting, frozenset(Effect))):
        return setting
    return setting.model_copy(update={"acts": False, "remedy": f"refused: {refusal}"})


def _planned_address_is_there(rail: RailView) -> bool:
    return rail.config.address is not None and str(rail.config.address) in rail.addresses


def _without_interface(rail: RailView) -> Setting:
    """A port found as an RDMA device alone; InfiniBand that asks for no IPoIB needs no more."""
    asked = not rail.config.is_infiniband or rail.config.address is not None
    standing = Standing.LATE if asked else Standing.NOT_APPLICABLE
    running = State(standing=standing, detail=f"there is no network interface at {rail.port}")
    return looked_at(NAME, f"{rail.key} nic", "has an interface", running)


def _name(view: RailsView, rail: RailView) -> Setting:
    name, interface = rail.config.name or "", rail.interface
    persisted, remedy = _name_persisted(view, rail)
    if view.nics is None:
        running = NO_PORTS
    elif interface is None:
        detail = "the port has no network interface"
        running = State(standing=Standing.NOT_APPLICABLE, detail=detail)
    elif interface.name == name:
        running = State(standing=Standing.RIGHT, value=name)
    else:
        running = State(standing=Standing.WRONG, value=interface.name)
    taken = (
        running.standing is Standing.WRONG
        and rail.key not in view.renamed
        and Effect.LINK in view.node.effects.allow
    )
    if taken:
        remedy = f"another interface is called {name}"
    return Setting(
        component=NAME,
        key=f"{rail.key} name",
        desired=name,
        persisted=persisted,
        running=running,
        # An interface takes a name only while it is down (dev_change_name, before Linux 6.2).
        effect=Effect.LINK,
        acts=not taken,
        remedy=remedy,
    )


def _name_persisted(view: RailsView, rail: RailView) -> tuple[State, str | None]:
    """How the .link files name the interface, and what a person must do where ours cannot win."""
    path = link_path(rail.key)
    if not (rail.config.match.path or rail.config.match.mac):
        detail = "the PCI address is known on the host alone: name it as rails.nics.N.pci"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail), None
    if rail.device is not None:
        rival = link_rival(view.network, path, link_content(rail.config), rail.device)
        if rival is not None:
            state = State(standing=Standing.OVERRIDDEN, decider=rival[0], detail=rival[1])
            return state, f"give {rival[0]} a name that sorts after {path}"
        now = winner(view.network.files, "link", rail.device)
    else:
        files = [file for file in view.network.files if file.path == path]
        now = None
        if files and files[0].content is not None:
            name = name_of(files[0].content)
            return _compared(rail.config.name or "", name, path), None
    if now is None:
        return State(standing=Standing.ABSENT), None
    return _compared(rail.config.name or "", name_of(now.content), now.path), None


def _compared(desired: str, value: str | None, decider: str | None) -> State:
    if value is None:
        return State(standing=Standing.ABSENT, decider=decider)
    standing = Standing.RIGHT if value == desired else Standing.WRONG
    return State(standing=standing, value=value, decider=decider)


def _configured(view: RailsView, rail: RailView) -> Iterator[Setting]:
    """The parts of which the manager's file speaks."""
    said = rail.config.said
    holds = (
        None
        if view.manager is None
        else decided(view.network, view.manager, rail.config, rail.device)
    )
    for one in _observed(view, rail, said):
        persisted, remedy = _persisted(view, one, holds)
        yield Setting(
            component=NAME,
            key=f"{rail.key} {one.part}",
            desired=one.desired,
            persisted=persisted,
            running=one.running,
            effect=one.effect,
            remedy=one.remedy or remedy,
            acts=one.remedy is None,
        )


def _persisted(view: RailsView, one: Observed, holds: Decided | None) -> tuple[State, str | None]:
    if holds is None:
        return State(standing=Standing.UNREADABLE, detail=view.unknown), view.unknown
    if holds.rival is not None:
        state = State(standing=Standing.OVERRIDDEN, decider=holds.rival, detail=holds.why)
        return state, f"{holds.rival}: {holds.why}"
    if one.part == "up":
        return State(standing=Standing.NOT_APPLICABLE, detail="the manager sets it up"), None
    value = None if holds.said is None else getattr(holds.said, one.part)
    return _compared(one.desired, value, holds.decider), None


def _observed(view: RailsView, rail: RailView, said: Said) -> Iterator[Observed]:
    if said.mtu is not None:
        yield _mtu(rail, said.mtu)
    yield Observed(part="up", desired="up", running=_up(rail))
    if said.address is None or said.rule is None:
        return
    yield _address(view, rail, said.address)
    yield Observed(part="rule", desired=said.rule, running=_rule(view, rail, said.rule))
    if said.routes is not None:
        yield Observed(part="routes", desired=said.routes, running=_routes(view, rail))


def _mtu(rail: RailView, desired: str) -> Observed:
    interface = rail.interface
    if interface is None:
        return Observed(part="mtu", desired=desired, running=NO_PORTS)
    right = str(interface.mtu) == desired
    state = State(standing=Standing.RIGHT if right else Standing.WRONG, value=str(interface.mtu))
    # mlx5 opens its channels anew (mlx5e_change_mtu); QPs of the port break.
    in_use = interface.is_up and bool(interface.addresses)
    effect = Effect.LINK if in_use and not right else Effect.LIVE
    return Observed(part="mtu", desired=desired, running=state, effect=effect)


def _up(rail: RailView) -> State:
    if rail.interface is None:
        return NO_PORTS
    if rail.interface.is_up:
        return State(standing=Standing.RIGHT, value="up")
    return State(standing=Standing.WRONG, value="down")


def _address(view: RailsView, rail: RailView, desired: str) -> Observed:
    if rail.interface is None or view.nics is None:
        return Observed(part="address", desired=desired, running=NO_PORTS)
    if desired in rail.addresses:
        return Observed(
            part="address", desired=desired, running=State(standing=Standing.RIGHT, value=desired)
        )
    found = " ".join(rail.addresses) or None
    holder = view.nics.holders.get(desired.partition("/")[0])
    remedy = None
    if holder is not None and holder != rail.interface.name:
        remedy = f"{holder} has {desired.partition('/')[0]}: take it off there"
    elif found:
        remedy = f"take {found} off {rail.interface.name}: it is not of the plan"
    return Observed(
        part="address",
        desired=desired,
        running=State(
            standing=Standing.WRONG if found else Standing.ABSENT, value=found, detail=remedy
        ),
        remedy=remedy,
    )


def _rule(view: RailsView, rail: RailView, desired: str) -> State:
    if view.nics is None or rail.config.address is None:
        return NO_PORTS
    source = str(rail.config.address.ip)
    found = [
        rule_text(rule.source, rule.table or "-", rule.priority)
        for rule in view.network.rules
        if rule.source == source and rule.plain
    ]
    if not found:
        return State(standing=Standing.ABSENT)
    right = set(found) == {desired}
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=desired if right else ", ".join(found),
    )


def _routes(view: RailsView, rail: RailView) -> State:
    if view.nics is None or rail.interface is None:
        return NO_PORTS
    table, name = str(rail.config.table), rail.interface.name
    found = {
        (route.to, route.via): route
        for route in view.network.routes
        if route.table == table and route.device == name
    }
    asked = [(str(r.to), None if r.via is None else str(r.via)) for r in rail.config.routes]
    there = [(to, via, table) for to, via in asked if (to, via) in found]
    more = [(to, via, table) for to, via in found if (to, via) not in asked]
    besides = f"besides: {routes_text(more)}" if more else None
    if len(there) == len(asked):
        return State(standing=Standing.RIGHT, value=routes_text(there), detail=besides)
    standing = Standing.WRONG if there or more else Standing.ABSENT
    return State(standing=standing, value=routes_text([*there, *more]), detail=besides)


COMPONENT = Component(
    name=NAME,
    sections=(*NICS, *NETWORK),
    settings=settings,
    actions=actions,
)
