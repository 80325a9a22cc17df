"""LNet as a node must have it: its interfaces, /etc/lnet.conf, and how they stand.

/etc/lnet.conf is the one place for it. lnet.service imports that file and no other, there is no
folder of drop-ins beside it, and ``networks=`` of modprobe.d is passed over by lnet.service and
taken where a mount loads the modules first: two places would mean two networks, by who comes first.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from facts.lnetctl import SPELLINGS, Lnet, LnetNi, parse_lnet_conf
from facts.lustre import LNET_CONF, read_interfaces, read_lnet
from facts.nics import read_nics
from railwright.files import FileRecord
from railwright.owned import HEADER
from railwright.resolve.nics import FoundRail, find_rails, rails_in_image
from railwright.schema import Node
from railwright.schema.lustre import CREDITS, PEER_CREDITS, PEER_TIMEOUT_S, LnetTunables
from railwright.schema.lustre_consistency import rails_of
from railwright.settings import HOSTS_KERNEL, NOTHING, Effect, Setting, Standing, State
from railwright.snapshot import Snapshot
from railwright.templates import render

_COMMON = {
    "peer_timeout": PEER_TIMEOUT_S,
    "peer_credits": PEER_CREDITS,
    "peer_buffer_credits": 0,
    "credits": CREDITS,
}
"""All four are written where one tunable is given. lnetctl reads ``lnd tunables`` only beside
``tunables``, and takes 0, not the default, for what these lack: yaml_extract_tunables() and
handle_yaml_config_ni() in liblnetconfig.c."""
_UP = "up"
_HEALTHY = 1000
"""LNET_MAX_HEALTH_VALUE in lib-types.h."""


@dataclass(frozen=True)
class WantedNi:
    """One interface of LNet that is asked for; ``address`` is known of a planned rail.

    ``lack`` says why LNet cannot take it as the node now is; of an ``iface`` whose name is not
    known, why that is so.
    """

    net: str
    on: str
    iface: str | None
    tunables: LnetTunables
    address: str | None = None
    lack: str | None = None

    @property
    def key(self) -> str:
        return f"ni {self.net} {self.on}"

    @property
    def desired(self) -> str:
        return _words(_UP, self.tunables.given)


@dataclass(frozen=True)
class LnetView:
    """What is asked of LNet, and what is there: ``conf`` on disk, ``lnet`` as it runs.

    ``lnet`` is None where its module is not loaded, and in a container. ``unread`` says why one of
    the two could not be read.
    """

    wanted: tuple[WantedNi, ...]
    conf: Lnet
    conf_error: str | None
    lnet: Lnet | None
    unread: str | None
    is_container: bool
    conf_is_ours: bool = False
    extra: tuple[tuple[str, LnetNi], ...] = field(default=())

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot, files: Iterable[FileRecord]) -> "LnetView":
        """Raises ValueError where the rails or interfaces cannot be read."""
        wanted = wanted_nis(node, snapshot)
        conf, conf_error = _read_conf(files)
        lnet, unread = None, None
        if not snapshot.is_container:
            try:
                lnet = read_lnet(snapshot)
            except ValueError as error:
                unread = str(error)
        asked = {(ni.net, ni.iface) for ni in wanted}
        extra = tuple(
            (net, ni)
            for net, listed in (lnet.nets if lnet else {}).items()
            for ni in listed
            if (net, ni.iface) not in asked
        )
        return cls(
            wanted=wanted,
            conf=conf,
            conf_error=conf_error,
            lnet=lnet,
            unread=unread,
            is_container=snapshot.is_container,
            conf_is_ours=conf_is_ours(files),
            extra=extra,
        )

    @property
    def is_up(self) -> bool:
        return self.lnet is not None and self.lnet.error is None


def conf_is_ours(files: Iterable[FileRecord]) -> bool:
    """Whether /etc/lnet.conf is of our making; that of the package is all comments."""
    found = (file.content or "" for file in files if file.path == LNET_CONF)
    return any(content.startswith(HEADER) for content in found)


def _read_conf(files: Iterable[FileRecord]) -> tuple[Lnet, str | None]:
    """/etc/lnet.conf as it is there, or why it cannot be read: then ours takes its place."""
    record = next((file for file in files if file.path == LNET_CONF), None)
    if record is None:
        return Lnet(), None
    if record.content is None:
        return Lnet(), f"expected a file, got {record.kind}"
    try:
        return parse_lnet_conf(record.content), None
    except ValueError as error:
        return Lnet(), str(error)


def wanted_nis(node: Node, snapshot: Snapshot) -> tuple[WantedNi, ...]:
    """The interfaces of all networks, by the name of the network."""
    networks = node.lustre.networks
    rails: Mapping[int, FoundRail] = {}
    if any(network.rails is not None for network in networks.values()):
        found = (
            rails_in_image(node) if snapshot.is_container else find_rails(node, read_nics(snapshot))
        )
        rails = {rail.plan.rail: rail for rail in found}
    there = None if snapshot.is_container or not networks else read_interfaces(snapshot)
    wanted: list[WantedNi] = []
    for net, network in sorted(networks.items()):
        wanted += (
            _on_rail(net, rails[number], network.tunables, there)
            for number in rails_of(network, node.rails)
        )
        wanted += (
            WantedNi(net, iface, iface, network.tunables, lack=_lack(iface, there))
            for iface in network.interfaces
        )
    return tuple(wanted)


def _on_rail(
    net: str, rail: FoundRail, tunables: LnetTunables, there: Mapping[str, tuple[str, ...]] | None
) -> WantedNi:
    # lnet.conf holds after a reboot, when the rail has the name that udev then gives it.
    iface = rail.plan.name or (rail.interface.name if rail.interface else None)
    lack = rail.error
    if lack is None and iface is None:
        lack = "the name of its interface is not known before the node runs: set rails.name"
    elif lack is None and iface is not None:
        lack = _lack(iface, there)
        now = rail.interface.name if rail.interface else None
        if there is not None and iface not in there and now is not None:
            lack = f"its interface is {now} until it is renamed to {iface}"
    address = str(rail.plan.address.ip) if rail.plan.address else None
    return WantedNi(net, rail.key, iface, tunables, address, lack)


def _lack(iface: str, there: Mapping[str, tuple[str, ...]] | None) -> str | None:
    if there is None:
        return None
    if iface not in there:
        return f"there is no interface {iface}"
    return None if there[iface] else f"{iface} is down or has no IPv4 address"


def conf_content(wanted: Iterable[WantedNi]) -> str | None:
    """/etc/lnet.conf in the form that lnetctl imports; None where no interface is known."""
    networks: dict[str, list[dict[str, object]]] = {}
    for ni in wanted:
        if ni.iface is not None:
            networks.setdefault(ni.net, []).append({"iface": ni.iface, **_sections(ni.tunables)})
    listed = dict(sorted(networks.items(), key=lambda item: _lacking(item[1][0])))
    return render("lustre/lnet.conf.j2", header=HEADER, networks=listed) if listed else None


def _lacking(ni: Mapping[str, object]) -> int:
    """How many of the sections of tunables an interface does without.

    lnetctl takes those of the network that follows in the file for one that has none of its own
    (cYAML_get_object_item() in cyaml.c goes on to the siblings), so those that lack more come last.
    """
    return sum(not ni[name] for name in ("tunables", "lnd_tunables"))


def _sections(tunables: LnetTunables) -> dict[str, object]:
    given = tunables.given
    if not given:
        return {"tunables": {}, "lnd_tunables": {}}
    return {
        "tunables": {name: given.get(name, value) for name, value in _COMMON.items()},
        "lnd_tunables": {
            SPELLINGS.get(name, name): value for name, value in given.items() if name not in _COMMON
        },
    }


def ni_settings(
    component: str, view: LnetView, lacks: Mapping[str, str], again: Effect
) -> Iterator[Setting]:
    """Each interface of LNet that is asked for, and each that nobody asked for.

    ``lacks`` says of a network why it cannot be brought up; ``again`` is what it takes to bring up
    LNet anew, which changes an interface that is there.
    """
    for ni in view.wanted:
        running = _running(view, ni, lacks.get(ni.net))
        wrong = running.standing is Standing.WRONG
        yield Setting(
            component=component,
            key=ni.key,
            desired=ni.desired,
            persisted=_persisted(view, ni),
            running=running,
            effect=again if wrong else Effect.LIVE,
            acts=ni.iface is not None and not (wrong and _unknown(view, ni)),
            remedy=_remedy(view, ni, running),
        )
    for net, found in view.extra:
        yield _extra(component, net, found, again)


def _remedy(view: LnetView, ni: WantedNi, running: State) -> str | None:
    if ni.iface is None:
        return ni.lack
    if running.standing is Standing.DEGRADED:
        return f"look at the port of {ni.iface}, and at lnetctl net show -v 3"
    if running.standing is Standing.WRONG and (unknown := _unknown(view, ni)):
        return f"install a Lustre whose lnetctl knows {', '.join(unknown)}"
    return None


def _unknown(view: LnetView, ni: WantedNi) -> list[str]:
    """Tunables that this lnetctl shows of no interface: it knows none of that name."""
    found = view.lnet.ni(ni.net, ni.iface) if view.lnet and ni.iface else None
    if found is None or found.peer_credits is None:
        return []
    return [name for name in ni.tunables.given if getattr(found, name) is None]


def _persisted(view: LnetView, ni: WantedNi) -> State:
    if view.conf_error is not None:
        return State(standing=Standing.WRONG, decider=LNET_CONF, detail=view.conf_error)
    found = view.conf.ni(ni.net, ni.iface) if ni.iface else None
    if found is None:
        return State(standing=Standing.ABSENT, detail=ni.lack if ni.iface is None else None)
    value: str | None = _words(_UP, _told(ni.tunables, found))
    standing = Standing.RIGHT if value == ni.desired else Standing.WRONG
    return State(standing=standing, value=value, decider=LNET_CONF)


def _running(view: LnetView, ni: WantedNi, lack: str | None) -> State:
    if view.is_container:
        return HOSTS_KERNEL
    if view.unread is not None:
        return State(standing=Standing.UNREADABLE, detail=view.unread)
    if view.lnet is not None and not view.is_up and view.lnet.error != "lnet_down":
        return State(standing=Standing.UNREADABLE, detail=f"lnetctl: {view.lnet.error}")
    found = view.lnet.ni(ni.net, ni.iface) if view.lnet and ni.iface else None
    if found is not None:
        return _there(ni, found)
    if lack is not None or ni.lack is not None:
        return State(standing=Standing.LATE, detail=lack or ni.lack)
    return State(standing=Standing.ABSENT, detail=None if view.is_up else "LNet is not up")


def _there(ni: WantedNi, found: LnetNi) -> State:
    if ni.address is not None and found.nid != f"{ni.address}@{ni.net}":
        detail = f"LNet has the address that {ni.iface} had when it was brought up"
        return State(standing=Standing.WRONG, value=found.nid, detail=detail)
    value = _words(found.status or "of no status", _told(ni.tunables, found))
    if found.status != _UP:
        why = "the port has gone down" if found.fatal else None
        return State(standing=Standing.DEGRADED, value=value, detail=why)
    if found.health == 0:
        detail = "health value 0: LNet sends by it only where nothing else is left"
        return State(standing=Standing.DEGRADED, value=value, detail=detail)
    if value != ni.desired:
        return State(standing=Standing.WRONG, value=value)
    ails = found.health is not None and found.health < _HEALTHY
    said = f"health value {found.health} of {_HEALTHY}" if ails else None
    return State(standing=Standing.RIGHT, value=value, detail=said)


def _told(tunables: LnetTunables, found: LnetNi) -> dict[str, int | None]:
    """What ``found`` has of the tunables that are given."""
    return {name: getattr(found, name) for name in tunables.given}


def _words(status: str, tunables: Mapping[str, int | None]) -> str:
    told = (f"{name} {'none' if v is None else v}" for name, v in tunables.items())
    return ", ".join((status, *told))


def _extra(component: str, net: str, ni: LnetNi, again: Effect) -> Setting:
    """An interface of LNet that nothing asked for: peers may choose it for the way back.

    ``lnetctl net show`` of oracle-quickstart/oci-hpc-oke#187 has tcp on eth0 beside the rail.
    """
    return Setting(
        component=component,
        key=f"ni {net} {ni.iface or ni.nid}",
        desired="absent",
        persisted=NOTHING,
        running=State(standing=Standing.WRONG, value=ni.nid, detail="nothing asks for it"),
        effect=again,
    )
