"""What a GPU driver shows of itself: one version everywhere, all GPUs there, none that needs help.

No setting of these is acted on: packages are the packages' component's, and a GPU's hardware is a
person's.
"""

from collections.abc import Iterator

from facts.nvidia_smi import Gpu
from railwright.compat import Facts, judge
from railwright.compat.facts import BY_OS_RELEASE
from railwright.drivers.finding import Finding
from railwright.resolve.gpu_view import Seen
from railwright.schema.drivers import GpuDriverSpec
from railwright.settings import Setting, Standing, State, looked_at

_WHY_ONE = (
    "modules, libraries and fabric manager check each other for the very same version "
    "(NVIDIA/gpu-operator#544)"
)


def one_version(component: str, driver: GpuDriverSpec, seen: Seen) -> Setting:
    """Modules, user libraries, fabric manager and firmware, on disk and as what is loaded needs."""
    version = str(driver.version)
    missing = list(_missing(driver, seen))
    unread = [f for f in seen.findings if f.kind == "unreadable"]
    there = [f for f in seen.findings if f.kind not in ("loaded", "unreadable")]
    running = [f for f in seen.findings if f.kind == "loaded" and f.subject != "nvidia"]
    on_disk = _state(version, [*missing, *map(_said, there)], [*map(_said, unread)])
    return Setting(
        component=component,
        key="one version",
        desired=version,
        persisted=on_disk,
        running=_state(version, [*map(_said, running)], []),
        # Packages alone bring it about.
        acts=on_disk.standing is Standing.RIGHT and not running,
        remedy="; ".join(dict.fromkeys(f.remedy for f in (*unread, *there, *running))) or None,
        why=_WHY_ONE,
    )


def _missing(driver: GpuDriverSpec, seen: Seen) -> Iterator[str]:
    if not seen.drivers.libraries:
        yield "libnvidia-ml is not installed"
    for version in seen.drivers.libraries:
        if version != driver.version:
            yield f"libnvidia-ml is {version}"
    if driver.fabric_manager and seen.drivers.fabric_manager is None:
        yield "nvidia-fabricmanager is not installed"


def _said(finding: Finding) -> str:
    return f"{finding.subject} {finding.found}"


def _state(version: str, wrong: list[str], unread: list[str]) -> State:
    if unread and not wrong:
        return State(standing=Standing.UNREADABLE, detail="; ".join(unread))
    if not wrong:
        return State(standing=Standing.RIGHT, value=version)
    return State(standing=Standing.WRONG, value="several", detail="; ".join(dict.fromkeys(wrong)))


def fabric_manager_fault(findings: tuple[Finding, ...]) -> str | None:
    """Why fabric manager cannot run, as versions tell; None where they tell nothing."""
    said = [f.found for f in findings if f.subject == "nvidia-fabricmanager"]
    return "; ".join(said) or None


def gpu_count(component: str, seen: Seen) -> Setting:
    """All GPUs on the bus are listed by nvidia-smi; the addresses of those that are not."""
    listed = {gpu.pci for gpu in seen.gpus if gpu.pci}
    desired = f"{len(seen.bus)} GPUs"
    lost = sorted(set(seen.bus) - listed)
    if not seen.bus:
        state = State(standing=Standing.ABSENT, detail="there is no GPU of NVIDIA on the bus")
        desired = "GPUs"
    elif seen.unread:
        standing = Standing.UNREADABLE if seen.drivers.gpus else Standing.ABSENT
        state = State(standing=standing, detail=seen.unread)
    elif lost:
        words = ", ".join(f"{address} ({_bound(seen.bus[address])})" for address in lost)
        state = State(
            standing=Standing.WRONG,
            value=f"{len(listed)} GPUs",
            detail=f"on the bus, and not listed by nvidia-smi: {words}",
        )
    else:
        state = State(standing=Standing.RIGHT, value=desired)
    remedy = "see NVRM and Xid in the kernel's log for that address" if lost and listed else None
    return looked_at(component, "gpus", desired, state, remedy=remedy)


def _bound(driver: str | None) -> str:
    return f"its driver is {driver}" if driver else "no driver took it"


def gpu_health(component: str, seen: Seen) -> Setting:
    """GPUs that need a reset, or whose rows wait to be remapped (NVIDIA GPU memory error guide)."""
    desired = "none needs a reset"
    problem = seen.drivers.gpus.problem if seen.drivers.gpus else None
    wrong = [f"{gpu.pci}: {said}" for gpu in seen.gpus for said in _ill(gpu)]
    wrong += [
        f"{pci}: {said}" for pci, gpu in sorted(seen.state.rows.items()) for said in _rows(gpu)
    ]
    if problem is not None and problem.error in ("reset_required", "gpu_lost"):
        wrong.append(f"{problem.gpu}: {problem.cause}" if problem.gpu else problem.cause)
    if wrong:
        state = State(
            standing=Standing.WRONG, value="some do", detail="; ".join(dict.fromkeys(wrong))
        )
    elif seen.drivers.gpus is None:
        state = State(standing=Standing.NOT_APPLICABLE, detail=seen.unread)
    elif seen.unread or seen.state.problems:
        detail = seen.unread or "; ".join(seen.state.problems)
        state = State(standing=Standing.UNREADABLE, detail=detail)
    else:
        state = State(standing=Standing.RIGHT, value=desired)
    remedy = "drain the node, then reset the GPU (nvidia-smi -r) or reboot" if wrong else None
    return looked_at(component, "gpu health", desired, state, remedy=remedy)


def _ill(gpu: Gpu) -> Iterator[str]:
    said = {why for why in gpu.absent.values() if why in ("gpu_lost", "reset_required", "error")}
    if "gpu_lost" in said:
        yield "it has fallen off the bus: only a reboot brings it back"
    elif "reset_required" in said:
        yield "it asks for a reset"
    elif "error" in said:
        yield "it answers with errors"


def _rows(gpu: Gpu) -> Iterator[str]:
    if gpu.remapped_rows_failure:
        yield "a row could not be remapped: have it replaced"
    if gpu.remapped_rows_pending:
        yield "a row waits to be remapped, which a reset does"


def dma_buf(component: str, seen: Seen, os: str) -> Setting:
    """Whether NICs reach GPU memory by DMA-BUF: the kernel's part, and the driver's."""
    desired = "dma_buf"
    driver = seen.drivers.nvidia
    if driver is None:
        detail = "the module nvidia is not loaded"
        state = State(standing=Standing.LATE, detail=detail)
        return looked_at(component, "peer memory", desired, state)
    facts = Facts.model_validate(
        {
            "kernel": seen.drivers.next_boot.running,
            "distribution": BY_OS_RELEASE.get(os),
            "driver": driver.version,
            "driver_modules": driver.flavour,
            "peer_memory": "dma_buf",
        }
    )
    against = [str(one) for one in judge(facts) if one.row and "peer_memory" in one.parts]
    if driver.flavour != "open":
        against.append(f"driver {driver.version} is the proprietary one, which offers no DMA-BUF")
    if seen.dma_buf == "no":
        against.append("the kernel was built without DMA-BUF for RDMA (its config says so)")
    if against:
        state = State(standing=Standing.WRONG, value="none", detail="; ".join(against))
    elif seen.dma_buf == "unknown":
        detail = "the running kernel's config is nowhere to be read"
        state = State(standing=Standing.UNREADABLE, detail=detail)
    else:
        state = State(standing=Standing.RIGHT, value=desired)
    remedy = "install the open modules, or use nvidia_peermem with OFED" if against else None
    return looked_at(component, "peer memory", desired, state, remedy=remedy)
