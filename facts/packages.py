"""Packages that are held: versions, holds, what the repositories offer, who upgraded them last."""

import re
from typing import ClassVar, Literal

from facts.probe import Focus, Section, SnapshotFact, script
from railwright.ledger import PATH as LEDGER
from railwright.model import Model
from railwright.snapshot import Snapshot, SnapshotError

HOLDS_FILE = "/etc/apt/apt.conf.d/99-zz-railwright-holds"
VERSIONLOCK_FILE = "/etc/dnf/plugins/versionlock.list"

FILES = Section(
    name="holds_files",
    script=f"files {HOLDS_FILE} {LEDGER} {VERSIONLOCK_FILE}",
)
# dpkg first: Debian has an rpm package too. Fields are parted by tabs, for some may be empty.
PACKAGES = Section(
    name="packages",
    script=r"""
[ -n "$RW_PACKAGES" ] || return 0
set --
for package in $RW_PACKAGES; do set -- "$@" "${package%%=*}"; done
if [ -s /var/lib/dpkg/status ]; then
    echo 'manager dpkg'
    dpkg-query -W -f '${binary:Package}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\n' \
        "$@"
elif command -v rpm >/dev/null; then
    echo 'manager rpm'
    rpm -q --qf '%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\tinstall\tinstalled\n' "$@"
fi
""",
)
# apt reads its index for this (0.3 s), so only where a version differs from the one named.
OFFERED = Section(
    name="packages_offered",
    deadline_s=15,
    script=r"""
[ -s /var/lib/dpkg/status ] || return 0
set --
for package in $RW_PACKAGES; do
    name=${package%%=*}
    [ "$name" != "$package" ] || continue
    dpkg-query -W -f '${Version}\n' "$name" 2>/dev/null |
        grep -qxF -e "${package#*=}" || set -- "$@" "$name"
done
[ $# -eq 0 ] || apt-cache madison "$@"
""",
)
# One package a line, so that what is kept of a large upgrade are the packages asked for.
HISTORY = Section(
    name="apt_history",
    cap_bytes=1 << 17,
    script=r"""
[ -n "$RW_PACKAGES" ] && [ -r /var/log/apt/history.log ] || return 0
set -- -e 'Start-Date: ' -e 'Commandline: ' -e 'Install: ' -e 'Upgrade: ' -e 'Downgrade: ' \
    -e 'Reinstall: ' -e 'Remove: ' -e 'Purge: '
for package in $RW_PACKAGES; do set -- "$@" -e " ${package%%=*}:"; done
tail -c 262144 /var/log/apt/history.log |
    sed -e 's/), /)\
 /g' | grep -F "$@"
true
""",
)
BLACKLIST = Section(
    name="apt_blacklist",
    script="""
[ -n "$RW_PACKAGES" ] && command -v apt-config >/dev/null || return 0
apt-config dump Unattended-Upgrade::Package-Blacklist
""",
)
SECTIONS = (FILES, PACKAGES, OFFERED, HISTORY, BLACKLIST)


class Package(Model):
    """One package as the package manager has it; ``name`` with its architecture (``x:amd64``)
    where dpkg writes it so.
    """

    name: str
    version: str
    held: bool
    installed: bool

    @property
    def base(self) -> str:
        return self.name.partition(":")[0]


class Packages(Model):
    """``manager`` is None where nothing was asked, or where there is none that is known."""

    manager: Literal["dpkg", "rpm"] | None
    packages: tuple[Package, ...]

    def installed(self, name: str) -> list[Package]:
        """The package in each architecture in which it is installed."""
        return [p for p in self.packages if p.base == name and p.installed]


class Change(Model):
    """A version that a transaction of apt left behind; ``date`` in the node's time zone."""

    name: str
    old: str | None
    new: str
    date: str
    command: str


def parse_packages(text: str) -> Packages:
    """Read section ``packages``. Raises ValueError for a line that is not as it prints them."""
    lines = text.splitlines()
    if not lines:
        return Packages(manager=None, packages=())
    head, *rest = lines
    manager = head.removeprefix("manager ")
    if manager not in ("dpkg", "rpm"):
        raise ValueError(f"expected a package manager, got {head[:80]!r}")
    found = []
    for line in rest:
        if line.startswith("package ") and line.endswith(" is not installed"):
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            raise ValueError(f"expected a package, got {line[:80]!r}")
        name, version, want, status = fields
        found.append(
            Package(
                name=name,
                version=version,
                held=want == "hold",
                installed=status not in ("not-installed", "config-files"),
            )
        )
    return Packages.model_validate({"manager": manager, "packages": found})


def parse_madison(text: str) -> dict[str, set[str]]:
    """Read ``apt-cache madison``: package to the versions that are offered."""
    offered: dict[str, set[str]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 3 or not fields[0] or not fields[1]:
            raise ValueError(f"expected a line of apt-cache madison, got {line[:80]!r}")
        offered.setdefault(fields[0], set()).add(fields[1])
    return offered


def parse_history(text: str) -> list[Change]:
    """Read apt's history.log, the oldest first, with packages on one line or each on its own.

    What is before the first Start-Date is cut off, and passed over. Removals leave no version.
    """
    found = []
    date = command = ""
    leaves = False
    for line in text.splitlines():
        key, colon, value = line.partition(": ")
        if colon and key == "Start-Date":
            date, command, leaves = " ".join(value.split()), "", False
        elif colon and key == "Commandline":
            command = value
        elif date:
            # A package that follows on a line of its own belongs to the list that was begun.
            leaves = leaves if line.startswith(" ") else key not in ("Remove", "Purge", "Error")
            if leaves:
                found += _changes(line, date, command)
    return found


# ``name:arch (old, new)``, ``name:arch (new)`` or ``name:arch (new, automatic)``.
_CHANGE = re.compile(
    r"(?:^|\s)([a-z0-9][a-z0-9+.-]+):[a-z0-9-]+ "
    r"\((?:([^,() ]+), )?(?!automatic\))([^,() ]+)(?:, automatic)?\)"
)


def _changes(line: str, date: str, command: str) -> list[Change]:
    return [
        Change(
            name=name,
            old=old or None,
            new=new,
            date=date,
            command=command or "a command that apt does not name",
        )
        for name, old, new in _CHANGE.findall(line)
    ]


def parse_blacklist(text: str) -> list[str]:
    """The regular expressions in ``apt-config dump Unattended-Upgrade::Package-Blacklist``."""
    return re.findall(r'^Unattended-Upgrade::Package-Blacklist::\S* "(.*)";$', text, re.MULTILINE)


def packages_of(snapshot: Snapshot) -> Packages:
    """Raises ValueError where the package manager could not be asked."""
    text = snapshot.text(PACKAGES.name)
    section = snapshot.section(PACKAGES.name)
    found = parse_packages(text)
    # dpkg-query exits 1 for a name that it does not know, and 2 where it fails; rpm exits with
    # the number of names that it does not know. A shell that failed knows of no package manager.
    if section.rc not in (0, 1) and found.manager != "rpm":
        raise SnapshotError(f"the package manager: {section.stderr or section.rc}")
    return found


class PackagesFact(SnapshotFact):
    """Packages by name: ``pyinfra INVENTORY fact facts.packages.PackagesFact packages=a,b``."""

    sections: ClassVar[tuple[Section, ...]] = (PACKAGES,)

    def command(self, packages: str = "") -> str:
        names = tuple(name for name in packages.split(",") if name)
        return script(self.sections, Focus(packages=names))

    def read(self, snapshot: Snapshot) -> Packages:
        return packages_of(snapshot)
