"""Resource limits: what decides them for logins and services, and what processes have."""

import re
from collections.abc import Iterable

from facts.probe import Section, SnapshotFact
from facts.units import unit_blocks
from railwright.model import Model
from railwright.rlimits import LIMIT_NAMES, PROC_ROWS, UNLIMITED, LimitName, Pair
from railwright.snapshot import Snapshot

PAM_FILES = Section(
    name="limits_pam",
    script="""
meta /etc/debian_version
meta /etc/security/limits.d
for base in /etc/security /usr/etc/security /usr/share/security; do
    files "$base/limits.conf" "$base"/limits.d/*.conf
done
""",
)
"""What pam_limits reads; the directory's own record tells when a file of it came or went."""

MANAGER_FILES = Section(
    name="limits_manager",
    script="""
for base in /etc/systemd /run/systemd /usr/local/lib/systemd /usr/lib/systemd; do
    files "$base/system.conf" "$base"/system.conf.d/*.conf \\
        "$base/user.conf" "$base"/user.conf.d/*.conf
done
""",
)

LOGIN = Section(
    name="limits_login",
    script="""
echo "nr_open=$(cat /proc/sys/fs/nr_open)"
pid=$$
while [ "$pid" -gt 1 ]; do
    read -r stat <"/proc/$pid/stat" || break
    comm=${stat#*\\(}
    comm=${comm%)*}
    # shellcheck disable=SC2086
    set -- ${stat##*)}
    case $comm in sshd* | sudo | su | login)
        boot=$(sed -n 's/^btime //p' /proc/stat)
        # Clock ticks are 1/100 s for user space on all architectures but alpha.
        echo "opener=$comm"
        echo "since=$((boot + ${20} / 100))"
        break ;;
    esac
    pid=$2
done
cat /proc/self/limits
""",
)
"""The limits of the probe's own shell, and which process gave them at which time: PAM sets them
once, when sshd, sudo, su or login opens the session that all below it inherits."""

_PID_LIMITS = """\
limits_of() {
    # shellcheck disable=SC2046
    set -- $(printf '%s\\n' "$show" | sed -n 's|^MainPID=\\([1-9][0-9]*\\)$|/proc/\\1/limits|p')
    [ $# -eq 0 ] || grep -sHE '^Max (locked memory|open files|processes|stack size) ' "$@"
}"""

RUNNING = Section(
    name="limits_running",
    script=f"""
{_PID_LIMITS}
systemctl show --no-pager -p {
        ",".join(f"DefaultLimit{n.upper()},DefaultLimit{n.upper()}Soft" for n in LIMIT_NAMES)
    } || return
echo
show=$(systemctl show --no-pager --state=running -p Id,MainPID '*.service') || return
printf '%s\\n\\n' "$show"
limits_of
true
""",
    deadline_s=15,
)
"""The manager's defaults, then each running service with the limits of its main process."""

UNITS = Section(
    name="limits_units",
    script=f"""
[ -n "$RW_SERVICES" ] || return 0
{_PID_LIMITS}
# shellcheck disable=SC2086
show=$(systemctl show --no-pager \\
    -p Id,Names,LoadState,MainPID,FragmentPath,DropInPaths $RW_SERVICES) || return
printf '%s\\n\\n' "$show"
limits_of
# shellcheck disable=SC2046
set -- $(printf '%s\\n' "$show" | sed -n -e 's/^FragmentPath=//p' -e 's/^DropInPaths=//p')
[ $# -eq 0 ] || grep -sHnE '^[[:space:]]*Limit(MEMLOCK|NOFILE|NPROC|STACK)[[:space:]]*=' "$@"
true
""",
    deadline_s=10,
)
"""The units of ``$RW_SERVICES``: their files, what these say of limits, what their process has."""

SECTIONS = (PAM_FILES, MANAGER_FILES, LOGIN, RUNNING, UNITS)

_PROC_ROW = re.compile(r"^(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)(?:\s+[a-z]+)?\s*$")
_PROC_LINE = re.compile(r"^/proc/(\d+)/limits:(.*)$")
_UNIT_LINE = re.compile(r"^(/[^:]*):(\d+):\s*Limit(\w+)\s*=\s*(.*?)\s*$")


class Login(Model):
    """The limits of the probe's own session; ``since`` (seconds since the epoch) is when
    ``opener`` was started, None where no program that opens PAM sessions is above the probe."""

    limits: dict[LimitName, Pair]
    opener: str | None
    since: int | None
    nr_open: int | None


class Service(Model):
    """A running service; ``limits`` are empty where its process ended meanwhile."""

    unit: str
    pid: int
    limits: dict[LimitName, Pair]


class Running(Model):
    """What the service manager gives to new services, and what those that run have."""

    defaults: dict[LimitName, Pair]
    services: tuple[Service, ...]


class LimitLine(Model):
    """``LimitMEMLOCK=`` and the like in a unit's file; ``value`` as it is written there."""

    path: str
    line: int
    limit: LimitName
    value: str


class Unit(Model):
    """A unit by all its names; ``lines`` in the order in which they take effect, the last wins."""

    names: frozenset[str]
    load_state: str
    pid: int
    limits: dict[LimitName, Pair]
    lines: tuple[LimitLine, ...]


class LimitsSeen(Model):
    """What the probe can tell without the inventory."""

    login: Login
    running: Running


class Limits(SnapshotFact):
    """``pyinfra INVENTORY fact facts.limits.Limits``."""

    sections = (LOGIN, RUNNING)

    def read(self, snapshot: Snapshot) -> LimitsSeen:
        return LimitsSeen(login=read_login(snapshot), running=read_running(snapshot))


def parse_value(text: str) -> int:
    """A value of /proc/PID/limits or ``systemctl show``. Raises ValueError."""
    if text in ("unlimited", "infinity"):
        return UNLIMITED
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{text!r} is no limit: expected a number, infinity or unlimited")
    return int(text)


def parse_proc_limits(text: str) -> dict[LimitName, Pair]:
    """The limits of a /proc/PID/limits, or of some lines of one. Raises ValueError."""
    found = {}
    for line in text.splitlines():
        row = _PROC_ROW.match(line)
        if row and row[1] in PROC_ROWS:
            found[PROC_ROWS[row[1]]] = Pair(soft=parse_value(row[2]), hard=parse_value(row[3]))
    return found


def read_login(snapshot: Snapshot) -> Login:
    """Section ``limits_login``. Raises ValueError where it lacks a limit."""
    limits = parse_proc_limits(snapshot.text(LOGIN.name))
    if missing := [name for name in LIMIT_NAMES if name not in limits]:
        raise ValueError(f"/proc/self/limits has no {', '.join(missing)}")
    facts = snapshot.facts(LOGIN.name)
    return Login(
        limits=limits,
        opener=facts.get("opener"),
        since=int(facts["since"]) if "since" in facts else None,
        nr_open=int(facts["nr_open"]) if facts.get("nr_open") else None,
    )


def read_running(snapshot: Snapshot) -> Running:
    """Section ``limits_running``. Raises ValueError where systemd did not answer in full."""
    blocks = _answer(snapshot, RUNNING.name)
    defaults = {}
    for name in LIMIT_NAMES:
        key = f"DefaultLimit{name.upper()}"
        try:
            hard, soft = blocks[0][key], blocks[0][f"{key}Soft"]
        except (IndexError, KeyError):
            raise ValueError(f"systemctl show gives no {key}") from None
        defaults[name] = Pair(soft=parse_value(soft), hard=parse_value(hard))
    limits = _limits_by_pid(snapshot.text(RUNNING.name).splitlines())
    services = tuple(
        Service(
            unit=block["Id"], pid=int(block["MainPID"]), limits=limits.get(block["MainPID"], {})
        )
        for block in blocks[1:]
        if block.get("MainPID", "0") != "0" and "Id" in block
    )
    return Running(defaults=defaults, services=tuple(sorted(services, key=lambda s: s.unit)))


def read_units(snapshot: Snapshot) -> tuple[Unit, ...]:
    """Section ``limits_units``. Raises ValueError where systemd did not answer."""
    lines = snapshot.text(UNITS.name).splitlines()
    limits = _limits_by_pid(lines)
    found: dict[str, list[LimitLine]] = {}
    for line in lines:
        if (row := _UNIT_LINE.match(line)) and (name := _limit_name(row[3])):
            said = LimitLine(path=row[1], line=int(row[2]), limit=name, value=row[4])
            if said not in found.setdefault(said.path, []):
                found[said.path].append(said)
    return tuple(
        Unit(
            names=frozenset([block["Id"], *block.get("Names", "").split()]),
            load_state=block.get("LoadState", ""),
            pid=int(block.get("MainPID", "0")),
            limits=limits.get(block.get("MainPID", ""), {}),
            lines=tuple(said for path in _unit_files(block) for said in found.get(path, [])),
        )
        for block in _answer(snapshot, UNITS.name)
        if "Id" in block
    )


def _limit_name(word: str) -> LimitName | None:
    return next((name for name in LIMIT_NAMES if name.upper() == word), None)


def _unit_files(block: dict[str, str]) -> list[str]:
    """A unit's own file, then its drop-ins in the order in which they are applied."""
    return [*block.get("FragmentPath", "").split(), *block.get("DropInPaths", "").split()]


def _limits_by_pid(lines: Iterable[str]) -> dict[str, dict[LimitName, Pair]]:
    rows: dict[str, list[str]] = {}
    for line in lines:
        if match := _PROC_LINE.match(line):
            rows.setdefault(match[1], []).append(match[2])
    return {pid: parse_proc_limits("\n".join(found)) for pid, found in rows.items()}


def _answer(snapshot: Snapshot, name: str) -> list[dict[str, str]]:
    """The blocks of ``key=value`` lines that systemctl printed."""
    text = snapshot.text(name)
    section = snapshot.section(name)
    if section.rc != 0:
        raise ValueError(f"systemctl failed: {section.stderr or f'exit {section.rc}'}")
    return unit_blocks(text)
