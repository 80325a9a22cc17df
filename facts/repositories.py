"""Package repositories: our files, everybody's entries, what was interrupted, what is offered."""

import re
from collections.abc import Iterator
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from facts.packages import OFFERED, parse_madison
from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot, SnapshotError

OURS = Section(
    name="repositories_files",
    for_drivers=True,
    script="""
files /etc/apt/sources.list.d/railwright-*.sources /etc/apt/preferences.d/railwright-*.pref \\
    /etc/apt/keyrings/railwright-*.asc /etc/yum.repos.d/railwright-*.repo \\
    /etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-*
""",
)
# Names and passwords in addresses stay on the node.
ENTRIES = Section(
    name="repositories_entries",
    for_drivers=True,
    script=r"""
set --
for path in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
    /etc/apt/sources.list.d/*.sources /etc/yum.repos.d/*.repo; do
    case $path in */railwright-*) continue ;; esac
    [ -e "$path" ] || continue
    if [ -r "$path" ]; then set -- "$@" "$path"; else echo "unreadable $path"; fi
done
[ $# -eq 0 ] || grep -n '' /dev/null "$@" | sed -e 's#://[^/@ ]*@#://#g'
""",
)
# Files of digits alone are what makes dpkg, and apt, say that dpkg was interrupted. dnf, which has
# nothing to go on with, tells of its last transaction alone that it has no end: then there is no
# state of rpm's database after it.
AUDIT = Section(
    name="packages_audit",
    for_drivers=True,
    script=r"""
if [ -s /var/lib/dpkg/status ]; then
    echo 'manager dpkg'
    [ -n "$RW_PACKAGES" ] || return 0
    for path in /var/lib/dpkg/updates/[0-9]*; do
        [ ! -e "$path" ] || echo "update ${path##*/}"
    done
    {
        dpkg-query -W -f '${db:Status-Status} ${db:Status-Eflag} ${binary:Package}\n' ||
            echo 'failed'
    } | grep -Ev '^(installed|not-installed|config-files) ok '
elif command -v rpm >/dev/null; then
    echo 'manager rpm'
    [ -n "$RW_PACKAGES" ] && command -v dnf >/dev/null || return 0
    dnf -q -C history info last 2>/dev/null | sed -n \
        -e '/^End rpmdb *: *\**$/,$s/^ \*\* *\([A-Za-z]*\) *\([^ ]*\)\.[^. ]* .*/left \1 \2/p'
fi
true
""",
)
# From what dnf has cached, and without its locks, which hide all versions but one.
RPM_OFFERED = Section(
    name="packages_offered_rpm",
    for_drivers=True,
    deadline_s=15,
    script=r"""
[ -n "$RW_PACKAGES" ] && [ ! -s /var/lib/dpkg/status ] || return 0
command -v dnf >/dev/null || return 0
set --
for package in $RW_PACKAGES; do
    name=${package%%=*}
    [ "$name" != "$package" ] || continue
    version=${package#*=}
    there=$(rpm -q --qf '%{EPOCHNUM}:%{VERSION}-%{RELEASE}\n' "$name" | sed 's/^0://')
    [ "$there" = "${version#0:}" ] || set -- "$@" "$name"
done
[ $# -eq 0 ] || dnf -q -C --disableplugin=versionlock repoquery --available --showduplicates \
    --qf '%{name}\t%{epoch}:%{version}-%{release}\n' "$@"
""",
)
SECTIONS = (OURS, ENTRIES, AUDIT, OFFERED, RPM_OFFERED)


class Entry(Model):
    """A repository that some file names; ``suite`` is None in files of dnf, which has none."""

    path: str
    line: int
    url: str
    suite: str | None
    enabled: bool = True

    @property
    def decider(self) -> str:
        return f"{self.path}:{self.line}"


class Audit(Model):
    """The package manager, and what an earlier run of it left off.

    ``broken`` are packages to what dpkg says of them (``half-configured``); ``journal`` tells
    that dpkg was interrupted before it had written down what it did. ``unfinished`` are packages
    to the version that dnf was bringing when it ended in the middle: they may be there beside the
    version before, and without their scripts having been run.
    """

    manager: Literal["dpkg", "rpm"] | None
    journal: bool = False
    broken: dict[str, str] = Field(default={})
    unfinished: dict[str, str] = Field(default={})

    @property
    def interrupted(self) -> list[str]:
        """What was left off, in words; nothing where all is whole."""
        found = [f"{name} {status}" for name, status in sorted(self.broken.items())]
        found += [f"{name} {version}" for name, version in sorted(self.unfinished.items())]
        return ["its journal", *found] if self.journal else found


def plain(url: str) -> str:
    """``url`` as two entries of one repository have it alike."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def host_of(url: str) -> str:
    """The host that apt pins by (``Pin: origin``): empty for a file."""
    return urlsplit(url).hostname or ""


def canonical(version: str) -> str:
    """Epoch 0 and no epoch are one."""
    return version.removeprefix("0:")


def parse_entries(text: str) -> list[Entry]:
    """Read section ``repositories_entries``: ``PATH:LINE:TEXT``.

    Raises ValueError for a file that could not be read, and for what is no such line.
    """
    files: dict[str, list[tuple[int, str]]] = {}
    for line in text.splitlines():
        if line.startswith("unreadable "):
            raise ValueError(f"{line.removeprefix('unreadable ')} cannot be read")
        found = re.fullmatch(r"(/[^:]+):(\d+):(.*)", line)
        if found is None:
            raise ValueError(f"expected a line of a file, got {line[:80]!r}")
        files.setdefault(found[1], []).append((int(found[2]), found[3]))
    entries: list[Entry] = []
    for path, lines in files.items():
        if path.endswith(".sources"):
            entries += _deb822(path, lines)
        elif path.endswith(".repo"):
            entries += _yum(path, lines)
        else:
            entries += _one_line(path, lines)
    return entries


_DEB = re.compile(r"\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)")


def _one_line(path: str, lines: list[tuple[int, str]]) -> Iterator[Entry]:
    """``deb [options] URL SUITE COMPONENT...``."""
    for number, text in lines:
        found = _DEB.match(text)
        if found:
            yield Entry(path=path, line=number, url=found[1], suite=found[2])


def _deb822(path: str, lines: list[tuple[int, str]]) -> Iterator[Entry]:
    """Stanzas of fields, parted by blank lines; a field goes on in lines that are indented."""
    stanza: dict[str, list[tuple[int, str]]] = {}
    field = ""
    for number, text in [*lines, (0, "")]:
        if text.startswith("#"):
            continue
        if not text.strip():
            yield from _stanza(path, stanza)
            stanza, field = {}, ""
        elif text[0] in " \t":
            stanza.setdefault(field, []).append((number, text))
        else:
            field, _, value = text.partition(":")
            field = field.strip().lower()
            stanza[field] = [(number, value)]


def _stanza(path: str, stanza: dict[str, list[tuple[int, str]]]) -> Iterator[Entry]:
    def words(field: str) -> list[str]:
        return [word for _, text in stanza.get(field, []) for word in text.split()]

    # Source: sources.list(5): Enabled is yes unless it says no.
    off = {"no", "false", "without", "off", "disable", "0"}
    if "deb" not in words("types"):
        return
    for number, text in stanza.get("uris", []):
        for url in text.split():
            for suite in words("suites"):
                enabled = not off & {word.lower() for word in words("enabled")}
                yield Entry(path=path, line=number, url=url, suite=suite, enabled=enabled)


def _yum(path: str, lines: list[tuple[int, str]]) -> Iterator[Entry]:
    """Sections of ``key=value``; baseurl may have several, and go on in lines that are indented."""
    urls: list[tuple[int, str]] = []
    enabled, key = True, ""
    for number, text in [*lines, (0, "[")]:
        if text.startswith("["):
            for at, url in urls:
                yield Entry(path=path, line=at, url=url, suite=None, enabled=enabled)
            urls, enabled, key = [], True, ""
        elif text[:1] in "#;" or not text.strip():
            continue
        else:
            value = text
            if text[0] not in " \t":
                key, _, value = text.partition("=")
                key = key.strip().lower()
            if key == "baseurl":
                urls += [(number, url) for url in value.replace(",", " ").split()]
            elif key == "enabled":
                enabled = value.strip().lower() in ("1", "yes", "true", "on")


_BRINGS = frozenset({"Install", "Upgrade", "Downgrade", "Reinstall"})
"""What ``dnf history info`` says of a package that a transaction was to bring; of one that was to
go it says Upgraded, Removed and the like."""


def parse_audit(text: str) -> Audit:
    """Read section ``packages_audit``. Raises ValueError for a line that is not of it."""
    manager, journal, broken, unfinished = None, False, {}, {}
    for line in text.splitlines():
        words = line.split(" ")
        if words[0] == "manager" and len(words) == 2:
            manager = words[1]
        elif words[0] == "update" and len(words) == 2:
            journal = journal or words[1].isdigit()
        elif len(words) == 3 and manager == "dpkg":
            status, flag, name = words
            broken[name] = status if flag == "ok" else f"{status} ({flag})"
        elif len(words) == 3 and words[0] == "left" and words[2].count("-") > 1:
            name, version, release = words[2].rsplit("-", 2)
            if words[1] in _BRINGS:
                unfinished[name] = canonical(f"{version}-{release}")
        else:
            raise ValueError(f"expected a package that was left off, got {line[:80]!r}")
    found = {"manager": manager, "journal": journal, "broken": broken, "unfinished": unfinished}
    return Audit.model_validate(found)


def parse_repoquery(text: str) -> dict[str, set[str]]:
    """Read section ``packages_offered_rpm``: package to the versions offered, without epoch 0."""
    offered: dict[str, set[str]] = {}
    for line in filter(None, text.splitlines()):
        name, tab, version = line.partition("\t")
        if not (name and tab and version):
            raise ValueError(f"expected a package that dnf offers, got {line[:80]!r}")
        offered.setdefault(name, set()).add(canonical(version))
    return offered


def offered_of(snapshot: Snapshot) -> dict[str, set[str]] | None:
    """Versions that the node's repositories are known to offer, of packages that have another.

    None where that could not be asked, such as where dnf has no index yet.
    """
    found: dict[str, set[str]] = {}
    readers = {OFFERED.name: parse_madison, RPM_OFFERED.name: parse_repoquery}
    for name, reader in readers.items():
        try:
            text = snapshot.text(name)
            if snapshot.section(name).rc != 0:
                return None
            found |= reader(text)
        except ValueError:
            return None
    return found


def audit_of(snapshot: Snapshot) -> Audit:
    """Raises ValueError where dpkg could not be asked."""
    text, section = snapshot.text(AUDIT.name), snapshot.section(AUDIT.name)
    if text.endswith("failed\n"):
        raise SnapshotError(f"the package manager: {section.stderr or 'failed'}")
    return parse_audit(text)


class Repositories(Model):
    """What a node has of repositories beside ours, and its package manager's state."""

    entries: list[Entry]
    audit: Audit


class RepositoriesFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.repositories.RepositoriesFact``."""

    sections: ClassVar[tuple[Section, ...]] = (ENTRIES, AUDIT)

    def read(self, snapshot: Snapshot) -> Repositories:
        entries = parse_entries(snapshot.text(ENTRIES.name))
        return Repositories(entries=entries, audit=audit_of(snapshot))
