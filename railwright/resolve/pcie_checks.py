"""What a node's PCIe path must be like and no run can make it: links, affinity, IOMMU, ordering."""

from collections.abc import Iterable, Iterator

from railwright.pcie import Function, Pcie
from railwright.resolve.nics import FoundRail
from railwright.resolve.pcie import affinity, nearest, nearness
from railwright.resolve.pcie_link import link_report
from railwright.schema import Node
from railwright.settings import Effect, Setting, Standing, State, looked_at


def checks(
    node: Node, pcie: Pcie, rails: Iterable[tuple[FoundRail, Function]]
) -> Iterator[Setting]:
    """The settings that are only looked at; ``rails`` are those whose NIC was found."""
    spec, rails = node.pcie, list(rails)
    gpus = pcie.of_kind("gpu")
    named = [(rail.key, function) for rail, function in rails]
    named += [(f"gpu{index}", gpu) for index, gpu in enumerate(gpus)]
    if spec.links:
        nics = [function for _, function in rails]
        for key, function in named:
            siblings = gpus if function.kind == "gpu" else nics
            yield _link(key, function, pcie, siblings)
    if spec.iommu:
        for key, function in named:
            yield _iommu(key, function)
    if spec.relaxed_ordering:
        for rail, function in rails:
            yield _relaxed_ordering(rail.key, function)
    if spec.affinity:
        if node.rails.gpus is not None:
            yield _gpu_count(node, gpus)
        for rail, function in rails:
            if rail.plan.nic.gpu is not None:
                yield _affinity(node, rail, function, pcie, rails)


def _looked_at(key: str, desired: str, running: State, remedy: str) -> Setting:
    wrong = running.standing not in (Standing.RIGHT, Standing.NOT_APPLICABLE)
    return looked_at("pcie", key, desired, running, remedy=remedy if wrong else None)


def _link(key: str, function: Function, pcie: Pcie, siblings: Iterable[Function]) -> Setting:
    report = link_report(function, pcie, siblings)
    where = f"{function.address}: reseat it and its riser, look at AER errors, power cycle"
    if report is None:
        if function.link.max_width is None:
            running = State(standing=Standing.NOT_APPLICABLE, detail="it has no PCIe link")
            return _looked_at(f"{key} link", "full", running, where)
        detail = f"{function.address} does not tell its link's speed and width"
        return _looked_at(
            f"{key} link", "full", State(standing=Standing.UNREADABLE, detail=detail), where
        )
    running = State(
        standing=Standing.DEGRADED if report.faults else Standing.RIGHT,
        value=report.found if report.faults else report.expected,
        detail="; ".join(report.faults) or report.note,
    )
    return _looked_at(f"{key} link", report.expected, running, where)


def _iommu(key: str, function: Function) -> Setting:
    # Types of a group: Documentation/ABI/testing/sysfs-kernel-iommu_groups.
    passes = function.iommu in (None, "identity")
    running = State(
        standing=Standing.RIGHT if passes else Standing.WRONG,
        value="passthrough" if passes else function.iommu,
        detail=None if function.iommu else "no IOMMU is in use",
    )
    kept = State(
        standing=Standing.NOT_APPLICABLE,
        detail="persisted by the kernel argument iommu=pt (component kernel)",
    )
    remedy = "kernel.arguments iommu=pt, and a reboot"
    setting = _looked_at(f"{key} iommu", "passthrough", running, remedy)
    return setting.model_copy(update={"persisted": kept, "effect": Effect.REBOOT})


def _relaxed_ordering(key: str, function: Function) -> Setting:
    enabled = function.relaxed_ordering
    if enabled is None:
        running = unknown_control(function)
    else:
        running = State(
            standing=Standing.RIGHT if enabled else Standing.WRONG,
            value="RlxdOrd+" if enabled else "RlxdOrd-",
        )
    remedy = (
        "the kernel takes it away below root ports that reorder wrongly (its log says so); "
        "elsewhere the firmware did: look there, and at PCI_WR_ORDERING of the NIC"
    )
    return _looked_at(f"{key} relaxed ordering", "RlxdOrd+", running, remedy)


def unknown_control(function: Function) -> State:
    """Why the Device Control register of a NIC is not known."""
    if function.readable:
        return State(standing=Standing.NOT_APPLICABLE, detail="it is no PCI Express device")
    detail = f"config space of {function.address} cannot be read, or it does not answer"
    return State(standing=Standing.UNREADABLE, detail=detail)


def _gpu_count(node: Node, gpus: tuple[Function, ...]) -> Setting:
    declared = [rail.gpu for rail in node.rails.nics.values() if isinstance(rail.gpu, str)]
    there = {gpu.address for gpu in gpus}
    missing = sorted(address for address in declared if address not in there)
    right = len(gpus) == node.rails.gpus
    running = State(
        standing=Standing.RIGHT if right else Standing.DEGRADED,
        value=str(len(gpus)),
        detail=f"not on the bus: {', '.join(missing)}" if missing else None,
    )
    return _looked_at(
        "gpus", str(node.rails.gpus), running, "look at the kernel's log (Xid 79), power cycle"
    )


def _affinity(
    node: Node,
    rail: FoundRail,
    function: Function,
    pcie: Pcie,
    rails: list[tuple[FoundRail, Function]],
) -> Setting:
    wanted = rail.plan.nic.gpu
    gpus = pcie.of_kind("gpu")
    if isinstance(wanted, int):
        gpu = gpus[wanted] if wanted < len(gpus) else None
    else:
        gpu = next((gpu for gpu in gpus if gpu.address == wanted), None)
    if gpu is None:
        none = not gpus and not node.rails.gpus
        running = State(
            standing=Standing.NOT_APPLICABLE if none else Standing.ABSENT,
            detail="the node has no GPU" if none else f"of {len(gpus)} GPUs none is {wanted}",
        )
        desired = f"nearest to GPU {wanted}"
    else:
        desired = f"nearest to {gpu.address}"
        running = _nearness(function, gpu, rails, desired)
    remedy = "rails.nics.N.gpu names the GPU under the same switch, or the NIC goes into its slot"
    return _looked_at(f"{rail.key} affinity", desired, running, remedy)


def _nearness(
    function: Function, gpu: Function, rails: list[tuple[FoundRail, Function]], desired: str
) -> State:
    mine = affinity(gpu, function)
    best, _ = nearest(gpu, [nic for _, nic in rails])
    nearer = [
        f"{other.key} {near}"
        for other, nic in rails
        if nearness(near := affinity(gpu, nic)) < nearness(mine) and near == best
    ]
    if nearer:
        detail = f"nearer: {', '.join(nearer)}"
        return State(standing=Standing.WRONG, value=mine or "unknown", detail=detail)
    if mine is None:
        detail = "the firmware gives no NUMA node to one of them"
        return State(standing=Standing.UNREADABLE, detail=detail)
    if mine == "SYS":
        detail = f"NUMA node {function.numa_node}, and the GPU's is {gpu.numa_node}"
        return State(standing=Standing.DEGRADED, value=mine, detail=detail)
    return State(standing=Standing.RIGHT, value=desired, detail=mine)
