"""How a volume over a fabric is there: its paths, what they were given, its namespace and what is
on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from facts.nvme import FabricController, Namespace, NvmeofSeen
from railwright.nvmeof import Portal, Volume
from railwright.resolve.nvmeof_files import COMPONENT
from railwright.resolve.rdma_modules import Refusal
from railwright.schema.nvmeof import NvmeofSpec
from railwright.settings import NOTHING, Effect, Setting, Standing, State, enforces, persists

_LIVE = "live"
_BLANK = "blank"


@dataclass(frozen=True)
class VolumeView:
    """A volume on a node of its own kernel.

    ``refused`` is why nothing may be connected, ``refused_ports`` why a portal cannot, by its
    number. ``keeps`` tells that the unit runs, with all that it needs: then whoever is not
    connected is not reached. ``identity`` are host NQN and identifier as they are on the node.
    """

    spec: NvmeofSpec
    volume: Volume
    seen: NvmeofSeen
    refused: Refusal | None
    refused_ports: dict[int, str]
    keeps: bool
    identity: tuple[str | None, str | None]
    allowed: frozenset[Effect]

    @cached_property
    def controllers(self) -> tuple[FabricController, ...]:
        """Those of the subsystem that go over the transport, at the portals asked for."""
        asked = {portal.place for portal in self.volume.portals}
        return tuple(c for c in self._all if c.portal in asked)

    @property
    def _all(self) -> list[FabricController]:
        transport = self.volume.spec.transport
        return [c for c in self.seen.of(self.volume.spec.nqn) if c.transport == transport]

    @property
    def others(self) -> list[FabricController]:
        """Paths to the subsystem that nobody asks for."""
        return [c for c in self.seen.of(self.volume.spec.nqn) if c not in self.controllers]

    @property
    def live(self) -> list[FabricController]:
        return [c for c in self.controllers if c.is_live]

    @cached_property
    def namespace(self) -> Namespace | None:
        asked = self.volume.spec.namespace
        return next(
            (
                one
                for one in self.seen.namespaces
                if one.nqn == self.volume.spec.nqn and one.is_named(asked.kind, asked.value)
            ),
            None,
        )

    def key(self, what: str) -> str:
        return f"{what} {self.volume.where}"

    @cached_property
    def paths(self) -> list[Setting]:
        return [self._path(number, portal) for number, portal in enumerate(self.volume.portals)]

    @property
    def connects(self) -> bool:
        """Whether the run brings a path into being."""
        return any(enforces(path, self.allowed) for path in self.paths)

    def _path(self, number: int, portal: Portal) -> Setting:
        found = [c for c in self.controllers if c.portal == portal.place]
        # What has to be done comes before what cannot.
        reason = self.refused_ports.get(number) or (self.refused.found if self.refused else None)
        remedy = self.refused.remedy if self.refused else None
        if found:
            best = next((c for c in found if c.is_live), found[0])
            running = _path_state(best)
            remedy = None
        elif reason is not None:
            running = State(standing=Standing.ABSENT, detail=reason)
        elif self.keeps:
            detail = f"{self.volume.unit.name} tries again and again"
            running = State(standing=Standing.DEGRADED, value="absent", detail=detail)
            remedy = f"journalctl -u {self.volume.unit.name}"
        else:
            running = State(standing=Standing.ABSENT)
        return Setting(
            component=COMPONENT,
            key=self.key(f"path {portal.portal} of"),
            desired=_LIVE,
            persisted=NOTHING,
            running=running,
            acts=bool(found) or reason is None,
            remedy=remedy,
        )


def _path_state(controller: FabricController) -> State:
    node = controller.numa_node
    detail = f"{controller.name}, on NUMA node {node}" if node is not None else controller.name
    if controller.is_live:
        return State(standing=Standing.RIGHT, value=_LIVE, detail=detail)
    return State(
        standing=Standing.DEGRADED,
        value=controller.state,
        detail=f"{detail}: the target does not answer, and the kernel goes on trying",
    )


def volume_settings(view: VolumeView) -> Iterator[Setting]:
    """All of a volume that runs."""
    yield from view.paths
    yield from (other_setting(view, controller) for controller in view.others)
    yield tuning_setting(view)
    if view.spec.iopolicy is not None:
        yield policy_setting(view)
    yield namespace_setting(view)
    yield filesystem_setting(view)


def other_setting(view: VolumeView, controller: FabricController) -> Setting:
    """A path that nobody asks for goes where another one is there to take its IO."""
    spare = bool(view.live) and view.seen.multipath is True
    return Setting(
        component=COMPONENT,
        key=view.key(f"path {controller.name} of"),
        desired="absent",
        persisted=NOTHING,
        running=State(
            standing=Standing.WRONG,
            value=controller.state,
            detail=f"{controller.transport} {controller.address}",
        ),
        acts=spare,
        remedy=None if spare else f"nvme disconnect -d {controller.name}, once nothing uses it",
    )


@dataclass(frozen=True)
class Tuning:
    """What a connection was given, or is to be; None of what is not asked for or not shown."""

    queues: int | None
    keep_alive: int | None
    delay: int | None
    loss: int | str | None
    hostnqn: str | None
    hostid: str | None
    host: str | None

    def __str__(self) -> str:
        words = (
            (self.queues, f"{self.queues} queues"),
            (self.keep_alive, f"keep alive {self.keep_alive} s"),
            (self.delay, f"reconnect {self.delay} s"),
            (self.loss, f"loss {self.loss}" + (" s" if self.loss != "never" else "")),
        )
        return ", ".join(word for value, word in words if value is not None)


def asked_tuning(view: VolumeView, portal: Portal) -> Tuning:
    """What a path is to show. The kernel takes no more queues than there are processors, and counts
    in attempts how long it goes on. Source: nvmf_parse_options(), nvme_ctrl_loss_tmo_show()."""
    spec = view.volume.spec
    queues, cpus = spec.io_queues, view.seen.cpus
    if queues is not None and cpus is not None:
        queues = min(queues, cpus)
    loss: int | str = "never"
    if spec.ctrl_loss_s != "never":
        loss = -(-spec.ctrl_loss_s // spec.reconnect_delay_s) * spec.reconnect_delay_s
    return Tuning(
        queues=queues,
        keep_alive=spec.keep_alive_s,
        delay=spec.reconnect_delay_s,
        loss=loss,
        hostnqn=view.identity[0],
        hostid=(view.identity[1] or "").lower() or None,
        host=portal.host,
    )


def shown_tuning(controller: FabricController) -> Tuning:
    return Tuning(
        queues=controller.io_queues,
        keep_alive=controller.keep_alive,
        delay=controller.reconnect_delay,
        loss="never" if controller.ctrl_loss is None else controller.ctrl_loss,
        hostnqn=controller.hostnqn,
        hostid=controller.hostid,
        host=controller.host_traddr,
    )


_LIVE_FIELDS = frozenset({"delay", "loss"})
"""What sysfs lets be set of a connection that is there."""


def differing(asked: Tuning, shown: Tuning) -> frozenset[str]:
    """The fields in which a path is another one than asked for."""
    return frozenset(
        name
        for name, value in vars(asked).items()
        if value is not None and getattr(shown, name) != value
    )


def tuned(view: VolumeView) -> Iterator[tuple[FabricController, Tuning, frozenset[str]]]:
    """Each live path with what it is to be given, and in what it differs from that, but for queues
    that were asked for and not granted: made anew it would get no more."""
    portals = {portal.place: portal for portal in view.volume.portals}
    for controller in view.live:
        asked = asked_tuning(view, portals[controller.portal])
        fields = differing(asked, shown_tuning(controller))
        yield controller, asked, fields - ({"queues"} if _lacks_queues(view, controller) else set())


def _lacks_queues(view: VolumeView, controller: FabricController) -> bool:
    """Whether it was connected with the queues asked for, and has fewer."""
    asked, has = asked_tuning(view, view.volume.portals[0]).queues, controller.io_queues
    if asked is None or has is None or has >= asked:
        return False
    return f"nr_io_queues={view.volume.spec.io_queues}" in (controller.given or "").split(",")


def tuning_setting(view: VolumeView) -> Setting:
    desired = str(asked_tuning(view, view.volume.portals[0]))
    effect, running = Effect.LIVE, State(standing=Standing.LATE, detail="nothing is connected")
    every = list(tuned(view))
    if every:
        running = State(standing=Standing.RIGHT, value=desired)
    remedy = None
    lacking = next((c for c in view.live if _lacks_queues(view, c)), None)
    if lacking is not None and not any(fields for _, _, fields in every):
        detail = f"{lacking.name}: fewer queues are granted than it was connected with"
        running = State(standing=Standing.WRONG, value=str(shown_tuning(lacking)), detail=detail)
        remedy = f"io_queues {lacking.io_queues}, or more of them at the target"
    for controller, asked, fields in every:
        if not fields:
            continue
        if not fields <= _LIVE_FIELDS:
            effect = Effect.REMOUNT
        running = State(
            standing=Standing.WRONG,
            value=str(shown_tuning(controller)),
            detail=f"{controller.name}: {', '.join(sorted(_said(asked, controller, fields)))}",
        )
        if effect is Effect.REMOUNT:
            break
    return Setting(
        component=COMPONENT,
        key=view.key("connections of"),
        desired=desired,
        persisted=NOTHING,
        running=running,
        effect=effect,
        acts=remedy is None,
        remedy=remedy,
        why="a target that reboots must be back before its paths are given up: with them the file "
        "system goes (nvme-connect(1), --ctrl-loss-tmo)",
    )


def _said(asked: Tuning, controller: FabricController, fields: frozenset[str]) -> Iterator[str]:
    shown = shown_tuning(controller)
    names = {"hostnqn": "host NQN", "hostid": "host identifier", "host": "host address"}
    for name, word in names.items():
        if name in fields:
            yield f"{word} {getattr(shown, name) or 'none'}, not {getattr(asked, name)}"
    if "queues" in fields and shown.queues is not None and asked.queues is not None:
        fewer = shown.queues < asked.queues
        yield "fewer queues, as connected before or as the target grants" if fewer else "queues"
    if "keep_alive" in fields:
        yield "keep alive"
    if fields & _LIVE_FIELDS:
        yield "reconnection"


def policy_setting(view: VolumeView) -> Setting:
    wanted = str(view.spec.iopolicy)
    found = [p for nqn, p in view.seen.iopolicies.values() if nqn == view.volume.spec.nqn]
    if view.seen.multipath is False:
        detail = "nvme_core.multipath is off"
        running = State(standing=Standing.NOT_APPLICABLE, detail=detail)
    elif not found:
        running = State(standing=Standing.LATE, detail="nothing is connected")
    else:
        right = set(found) == {wanted}
        standing = Standing.RIGHT if right else Standing.WRONG
        running = State(standing=standing, value=found[0])
    return Setting(
        component=COMPONENT,
        key=view.key("iopolicy of"),
        desired=wanted,
        persisted=NOTHING,
        running=running,
    )


def namespace_setting(view: VolumeView) -> Setting:
    asked, found = view.volume.spec.namespace, view.namespace
    desired = f"{asked.kind} {asked.value}"
    remedy = None
    if found is not None:
        to = view.seen.links.get(view.volume.link)
        if to == found.device:
            running = State(standing=Standing.RIGHT, value=desired, detail=f"/dev/{found.device}")
        else:
            detail = f"{view.volume.link} leads to {to or 'nothing'}, and it is /dev/{found.device}"
            running = State(standing=Standing.WRONG, value=to, detail=detail)
    elif view.live:
        offered = [n for n in view.seen.namespaces if n.nqn == view.volume.spec.nqn]
        said = ", ".join(f"{n.device} ({_identifiers(n)})" for n in offered) or "none"
        detail = f"the target offers another: {said}" if offered else "the target offers none"
        running = State(standing=Standing.DEGRADED, value="absent", detail=detail)
        remedy = "name one that the target offers, or let it offer this one to the host"
    else:
        running = State(standing=Standing.LATE, detail="nothing is connected")
    return Setting(
        component=COMPONENT,
        key=view.key("namespace of"),
        desired=desired,
        persisted=NOTHING,
        running=running,
        remedy=remedy,
    )


def _identifiers(namespace: Namespace) -> str:
    given = {"uuid": namespace.uuid, "nguid": namespace.nguid, "eui64": namespace.eui64}
    told = [f"{kind} {value}" for kind, value in given.items() if value.strip("0")]
    return ", ".join([*told, f"nsid {namespace.nsid}"])


def filesystem_setting(view: VolumeView) -> Setting:
    """What is on the namespace; made where nothing is, and that is asked for."""
    spec, namespace = view.volume.spec, view.namespace
    makes = spec.format == "if_blank"
    persisted, running, acts, remedy = NOTHING, NOTHING, True, None
    if namespace is None:
        if makes and view.connects:
            detail = "not seen yet: it is made only where nothing is found"
            persisted = State(standing=Standing.ABSENT, value="not seen yet", detail=detail)
        else:
            running = State(standing=Standing.LATE, detail="the namespace is not there")
    elif namespace.holds is None:
        detail = f"udev has not looked at /dev/{namespace.device} yet"
        persisted = State(standing=Standing.UNREADABLE, detail=detail)
    elif namespace.holds == spec.filesystem:
        persisted = State(standing=Standing.RIGHT, value=spec.filesystem)
    elif not namespace.holds:
        persisted = State(standing=Standing.ABSENT, value=_BLANK)
        # Reading it would wait for as long as the target is away.
        acts = makes and bool(view.live)
        if not makes:
            remedy = f"mkfs.{spec.filesystem} {view.volume.link}, or format='if_blank'"
        elif not acts:
            remedy = "the target does not answer: bring it back"
    else:
        acts = False
        persisted = State(standing=Standing.WRONG, value=namespace.holds)
        remedy = f"/dev/{namespace.device} holds {namespace.holds}, and is left as it is"
    return Setting(
        component=COMPONENT,
        key=view.key("file system of"),
        desired=spec.filesystem,
        persisted=persisted,
        running=running,
        acts=acts,
        remedy=remedy,
    )


def lack_of(view: VolumeView, filesystem: Setting) -> str | None:
    """Why there is nothing to mount, nor will be by the end of the run; None where there is."""
    if filesystem.persisted.standing is Standing.RIGHT or persists(filesystem):
        return None
    if view.namespace is None:
        if view.connects:
            return None
        states = (p.running for p in view.paths if p.running.standing is not Standing.RIGHT)
        return next((s.detail for s in states if s.detail), "the namespace is not there")
    return filesystem.remedy or filesystem.persisted.detail
