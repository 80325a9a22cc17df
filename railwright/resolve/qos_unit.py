"""The unit that keeps the QoS of a node's ports: what its files must be, and what they say."""

from functools import cache
from typing import NamedTuple

from facts.nics import read_nics
from facts.qos import (
    DATA_DIR,
    RULES_PATH,
    SCRIPT_PATH,
    UNIT_PATH,
    WATCH,
    WATCH_SCRIPT_PATH,
)
from facts.units import Unit
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, first_wrong
from railwright.qos import CELL_BYTES, Name, data_of, key_of, parse_data, wanted
from railwright.rails import PlannedRail, planned
from railwright.resolve.nics import FoundRail, Port, find_rails
from railwright.schema import Node, RoceFabric, RoceQos
from railwright.settings import Standing, State
from railwright.snapshot import Snapshot
from railwright.templates import render


class Target(NamedTuple):
    """A rail that is to have QoS; ``pci`` is None where its port is not known.

    ``found`` is None in a container, where nobody looks for ports.
    """

    key: str
    plan: PlannedRail
    pci: str | None
    found: FoundRail | None

    @property
    def data_path(self) -> str:
        return f"{DATA_DIR}/{self.pci}.conf"

    @property
    def unit(self) -> str:
        return f"railwright-qos@{self.pci}.service"

    @property
    def port(self) -> Port | None:
        return self.found.port if self.found else None

    @property
    def refusal(self) -> str | None:
        return self.port.refusal if self.port else None

    @property
    def lack(self) -> str | None:
        """Why nothing can be said of the rail; None where there is a port to speak of."""
        if self.found is None:
            return None if self.pci else "only a rail that is told by pci is known in a container"
        if self.found.error is not None:
            return self.found.error
        if self.found.interface is None or self.pci is None:
            return "its port has no interface, or lies on no PCI function"
        return None


class Plan(NamedTuple):
    """What is asked of the node, and what is there of ours.

    ``broken`` is the first of the files that every port needs and that is not as it must be.
    """

    qos: RoceQos
    targets: list[Target]
    records: list[FileRecord]
    owned: list[OwnedFile]
    broken: str | None


def plan_of(node: Node, snapshot: Snapshot) -> Plan:
    """The plan of ``node``; without RoCE it has no targets. Raises ValueError where unreadable."""
    records = snapshot.files("qos_files")
    asked = isinstance(node.fabric, RoceFabric)
    qos = node.fabric.qos if isinstance(node.fabric, RoceFabric) else RoceQos()
    targets = targets_of(node, snapshot) if asked else []
    return Plan(
        qos=qos,
        targets=targets,
        records=records,
        owned=owned_files(qos, targets, records),
        broken=first_wrong(constant_files(), records),
    )


def targets_of(node: Node, snapshot: Snapshot) -> list[Target]:
    """The rails of a node with RoCE; in a container as the inventory alone tells them."""
    if not node.rails.nics:
        return []
    if snapshot.is_container:
        return [Target(f"rail{plan.rail}", plan, plan.nic.pci, None) for plan in planned(node)]
    found = find_rails(node, read_nics(snapshot))
    return [
        Target(
            rail.key, rail.plan, (rail.port.pci if rail.port else None) or rail.plan.nic.pci, rail
        )
        for rail in found
    ]


def owned_files(qos: RoceQos, targets: list[Target], records: list[FileRecord]) -> list[OwnedFile]:
    """Our files as they must be; of a node that asks for none those that are there, to go."""
    data = [
        OwnedFile(path=target.data_path, content=f"{HEADER}{data_of(target.key, qos)}")
        for target in targets
        if target.pci is not None
    ]
    kept = {owned.path for owned in data}
    # A rail whose port is gone, and is not told by its PCI address, keeps what it has.
    lost = {target.key for target in targets if target.pci is None}
    stale = [
        OwnedFile(path=record.path, content=None)
        for record in records
        if record.directory == DATA_DIR
        and record.path not in kept
        and (record.content or "").startswith(HEADER)
        and data_in(record).get("RAIL") not in lost
    ]
    constant = constant_files()
    if not targets:
        there = {record.path for record in records}
        gone = [OwnedFile(path=owned.path, content=None) for owned in constant]
        return [*stale, *(owned for owned in gone if owned.path in there)]
    return [*stale, *data, *constant]


@cache
def constant_files() -> tuple[OwnedFile, ...]:
    """Files that are the same on all nodes. The rule comes last: it starts what it finds."""
    values = {"header": HEADER, "data": DATA_DIR, "cell": CELL_BYTES}
    return (
        OwnedFile(path=SCRIPT_PATH, content=_render("railwright-qos.sh", **values), mode="755"),
        OwnedFile(
            path=WATCH_SCRIPT_PATH, content=_render("railwright-qos-watch.sh", **values), mode="755"
        ),
        OwnedFile(
            path=UNIT_PATH, content=_render("railwright-qos@.service", script=SCRIPT_PATH, **values)
        ),
        OwnedFile(
            path=WATCH.path,
            content=_render(WATCH.name, script=WATCH_SCRIPT_PATH, **values),
        ),
        OwnedFile(path=RULES_PATH, content=_render("90-railwright-qos.rules", **values)),
    )


def _render(name: str, **values: object) -> str:
    return render(f"qos/{name}.j2", **values)


def data_in(record: FileRecord) -> dict[str, str]:
    """What the data of a port says; nothing where it is no data."""
    try:
        return parse_data(record.content or "")
    except ValueError:
        return {}


def persisted(
    name: Name,
    value: str,
    target: Target,
    plan: Plan,
    unit: Unit | None,
) -> State:
    """What holds after a boot: what the data says, where all is there that puts it in force."""
    if name not in wanted(plan.qos):
        return State(standing=Standing.NOT_APPLICABLE, detail="the application has to set it")
    record = next((record for record in plan.records if record.path == target.data_path), None)
    if record is None or record.kind != "file":
        unreadable = record is not None and record.kind == "unreadable"
        standing = Standing.UNREADABLE if unreadable else Standing.ABSENT
        return State(standing=standing, decider=record.path if record else None)
    said = data_in(record).get(key_of(name))
    if said != value:
        standing = Standing.ABSENT if said is None else Standing.WRONG
        return State(standing=standing, value=said, decider=record.path)
    if unit is not None and unit.masked:
        return State(
            standing=Standing.OVERRIDDEN, value=said, decider=target.unit, detail="it is masked"
        )
    if plan.broken is not None:
        detail = f"nothing applies it: {plan.broken} is not right"
        return State(standing=Standing.ABSENT, detail=detail)
    return State(standing=Standing.RIGHT, value=said, decider=record.path)
