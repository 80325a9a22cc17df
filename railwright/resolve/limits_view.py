"""How the limits of a node's logins and services stand: what decides them, and what they have."""

from collections.abc import Iterable

from facts.limits import Login, Running, Unit, read_running, read_units
from railwright.files import FileRecord
from railwright.owned import OwnedFile
from railwright.resolve.arguments import with_file
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
from railwright.rlimits import LimitName, Pair, bound_text, pair_text
from railwright.settings import HOSTS_KERNEL, Standing, State
from railwright.snapshot import Snapshot

_PROBED_BYTES = 65536


def refused(name: LimitName, value: int, login: Login) -> bool:
    """Whether the kernel would refuse ``value``, and a login with it be denied."""
    return name == "nofile" and (login.nr_open is None or value > login.nr_open)


class LoginsView:
    """What logins get from the files, and what the probe's own has.

    ``owned`` is our file as it is to be: what the files come to with it in place tells apart what
    a run will put right and what another line decides all the same.
    """

    def __init__(
        self, snapshot: Snapshot, login: Login, files: list[FileRecord], owned: OwnedFile
    ) -> None:
        self.login = login
        self._container = snapshot.is_container
        self._uid = snapshot.facts("identity").get("uid")
        self._unread = _unread(pam_files(files))
        self._lines = pam_lines(files)
        self._lines_after = pam_lines(with_file(files, owned))
        # Debian and its kin keep wildcards from root; others do not.
        debian = any(record.path == "/etc/debian_version" for record in files)
        self._root = Subject(root=True, wildcard=not debian)
        relevant = [record for record in files if record.path.startswith((MAIN, DROPINS))]
        self._newest = max(relevant, key=lambda record: record.mtime or 0, default=None)

    def of_all_users(self, name: LimitName, bound: Bound, value: int) -> State:
        """What the files give to ordinary users, and who of them gets less."""
        persisted = self._persisted(name, bound, value, ORDINARY)
        fewer = exceptions(self._lines, name, bound, value)
        if not fewer or persisted.standing is not Standing.RIGHT:
            return persisted
        who = ", ".join(
            f"{domain} by {found.decider}: "
            + ("as before login" if found.value is None else bound_text(name, found.value))
            for domain, found in fewer
        )
        return persisted.model_copy(
            update={
                "standing": Standing.OVERRIDDEN,
                "decider": fewer[0][1].decider,
                "detail": f"has its own limit: {who}",
            }
        )

    def of_root(self, name: LimitName, bound: Bound, value: int) -> State:
        """What the files give to root."""
        return self._persisted(name, bound, value, self._root)

    def _persisted(self, name: LimitName, bound: Bound, value: int, subject: Subject) -> State:
        if self._unread:
            return self._unread
        now = decide(self._lines, name, bound, subject)
        after = decide(self._lines_after, name, bound, subject)
        if now and now.value == value:
            standing = Standing.RIGHT
        elif refused(name, value, self.login) or (after and after.value == value):
            standing = Standing.WRONG if now else Standing.ABSENT
        else:
            standing, now = Standing.OVERRIDDEN, after
        detail = None
        if standing is not Standing.RIGHT and refused(name, value, self.login):
            detail = f"fs.nr_open is {self.login.nr_open}: a login with more is denied"
        elif now and now.value is None:
            detail = "frees the login of all limits: it keeps those that it comes with"
        return State(
            standing=standing,
            value=None if now is None or now.value is None else bound_text(name, now.value),
            decider=now.decider if now else None,
            detail=detail,
        )

    def has_root(self, name: LimitName, bound: Bound, value: int, persisted: State) -> State:
        """What root's login has; one that is older than the files says nothing of the next."""
        if self._container:
            return HOSTS_KERNEL
        if self._uid != "0":
            return State(standing=Standing.NOT_APPLICABLE, detail="the probe is not root's login")
        since = self.login.since
        if since is None:
            reason = "no program that opens PAM sessions is above the probe"
            return State(standing=Standing.NOT_APPLICABLE, detail=reason)
        found: int = getattr(self.login.limits[name], bound)
        text = bound_text(name, found)
        if found == value:
            return State(standing=Standing.RIGHT, value=text)
        newest = self._newest
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


class ServicesView:
    """What the service manager and services get from the files, and what they have.

    ``owned`` is our file of the system manager as it is to be.
    """

    def __init__(self, snapshot: Snapshot, files: list[FileRecord], owned: OwnedFile) -> None:
        self._container = snapshot.is_container
        self._files = files
        self._files_after = with_file(files, owned)
        self._unread = _unread(manager_files(files, "system"))
        self._running: Running | None = None
        self._silence: str | None = None
        try:
            self._running = read_running(snapshot)
        except ValueError as error:
            self._silence = str(error)
        self._units: tuple[Unit, ...] = ()
        self._no_units: str | None = None
        try:
            self._units = read_units(snapshot)
        except ValueError as error:
            self._no_units = str(error)

    def of_default(self, name: LimitName, pair: Pair) -> State:
        """What the files give to the system manager as its default."""
        if self._unread:
            return self._unread
        now = decide_default(self._files, "system", name)
        after = decide_default(self._files_after, "system", name)
        if now and now.pair == pair:
            return _decided(Standing.RIGHT, name, now)
        if after and after.pair == pair:
            return _decided(Standing.WRONG if now else Standing.ABSENT, name, now)
        return _decided(Standing.OVERRIDDEN, name, after)

    def has_default(self, name: LimitName, pair: Pair) -> State:
        """The default that the manager has, and which services still have less locked memory."""
        if self._container:
            return HOSTS_KERNEL
        if self._running is None:
            return State(standing=Standing.UNREADABLE, detail=self._silence)
        found = self._running.defaults[name]
        if found != pair:
            return State(standing=Standing.WRONG, value=pair_text(name, found), decider="systemd")
        behind = [
            service.unit
            for service in self._running.services
            if name in service.limits and not service.limits[name].at_least(pair)
        ]
        detail = None
        if name == "memlock" and behind:
            more = f" and {len(behind) - 5} more" if len(behind) > 5 else ""
            detail = f"still with less until restarted: {', '.join(behind[:5])}{more}"
        return State(standing=Standing.RIGHT, value=pair_text(name, found), detail=detail)

    def of_unit(self, wanted_unit: str, name: LimitName, pair: Pair) -> tuple[State, State]:
        """What the files give to a unit, and what its process has."""
        unit = next((unit for unit in self._units if wanted_unit in unit.names), None)
        if unit is None:
            reason = self._no_units or f"the probe was not asked for {wanted_unit}"
            unknown = State(standing=Standing.UNREADABLE, detail=reason)
            return unknown, unknown
        if unit.load_state != "loaded":
            absent = unit.load_state in ("not-found", "masked")
            standing = Standing.NOT_APPLICABLE if absent else Standing.UNREADABLE
            unknown = State(standing=standing, detail=f"the unit is {unit.load_state}")
            return unknown, unknown
        return self._of_files(unit, name, pair), self._of_process(unit, wanted_unit, name, pair)

    def _of_files(self, unit: Unit, name: LimitName, pair: Pair) -> State:
        own = decide_own(
            name, ((f"{x.path}:{x.line}", x.value) for x in unit.lines if x.limit == name)
        )
        if own is not None:
            right = own.pair.at_least(pair)
            return _decided(Standing.RIGHT if right else Standing.OVERRIDDEN, name, own)
        return self.of_default(name, pair)

    def _of_process(self, unit: Unit, wanted_unit: str, name: LimitName, pair: Pair) -> State:
        if self._container:
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


def _unread(files: Iterable[FileRecord]) -> State | None:
    """Why it cannot be told which of ``files`` decides, if so."""
    for record in files:
        if record.kind == "unreadable":
            return State(standing=Standing.UNREADABLE, detail=f"{record.path} cannot be read")
        if record.size is not None and record.size > _PROBED_BYTES and record.content is not None:
            return State(standing=Standing.UNREADABLE, detail=f"{record.path} is too long to read")
    return None


def _decided(standing: Standing, name: LimitName, decision: Decision | None) -> State:
    return State(
        standing=standing,
        value=pair_text(name, decision.pair) if decision else None,
        decider=decision.decider if decision else None,
    )
