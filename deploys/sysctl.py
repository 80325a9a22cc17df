"""Kernel parameters: one drop-in that sorts last, each value put in force at once."""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby

from facts.nics import SECTIONS as NICS
from facts.nics import read_nics
from facts.sysctl import DROP_IN, RULES, SECTIONS, SysctlState, read_sysctl
from railwright.actions import Action, WriteValue
from railwright.component import Component
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.rails import rail_sysctls
from railwright.recommended import reason
from railwright.resolve.nics import find_rails, renamed
from railwright.resolve.sysctl import (
    Assignment,
    BadLine,
    decide,
    module_of,
    normal_value,
    proc_path,
    waits_for_interface,
)
from railwright.schema import Effect, Node
from railwright.schema.base import module_name
from railwright.schema.fabric import fabric_kind
from railwright.settings import NOTHING, Setting, Standing, State, enforces
from railwright.snapshot import Snapshot

NAME = "sysctl"
NUMA_BALANCING = "kernel.numa_balancing"

# Until the next boot the kernel refuses to leave these values.
# Source: Documentation/admin-guide/sysctl/kernel.rst, admin-guide/LSM/Yama.rst.
_LOCKED = {
    "kernel.kexec_load_disabled": "1",
    "kernel.modules_disabled": "1",
    "kernel.unprivileged_bpf_disabled": "1",
    "kernel.yama.ptrace_scope": "3",
}

# A change of it resets others to the defaults of a host or of a router, so it comes before them.
# Source: Documentation/networking/ip-sysctl.rst.
_FIRST = "net.ipv4.ip_forward"

_FOREIGN_KERNEL = "a container shares its host's kernel"


def wanted(node: Node) -> dict[str, str]:
    """What the node asks for: normal value by key, in the order in which it is written."""
    asked = node.sysctl.values
    values = {key: normal_value(value) for key, value in asked.items() if value is not None}
    for key, least in rail_sysctls(node).items():
        # The larger of all and the interface's holds, so that less than all's cannot be had.
        common = asked.get(_common(key))
        if key not in asked:
            values[key] = str(max(least, common) if isinstance(common, int) else least)
    if node.kernel.numa_balancing is not None:
        values[NUMA_BALANCING] = "1" if node.kernel.numa_balancing else "0"
    return dict(sorted(values.items(), key=lambda item: (item[0] != _FIRST, item[0])))


# Of these the larger of all and the interface's is in force: IN_DEV_MAXCONF.
# Source: include/linux/inetdevice.h; Documentation/networking/ip-sysctl.rst.
_MAXIMUM = re.compile(
    r"net\.ipv4\.conf\.(?!all\.|default\.)([^.]+)\.(arp_ignore|arp_announce|rp_filter)"
)


def _common(key: str) -> str:
    """The key of all interfaces that stands beside one of a single interface."""
    return f"net.ipv4.conf.all.{key.rpartition('.')[2]}"


def owned_files(node: Node, seen: SysctlState, is_container: bool) -> list[OwnedFile]:
    """Our drop-in, and the udev rules that apply its late keys when their module is added.

    A module may be loaded long after systemd-sysctl.service has run; where it is loaded at boot
    the rule changes nothing. Source: sysctl.d(5), its example for br_netfilter.
    """
    keys = {
        key: value
        for key, value in wanted(node).items()
        if is_container or not _is_unknown(key, seen)
    }
    late = sorted((module, key) for key in keys if (module := module_of(key)) is not None)
    rules = [
        _rule(module, [key for _, key in group])
        for module, group in groupby(late, key=lambda pair: pair[0])
    ]
    lines = [_line(key, value) for key, value in keys.items()]
    return [
        OwnedFile(path=DROP_IN, content=_file(lines)),
        OwnedFile(path=RULES, content=_file(rules)),
    ]


def _line(key: str, value: str) -> str:
    return f"{key} = {value}"


def _rule(module: str, keys: list[str]) -> str:
    prefixes = " ".join(f"--prefix={proc_path(key).removeprefix('/proc/sys')}" for key in keys)
    return (
        f'ACTION=="add", SUBSYSTEM=="module", KERNEL=="{module}", '
        f'RUN+="/lib/systemd/systemd-sysctl {prefixes}"'
    )


def _file(lines: list[str]) -> str | None:
    return HEADER + "".join(f"{line}\n" for line in lines) if lines else None


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    """One setting for each key, each file of ours, and each file that has bad lines."""
    records = snapshot.files("sysctl_files")
    if not wanted(node) and not _is_ours(records):
        return []
    seen = read_sysctl(snapshot)
    container = snapshot.is_container
    coming = {} if container else _coming(node, snapshot, seen)
    found = [
        _key_setting(key, value, node, seen, container, coming)
        for key, value in wanted(node).items()
    ]
    for owned in owned_files(node, seen, container):
        setting = owned_file_setting(NAME, owned, records)
        found.extend([setting] if setting is not None else [])
    if seen.files.unread or (seen.unreadable is not None and not container):
        # What the drop-in must say (keys of this kernel), or whether it decides, is not known.
        found = [setting.model_copy(update={"acts": False}) for setting in found]
    return [*found, *_bad_files(seen)]


def _is_ours(records: list[FileRecord]) -> bool:
    return any(record.path in (DROP_IN, RULES) for record in records)


def _coming(node: Node, snapshot: Snapshot, seen: SysctlState) -> dict[str, str]:
    """Interfaces that component rails brings into being in this run, with their rail."""
    keys = rail_sysctls(node)
    if all(waits_for_interface(key, seen.values) is None for key in keys):
        return {}
    nics = read_nics(snapshot)
    rails = find_rails(node, nics)
    due = renamed(node, rails, nics)
    return {rail.plan.name or "": rail.key for rail in rails if rail.key in due}


def _key_setting(
    key: str,
    value: str,
    node: Node,
    seen: SysctlState,
    is_container: bool,
    coming: Mapping[str, str],
) -> Setting:
    if not is_container and _is_unknown(key, seen):
        unknown = State(standing=Standing.NOT_APPLICABLE, detail="this kernel has no such key")
        return Setting(component=NAME, key=key, desired=value, persisted=unknown, running=unknown)
    persisted, remedy = _persisted(key, value, seen)
    running = (
        State(standing=Standing.NOT_APPLICABLE, detail=_FOREIGN_KERNEL)
        if is_container
        else _running(key, value, node, seen, coming)
    )
    if running.standing is Standing.WRONG and persisted.standing is Standing.RIGHT and seen.tuned:
        running = running.model_copy(update={"decider": f"tuned.service ({seen.tuned})"})
        remedy = f"set {key} in the tuned profile {seen.tuned}, or take it out there"
    above = None if is_container else _above(key, value, running, node, seen)
    locked = running.standing is Standing.WRONG and running.value == _LOCKED.get(key)
    return Setting(
        component=NAME,
        key=key,
        desired=value,
        persisted=persisted,
        running=running,
        effect=Effect.REBOOT if locked else Effect.LIVE,
        remedy=above or remedy,
        acts=above is None,
        why=reason(fabric_kind(node.fabric), key, node.sysctl.values.get(key)),
    )


def _matches(key: str, desired: str, found: str) -> bool:
    # A bit mask, of which the inventory says only whether it is on.
    if key == NUMA_BALANCING and desired != "0":
        return found != "0"
    return found == desired


def _is_unknown(key: str, seen: SysctlState) -> bool:
    if seen.unreadable is not None or key in seen.values or _complaint(key, seen):
        return False
    module = module_of(key)
    if module is not None:
        return module in seen.modules
    return waits_for_interface(key, seen.values) is None


def _complaint(key: str, seen: SysctlState) -> str | None:
    quoted = (f'"{key}"', f"'{key}'")
    return next((x for x in seen.complaints.split("\n") if any(q in x for q in quoted)), None)


def _above(key: str, desired: str, running: State, node: Node, seen: SysctlState) -> str | None:
    """What a person must lower where ``all`` is more than what the interface shall have."""
    common = _common(key)
    if not _MAXIMUM.fullmatch(key) or running.standing is not Standing.WRONG:
        return None
    value = seen.values.get(common)
    stays = common not in wanted(node) and isinstance(value, int) and value > int(desired)
    return f"set sysctl.values {common} to {desired}: it is {value}" if stays else None


def _effective(key: str, seen: SysctlState) -> tuple[str, str | None]:
    """The value in force, and the two of which it is the larger."""
    value, common = seen.values[key], seen.values.get(_common(key))
    match = _MAXIMUM.fullmatch(key)
    if match is None or not isinstance(value, int) or not isinstance(common, int):
        return normal_value(value), None
    larger = str(max(value, common))
    return larger, f"effective {larger}: all has {common}, {match[1]} has {value}"


def _running(
    key: str, desired: str, node: Node, seen: SysctlState, coming: Mapping[str, str]
) -> State:
    if key in seen.values:
        value, both = _effective(key, seen)
        right = _matches(key, desired, value)
        refusal = next((r for r in seen.refusals if r.key == key), None)
        return State(
            standing=Standing.RIGHT if right else Standing.WRONG,
            value=value,
            detail=f"{refusal.value} was refused at boot: {refusal.error}"
            if refusal is not None and not right
            else both,
        )
    unreadable = seen.unreadable or _complaint(key, seen)
    if unreadable is not None:
        return State(standing=Standing.UNREADABLE, detail=unreadable)
    module = module_of(key)
    if module is None:
        interface = waits_for_interface(key, seen.values)
        if interface is not None and interface in coming:
            return State(standing=Standing.ABSENT, detail=f"comes with {coming[interface]}")
        return State(standing=Standing.LATE, detail=f"there is no interface {interface} yet")
    if module in {module_name(name) for name in node.modules.load}:
        return State(standing=Standing.ABSENT, detail=f"comes with the module {module}")
    return State(
        standing=Standing.LATE,
        detail=f"comes with the module {module}, which is not loaded and not in modules.load",
    )


def _persisted(key: str, desired: str, seen: SysctlState) -> tuple[State, str | None]:
    """How the files have ``key``, and what a person must do where ours cannot win."""
    if seen.files.unread:
        detail = f"cannot be read: {', '.join(seen.files.unread)}"
        return State(standing=Standing.UNREADABLE, detail=detail), None
    decision = decide(seen.files, key)
    winner, rival, reload = decision.winner, decision.rival, decision.reload
    value = None if winner is None or winner.value is None else normal_value(winner.value)
    decider = None if winner is None else winner.place
    if value is None or not _matches(key, desired, value):
        standing = Standing.ABSENT if value is None else Standing.WRONG
        remedy = None
        if winner is not None and _outranks(winner):
            standing = Standing.OVERRIDDEN
            remedy = f"take {key} out of {winner.place}: that file is read after {DROP_IN}"
        excluded = f"{decider} says that it is not to be set" if winner and value is None else None
        return State(standing=standing, value=value, decider=decider, detail=excluded), remedy
    right = State(standing=Standing.RIGHT, value=value, decider=decider)
    if rival is not None:
        detail = f"{rival.key} is set after it and zeroes it"
        return _overridden(right, rival, detail), f"take {rival.key} out of {rival.place}"
    if reload is not None and not _matches(key, desired, normal_value(reload.value)):
        detail = (
            f"{decider} decides at boot; `sysctl --system` reads {reload.path} last "
            f"and sets {reload.value}"
        )
        return _overridden(right, reload, detail), f"take {key} out of {reload.place}"
    return right, None


def _overridden(right: State, by: Assignment, detail: str) -> State:
    changed = {"standing": Standing.OVERRIDDEN, "decider": by.place, "detail": detail}
    return right.model_copy(update=changed)


def _outranks(line: Assignment) -> bool:
    """Whether ``line`` decides even where our drop-in names the key."""
    return not line.is_pattern and line.path != DROP_IN and line.name > DROP_IN.rpartition("/")[2]


def _bad_files(seen: SysctlState) -> list[Setting]:
    """One setting for each foreign file with lines that are no assignments or were refused."""
    lines = sorted(
        (line for line in (*seen.files.bad, *_refused(seen)) if line.path != DROP_IN),
        key=lambda line: (line.path, line.line),
    )
    return [
        _bad_file(path, list(group), seen.failed)
        for path, group in groupby(lines, key=lambda line: line.path)
    ]


def _refused(seen: SysctlState) -> Iterator[BadLine]:
    for refusal in seen.refusals:
        winner = decide(seen.files, refusal.key).winner
        # Where the line has been changed since the boot it is no longer known to be bad.
        if winner is not None and winner.value == refusal.value:
            yield BadLine(
                path=winner.path,
                line=winner.line,
                text=_line(refusal.key, refusal.value),
                reason=f"was refused at boot ({refusal.error})",
                fatal=True,
            )


def _bad_file(path: str, lines: list[BadLine], service_failed: bool) -> Setting:
    told = "; ".join(f"line {line.line}: {line.text!r} {line.reason}" for line in lines)
    failed = "; systemd-sysctl.service has failed" if service_failed else ""
    numbers = ", ".join(str(line.line) for line in lines)
    fatal = any(line.fatal for line in lines)
    return Setting(
        component=NAME,
        key=path,
        desired="valid",
        persisted=State(
            standing=Standing.WRONG,
            value="invalid",
            decider=f"{path}:{lines[0].line}",
            detail=f"{told}{failed}",
        ),
        running=NOTHING,
        acts=False,
        remedy=f"mend or remove in {path}: line {numbers}"
        + (" (systemd-sysctl.service fails at each boot because of it)" if fatal else ""),
    )


def actions(node: Node, snapshot: Snapshot, found: list[Setting]) -> Iterator[Action]:
    """Values first: the line of one that the kernel refuses is left out of the drop-in."""
    values = wanted(node)
    by_key = {setting.key: setting for setting in found}
    for key, value in values.items():
        setting = by_key[key]
        if setting.effect is Effect.LIVE and enforces(setting, node.effects.allow):
            yield WriteValue(path=proc_path(key), value=value, line=_line(key, value))
    seen = read_sysctl(snapshot)
    for owned in owned_files(node, seen, snapshot.is_container):
        yield from owned_file_action(owned, by_key.get(owned.path))


COMPONENT = Component(name=NAME, sections=(*SECTIONS, *NICS), settings=settings, actions=actions)
