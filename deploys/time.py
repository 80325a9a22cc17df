"""Time: chrony is there, runs, follows the sources of the inventory, and the clock is right.

Foreign sources (a distribution's default pool) stay: chronyd weighs them against ours.
"""

from collections.abc import Iterator

from facts.chrony import (
    FILES,
    INSTALLED,
    RIVALS,
    SECTIONS,
    UNITS,
    sources_of,
    tracking_of,
)
from facts.units import Unit, read_units
from railwright.actions import Action, Run
from railwright.apt import APT_INSTALL
from railwright.component import Component
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve.chrony import (
    Configuration,
    SourceLine,
    canonical_address,
    configuration,
)
from railwright.schema import Node
from railwright.schema.time import TimeSource, TimeSpec
from railwright.settings import NOTHING, Effect, Setting, Standing, State, enforces, persists
from railwright.snapshot import Snapshot

SOURCE_DIR = "/etc/chrony/sources.d"
SOURCES_FILE = f"{SOURCE_DIR}/railwright.sources"
# A server asked with iburst answers four times within six seconds, and is then selected.
WAIT_S = 15

_SHARED = State(standing=Standing.NOT_APPLICABLE, detail="shares its host's clock")


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    files = snapshot.files(FILES.name)
    found = []
    own = owned_file_setting("time", owned_file(node.time), files)
    if own is not None:
        found.append(own)
    if node.time.sources:
        found.append(_package(snapshot))
        found += _sources(node.time, snapshot, files)
        found += _units(snapshot)
        found.append(_synchronised(node.time, snapshot))
    return found


def owned_file(spec: TimeSpec) -> OwnedFile:
    """Our file of sources; it must not be there where none is asked for."""
    lines = [f"{source_text(address, spec.sources[address])}\n" for address in sorted(spec.sources)]
    return OwnedFile(path=SOURCES_FILE, content=HEADER + "".join(lines) if lines else None)


def source_text(address: str, source: TimeSource) -> str:
    """The directive for a source, in the spelling of ``SourceLine.text``."""
    options = [name for name in ("iburst", "prefer") if getattr(source, name)]
    return SourceLine(
        kind="pool" if source.pool else "server",
        address=canonical_address(address),
        port=source.port,
        options=tuple(options),
        path=SOURCES_FILE,
        line=0,
    ).text


def _installer(snapshot: Snapshot) -> str | None:
    return snapshot.facts(INSTALLED.name).get("installer")


def _installed(snapshot: Snapshot) -> bool:
    return "installed" in snapshot.facts(INSTALLED.name)


def _unit_name(snapshot: Snapshot) -> str:
    return "chrony.service" if _installer(snapshot) == "apt-get" else "chronyd.service"


def _package(snapshot: Snapshot) -> Setting:
    installed = _installed(snapshot)
    return Setting(
        component="time",
        key="package chrony",
        desired="installed",
        persisted=State(standing=Standing.RIGHT, value="installed")
        if installed
        else State(standing=Standing.ABSENT),
        running=NOTHING,
        acts=_installer(snapshot) is not None,
        remedy=None if _installer(snapshot) or installed else "install chrony",
    )


def _sources(spec: TimeSpec, snapshot: Snapshot, files: list[FileRecord]) -> list[Setting]:
    debian = _installer(snapshot) == "apt-get"
    main = "/etc/chrony/chrony.conf" if debian else "/etc/chrony.conf"
    there = any(record.path == main for record in files)
    config = configuration(files, main, SOURCES_FILE)
    # The file that Debian's package will bring names the directory; that of RHEL does not.
    read = SOURCE_DIR in config.source_dirs or (debian and not there)
    running = _running_sources(snapshot)
    found = []
    for address, source in spec.sources.items():
        desired = source_text(address, source)
        persisted = _persisted_source(address, desired, config)
        remedy = None
        if any(record.kind == "unreadable" for record in files):
            persisted = State(standing=Standing.UNREADABLE, detail="a file of chrony's")
        elif persisted.standing is Standing.OVERRIDDEN:
            remedy = f"remove {persisted.decider}: chronyd takes an address once"
        elif not read and persisted.standing is not Standing.RIGHT:
            persisted = State(standing=Standing.OVERRIDDEN, decider=main)
            remedy = f"add the line 'sourcedir {SOURCE_DIR}' to {main}"
        found.append(
            Setting(
                component="time",
                key=f"source {address}",
                desired=desired,
                persisted=persisted,
                running=_running_source(address, desired, running),
                acts=read,
                remedy=remedy,
            )
        )
    return found


def _persisted_source(address: str, desired: str, config: Configuration) -> State:
    line = config.deciding(address)
    if line is None:
        return State(standing=Standing.ABSENT)
    if line.text == desired:
        standing = Standing.RIGHT
    else:
        standing = Standing.WRONG if line.path == SOURCES_FILE else Standing.OVERRIDDEN
    return State(standing=standing, value=line.text, decider=line.where)


def _running_sources(snapshot: Snapshot) -> dict[str, int] | State:
    """What chronyd polls, address to reach; or the one state in which they all are."""
    if snapshot.is_container:
        return _SHARED
    try:
        error = tracking_of(snapshot).error
        if error in ("no_daemon", "not_installed"):
            masked = any(unit.masked for unit in read_units(snapshot, UNITS.name).values())
            return State(
                standing=Standing.LATE if masked else Standing.ABSENT,
                detail="chronyd does not answer",
            )
        return {canonical_address(s.address): s.reach for s in sources_of(snapshot)}
    except ValueError as unread:
        return State(standing=Standing.UNREADABLE, detail=str(unread))


def _running_source(address: str, desired: str, running: dict[str, int] | State) -> State:
    if isinstance(running, State):
        return running
    reach = running.get(canonical_address(address))
    if reach is None:
        return State(standing=Standing.ABSENT, detail="chronyd does not know it")
    # chronyc does not list a source's options: what is polled counts as what was read.
    return State(standing=Standing.RIGHT, value=desired, detail=f"reach {reach:o}")


def _units(snapshot: Snapshot) -> list[Setting]:
    try:
        units = read_units(snapshot, UNITS.name)
    except ValueError as error:
        unread = State(standing=Standing.UNREADABLE, detail=str(error))
        return [_service_setting(unread, unread)]
    name = _unit_name(snapshot)
    unit = units.get(name)
    found = [_service(name, unit if unit and unit.loaded else None, snapshot.is_container)]
    if not snapshot.is_container:
        found += [_rival(units[rival]) for rival in RIVALS if _is_active(units.get(rival))]
    return found


def _service(name: str, unit: Unit | None, shared: bool) -> Setting:
    running = _SHARED if shared else _service_running(unit)
    if unit is None:
        return _service_setting(State(standing=Standing.ABSENT), running)
    if unit.masked:
        mask = f"/etc/systemd/system/{name}"
        persisted = State(standing=Standing.OVERRIDDEN, value="masked", decider=mask)
        return _service_setting(persisted, running, remedy=f"systemctl unmask {name}")
    enabled = unit.file_state == "enabled"
    return _service_setting(
        State(
            standing=Standing.RIGHT if enabled else Standing.WRONG,
            value="on" if enabled else unit.file_state or "off",
            decider=name,
        ),
        running,
    )


def _service_setting(persisted: State, running: State, remedy: str | None = None) -> Setting:
    return Setting(
        component="time",
        key="service",
        desired="on",
        persisted=persisted,
        running=running,
        # What a person has masked is not started either.
        acts=remedy is None,
        remedy=remedy,
    )


def _service_running(unit: Unit | None) -> State:
    if unit is None:
        return State(standing=Standing.ABSENT)
    if unit.active == "active":
        return State(standing=Standing.RIGHT, value="on", decider=unit.name)
    # Starting it interrupts nothing, so that a failed one is started like a stopped one.
    return State(standing=Standing.WRONG, value=unit.active, decider=unit.name)


def _is_active(unit: Unit | None) -> bool:
    return unit is not None and unit.active == "active"


def _rival(unit: Unit) -> Setting:
    return Setting(
        component="time",
        key=f"rival {unit.name}",
        desired="off",
        persisted=NOTHING,
        running=State(standing=Standing.WRONG, value="on", decider=unit.name),
        acts=False,
        remedy=f"systemctl disable --now {unit.name}: two daemons steer one clock",
    )


def _synchronised(spec: TimeSpec, snapshot: Snapshot) -> Setting:
    return Setting(
        component="time",
        key="synchronised",
        desired=f"within {spec.max_offset_ms:g} ms",
        persisted=NOTHING,
        running=_SHARED if snapshot.is_container else _clock(spec, snapshot),
        acts=False,
        why="logs and traces of one job are compared across nodes",
    )


def _clock(spec: TimeSpec, snapshot: Snapshot) -> State:
    try:
        seen = tracking_of(snapshot)
    except ValueError as error:
        return State(standing=Standing.UNREADABLE, detail=str(error))
    if seen.error in ("no_daemon", "not_installed"):
        return State(standing=Standing.ABSENT, detail="chronyd does not answer")
    if seen.error is not None or seen.offset_s is None:
        return State(standing=Standing.UNREADABLE, detail=f"chronyc tracking: {seen.error}")
    off_ms = seen.offset_s * 1000
    source = "its own clock" if seen.local else seen.ref or "nothing"
    detail = f"{off_ms:+.3f} ms, follows {source}, stratum {seen.stratum}, leap status {seen.leap}"
    if seen.synced and abs(off_ms) <= spec.max_offset_ms:
        return State(
            standing=Standing.RIGHT, value=f"within {spec.max_offset_ms:g} ms", detail=detail
        )
    value = f"off by {off_ms:+.3f} ms" if seen.synced else "not synchronised"
    return State(standing=Standing.DEGRADED, value=value, decider=seen.ref, detail=detail)


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    by_key = {setting.key: setting for setting in settings}
    own = owned_file_action(owned_file(node.time), by_key.get(SOURCES_FILE))
    if (package := by_key.get("package chrony")) and persists(package):
        yield _install(_installer(snapshot))
    yield from own
    unit = _unit_name(snapshot)
    if (service := by_key.get("service")) and persists(service):
        yield Run(command=("systemctl", "enable", unit))
    allowed = node.effects.allow
    start = service is not None and enforces(service, allowed)
    if start:
        yield Run(command=("systemctl", "start", unit))
    missing = any(enforces(s, allowed) for k, s in by_key.items() if k.startswith("source "))
    changed = bool(own) and Effect.LIVE in allowed
    if (missing or changed) and (start or _answers(snapshot)):
        yield Run(command=("chronyc", "reload", "sources"))
        if node.time.sources:
            yield _wait(node.time)


def _answers(snapshot: Snapshot) -> bool:
    """Whether there is a chronyd to be told; that of a container's host is none of ours."""
    try:
        return not snapshot.is_container and tracking_of(snapshot).error is None
    except ValueError:
        return False


def _install(installer: str | None) -> Run:
    if installer == "dnf":
        return Run(command=("dnf", "install", "-y", "chrony"))
    return Run(
        command=(
            *APT_INSTALL,
            *("--no-install-recommends", "chrony"),
        )
    )


def _wait(spec: TimeSpec) -> Run:
    """Give the clock a moment to follow; that it does not is for ``synchronised`` to say."""
    limits = f"{WAIT_S} {spec.max_offset_ms / 1000:g} 0 1"
    return Run(command=("sh", "-c", f"chronyc -n waitsync {limits} >/dev/null || :"))


COMPONENT = Component(name="time", sections=SECTIONS, settings=settings, actions=actions)
