"""The PCIe path between GPUs, NICs and NVMe: ACS and MaxReadReq, which a unit sets at each boot.

What holds is in the registers of bridges and NICs, and lost at a reboot, so that persisted means:
our unit does it at boot. The unit finds the bridges itself, for their addresses change with what
is plugged in; railwright.resolve.pcie finds the same ones. A bridge that the kernel restores after
a reset of it has its ACS back where an IOMMU is on (drivers/pci/pci.c, pci_restore_state): drift
tells, and the next run clears it. Links, affinity, IOMMU and ordering are only looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from facts.nics import SECTIONS as NIC_SECTIONS
from facts.nics import read_nics
from facts.pcie import PLAN_PATH, RULE_PATH, SECTIONS, UNIT, read_pcie
from railwright.actions import Action, Run
from railwright.component import Component
from railwright.files import FileRecord
from railwright.owned import owned_file_setting
from railwright.owned_unit import enabled_setting, started, started_setting, unit_actions
from railwright.pcie import Function, Pcie
from railwright.resolve.nics import FoundRail, find_rails, rails_in_image
from railwright.resolve.pcie import Pair, peer_bridges, redirection
from railwright.resolve.pcie_checks import checks, unknown_control
from railwright.resolve.pcie_plan import (
    AcsPlan,
    Plan,
    lacking,
    owned_files,
    plan_on_node,
)
from railwright.schema import Node
from railwright.schema.pcie import PcieSpec
from railwright.settings import NOTHING, Setting, Standing, State, enforces, looked_at, persists
from railwright.snapshot import Snapshot

_NAME = "pcie"
_CLEAR = "no redirect"
_CONTAINER = State(standing=Standing.NOT_APPLICABLE, detail="a container shares its host's devices")
_WHY_ACS = (
    "with redirection GPUDirect traffic goes up to the root complex: half the bandwidth, or a hang "
    "(NVIDIA/nccl#304, NCCL user guide)"
)
_WHY_READ = (
    "with few large reads the latency of each counts less (NVIDIA nic-configuration-operator)"
)


@dataclass(frozen=True)
class _View:
    """A node as it is seen; ``pcie`` is None in a container."""

    node: Node
    files: list[FileRecord]
    pcie: Pcie | None
    rails: tuple[FoundRail, ...]
    plan: Plan
    there: Plan

    @property
    def spec(self) -> PcieSpec:
        return self.node.pcie

    @property
    def nics(self) -> list[tuple[FoundRail, Function]]:
        """The rails whose NIC is on the bus."""
        functions = self.pcie.functions if self.pcie else {}
        return [
            (rail, functions[rail.port.pci])
            for rail in self.rails
            if rail.port and rail.port.pci in functions
        ]


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    files = snapshot.files("pcie_files")
    if not _asked(node):
        return _unit(None, files)
    view = _view(node, snapshot, files)
    plan = None if view.plan.is_empty else view.plan
    acts = [*_acs(view), *_read_requests(view)]
    found = [
        *acts,
        *(checks(node, view.pcie, view.nics) if view.pcie else ()),
        *_missing(view),
        *_unit(plan, files),
    ]
    if plan is not None:
        wrong = [s.key for s in acts if s.running.standing is Standing.WRONG]
        running = started(UNIT, snapshot, "pcie_unit", wrong) if view.pcie else _CONTAINER
        found.append(started_setting(_NAME, UNIT, running))
    return found


def _unit(plan: Plan | None, files: list[FileRecord]) -> list[Setting]:
    """Our files and the enablement; with no plan there must be none of them."""
    owned = (owned_file_setting(_NAME, owned, files) for owned in owned_files(plan))
    enabled = enabled_setting(_NAME, UNIT, files, asked=plan is not None)
    return [setting for setting in (*owned, enabled) if setting is not None]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    if not settings:
        return
    files = snapshot.files("pcie_files")
    plan = _view(node, snapshot, files).plan if _asked(node) else None
    by_key = {setting.key: setting for setting in settings}
    yield from unit_actions(UNIT, owned_files(plan if plan and not plan.is_empty else None), by_key)
    # A container has no udev of its own.
    if RULE_PATH in by_key and persists(by_key[RULE_PATH]) and not snapshot.is_container:
        yield Run(command=("udevadm", "control", "--reload"))
    if any(enforces(setting, node.effects.allow) for setting in settings):
        yield Run(command=("systemctl", "restart", UNIT.name))


def _asked(node: Node) -> bool:
    return bool(node.rails.nics) and node.pcie != PcieSpec()


def _view(node: Node, snapshot: Snapshot, files: list[FileRecord]) -> _View:
    there = plan_on_node(files)
    if snapshot.is_container:
        rails = rails_in_image(node)
        nics = {a: node.pcie.max_read_request_bytes for rail in rails if (a := _address(rail))}
        plan = Plan(acs=_planned_acs(node.pcie, None), nics=nics)
        return _View(node, files, None, rails, plan, there)
    pcie = read_pcie(snapshot)
    rails = find_rails(node, read_nics(snapshot))
    sizes = {
        address: _planned_size(node.pcie, rail, pcie.functions.get(address), there)
        for rail in rails
        if (address := _address(rail))
    }
    return _View(
        node, files, pcie, rails, Plan(acs=_planned_acs(node.pcie, pcie), nics=sizes), there
    )


def _address(rail: FoundRail) -> str | None:
    """Where the NIC is, or is to be."""
    return (rail.port.pci if rail.port else None) or rail.plan.nic.pci


def _planned_acs(spec: PcieSpec, pcie: Pcie | None) -> AcsPlan | None:
    """What the unit is told of ACS; where the host is not known it finds out itself."""
    if spec.acs != "clear" or (pcie and _guest(spec, pcie)):
        return None
    return "clear-in-vm" if spec.acs_in_vm else "clear"


def _guest(spec: PcieSpec, pcie: Pcie) -> bool:
    return pcie.virtual not in (None, "none") and not spec.acs_in_vm


def _planned_size(
    spec: PcieSpec, rail: FoundRail, function: Function | None, there: Plan
) -> int | None:
    """MaxReadReq that the unit sets; what it did before ssh came in by the NIC it goes on to do."""
    size = spec.max_read_request_bytes
    if function and function.readable and function.device_control is None:
        return None
    refused = rail.port is not None and rail.port.refusal is not None
    return size if not refused or there.nics.get(function.address if function else "") else None


def _persisted(view: _View, there: bool, value: str, before: str | None = None) -> State:
    """How what the unit does at boot stands; ``before`` is what it does where that is another."""
    if not there:
        standing = Standing.WRONG if before else Standing.ABSENT
        return State(standing=standing, value=before, decider=PLAN_PATH if before else None)
    lack = lacking(view.plan, view.files)
    if lack:
        return State(standing=Standing.WRONG, decider=UNIT.path, detail=lack)
    return State(standing=Standing.RIGHT, value=value, decider=UNIT.path)


def _acs(view: _View) -> Iterator[Setting]:
    spec, pcie = view.spec, view.pcie
    if spec.acs is None or (spec.acs == "keep" and pcie is None):
        return
    kept = _persisted(view, view.there.acs is not None and view.there.acs == view.plan.acs, _CLEAR)
    if pcie is None:
        yield _acs_setting("acs", kept, _CONTAINER)
        return
    if spec.acs == "clear" and _guest(spec, pcie):
        detail = f"a virtual machine ({pcie.virtual}): its host isolates it by ACS"
        yield _acs_setting("acs", NOTHING, State(standing=Standing.NOT_APPLICABLE, detail=detail))
        return
    if spec.acs == "clear" and pcie.virtual is None and not spec.acs_in_vm:
        detail = "systemd-detect-virt does not tell whether this is a virtual machine"
        yield _acs_setting("acs", kept, State(standing=Standing.UNREADABLE, detail=detail))
        return
    rails = [function.address for _, function in view.nics]
    for address, pair in sorted(peer_bridges(pcie, rails).items()):
        bridge = pcie.bridges[address]
        # A bridge without the capability has no way to redirect.
        if bridge.acs is not None or not bridge.readable:
            yield _bridge(view, address, pair, kept)


def _acs_setting(
    key: str, persisted: State, running: State, acts: bool = True, remedy: str | None = None
) -> Setting:
    return Setting(
        component=_NAME,
        key=key,
        desired=_CLEAR,
        persisted=persisted,
        running=running,
        acts=acts,
        remedy=remedy,
        why=_WHY_ACS,
    )


def _bridge(view: _View, address: str, pair: Pair, kept: State) -> Setting:
    assert view.pcie is not None
    acs = view.pcie.bridges[address].acs
    bits = redirection(acs) if acs else None
    between = f"between {pair.one} and {pair.other}"
    if acs is None:
        detail = "its config space cannot be read: root alone may, and it must answer"
        running = State(standing=Standing.UNREADABLE, detail=detail)
    elif bits is None:
        running = State(standing=Standing.RIGHT, value=_CLEAR, detail=between)
    else:
        running = State(standing=Standing.WRONG, value=bits, detail=between)
    if view.spec.acs == "keep":
        state = State(standing=Standing.NOT_APPLICABLE, detail=f"kept: {bits or _CLEAR}")
        return _acs_setting(
            f"acs {address}", NOTHING, running if acs is None else state, acts=False
        )
    remedy = None
    if bits and (guest := view.pcie.assigned.get(address)):
        remedy = f"{guest} below it is given to a guest (vfio-pci), whom ACS isolates: acs='keep'"
    elif bits and view.pcie.locked_down:
        remedy = (
            f"{_LOCKED}: turn ACS off in the firmware, or set kernel.arguments "
            f"pci=disable_acs_redir={address}"
        )
    return _acs_setting(f"acs {address}", kept, running, remedy is None, remedy)


_LOCKED = "the kernel is locked down (Secure Boot) and refuses writes to config space"


def _read_requests(view: _View) -> Iterator[Setting]:
    size = view.spec.max_read_request_bytes
    if size is None:
        return
    if view.pcie is None:
        for rail in view.rails:
            if address := _address(rail):
                yield _read_request(view, rail.key, address, _CONTAINER)
        return
    for found, function in view.nics:
        value = function.read_request_bytes
        running = (
            unknown_control(function)
            if value is None
            else State(
                standing=Standing.RIGHT if value == size else Standing.WRONG,
                value=f"{value} bytes",
            )
        )
        refusal = found.port.refusal if found.port else None
        if refusal is None and running.standing is Standing.WRONG and view.pcie.locked_down:
            refusal = _LOCKED
        yield _read_request(view, found.key, function.address, running, refusal)


def _read_request(
    view: _View, key: str, address: str, running: State, refusal: str | None = None
) -> Setting:
    size = view.spec.max_read_request_bytes
    there = view.there.nics.get(address)
    none = running.standing is Standing.NOT_APPLICABLE and view.pcie is not None
    before = None if there is None else f"{there} bytes"
    return Setting(
        component=_NAME,
        key=f"{key} mrrs",
        desired=f"{size} bytes",
        persisted=NOTHING if none else _persisted(view, there == size, f"{size} bytes", before),
        running=running,
        acts=refusal is None,
        remedy=refusal,
        why=_WHY_READ if size == 4096 else None,
    )


def _missing(view: _View) -> Iterator[Setting]:
    """Rails whose NIC is not on the bus, or is no function of its own."""
    there = {rail.key for rail, _ in view.nics}
    for rail in view.rails if view.pcie else ():
        if rail.key in there:
            continue
        detail = rail.error or f"{rail.port.pci if rail.port else None} is no function of its own"
        standing = Standing.ABSENT if rail.error else Standing.NOT_APPLICABLE
        running = State(standing=standing, detail=detail)
        yield looked_at(_NAME, f"{rail.key} nic", "on the bus", running)


COMPONENT = Component(
    name=_NAME, sections=(*SECTIONS, *NIC_SECTIONS), settings=settings, actions=actions
)
