"""Huge pages per NUMA node: what is reserved now, and the unit that reserves at boot.

Pools that are allocated at boot are persisted by kernel arguments, which are the kernel
component's; here they have a running state alone.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from facts.hugepages import (
    SCRIPT_PATH,
    SECTIONS,
    UNIT,
    Memory,
    parse_memory,
    unit_requests,
)
from railwright.actions import Action, Run, RunScript
from railwright.component import Component
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, owned_file_setting
from railwright.owned_unit import enabled_setting, started, started_setting, unit_actions
from railwright.schema import HugepagesSpec, Node
from railwright.schema.hugepages import PAGE_KIB, PageSize
from railwright.settings import Effect, Setting, Standing, State, enforces
from railwright.snapshot import Snapshot
from railwright.templates import render

_NAME = "hugepages"
_SIZES: dict[int, PageSize] = {kib: size for size, kib in PAGE_KIB.items()}
_CONTAINER = State(standing=Standing.NOT_APPLICABLE, detail="a container shares its host's memory")


class Request(NamedTuple):
    """Pages of one size that one NUMA node must have."""

    size: PageSize
    node: int
    pages: int
    at_boot: bool

    @property
    def key(self) -> str:
        return f"{self.size} node{self.node}"


class Lack(NamedTuple):
    """Why a host can never fulfil a request, and what a person must do."""

    detail: str
    remedy: str


class Plan(NamedTuple):
    """What is asked of the host, and what of it goes into the unit; ``memory`` of no container."""

    requests: list[Request]
    memory: Memory | None
    runtime: list[Request]


def requests_of(spec: HugepagesSpec) -> list[Request]:
    """The requests of ``spec`` by size and node."""
    return [
        Request(size, number, pages, pool.allocate == "boot")
        for size, pool in sorted(spec.pools.items())
        for number, pages in sorted(pool.per_node.items())
    ]


def lack_of(request: Request, memory: Memory) -> Lack | None:
    """What the host lacks for ``request``, None where it could fulfil it."""
    node = memory.nodes.get(request.node)
    if node is None:
        nodes = ", ".join(map(str, sorted(memory.nodes)))
        return Lack(f"this host has no NUMA node {request.node}", f"it has the nodes {nodes}")
    kib = PAGE_KIB[request.size]
    if kib not in memory.sizes_kb:
        sizes = ", ".join(_SIZES.get(size, f"{size}K") for size in memory.sizes_kb) or "none"
        remedy = f"it has pages of: {sizes}" + (
            " (1G needs the CPU flag pdpe1gb)" if request.size == "1G" else ""
        )
        return Lack(f"this host has no pages of {request.size}", remedy)
    if request.pages * kib > node.total_kb:
        return Lack(
            f"{request.pages} pages of {request.size} are more than node {request.node} has",
            f"it has {node.total_kb // 1024} MiB in all",
        )
    return None


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    files = snapshot.files("hugepages_files")
    plan = _plan(node, snapshot)
    at_boot = unit_requests(files)
    pools = [_pool(request, plan.memory, at_boot) for request in plan.requests]
    owned = (owned_file_setting(_NAME, owned, files) for owned in _owned(plan.runtime))
    return [*pools, *filter(None, owned), *_unit(plan, files, snapshot, pools)]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    plan = _plan(node, snapshot)
    by_key = {setting.key: setting for setting in settings}
    yield from unit_actions(UNIT, _owned(plan.runtime), by_key)
    due = {key for key, setting in by_key.items() if enforces(setting, node.effects.allow)}
    if due & {UNIT.started_key, *(request.key for request in plan.runtime)}:
        yield Run(command=("systemctl", "restart", UNIT.name))
    boot = [request for request in plan.requests if request.at_boot and request.key in due]
    if boot:
        yield RunScript(
            name="railwright-hugepages", script=_script(), arguments=tuple(_arguments(boot))
        )


def _plan(node: Node, snapshot: Snapshot) -> Plan:
    requests = requests_of(node.hugepages)
    memory = None
    if requests and not snapshot.is_container:
        memory = parse_memory(snapshot.text("hugepages"))
    # The unit never asks for what the host cannot give: it would fail at each boot.
    runtime = [
        request
        for request in requests
        if not request.at_boot and (memory is None or lack_of(request, memory) is None)
    ]
    return Plan(requests, memory, runtime)


def _pool(request: Request, memory: Memory | None, at_boot: dict[tuple[str, int], int]) -> Setting:
    lack = lack_of(request, memory) if memory else None
    running = _CONTAINER if memory is None else _running(request, memory, lack)
    remedy = None
    if lack:
        remedy = lack.remedy
    elif running.value is not None and int(running.value) < request.pages:
        remedy = (
            "where it stays short: a reboot reserves them before memory fragments"
            if request.at_boot
            else "where it stays short: allocate='boot' reserves them before memory fragments"
        )
    return Setting(
        component=_NAME,
        key=request.key,
        desired=str(request.pages),
        persisted=_persisted(request, at_boot, lack),
        running=running,
        # Only memory that nothing has touched yet holds a whole GiB in one piece.
        effect=Effect.REBOOT if request.size == "1G" and request.at_boot else Effect.LIVE,
        acts=lack is None,
        remedy=remedy,
    )


def _persisted(request: Request, at_boot: dict[tuple[str, int], int], lack: Lack | None) -> State:
    if request.at_boot:
        detail = "persisted by the kernel argument (component kernel)"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    if lack:
        return State(standing=Standing.NOT_APPLICABLE, detail=lack.detail)
    pages = at_boot.get((request.size, request.node))
    if pages is None:
        return State(standing=Standing.ABSENT)
    right = pages == request.pages
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG, value=str(pages), decider=UNIT.path
    )


def _running(request: Request, memory: Memory, lack: Lack | None) -> State:
    node = memory.nodes.get(request.node)
    kib = PAGE_KIB[request.size]
    pool = node.pools.get(kib) if node else None
    # A node without memory has no pools, and none is what may be asked of it.
    has = pool.persistent if pool else 0
    if lack or node is None:
        return State(
            standing=Standing.WRONG if pool else Standing.ABSENT,
            value=str(has) if pool else None,
            detail=lack.detail if lack else None,
        )
    notes = []
    if has != request.pages:
        notes.append(f"asked {request.pages}, has {has}")
    if has < request.pages:
        notes.append(f"node {request.node} has {node.free_kb // 1024} MiB free")
        whole = node.free_pages(kib, memory.page_kb)
        if whole is not None:
            notes[-1] += f", {whole * kib // 1024} MiB of it in blocks of {request.size} or larger"
    if pool and pool.surplus:
        notes.append(f"{pool.surplus} surplus pages besides")
    return State(
        standing=Standing.RIGHT if has == request.pages else Standing.WRONG,
        value=str(has),
        detail="; ".join(notes) or None,
    )


def _unit(
    plan: Plan, files: Iterable[FileRecord], snapshot: Snapshot, pools: list[Setting]
) -> Iterator[Setting]:
    enabled = enabled_setting(_NAME, UNIT, files, asked=bool(plan.runtime))
    if enabled is not None:
        yield enabled
    if plan.runtime:
        short = [pool.key for pool in pools if pool.running.standing is Standing.WRONG]
        running = started(UNIT, snapshot, "hugepages_unit", short) if plan.memory else _CONTAINER
        yield started_setting(_NAME, UNIT, running)


def _owned(runtime: list[Request]) -> tuple[OwnedFile, OwnedFile]:
    if not runtime:
        return OwnedFile(path=UNIT.path, content=None), OwnedFile(path=SCRIPT_PATH, content=None)
    unit = render(
        "hugepages/railwright-hugepages.service.j2",
        header=HEADER,
        script=SCRIPT_PATH,
        requests=" ".join(_arguments(runtime)),
    )
    return (
        OwnedFile(path=SCRIPT_PATH, content=_script(), mode="755"),
        OwnedFile(path=UNIT.path, content=unit),
    )


def _script() -> str:
    return render("hugepages/railwright-hugepages.sh.j2", header=HEADER)


def _arguments(requests: Iterable[Request]) -> Iterator[str]:
    """``2M:0=1024,1=1024`` for each page size."""
    for size, group in groupby(requests, key=lambda request: request.size):
        yield f"{size}:" + ",".join(f"{request.node}={request.pages}" for request in group)


COMPONENT = Component(name=_NAME, sections=SECTIONS, settings=settings, actions=actions)
