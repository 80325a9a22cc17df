"""OpenSM on a node: what is asked of it, how it stands, and what brings it there.

Options go on its command line by a drop-in of ours, where they come before those of opensm.conf:
that file, which a site may have filled with its partitions and guids, stays as it is.
Source: opensm(8) and its main.c, which reads the file first and the command line after it.
"""

from collections.abc import Iterator
from itertools import pairwise

from facts.opensm import DEBIAN_DROP_IN, DROP_IN, RHEL_DROP_IN, UNIT, OpensmState
from railwright.actions import Action, Run
from railwright.apt import APT_INSTALL
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.schema import Node, Opensm
from railwright.schema.fabric import InfinibandFabric
from railwright.settings import (
    NO_PORTS,
    NOTHING,
    Effect,
    Setting,
    Standing,
    State,
    enforces,
    looked_at,
    persists,
)

OPENSM_DROP_INS = (DEBIAN_DROP_IN, RHEL_DROP_IN)
PACKAGE = "opensm package"
SERVICE = "opensm service"
OPTIONS = "opensm options"


def opensm_options(spec: Opensm) -> tuple[str, ...]:
    """The options of opensm that ``spec`` stands for."""
    return ("--priority", str(spec.priority), "--routing_engine", spec.routing_engine)


def wanted(node: Node) -> Opensm | None:
    return node.fabric.opensm if isinstance(node.fabric, InfinibandFabric) else None


def owned_files(node: Node, seen: OpensmState) -> list[OwnedFile]:
    """Our drop-in where this node's packaging has it, and none where another's does."""
    spec = wanted(node)
    content = _drop_in(spec, seen) if spec is not None and not _refusal(seen) else None
    return [
        OwnedFile(path=path, content=content if path == seen.drop_in else None)
        for path in OPENSM_DROP_INS
    ]


def _drop_in(spec: Opensm, seen: OpensmState) -> str:
    options = " ".join(opensm_options(spec))
    if seen.debian:
        start = f"/usr/sbin/opensm --guid %I --log_file /var/log/opensm.%I.log {options}"
        return f"{HEADER}[Service]\nExecStart=\nExecStart={start}\n"
    # In place of a launcher that forks and cannot be given options.
    start = f"/usr/sbin/opensm {options}"
    return f"{HEADER}[Service]\nType=simple\nExecStart=\nExecStart={start}\nRestart=on-failure\n"


def _refusal(seen: OpensmState) -> str | None:
    if seen.guids and not seen.debian:
        return (
            "/etc/sysconfig/opensm names GUIDS, of which one opensm each is started: set the "
            "priority and the routing in /etc/rdma/opensm.conf, or take GUIDS out"
        )
    return None


def opensm_settings(
    component: str, node: Node, seen: OpensmState, is_container: bool
) -> Iterator[Setting]:
    """How OpenSM stands on the node, where it is asked for, there, or ours."""
    for owned in owned_files(node, seen):
        setting = owned_file_setting(component, owned, seen.files)
        if setting is not None:
            yield setting
    spec = wanted(node)
    if spec is None:
        yield from _rival(component, node, seen, is_container)
        return
    # Nothing is started in a container, so that nothing is interrupted by its installation.
    installs = seen.installer is not None and (is_container or Effect.SERVICE in node.effects.allow)
    yield _package(component, seen, installs)
    yield _service(component, seen, installs, is_container)
    yield _options(component, spec, seen, is_container)


def _rival(component: str, node: Node, seen: OpensmState, is_container: bool) -> Iterator[Setting]:
    """A subnet manager that nobody asked for may take the fabric over."""
    if is_container or not seen.processes or not node.rails.nics:
        return
    yield looked_at(
        component,
        SERVICE,
        "off",
        State(standing=Standing.WRONG, value="on", decider=UNIT),
        remedy=f"systemctl disable --now {UNIT}, or ask for it in fabric.opensm",
    )


def _package(component: str, seen: OpensmState, installs: bool) -> Setting:
    remedy = None
    if not seen.installed and not installs:
        remedy = (
            f"allow the effect {Effect.SERVICE.value}: the package starts it at once"
            if seen.installer
            else "install opensm"
        )
    return Setting(
        component=component,
        key=PACKAGE,
        desired="installed",
        persisted=State(
            standing=Standing.RIGHT if seen.installed else Standing.ABSENT,
            value="installed" if seen.installed else None,
        ),
        running=NOTHING,
        # Debian starts a subnet manager when it is installed, which may take the fabric over.
        effect=Effect.SERVICE,
        acts=installs,
        remedy=remedy,
    )


def _service(component: str, seen: OpensmState, installs: bool, is_container: bool) -> Setting:
    unit, remedy = seen.unit, None
    if unit is None:
        persisted = State(standing=Standing.ABSENT)
    elif unit.masked:
        remedy = f"systemctl unmask {UNIT}"
        persisted = State(
            standing=Standing.OVERRIDDEN, value="masked", decider=f"/etc/systemd/system/{UNIT}"
        )
    else:
        enabled = unit.file_state == "enabled"
        persisted = State(
            standing=Standing.RIGHT if enabled else Standing.WRONG,
            value="on" if enabled else unit.file_state or "off",
            decider=UNIT,
        )
    running = NO_PORTS
    if not is_container:
        failed = unit is not None and unit.active == "failed"
        running = (
            State(standing=Standing.RIGHT, value="on", detail=f"{len(seen.processes)} running")
            if seen.processes
            else State(standing=Standing.WRONG, value="failed" if failed else "off")
        )
    return Setting(
        component=component,
        key=SERVICE,
        desired="on",
        persisted=persisted,
        running=running,
        effect=Effect.SERVICE,
        acts=remedy is None and (seen.installed or installs),
        remedy=remedy,
    )


def _options(component: str, spec: Opensm, seen: OpensmState, is_container: bool) -> Setting:
    desired = " ".join(opensm_options(spec))
    refusal, rival = _refusal(seen), _later(seen)
    persisted = State(standing=Standing.ABSENT)
    ours = next((file for file in seen.files if file.path == seen.drop_in), None)
    remedy = refusal
    if rival is not None:
        persisted = State(standing=Standing.OVERRIDDEN, decider=rival.path)
        remedy = f"take ExecStart out of {rival.path}"
    elif ours is not None:
        right = ours.content == _drop_in(spec, seen)
        persisted = State(
            standing=Standing.RIGHT if right else Standing.WRONG,
            value=desired if right else "others",
            decider=ours.path,
        )
    return Setting(
        component=component,
        key=OPTIONS,
        desired=desired,
        persisted=persisted,
        running=NO_PORTS if is_container else _running(opensm_options(spec), seen),
        effect=Effect.SERVICE,
        acts=refusal is None,
        remedy=remedy,
    )


def _later(seen: OpensmState) -> FileRecord | None:
    """A drop-in that is read after ours and says what is started."""
    folder = seen.drop_in.rpartition("/")[0].rpartition("/")[2]
    return next(
        (
            file
            for file in seen.files
            if file.directory.endswith(f"/{folder}")
            and file.name > DROP_IN
            and any(line.startswith("ExecStart=") for line in (file.content or "").splitlines())
        ),
        None,
    )


def _running(options: tuple[str, ...], seen: OpensmState) -> State:
    if not seen.processes:
        return State(standing=Standing.ABSENT, detail="no opensm runs")
    others = [words for words in seen.processes if not _has(words, options)]
    if others:
        return State(standing=Standing.WRONG, value=" ".join(others[0][1:]) or "none")
    return State(standing=Standing.RIGHT, value=" ".join(options))


def _has(words: tuple[str, ...], options: tuple[str, ...]) -> bool:
    return set(zip(options[::2], options[1::2], strict=True)) <= set(pairwise(words))


def opensm_actions(node: Node, seen: OpensmState, by_key: dict[str, Setting]) -> Iterator[Action]:
    """What puts right what is not, as far as the effects allow."""
    files = [
        action
        for owned in owned_files(node, seen)
        for action in owned_file_action(owned, by_key.get(owned.path))
    ]
    yield from files
    # Before the package, which starts it.
    if files:
        yield Run(command=("systemctl", "daemon-reload"))
    package, service, options = (by_key.get(key) for key in (PACKAGE, SERVICE, OPTIONS))
    if package is not None and persists(package):
        yield Run(command=_install(seen.installer))
    if service is not None and persists(service) and _will_be_there(seen, package):
        yield Run(command=("systemctl", "enable", UNIT))
    due = [s for s in (service, options) if s is not None and enforces(s, node.effects.allow)]
    if due and _will_be_there(seen, package):
        yield Run(command=("systemctl", "restart", UNIT))


def _will_be_there(seen: OpensmState, package: Setting | None) -> bool:
    """Whether the package is there by then."""
    return seen.installed or (package is not None and persists(package))


def _install(installer: str | None) -> tuple[str, ...]:
    if installer == "dnf":
        return ("dnf", "install", "-y", "opensm")
    return (*APT_INSTALL, "--no-install-recommends", "opensm")
