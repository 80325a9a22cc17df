"""Resource limits of logins (pam_limits), of services (systemd), and of services that run."""

from collections.abc import Iterator

from facts.limits import MANAGER_FILES, PAM_FILES, SECTIONS, Login, read_login
from railwright.actions import Action
from railwright.actions import Run as RunCommand
from railwright.component import Component
from railwright.owned import HEADER, OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve.limits import DROPINS, Bound
from railwright.resolve.limits_view import LoginsView, ServicesView, refused
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
from railwright.settings import Effect, Setting, Standing, State, enforces
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


def owned_files(node: Node, login: Login) -> tuple[OwnedFile, OwnedFile, OwnedFile]:
    """Our files for logins, for the system manager and for user managers."""
    limits = wanted(node.limits)
    lines = [
        f"{domain} {bound} {name} {pam_value(name, value)}\n"
        for name, value in limits.items()
        if not refused(name, value, login)
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


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    login = read_login(snapshot)
    owned = owned_files(node, login)
    pam, manager = snapshot.files(PAM_FILES.name), snapshot.files(MANAGER_FILES.name)
    files = [owned_file_setting(NAME, one, [*pam, *manager]) for one in owned]
    found = [setting for setting in files if setting is not None]
    limits = wanted(node.limits)
    if not limits:
        return found
    logins = LoginsView(snapshot, login, pam, owned[0])
    for name, value in limits.items():
        for bound in _BOUNDS:
            found.append(_all_users(logins, name, bound, value))
            found.append(_root(logins, name, bound, value))
    services = ServicesView(snapshot, manager, owned[1])
    for name, value in limits.items():
        found.append(_default(services, name, service_pair(name, value)))
    for unit in sorted(node.limits.services):
        for name, value in limits.items():
            found.append(_of_unit(services, unit, name, service_pair(name, value)))
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


def _all_users(logins: LoginsView, name: LimitName, bound: Bound, value: int) -> Setting:
    persisted = logins.of_all_users(name, bound, value)
    return _login(f"pam * {bound} {name}", name, value, logins.login, persisted, _OTHERS)


def _root(logins: LoginsView, name: LimitName, bound: Bound, value: int) -> Setting:
    persisted = logins.of_root(name, bound, value)
    running = logins.has_root(name, bound, value, persisted)
    return _login(f"pam root {bound} {name}", name, value, logins.login, persisted, running)


def _login(
    key: str, name: LimitName, value: int, login: Login, persisted: State, running: State
) -> Setting:
    remedy = None
    if persisted.standing is Standing.OVERRIDDEN:
        remedy = f"remove or change the line {persisted.decider}"
    elif refused(name, value, login):
        remedy = f"raise fs.nr_open (sysctl.values) to {value} or more first"
    elif persisted.standing is Standing.RIGHT and running.standing is Standing.WRONG:
        remedy = (
            "see that 'session required pam_limits.so' is in the PAM stack of "
            f"{login.opener}, and UsePAM yes in sshd_config"
        )
    return Setting(
        component=NAME,
        key=key,
        desired=bound_text(name, value),
        persisted=persisted,
        running=running,
        effect=Effect.NEW_PROCESSES,
        acts=remedy is None,
        remedy=remedy,
        why=WHY.get(name),
    )


def _default(services: ServicesView, name: LimitName, pair: Pair) -> Setting:
    persisted = services.of_default(name, pair)
    overridden = persisted.standing is Standing.OVERRIDDEN
    return Setting(
        component=NAME,
        key=f"systemd default {name}",
        desired=pair_text(name, pair),
        persisted=persisted,
        running=services.has_default(name, pair),
        effect=Effect.NEW_PROCESSES,
        acts=not overridden,
        remedy=f"remove the line {persisted.decider}" if overridden else None,
        why=WHY.get(name),
    )


def _of_unit(services: ServicesView, unit: str, name: LimitName, pair: Pair) -> Setting:
    persisted, running = services.of_unit(unit, name, pair)
    overridden = persisted.standing is Standing.OVERRIDDEN
    remedy = f"change {persisted.decider}, or override it: systemctl edit {unit}"
    return Setting(
        component=NAME,
        key=f"service {unit} {name}",
        desired=pair_text(name, pair),
        persisted=persisted,
        running=running,
        effect=Effect.SERVICE,
        acts=not overridden,
        remedy=remedy if overridden else None,
        why=WHY.get(name),
    )


COMPONENT = Component(name=NAME, sections=SECTIONS, settings=settings, actions=actions)
