"""What our unit brings about at boot: nvidia-peermem, MIG, power limit and clocks of the GPUs."""

from collections.abc import Callable, Iterator

from facts.gpu_driver import PLAN_PATH, UNIT
from facts.nvidia_smi import Gpu
from railwright.drivers.arriving import dkms_modules
from railwright.drivers.peer_memory import MODULE, NVIDIA_FS
from railwright.drivers.versions import loaded_findings
from railwright.resolve.gpu_unit import Plan
from railwright.resolve.gpu_view import BUILT_BY, GpuView, Seen
from railwright.settings import HOSTS_KERNEL, NOTHING, Effect, Setting, Standing, State

KEYS = {
    "peer memory": "peermem",
    "nvidia-fs": "nvidia-fs",
    "mig": "mig",
    "mig instances": "mig",
    "power limit": "power",
    "graphics clock": "clocks",
}
"""Settings that the unit brings about, and the word that each has in its plan."""

_WHY_PEERMEM = "without it NICs reach GPU memory through the CPU's (NVIDIA/nccl#1343)"
MODULE_KEYS = {"peer memory": MODULE, "nvidia-fs": NVIDIA_FS}
"""Settings of modules that the unit loads where they are not loaded."""
_ANOTHER = "of another build"
_UNTOLD = "the driver does not tell the range that it was given"


def mode_settings(component: str, view: GpuView) -> Iterator[Setting]:
    """What the plan asks for, and what of a former plan is to be taken back."""
    found: list[Setting] = []
    if view.plan.peermem:
        found.append(_module(view, "peer memory", "peermem", MODULE, _WHY_PEERMEM))
    if view.plan.nvidia_fs:
        found.append(_module(view, "nvidia-fs", "nvidia_fs", NVIDIA_FS, None))
    if view.plan.mig is not None:
        found += _mig(view)
    if view.plan.power is not None:
        found.append(_power(view, view.plan.power))
    if view.plan.clocks is not None:
        found.append(_clocks(view, view.plan.clocks))
    found += _released(view)
    for setting in found:
        yield setting.model_copy(update={"component": component})


def _persisted(view: GpuView, name: str, value: str, before: str | None) -> State:
    """How a line of the plan stands; ``before`` is what the plan on the node says."""
    same = getattr(view.there, name) == getattr(view.plan, name)
    if not same:
        standing = Standing.WRONG if before else Standing.ABSENT
        return State(standing=standing, value=before, decider=PLAN_PATH if before else None)
    if view.lack:
        return State(standing=Standing.WRONG, decider=UNIT.path, detail=view.lack)
    return State(standing=Standing.RIGHT, value=value, decider=UNIT.path)


def _setting(key: str, desired: str, persisted: State, running: State, **more: object) -> Setting:
    return Setting.model_validate(
        {
            "component": "",
            "key": key,
            "desired": desired,
            "persisted": persisted,
            "running": running,
            **more,
        }
    )


def _module(view: GpuView, key: str, line: str, module: str, why: str | None) -> Setting:
    """A module that our unit loads, for it goes over those that openibd loads."""
    persisted = _persisted(view, line, module, None)
    if view.seen is None:
        return _setting(key, module, persisted, HOSTS_KERNEL, why=why)
    drivers, effect = view.seen.drivers, view.seen.effects[module]
    kernel = drivers.next_boot.running
    if module in drivers.loaded:
        running = _as_on_disk(view.seen, module)
        if running.standing is Standing.RIGHT and dkms_modules(view.arriving) & BUILT_BY[module]:
            detail = "its successor comes with this run's packages"
            running = State(standing=Standing.WRONG, value=_ANOTHER, detail=detail)
        return _setting(key, module, persisted, running, why=why, effect=effect)
    there = drivers.running is not None and module in drivers.running.disk.files
    detail = "not loaded" if there else f"kernel {kernel} has no module {module}"
    running = State(standing=Standing.ABSENT, detail=detail)
    comes = there or bool(view.arriving)
    remedy = None if comes else f"install the drivers' modules for kernel {kernel}"
    return _setting(
        key, module, persisted, running, remedy=remedy, acts=comes, why=why, effect=effect
    )


def _as_on_disk(seen: Seen, module: str) -> State:
    """A module that is loaded: whether it is the one on disk."""
    kernel, running = seen.drivers.next_boot.running, seen.drivers.running
    files = running.disk.files if running else {}
    for finding in loaded_findings((module,), kernel, files, seen.drivers.loaded):
        standing = Standing.UNREADABLE if finding.kind == "unreadable" else Standing.WRONG
        return State(standing=standing, value=_ANOTHER, detail=finding.found)
    return State(standing=Standing.RIGHT, value=module)


def _on_all(seen: Seen, desired: str, shown: Callable[[Gpu], str | None]) -> State:
    """One state of all GPUs: those that are another are named, with what they are."""
    if seen.unread:
        standing = Standing.UNREADABLE if seen.drivers.gpus else Standing.LATE
        return State(standing=standing, detail=seen.unread)
    values = {str(gpu.pci): shown(gpu) for gpu in seen.gpus}
    unknown = [pci for pci, value in values.items() if value is None]
    if unknown or not values:
        detail = f"not told of {', '.join(unknown)}" if values else "no GPU is listed"
        return State(standing=Standing.UNREADABLE, detail=detail)
    wrong = {pci: value for pci, value in values.items() if value != desired}
    if not wrong:
        return State(standing=Standing.RIGHT, value=desired)
    detail = ", ".join(f"{pci} {value}" for pci, value in sorted(wrong.items()))
    one = next(iter(wrong.values())) if len(set(values.values())) == 1 else "several"
    return State(standing=Standing.WRONG, value=one, detail=detail)


def _mig(view: GpuView) -> Iterator[Setting]:
    mode, *profiles = str(view.plan.mig).split()
    there = view.there.mig
    persisted = _persisted(view, "mig", mode, there.split()[0] if there else None)
    seen = view.seen
    running = HOSTS_KERNEL if seen is None else _on_all(seen, mode, _mig_mode)
    yield _setting(
        "mig",
        mode,
        persisted,
        running,
        # The GPU is reset for it, or takes it on when nothing uses it. Source: MIG user guide.
        effect=Effect.DRIVER,
        remedy="drain the node: a GPU in use keeps its MIG mode until it is reset"
        if running.standing is Standing.WRONG
        else None,
    )
    if not profiles:
        return
    desired = " ".join(profiles)
    before = " ".join(there.split()[1:]) if there else None
    running = HOSTS_KERNEL if seen is None else _instances(seen, desired)
    replaced = running.standing is Standing.WRONG
    yield _setting(
        "mig instances",
        desired,
        _persisted(view, "mig", desired, before or None),
        running,
        effect=Effect.DRIVER if replaced or _switches(view, mode) else Effect.LIVE,
    )


def _mig_mode(gpu: Gpu) -> str | None:
    if gpu.mig is None:
        # A GPU without MIG has it off.
        return "off" if gpu.absent.get("mig") in ("not_available", "not_supported") else None
    return "on" if gpu.mig else "off"


def _switches(view: GpuView, mode: str) -> bool:
    return view.seen is not None and any(_mig_mode(gpu) != mode for gpu in view.seen.gpus)


def _instances(seen: Seen, desired: str) -> State:
    state = _on_all(seen, desired, lambda gpu: _instances_of(seen, gpu))
    if state.standing is Standing.WRONG and state.value == "none":
        return State(standing=Standing.ABSENT, detail=state.detail)
    return state


def _instances_of(seen: Seen, gpu: Gpu) -> str | None:
    found = seen.state.instances.get(gpu.uuid or "")
    return None if found is None else " ".join(found) or "none"


def _power(view: GpuView, watts: int) -> Setting:
    desired = f"{watts} W"
    before = f"{view.there.power} W" if view.there.power else None
    persisted = _persisted(view, "power", desired, before)
    if view.seen is None:
        return _setting("power limit", desired, persisted, HOSTS_KERNEL)
    running = _on_all(view.seen, desired, lambda gpu: _watts(gpu.power_limit_w))
    refused = [
        f"{gpu.pci} takes {_watts(gpu.power_min_limit_w)} to {_watts(gpu.power_max_limit_w)}"
        for gpu in view.seen.gpus
        if not (gpu.power_min_limit_w or 0) <= watts <= (gpu.power_max_limit_w or watts)
    ]
    return _setting(
        "power limit",
        desired,
        persisted,
        running,
        acts=not refused,
        remedy="; ".join(refused) or None,
    )


def _watts(value: float | None) -> str | None:
    return None if value is None else f"{value:g} W"


def _clocks(view: GpuView, clocks: tuple[int, int]) -> Setting:
    """NVML has no way to read a locked range: what is known is the plan, and the clock now."""
    desired = _range(clocks)
    before = _range(view.there.clocks) if view.there.clocks else None
    persisted = _persisted(view, "clocks", desired, before)
    seen = view.seen
    if seen is None:
        return _setting("graphics clock", desired, persisted, HOSTS_KERNEL)
    now = seen.state.clocks
    above = {pci: mhz for pci, mhz in now.items() if mhz > clocks[1]}
    if seen.unread:
        standing = Standing.UNREADABLE if seen.drivers.gpus else Standing.LATE
        running = State(standing=standing, detail=seen.unread)
    elif not now:
        detail = "; ".join(seen.state.problems) or "nvidia-smi tells no clock"
        running = State(standing=Standing.UNREADABLE, detail=detail)
    elif above:
        detail = ", ".join(f"{pci} runs at {mhz} MHz" for pci, mhz in sorted(above.items()))
        running = State(standing=Standing.WRONG, value=f"{max(above.values())} MHz", detail=detail)
    elif persisted.standing is not Standing.RIGHT or not view.unit_ran:
        running = State(standing=Standing.WRONG, value=before, detail=_UNTOLD)
    else:
        detail = f"{_UNTOLD}; at most {max(now.values())} MHz now"
        running = State(standing=Standing.RIGHT, value=desired, detail=detail)
    return _setting("graphics clock", desired, persisted, running)


def _range(clocks: tuple[int, int]) -> str:
    return f"{clocks[0]}-{clocks[1]} MHz"


def _released(view: GpuView) -> Iterator[Setting]:
    """Limits of the plan on the node that are no longer asked for: they hold until a reboot."""
    there: Plan = view.there
    if view.seen is None or (view.plan.is_empty and not view.driver.version):
        return
    for key, before, wanted in (
        ("power limit", f"{there.power} W" if there.power else None, view.plan.power),
        ("graphics clock", _range(there.clocks) if there.clocks else None, view.plan.clocks),
    ):
        if before is not None and wanted is None and not view.seen.unread:
            running = State(standing=Standing.WRONG, value=before, decider=PLAN_PATH)
            yield _setting(key, "absent", NOTHING, running)
