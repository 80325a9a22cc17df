"""Kernel parameters: their values, the files that set them, and the services that apply them."""

import re
from typing import ClassVar

from pydantic import computed_field

from facts.probe import Section, SnapshotFact
from facts.units import parse_units
from railwright.model import Model
from railwright.resolve.sysctl import Decision, SysctlFiles, decide, read_sysctl_files
from railwright.snapshot import Snapshot

DROP_IN = "/etc/sysctl.d/99-zz-railwright.conf"
RULES = "/etc/udev/rules.d/99-zz-railwright-sysctl.rules"
TUNED_PROFILE = "/etc/tuned/active_profile"

Value = int | tuple[int, ...] | str
"""A number, several numbers, or text (with a line break between the lines of one key)."""

# Emulated or overloaded nodes take seconds for a handful of files; a hang is told all the same.
_DEADLINE_S = 20

SECTIONS = (
    Section(
        name="sysctl_files",
        deadline_s=_DEADLINE_S,
        script=f"""
for dir in /etc /run /usr/local/lib /usr/lib; do files "$dir"/sysctl.d/*.conf; done
[ -L /lib ] || files /lib/sysctl.d/*.conf
files /etc/sysctl.conf {RULES} {TUNED_PROFILE}
""",
    ),
    # Kernels up to 5.12 have a key for each CPU and scheduling domain: 1 MiB on large nodes.
    Section(name="sysctl_values", script="sysctl -a", deadline_s=_DEADLINE_S, cap_bytes=8 << 20),
    Section(name="sysctl_modules", script="cut -d ' ' -f 1 /proc/modules", deadline_s=_DEADLINE_S),
    Section(
        name="sysctl_units",
        script="units systemd-sysctl.service tuned.service",
        deadline_s=_DEADLINE_S,
    ),
    # What systemd-sysctl could not write at boot; a healthy node does not pay for the journal.
    Section(
        name="sysctl_refusals",
        deadline_s=_DEADLINE_S,
        script="""
systemctl is-failed --quiet systemd-sysctl.service || return 0
journalctl --boot --quiet --no-pager --output cat --lines 100 --unit systemd-sysctl.service
""",
    ),
)

_ASSIGNMENT = re.compile(r"^(\w\S*?)\s*=(.*)$")
_BSD = re.compile(r"^(\w[^\s:]*):\s(.*)$")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,38})")
_REFUSAL = re.compile(r"Couldn't write '(.*)' to '(.*)'(?:, ignoring)?: (.+)$")


class Refusal(Model):
    """A value that the kernel did not take from systemd-sysctl at boot."""

    key: str
    value: str
    error: str


class SysctlState(Model):
    """What a node's kernel parameters are, and what its files say of them.

    ``unreadable`` says why there are no values; ``complaints`` is what sysctl said of single keys.
    ``tuned`` is the profile of a running tuned.
    """

    values: dict[str, Value]
    unreadable: str | None = None
    complaints: str = ""
    files: SysctlFiles = SysctlFiles()
    modules: frozenset[str] = frozenset()
    failed: bool = False
    refusals: tuple[Refusal, ...] = ()
    tuned: str | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def winners(self) -> dict[str, Decision]:
        """Who decides each key that a file names."""
        keys = sorted({line.key for line in self.files.applied if not line.is_pattern})
        return {key: decide(self.files, key) for key in keys}


class Sysctl(SnapshotFact):
    """Kernel parameters: ``pyinfra INVENTORY fact facts.sysctl.Sysctl``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> SysctlState:
        return read_sysctl(snapshot)


def read_sysctl(snapshot: Snapshot) -> SysctlState:
    """What the snapshot says. Raises ValueError where the files could not be read."""
    records = snapshot.files("sysctl_files")
    files = read_sysctl_files(record for record in records if record.path.endswith(".conf"))
    units = parse_units(snapshot.text("sysctl_units"))
    applier = units.get("systemd-sysctl.service")
    values = snapshot.section("sysctl_values")
    found: dict[str, Value] = {}
    unreadable = None
    try:
        found = parse_values(snapshot.text("sysctl_values"))
    except ValueError as error:
        unreadable = f"{error}; {values.stderr}" if values.stderr else str(error)
    profile = next((r.content for r in records if r.path == TUNED_PROFILE and r.content), "")
    tuned = units.get("tuned.service")
    runs_tuned = tuned is not None and tuned.active == "active"
    return SysctlState(
        values=found,
        unreadable=unreadable,
        complaints=values.stderr,
        files=files,
        # A container loads none, and may not see its host's.
        modules=frozenset() if snapshot.is_container else _loaded(snapshot),
        failed=applier is not None and applier.active == "failed",
        refusals=tuple(parse_refusals(snapshot.text("sysctl_refusals"))),
        tuned=(profile.strip() or "unknown profile") if runs_tuned else None,
    )


def _loaded(snapshot: Snapshot) -> frozenset[str]:
    """The loaded modules. Raises ValueError where they could not be listed."""
    names = snapshot.text("sysctl_modules").splitlines()
    if snapshot.section("sysctl_modules").rc != 0 or any(len(name.split()) != 1 for name in names):
        raise ValueError("the loaded modules could not be listed")
    return frozenset(names)


def parse_values(text: str) -> dict[str, Value]:
    """Read what ``sysctl -a`` prints, ``=`` or (BSD) ``:`` between key and value.

    Lines that are not a value (``sysctl: permission denied on key ...``) are passed over. A key
    on several lines has a value of several lines. Raises ValueError where there is no value.
    """
    lines: dict[str, list[str]] = {}
    for line in text.split("\n"):
        found = _ASSIGNMENT.match(line.strip()) or _BSD.match(line.strip())
        # Every key stands in a directory; the name of a program that complains does not.
        if found is not None and re.search(r"[./]", found[1]):
            lines.setdefault(found[1], []).append(found[2].strip())
    if not lines:
        raise ValueError("sysctl -a: expected lines of the form 'key = value', found none")
    return {key: _value("\n".join(values)) for key, values in lines.items()}


def _value(text: str) -> Value:
    words = text.split()
    if not words or not all(_INTEGER.fullmatch(word) for word in words):
        return text
    numbers = tuple(map(int, words))
    return numbers if len(numbers) > 1 else numbers[0]


def parse_refusals(text: str) -> list[Refusal]:
    """Read the journal of systemd-sysctl.service; keys that are not there are no refusals."""
    found = map(_REFUSAL.search, text.split("\n"))
    return [
        Refusal(key=one[2].translate(str.maketrans("./", "/.")), value=one[1], error=one[3])
        for one in found
        if one is not None and not one[3].startswith("No such file")
    ]
