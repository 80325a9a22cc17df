"""The rails' RDMA ports, RoCE and InfiniBand: link layer, state, rate, MTU, and how they are found.

Of RoCE that is the GID of the rail's address; of InfiniBand the partitions, the subnet manager,
IPoIB's mode, and OpenSM on the nodes that run it. What a port came up as is decided by cables,
switches and the subnet manager: it is told, and never acted on.
"""

from collections.abc import Iterator

from facts import nics, opensm
from facts.ibstatus import PortStatus
from facts.ibv_devinfo import VerbsPort
from facts.nics import read_nics
from facts.opensm import OpensmState, read_opensm
from facts.ports import (
    IPOIB_FILES,
    IPOIB_RULES,
    Ipoib,
    PortTables,
    read_devinfo,
    read_ipoib,
    read_ports,
    read_tables,
)
from facts.ports import SECTIONS as PORTS
from railwright.actions import Action, Run, WriteValue
from railwright.component import Component
from railwright.model import Model
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.rails import planned
from railwright.resolve import ports as judged
from railwright.resolve.nics import FoundRail, find_rails
from railwright.resolve.opensm import OPENSM_DROP_INS, opensm_actions, opensm_settings
from railwright.schema import InfinibandFabric, Node
from railwright.schema.consistency import RDMA_MTU_4096
from railwright.settings import NO_PORTS, Effect, Setting, Standing, State, enforces, looked_at
from railwright.snapshot import Snapshot

NAME = "ports"
_SECTIONS = (*nics.SECTIONS, *PORTS, *opensm.SECTIONS)


class Seen(Model):
    """What is known of one rail's port; ``verbs`` is None where no verbs tool is installed."""

    rail: FoundRail
    status: PortStatus
    tables: PortTables
    verbs: VerbsPort | None


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    files = snapshot.files(IPOIB_FILES.name)
    container = snapshot.is_container
    manager = _opensm(node, snapshot)
    found = [] if manager is None else list(opensm_settings(NAME, node, manager, container))
    own = owned_file_setting(NAME, owned_rules(node, snapshot), files)
    if own is not None:
        found.append(own)
    if node.fabric is None or not node.rails.nics:
        return found
    if container:
        return [*found, *_in_container(node, snapshot)]
    for rail in find_rails(node, read_nics(snapshot)):
        found += _rail(node, snapshot, rail)
    return found


def _opensm(node: Node, snapshot: Snapshot) -> OpensmState | None:
    """OpenSM on the node, None where it is no concern of this one."""
    ours = any(file.path in OPENSM_DROP_INS for file in snapshot.files(opensm.FILES.name))
    if isinstance(node.fabric, InfinibandFabric) or ours:
        return read_opensm(snapshot)
    return None


def _in_container(node: Node, snapshot: Snapshot) -> Iterator[Setting]:
    """Ports are the host's; only what a file says of them is here."""
    if isinstance(node.fabric, InfinibandFabric) and node.fabric.ipoib_mode is not None:
        for plan in planned(node):
            persisted = _rule_state(plan.nic.pci, node.fabric.ipoib_mode, snapshot)
            yield Setting(
                component=NAME,
                key=f"rail{plan.rail} ipoib mode",
                desired=node.fabric.ipoib_mode,
                running=NO_PORTS,
                persisted=persisted,
                acts=persisted.standing is not Standing.NOT_APPLICABLE,
            )


def _rail(node: Node, snapshot: Snapshot, rail: FoundRail) -> Iterator[Setting]:
    if rail.port is None or rail.port.rdma is None:
        detail = rail.error or "its NIC has no RDMA device: is the driver's RDMA module loaded?"
        missing = State(standing=Standing.ABSENT, detail=detail)
        yield looked_at(NAME, f"{rail.key} port", "present", missing)
        return
    seen = _seen(snapshot, rail)
    if seen is None:
        unknown = State(
            standing=Standing.UNREADABLE, detail=f"{rail.port.rdma.name} has no ports in sysfs"
        )
        yield looked_at(NAME, f"{rail.key} port", "present", unknown)
        return
    yield from _link(node, seen)
    if isinstance(node.fabric, InfinibandFabric):
        yield from _infiniband(node.fabric, seen)
        if node.fabric.ipoib_mode is not None:
            yield _ipoib(rail, node.fabric.ipoib_mode, snapshot)
    elif rail.plan.address is not None:
        address = rail.plan.address.ip
        interface = rail.interface.name if rail.interface else None
        state = judged.gid(seen.tables.gids, address, interface)
        yield looked_at(
            NAME,
            f"{rail.key} gid",
            judged.gid_text(address),
            state,
            why="programs must find it by the address: NVIDIA/nccl#426",
        )


def _seen(snapshot: Snapshot, rail: FoundRail) -> Seen | None:
    device = rail.port.rdma if rail.port else None
    if device is None:
        return None
    interface = rail.interface.name if rail.interface else None
    status = read_ports(snapshot)
    there = sorted(int(n.rpartition("/")[2]) for n in status if n.startswith(f"{device.name}/"))
    linked = [link.port for link in device.links if interface and link.netdev == interface]
    number = next((n for n in (*linked, *there) if n in there), None)
    if number is None:
        return None
    name = f"{device.name}/{number}"
    devinfo = read_devinfo(snapshot)
    verbs = None
    if devinfo is not None:
        of_device = devinfo.devices.get(device.name)
        verbs = (of_device.ports.get(number) if of_device else None) or VerbsPort()
    tables = read_tables(snapshot).get(name, PortTables())
    return Seen(rail=rail, status=status[name], tables=tables, verbs=verbs)


def _link(node: Node, seen: Seen) -> Iterator[Setting]:
    key, status = seen.rail.key, seen.status
    is_ib = isinstance(node.fabric, InfinibandFabric)
    layer = "InfiniBand" if is_ib else "Ethernet"
    ethernet = None if is_ib else seen.rail.interface
    yield looked_at(NAME, f"{key} link layer", layer, judged.link_layer(status, layer))
    yield looked_at(NAME, f"{key} state", "ACTIVE", judged.port_state(status))
    if seen.rail.plan.rate_gbps is not None:
        speed = ethernet.speed_mbps if ethernet else None
        state = judged.rate(status, seen.rail.plan.rate_gbps, speed)
        remedy = None
        if state.standing is Standing.WRONG:
            remedy = "look at cable, module and the switch's port: one slow link slows its rail"
        yield looked_at(
            NAME, f"{key} rate", judged.rate_text(seen.rail.plan.rate_gbps), state, remedy=remedy
        )
    yield _mtu(node, seen)


def _mtu(node: Node, seen: Seen) -> Setting:
    ethernet = seen.rail.interface
    mtu = node.fabric.mtu if isinstance(node.fabric, InfinibandFabric) else judged.ROCE_MTU
    if isinstance(node.fabric, InfinibandFabric):
        state = judged.mtu(seen.status, seen.verbs, None, mtu)
        remedy = f"give the partition mtu {mtu} at the subnet manager"
    else:
        state = judged.mtu(seen.status, seen.verbs, ethernet.mtu if ethernet else None, mtu)
        now = f"the MTU of {ethernet.name} is {ethernet.mtu}: it" if ethernet else "its interface"
        remedy = f"{now} needs {RDMA_MTU_4096} (rails.mtu)"
    return looked_at(
        NAME,
        f"{seen.rail.key} mtu",
        str(mtu),
        state,
        remedy=remedy if state.standing is Standing.WRONG else None,
        why="two ends of different MTU hang, fail or lose messages: NVIDIA/nccl#1524",
    )


def _infiniband(fabric: InfinibandFabric, seen: Seen) -> Iterator[Setting]:
    key = seen.rail.key
    if fabric.pkeys:
        state = judged.pkeys(seen.tables.pkeys, fabric.pkeys)
        right = state.standing is Standing.RIGHT
        remedy = None if right else "add the port to the partition at the subnet manager"
        yield looked_at(NAME, f"{key} pkeys", judged.pkeys_text(fabric.pkeys), state, remedy=remedy)
    yield looked_at(NAME, f"{key} sm", "seen", judged.subnet_manager(seen.status))


def _ipoib(rail: FoundRail, mode: str, snapshot: Snapshot) -> Setting:
    ipoib = read_ipoib(snapshot)
    port, interface = rail.port, rail.interface
    persisted = _rule_state(port.pci if port else None, mode, snapshot)
    remedy = port.refusal if port else None
    if interface is None or interface.name not in ipoib.modes:
        running = State(standing=Standing.LATE, detail="there is no IPoIB interface: load ib_ipoib")
    else:
        value = ipoib.modes[interface.name]
        right = value == mode
        running = State(standing=Standing.RIGHT if right else Standing.WRONG, value=value)
        other = _other_decider(ipoib, mode)
        if not right and persisted.standing is Standing.RIGHT and other is not None:
            running = running.model_copy(update={"decider": other})
            remedy = remedy or f"set the mode of {interface.name} in {other} as well"
    return Setting(
        component=NAME,
        key=f"{rail.key} ipoib mode",
        desired=mode,
        running=running,
        persisted=persisted,
        # The driver drops all paths and connections of the interface, and sets its MTU anew.
        # Source: Linux, drivers/infiniband/ulp/ipoib/ipoib_main.c, ipoib_set_mode.
        effect=Effect.LINK,
        acts=port is not None and port.refusal is None,
        remedy=remedy,
    )


def _other_decider(ipoib: Ipoib, mode: str) -> str | None:
    """Who sets the mode after udev has, where it is another mode."""
    if ipoib.openib is not None and (ipoib.openib == "yes") != (mode == "connected"):
        return "/etc/infiniband/openib.conf (SET_IPOIB_CM)"
    return ipoib.manager


def _rule(pci: str, mode: str) -> str:
    return (
        f'ACTION=="add", SUBSYSTEM=="net", KERNELS=="{pci}", ATTR{{type}}=="32", '
        f'ATTR{{mode}}="{mode}"'
    )


def _rules(snapshot: Snapshot) -> list[str]:
    files = snapshot.files(IPOIB_FILES.name)
    content = next((file.content or "" for file in files if file.path == IPOIB_RULES), "")
    return content.splitlines()


def _is_of(line: str, pci: str) -> bool:
    return f'KERNELS=="{pci}"' in line


def _rule_state(pci: str | None, mode: str, snapshot: Snapshot) -> State:
    if pci is None:
        detail = "the NIC's PCI address is known on its host only"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    line = next((line for line in _rules(snapshot) if _is_of(line, pci)), None)
    if line is None:
        return State(standing=Standing.ABSENT)
    right = line == _rule(pci, mode)
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=mode if right else line.rpartition("=")[2].strip('"'),
        decider=IPOIB_RULES,
    )


def owned_rules(node: Node, snapshot: Snapshot) -> OwnedFile:
    """The udev rules that give each rail's interface its mode when it comes up.

    That of a port that must be left alone stays as it is.
    """
    lines = []
    if isinstance(node.fabric, InfinibandFabric) and node.fabric.ipoib_mode is not None:
        for pci, may_act in _addresses(node, snapshot):
            line = _rule(pci, node.fabric.ipoib_mode)
            lines += [line] if may_act else [x for x in _rules(snapshot) if _is_of(x, pci)]
    text = HEADER + "".join(f"{line}\n" for line in lines) if lines else None
    return OwnedFile(path=IPOIB_RULES, content=text)


def _addresses(node: Node, snapshot: Snapshot) -> list[tuple[str, bool]]:
    """PCI address of each rail's NIC, as far as it is known, and whether it may be acted on."""
    if snapshot.is_container:
        return [(plan.nic.pci, True) for plan in planned(node) if plan.nic.pci is not None]
    found = []
    for rail in find_rails(node, read_nics(snapshot)):
        pci = rail.port.pci if rail.port else rail.plan.nic.pci
        if pci is not None:
            found.append((pci, rail.port is None or rail.port.refusal is None))
    return found


def actions(node: Node, snapshot: Snapshot, found: list[Setting]) -> Iterator[Action]:
    by_key = {setting.key: setting for setting in found}
    manager = _opensm(node, snapshot)
    if manager is not None:
        yield from opensm_actions(node, manager, by_key)
    rules = owned_file_action(owned_rules(node, snapshot), by_key.get(IPOIB_RULES))
    yield from rules
    if rules and not snapshot.is_container:
        yield Run(command=("udevadm", "control", "--reload"))
    due = [s for s in found if s.key.endswith(" ipoib mode") and enforces(s, node.effects.allow)]
    if due:
        rails = {rail.key: rail for rail in find_rails(node, read_nics(snapshot))}
        for setting in due:
            interface = rails[setting.key.partition(" ")[0]].interface
            if interface is not None:
                path = f"/sys/class/net/{interface.name}/mode"
                yield WriteValue(path=path, value=setting.desired)


COMPONENT = Component(name=NAME, sections=_SECTIONS, settings=settings, actions=actions)
