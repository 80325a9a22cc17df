"""The kernel's command line, transparent huge pages, and the cpufreq governor."""

import re
from collections.abc import Callable, Iterator

from facts.cmdline import found_in, parse_cmdline
from facts.kernel import GOVERNORS, SECTIONS, THP, knobs_of, tuned_option
from railwright.actions import Action, Run, WriteValue
from railwright.component import Component
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve import grub, tmpfiles
from railwright.resolve.arguments import Chain, Wanted, with_file
from railwright.resolve.boot import NextBoot, next_boot
from railwright.schema import Node
from railwright.schema.hugepages import PAGE_KIB
from railwright.settings import HOSTS_KERNEL, Effect, Setting, Standing, State, enforces, persists
from railwright.snapshot import Snapshot

NAME = "kernel"

_PER_NODE_SINCE = (5, 16)
"""First Linux that takes hugepages=NODE:COUNT,...: commit b5389086ad7b, merged for 5.16-rc1."""


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    """Raises ValueError where a section of the probe cannot be read."""
    found = [
        *_argument_settings(node, snapshot),
        *_thp_settings(node, snapshot),
        *_governor_settings(node, snapshot),
    ]
    for owned, section in (
        (_grub_dropin(node, snapshot), "kernel_boot"),
        (_tmpfiles_dropin(node, snapshot), "kernel_tmpfiles"),
    ):
        setting = owned_file_setting(NAME, owned, snapshot.files(section))
        if setting is not None:
            found.append(setting)
    return found


def actions(node: Node, snapshot: Snapshot, found: list[Setting]) -> Iterator[Action]:
    by_key = {setting.key: setting for setting in found}
    yield from _boot_actions(node, snapshot, by_key)
    # Written first: a value that the kernel refuses is then left out of the file.
    for setting in found:
        if enforces(setting, node.effects.allow):
            yield from _write(setting, snapshot)
    dropin = _tmpfiles_dropin(node, snapshot)
    yield from owned_file_action(dropin, by_key.get(dropin.path))


def _write(setting: Setting, snapshot: Snapshot) -> Iterator[Action]:
    if setting.key.startswith("thp "):
        path = _thp_path(setting.key)
        yield WriteValue(path=path, value=setting.desired, line=_line(path, setting.desired))
    elif setting.key == "governor":
        for path, value in sorted(_governors(snapshot).items()):
            if value != setting.desired:
                line = _line(GOVERNORS, setting.desired)
                yield WriteValue(path=path, value=setting.desired, line=line)


COMPONENT = Component(name=NAME, sections=SECTIONS, settings=settings, actions=actions)


def _wanted(node: Node, snapshot: Snapshot) -> list[Wanted]:
    """The arguments that are asked for, huge pages last."""
    arguments = {
        name: name if value is True else f"{name}={value}"
        for name, value in node.kernel.arguments.items()
    }
    if node.kernel.max_cstate is not None:
        for name in ("intel_idle.max_cstate", "processor.max_cstate"):
            arguments[name] = f"{name}={node.kernel.max_cstate}"
    wanted = [Wanted(name, (text,)) for name, text in sorted(arguments.items())]
    pages = _hugepage_words(node)
    if pages:
        refused = None
        if _kernel_version(snapshot) < _PER_NODE_SINCE:
            refused = (
                "say allocate='runtime' in hugepages.pools: Linux "
                f"{snapshot.facts('identity')['kernel']} takes no huge pages per NUMA node at "
                "boot (5.16 is the first)"
            )
        wanted.append(Wanted("hugepages", pages, refused))
    return wanted


def _hugepage_words(node: Node) -> tuple[str, ...]:
    """The arguments for the pools that are reserved at boot; a count of 0 needs none."""
    words: list[str] = []
    for size in sorted(node.hugepages.pools, key=lambda size: -PAGE_KIB[size]):
        pool = node.hugepages.pools[size]
        counts = [f"{n}:{count}" for n, count in sorted(pool.per_node.items()) if count]
        if pool.allocate == "boot" and counts:
            words += [f"hugepagesz={size}", f"hugepages={','.join(counts)}"]
    return tuple(words)


def _kernel_version(snapshot: Snapshot) -> tuple[int, int]:
    release = snapshot.facts("identity").get("kernel", "")
    found = re.match(r"(\d+)\.(\d+)", release)
    if found is None:
        raise ValueError(f"expected a kernel release such as 6.1.0-57-amd64, got {release!r}")
    return int(found[1]), int(found[2])


def _next_boot(snapshot: Snapshot) -> NextBoot | None:
    return next_boot(snapshot.files("kernel_boot"))


def _argument_settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    wanted = _wanted(node, snapshot)
    if not wanted:
        return []
    boot = _next_boot(snapshot)
    persisted, running = _persisted(node, snapshot, boot), _running(snapshot)
    found = []
    for want in wanted:
        state = persisted(want)
        found.append(
            Setting(
                component=NAME,
                key=f"argument {want.key}",
                desired=want.text,
                persisted=state,
                running=running(want),
                effect=Effect.REBOOT,
                acts=want.refused is None and boot is not None and boot.kind != "foreign",
                remedy=want.refused or _argument_remedy(boot, state),
            )
        )
    return found


def _persisted(node: Node, snapshot: Snapshot, boot: NextBoot | None) -> Callable[[Wanted], State]:
    if snapshot.is_container:
        return lambda _: HOSTS_KERNEL
    if boot is None:
        elsewhere = State(
            standing=Standing.NOT_APPLICABLE,
            detail="no grub.cfg and no boot loader entries: the arguments come from elsewhere",
        )
        return lambda _: elsewhere
    return Chain(boot, snapshot.files("kernel_boot"), _grub_dropin(node, snapshot)).persisted


def _running(snapshot: Snapshot) -> Callable[[Wanted], State]:
    if snapshot.is_container:
        return lambda _: HOSTS_KERNEL
    arguments = parse_cmdline(snapshot.text("cmdline")).arguments
    return lambda want: want.compared(found_in(arguments, want.key), "/proc/cmdline")


def _argument_remedy(boot: NextBoot | None, persisted: State) -> str | None:
    if persisted is HOSTS_KERNEL:
        return None
    if boot is None:
        return "set it where this host gets its kernel arguments from (PXE, hypervisor)"
    if persisted.standing is Standing.OVERRIDDEN:
        return f"take it out of {persisted.decider}, or name that file so that it sorts before ours"
    return None if persisted.standing is Standing.RIGHT else boot.remedy


def _grub_dropin(node: Node, snapshot: Snapshot) -> OwnedFile:
    content = None
    boot = _next_boot(snapshot)
    if boot is not None and boot.kind == "grub" and not snapshot.is_container:
        words = [w for want in _wanted(node, snapshot) if not want.refused for w in want.words]
        content = grub.render_dropin(words) if words else None
    return OwnedFile(path=grub.DROPIN, content=content)


def _boot_actions(node: Node, snapshot: Snapshot, by_key: dict[str, Setting]) -> Iterator[Action]:
    dropin = _grub_dropin(node, snapshot)
    install = owned_file_action(dropin, by_key.get(dropin.path), check=("sh", "-n"))
    yield from install
    boot = _next_boot(snapshot)
    if boot is None or snapshot.is_container:
        return
    due = [w for w in _wanted(node, snapshot) if persists(by_key[f"argument {w.key}"])]
    if boot.kind == "grub" and (install or due):
        yield Run(command=boot.command)
    elif boot.kind == "bls" and due:
        words = [word for want in due for word in want.words]
        names = sorted({word.partition("=")[0] for word in words})
        # What is there of these names goes first, or sizes and counts would not stand in pairs.
        yield Run(
            command=(
                *boot.command,
                "--update-kernel=ALL",
                f"--remove-args={' '.join(names)}",
                f"--args={' '.join(words)}",
            )
        )


def _thp(node: Node) -> dict[str, str]:
    """What is asked of THP, by the key of the setting."""
    asked = node.kernel.thp.model_dump(exclude_none=True)
    return {f"thp {name}": value for name, value in asked.items()}


def _thp_path(key: str) -> str:
    return f"{THP}/{key.removeprefix('thp ')}"


def _governors(snapshot: Snapshot) -> dict[str, str]:
    return knobs_of(snapshot).governors


def _thp_settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    wanted = _thp(node)
    if not wanted:
        return []
    values = knobs_of(snapshot).thp
    at_boot = _AtBoot(node, snapshot)
    found = []
    for key, desired in wanted.items():
        path = _thp_path(key)
        value = values.get(key.removeprefix("thp "))
        names = ("transparent_hugepages", "transparent_hugepage") if key == "thp enabled" else ()
        running = _running_knob({value} if value else set(), desired)
        persisted = at_boot.of({path}, desired, (*names, path))
        found.append(
            _knob(key, desired, persisted, HOSTS_KERNEL if snapshot.is_container else running)
        )
    return found


def _governor_settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    desired = node.kernel.governor
    if desired is None:
        return []
    if snapshot.is_container:
        return [_knob("governor", desired, HOSTS_KERNEL, HOSTS_KERNEL)]
    governors = _governors(snapshot)
    if not governors:
        firmware = State(
            standing=Standing.NOT_APPLICABLE, detail="no cpufreq: the firmware sets frequencies"
        )
        return [_knob("governor", desired, firmware, firmware)]
    persisted = _AtBoot(node, snapshot).of(set(governors), desired, ("governor",))
    running = _running_knob(set(governors.values()), desired)
    return [_knob("governor", desired, persisted, running)]


def _knob(key: str, desired: str, persisted: State, running: State) -> Setting:
    overridden = persisted.standing is Standing.OVERRIDDEN
    return Setting(
        component=NAME,
        key=key,
        desired=desired,
        persisted=persisted,
        running=running,
        remedy=f"take it out of {persisted.decider}, or mask that file" if overridden else None,
    )


def _running_knob(values: set[str], desired: str) -> State:
    if not values:
        return State(standing=Standing.NOT_APPLICABLE, detail="this kernel does not have it")
    standing = Standing.RIGHT if values == {desired} else Standing.WRONG
    return State(standing=standing, value=",".join(sorted(values)))


class _AtBoot:
    """Who writes a file of the kernel at boot: tmpfiles.d, and after it tuned."""

    def __init__(self, node: Node, snapshot: Snapshot) -> None:
        files = snapshot.files("kernel_tmpfiles")
        self.now = tmpfiles.writes(files)
        self.then = tmpfiles.writes(with_file(files, _tmpfiles_dropin(node, snapshot)))
        self.tuned = snapshot.files("kernel_tuned")

    def of(self, paths: set[str], desired: str, tuned_names: tuple[str, ...]) -> State:
        """How ``desired`` is persisted for all of ``paths``; the first of the worst."""
        tuned = tuned_option(self.tuned, *tuned_names)
        if tuned is not None:
            right = tuned.value == desired
            return State(
                standing=Standing.RIGHT if right else Standing.OVERRIDDEN,
                value=tuned.value,
                decider=tuned.origin,
                detail="tuned is active, and starts after tmpfiles.d is applied",
            )
        states = [self._of_path(path, desired) for path in sorted(paths)]
        for worse in (Standing.OVERRIDDEN, Standing.WRONG, Standing.ABSENT):
            if told := next((state for state in states if state.standing is worse), None):
                return told
        return states[0]

    def _of_path(self, path: str, desired: str) -> State:
        now, then = tmpfiles.decider(self.now, path), tmpfiles.decider(self.then, path)
        if then is not None and then.value != desired:
            return State(standing=Standing.OVERRIDDEN, value=then.value, decider=then.origin)
        if now is None:
            return State(standing=Standing.ABSENT)
        standing = Standing.RIGHT if now.value == desired else Standing.WRONG
        return State(standing=standing, value=now.value, decider=now.origin)


def _line(path: str, value: str) -> str:
    return f"w {path} - - - - {value}"


def _tmpfiles_dropin(node: Node, snapshot: Snapshot) -> OwnedFile:
    lines = [_line(_thp_path(key), value) for key, value in _thp(node).items()]
    governor = node.kernel.governor
    if governor is not None and not snapshot.is_container and _governors(snapshot):
        lines.append(_line(GOVERNORS, governor))
    content = "".join([HEADER, *(f"{line}\n" for line in lines)]) if lines else None
    return OwnedFile(path=tmpfiles.DROPIN, content=content)
