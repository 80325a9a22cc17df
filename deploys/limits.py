"""Resource limits of logins (pam_limits), of services (systemd), and of services that run."""

from collections.abc import Iterable, Iterator

from facts.limits import (
    MANAGER_FILES,
    PAM_FILES,
    SECTIONS,
    Login,
    Running,
    Unit,
    read_login,
    read_running,
    read_units,
)
from railwright.actions import Action
from railwright.actions import Run as RunCommand
from railwright.component import Component
from railwright.files import FileRecord
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve.limits import (
    DROPINS,
    MAIN,
    ORDINARY,
    Bound,
    Subject,
    decide,
    exceptions,
    pam_files,
    pam_lines,
)
from railwright.resolve.manager import Decision, decide_default, decide_own, manager_files
from railwright.rlimits import (
    LimitName,
    Pair,
    bound_text,
    pair_text,
    pam_value,
    service_pair,
    systemd_value,
    wanted,
)
from railwright.schema import Node
from railwright.settings import HOSTS_KERNEL, Effect, Setting, Standing, State, enforces
from railwright.snapshot import Snapshot

NAME = "limits"
PAM_FILE = f"{DROPINS}/99-zz-railwright.conf"
SYSTEM_FILE = "/etc/systemd/system.conf.d/99-zz-railwright.conf"
USER_FILE = "/etc/systemd/user.conf.d/99-zz-railwright.conf"

WHY: dict[LimitName, str] = {
    "memlock": "RDMA pins its buffers: with a limit ibv_reg_mr and ibv_create_qp fail with "
    "'Cannot allocate memory' (NVIDIA/nccl-tests#206)",
}
_OTHERS = State(standing=Standing.NOT_APPLICABLE, detail="the probe sees no login but its own")
_BOUNDS: tuple[Bound, ...] = ("soft", "hard")
_PROBED_BYTES = 65536


def owned_files(node: Node, login: Login) -> tuple[OwnedFile, OwnedFile, OwnedFile]:
    """Our files for logins, for the system manager and for user managers."""
    limits = wanted(node.limits)
    lines = [
        f"{domain} {bound} {name} {pam_value(name, value)}\n"
        for name, value in limits.items()
        if not _refused(name, value, login)
        for domain in ("*", "root")
        for bound in _BOUNDS
    ]
    manager = None
    if limits:
        defaults = [
            f"DefaultLimit{name.upper()}={systemd_value(name, service_pair(name, value))}\n"
            for name, value in limits.items()
        ]
        manager = f"{HEADER}[Manager]\n{''.join(defaults)}"
    return (
        OwnedFile(path=PAM_FILE, content=HEADER + "".join(lines) if lines else None),
        OwnedFile(path=SYSTEM_FILE, content=manager),
        OwnedFile(path=USER_FILE, content=manager),
    )


def _refused(name: LimitName, value: int, login: Login) -> bool:
    """Whether the kernel would refuse ``value``, and a login with it be denied."""
    return name == "nofile" and (login.nr_open is None or value > login.nr_open)


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    login = read_login(snapshot)
    owned = owned_files(node, login)
    pam, manager = snapshot.files(PAM_FILES.name), snapshot.files(MANAGER_FILES.name)
    files = [owned_file_setting(NAME, one, [*pam, *manager]) for one in owned]
    found = [setting for setting in files if setting is not None]
    limits = wanted(node.limits)
    if not limits:
        return found
    logins = _Logins(snapshot, login, pam, owned[0])
    for name, value in limits.items():
        for bound in _BOUNDS:
            found.append(logins.all_users(name, bound, value))
            found.append(logins.root(name, bound, value))
    services = _Services(snapshot, manager, owned[1])
    for name, value in limits.items():
        found.append(services.default(name, service_pair(name, value)))
    for unit in sorted(node.limits.services):
        for name, value in limits.items():
            found.append(services.of_unit(unit, name, service_pair(name, value)))
    return found


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    allowed = node.effects.allow
    by_key = {setting.key: setting for setting in settings}
    changed = set()
    for owned in owned_files(node, read_login(snapshot)):
        for action in owned_file_action(owned, by_key.get(owned.path)):
            changed.add(owned.path)
            yield action
    waits = any(s.key.startswith("systemd default ") and enforces(s, allowed) for s in settings)
    drops = SYSTEM_FILE in changed and Effect.NEW_PROCESSES in allowed and not snapshot.is_container
    if waits or drops:
        # A reload would do from systemd 252 on; older ones keep a default whose line is gone.
        yield RunCommand(command=("systemctl", "daemon-reexec"))
    # Until the manager has the default, a restart would only give the old limit again.
    late = {
        setting.key.rpartition(" ")[2]
        for setting in settings
        if setting.key.startswith("systemd default ")
        and setting.running.standing is Standing.WRONG
        and not enforces(setting, allowed)
    }
    for unit in sorted(node.limits.services):
        own = [
            setting
            for setting in settings
            if setting.key.startswith(f"service {unit} ")
            and setting.key.rpartition(" ")[2] not in late
        ]
        if any(enforces(setting, allowed) for setting in own):
            yield RunCommand(command=("systemctl", "restart", unit))


COMPONENT = Component(name=NAME, sections=SECTIONS, settings=settings, actions=actions)


def _with(files: Iterable[FileRecord], owned: OwnedFile) -> list[FileRecord]:
    """The files as they will be with ours in place."""
    rest = [record for record in files if record.path != owned.path]
    if owned.content is None:
        return rest
    return [*rest, FileRecord(path=owned.path, kind="file", content=owned.content, size=1)]


def _unread(files: Iterable[FileRecord]) -> State | None:
    """Why it cannot be told which of ``files`` decides, if so."""
    for record in files:
        if record.kind == "unreadable":
            return State(standing=Standing.UNREADABLE, detail=f"{record.path} cannot be read")
        if record.size is not None and record.size > _PROBED_BYTES and record.content is not None:
            return State(standing=Standing.UNREADABLE, detail=f"{record.path} is too long to read")
    return None


class _Logins:
    """The settings of logins of one node."""

    def __init__(
        self, snapshot: Snapshot, login: Login, files: list[FileRecord], owned: OwnedFile
    ) -> None:
        self.container = snapshot.is_container
        self.uid = snapshot.facts("identity").get("uid")
        self.login = login
        self.unread = _unread(pam_files(files))
        self.lines = pam_lines(files)
        self.lines_after = pam_lines(_with(files, owned))
        # Debian and its kin keep wildcards from root; others do not.
        debian = any(record.path == "/etc/debian_version" for record in files)
        self.root_subject = Subject(root=True, wildcard=not debian)
        relevant = [record for record in files if record.path.startswith((MAIN, DROPINS))]
        self.newest = max(relevant, key=lambda record: record.mtime or 0, default=None)

    def all_users(self, name: LimitName, bound: Bound, value: int) -> Setting:
        persisted = self._persisted(name, bound, value, ORDINARY)
        fewer = exceptions(self.lines, name, bound, value)
        if fewer and persisted.standing is Standing.RIGHT:
            who = ", ".join(
                f"{domain} by {found.decider}: "
                + ("as before login" if found.value is None else bound_text(name, found.value))
                for domain, found in fewer
            )
            persisted = persisted.model_copy(
                update={
                    "standing": Standing.OVERRIDDEN,
                    "decider": fewer[0][1].decider,
                    "detail": f"has its own limit: {who}",
                }
            )
        return self._setting(f"pam * {bound} {name}", name, value, persisted, _OTHERS)

    def root(self, name: LimitName, bound: Bound, value: int) -> Setting:
        persisted = self._persisted(name, bound, value, self.root_subject)
        running = self._root_running(name, bound, value, persisted)
        return self._setting(f"pam root {bound} {name}", name, value, persisted, running)

    def _setting(
        self, key: str, name: LimitName, value: int, persisted: State, running: State
    ) -> Setting:
        acts, remedy = True, None
        if persisted.standing is Standing.OVERRIDDEN:
            acts = False
            remedy = f"remove or change the line {persisted.decider}"
        elif _refused(name, value, self.login):
            acts = False
            remedy = f"raise fs.nr_open (sysctl.values) to {value} or more first"
        elif persisted.standing is Standing.RIGHT and running.standing is Standing.WRONG:
            acts = False
            remedy = (
                "see that 'session required pam_limits.so' is in the PAM stack of "
                f"{self.login.opener}, and UsePAM yes in sshd_config"
            )
        return Setting(
            component=NAME,
            key=key,
            desired=bound_text(name, value),
            persisted=persisted,
            running=running,
            effect=Effect.NEW_PROCESSES,
            acts=acts,
            remedy=remedy,
            why=WHY.get(name),
        )

    def _persisted(self, name: LimitName, bound: Bound, value: int, subject: Subject) -> State:
        if self.unread:
            return self.unread
        now = decide(self.lines, name, bound, subject)
        after = decide(self.lines_after, name, bound, subject)
        if now and now.value == value:
            standing = Standing.RIGHT
        elif _refused(name, value, self.login) or (after and after.value == value):
            standing = Standing.WRONG if now else Standing.ABSENT
        else:
            standing, now = Standing.OVERRIDDEN, after
        detail = None
        if standing is not Standing.RIGHT and _refused(name, value, self.login):
            detail = f"fs.nr_open is {self.login.nr_open}: a login with more is denied"
        elif now and now.value is None:
            detail = "frees the login of all limits: it keeps those that it comes with"
        return State(
            standing=standing,
            value=None if now is None or now.value is None else bound_text(name, now.value),
            decider=now.decider if now else None,
            detail=detail,
        )

    def _root_running(self, name: LimitName, bound: Bound, value: int, persisted: State) -> State:
        if self.container:
            return HOSTS_KERNEL
        if self.uid != "0":
            return State(standing=Standing.NOT_APPLICABLE, detail="the probe is not root's login")
        since = self.login.since
        if since is None:
            reason = "no program that opens PAM sessions is above the probe"
            return State(standing=Standing.NOT_APPLICABLE, detail=reason)
        found: int = getattr(self.login.limits[name], bound)
        text = bound_text(name, found)
        if found == value:
            return State(standing=Standing.RIGHT, value=text)
        newest = self.newest
        if newest and since <= (newest.mtime or 0) and persisted.standing is Standing.RIGHT:
            # What this session has was decided before the files became what they are.
            return State(
                standing=Standing.RIGHT,
                value=bound_text(name, value),
                detail=f"the next login has it; this one, with {text}, is older than {newest.path}",
            )
        return State(
            standing=Standing.WRONG, value=text, detail=f"in a login through {self.login.opener}"
        )


class _Services:
    """The settings of the service manager and of services of one node."""

    def __init__(self, snapshot: Snapshot, files: list[FileRecord], owned: OwnedFile) -> None:
        self.snapshot = snapshot
        self.files = files
        self.files_after = _with(files, owned)
        self.unread = _unread(manager_files(files, "system"))
        self.running: Running | None = None
        self.silence: str | None = None
        try:
            self.running = read_running(snapshot)
        except ValueError as error:
            self.silence = str(error)
        self.units: tuple[Unit, ...] = ()
        self.no_units: str | None = None
        try:
            self.units = read_units(snapshot)
        except ValueError as error:
            self.no_units = str(error)

    def default(self, name: LimitName, pair: Pair) -> Setting:
        persisted = self._decided(name, pair)
        overridden = persisted.standing is Standing.OVERRIDDEN
        return Setting(
            component=NAME,
            key=f"systemd default {name}",
            desired=pair_text(name, pair),
            persisted=persisted,
            running=self._manager(name, pair),
            effect=Effect.NEW_PROCESSES,
            acts=not overridden,
            remedy=f"remove the line {persisted.decider}" if overridden else None,
            why=WHY.get(name),
        )

    def _decided(self, name: LimitName, pair: Pair) -> State:
        if self.unread:
            return self.unread
        now = decide_default(self.files, "system", name)
        after = decide_default(self.files_after, "system", name)
        if now and now.pair == pair:
            return _state(Standing.RIGHT, name, now)
        if after and after.pair == pair:
            return _state(Standing.WRONG if now else Standing.ABSENT, name, now)
        return _state(Standing.OVERRIDDEN, name, after)

    def _manager(self, name: LimitName, pair: Pair) -> State:
        if self.snapshot.is_container:
            return HOSTS_KERNEL
        if self.running is None:
            return State(standing=Standing.UNREADABLE, detail=self.silence)
        found = self.running.defaults[name]
        if found != pair:
            return State(standing=Standing.WRONG, value=pair_text(name, found), decider="systemd")
        behind = [
            service.unit
            for service in self.running.services
            if name in service.limits and not service.limits[name].at_least(pair)
        ]
        detail = None
        if name == "memlock" and behind:
            more = f" and {len(behind) - 5} more" if len(behind) > 5 else ""
            detail = f"still with less until restarted: {', '.join(behind[:5])}{more}"
        return State(standing=Standing.RIGHT, value=pair_text(name, found), detail=detail)

    def of_unit(self, wanted_unit: str, name: LimitName, pair: Pair) -> Setting:
        unit = next((unit for unit in self.units if wanted_unit in unit.names), None)
        if unit is None:
            reason = self.no_units or f"the probe was not asked for {wanted_unit}"
            persisted = running = State(standing=Standing.UNREADABLE, detail=reason)
        elif unit.load_state != "loaded":
            absent = unit.load_state in ("not-found", "masked")
            standing = Standing.NOT_APPLICABLE if absent else Standing.UNREADABLE
            reason = f"the unit is {unit.load_state}"
            persisted = running = State(standing=standing, detail=reason)
        else:
            persisted = self._of_files(unit, name, pair)
            running = self._of_process(unit, wanted_unit, name, pair)
        overridden = persisted.standing is Standing.OVERRIDDEN
        remedy = f"change {persisted.decider}, or override it: systemctl edit {wanted_unit}"
        return Setting(
            component=NAME,
            key=f"service {wanted_unit} {name}",
            desired=pair_text(name, pair),
            persisted=persisted,
            running=running,
            effect=Effect.SERVICE,
            acts=not overridden,
            remedy=remedy if overridden else None,
            why=WHY.get(name),
        )

    def _of_files(self, unit: Unit, name: LimitName, pair: Pair) -> State:
        own = decide_own(
            name, ((f"{x.path}:{x.line}", x.value) for x in unit.lines if x.limit == name)
        )
        if own is not None:
            right = own.pair.at_least(pair)
            return _state(Standing.RIGHT if right else Standing.OVERRIDDEN, name, own)
        return self._decided(name, pair)

    def _of_process(self, unit: Unit, wanted_unit: str, name: LimitName, pair: Pair) -> State:
        if self.snapshot.is_container:
            return HOSTS_KERNEL
        if unit.pid == 0:
            return State(standing=Standing.NOT_APPLICABLE, detail="the service does not run")
        if name not in unit.limits:
            detail = f"the limits of process {unit.pid} cannot be read"
            return State(standing=Standing.UNREADABLE, detail=detail)
        found = unit.limits[name]
        right = found.at_least(pair)
        return State(
            standing=Standing.RIGHT if right else Standing.WRONG,
            value=pair_text(name, found),
            decider=f"process {unit.pid}",
            detail=None if right else f"{wanted_unit} keeps it until it is restarted",
        )


def _state(standing: Standing, name: LimitName, decision: Decision | None) -> State:
    return State(
        standing=standing,
        value=pair_text(name, decision.pair) if decision else None,
        decider=decision.decider if decision else None,
    )
