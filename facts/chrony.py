"""chrony: its configuration files, its unit, what chronyc says of the clock and of its sources.

Formats: chronyc(1) and client.c of chrony 4; chronyc exits 1 where chronyd does not answer.
"""

import math
import re
from typing import ClassVar, Literal

from facts.probe import Section, SnapshotFact
from facts.units import Unit, read_units
from railwright.model import Model
from railwright.snapshot import Snapshot, SnapshotError

FILES = Section(
    name="chrony_files",
    script="""
files /etc/chrony/chrony.conf /etc/chrony.conf \
    /etc/chrony/conf.d/*.conf /etc/chrony/sources.d/*.sources
""",
)
INSTALLED = Section(
    name="chrony_installed",
    script="""
command -v chronyd >/dev/null && echo installed=yes
for tool in apt-get dnf; do
    command -v "$tool" >/dev/null && echo "installer=$tool" && break
done
true
""",
)
# A daemon that steers the clock as well is a conflict, whoever started it.
RIVALS = ("systemd-timesyncd.service", "ntp.service", "ntpsec.service", "openntpd.service")
UNITS = Section(
    name="chrony_units",
    script=f"units chrony.service chronyd.service {' '.join(RIVALS)}",
)
# -N: the names as configured, not those that reverse DNS has for them.
TRACKING = Section(
    name="chrony_tracking",
    script="command -v chronyc >/dev/null || return 127\nchronyc -n -c tracking",
)
SOURCES = Section(
    name="chrony_sources",
    script="command -v chronyc >/dev/null || return 127\nchronyc -N -c sources -a",
)
SECTIONS = (FILES, INSTALLED, UNITS, TRACKING, SOURCES)

TrackingError = Literal["no_daemon", "not_authorised", "not_installed", "no_output", "refused"]

_LOCAL = ("7F7F0101", "127.127.1.1")
_IN_STEP = ("Normal", "Insert second", "Delete second")


class Tracking(Model):
    """How the clock stands to its reference.

    ``offset_s`` is in seconds, positive where the clock is fast. ``ref`` is the name or address
    of the reference, None where there is none. ``local`` is chronyd's own clock posing as a
    reference (the ``local`` directive), which is synchronised to nothing.
    """

    synced: bool
    local: bool = False
    reference_id: str | None = None
    ref: str | None = None
    stratum: int | None = None
    offset_s: float | None = None
    leap: str | None = None
    error: TrackingError | None = None


class Source(Model):
    """One time source that chronyd knows; ``reach`` are its last eight polls as bits."""

    address: str
    state: str
    reach: int


class Chrony(Model):
    """chrony as it is on a node."""

    installed: bool
    tracking: Tracking
    sources: list[Source]
    units: dict[str, Unit]


def parse_tracking(text: str, rc: int | None = 0) -> Tracking:
    """Read ``chronyc tracking``, its text and its ``-c`` form alike.

    Raises ValueError where the text is neither an answer nor a known refusal.
    """
    error = _error(text.strip(), rc)
    if error is not None:
        return Tracking(synced=False, error=error)
    line = text.strip()
    if "\n" not in line and line.count(",") == 13:
        return _tracking_csv(line.split(","))
    return _tracking_text(text)


def _error(text: str, rc: int | None) -> TrackingError | None:
    if rc == 127 or "command not found" in text:
        return "not_installed"
    if not text:
        return "no_output"
    # With -c an older chronyc prints the empty fields of an answer that never came.
    if not text.strip(",") or "Cannot talk to daemon" in text or "connection to daemon" in text:
        return "no_daemon"
    if text.startswith("501 ") or "Permission denied" in text:
        return "not_authorised"
    return "refused" if re.match(r"5\d\d ", text) else None


def _tracking_csv(fields: list[str]) -> Tracking:
    # The correction is what has to be added to the clock: negative where it is fast.
    return _tracking(fields[0], fields[1], fields[2], -_number(fields[4]), fields[13])


def _tracking_text(text: str) -> Tracking:
    parts = [line.partition(":") for line in text.splitlines()]
    fields = {key.strip(): value.strip() for key, colon, value in parts if colon}
    try:
        reference, stratum = fields["Reference ID"], fields["Stratum"]
        time, leap = fields["System time"], fields["Leap status"]
    except KeyError as missing:
        raise ValueError(f"chronyc tracking without {missing}: {text.strip()[:80]!r}") from None
    named = re.fullmatch(r"(\S+)(?:\s+\((.*)\))?", reference)
    off = re.fullmatch(r"(\S+) seconds (fast|slow) of NTP time", time)
    if named is None or off is None:
        raise ValueError(f"chronyc tracking: cannot read {reference!r}, {time!r}")
    sign = 1 if off[2] == "fast" else -1
    return _tracking(named[1], named[2] or "", stratum, sign * _number(off[1]), leap)


def _tracking(reference_id: str, ref: str, stratum: str, offset_s: float, leap: str) -> Tracking:
    if not stratum.isdecimal():
        raise ValueError(f"chronyc tracking: expected a stratum, got {stratum!r}")
    local = reference_id.upper() in _LOCAL
    follows = bool(reference_id.strip("0.")) and not local and 0 < int(stratum) < 16
    return Tracking(
        synced=follows and leap in _IN_STEP,
        local=local,
        reference_id=reference_id,
        ref=ref or None,
        stratum=int(stratum),
        # No negative zero.
        offset_s=offset_s + 0.0,
        leap=leap,
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"chronyc tracking: expected seconds, got {text!r}")
    return number


def parse_sources(text: str) -> list[Source]:
    """Read ``chronyc -c sources``. Raises ValueError where a line is not a source."""
    found = []
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) != 10 or not re.fullmatch(r"[0-7]+", fields[5]):
            raise ValueError(f"expected a line of chronyc -c sources, got {line[:80]!r}")
        found.append(Source(address=fields[2], state=fields[1], reach=int(fields[5], 8)))
    return found


def tracking_of(snapshot: Snapshot) -> Tracking:
    """Raises ValueError where the section cannot be read."""
    text = snapshot.text(TRACKING.name)
    section = snapshot.section(TRACKING.name)
    return parse_tracking(text if text.strip() else section.stderr, section.rc)


def sources_of(snapshot: Snapshot) -> list[Source]:
    """Raises ValueError where the section cannot be read, or chronyc failed."""
    text = snapshot.text(SOURCES.name)
    section = snapshot.section(SOURCES.name)
    if section.rc != 0:
        raise SnapshotError(f"chronyc sources: {text.strip() or section.stderr or section.rc}")
    return parse_sources(text)


class ChronyFact(SnapshotFact):
    """chrony on a host: ``pyinfra INVENTORY fact facts.chrony.ChronyFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> Chrony:
        tracking = tracking_of(snapshot)
        return Chrony(
            installed="installed" in snapshot.facts(INSTALLED.name),
            tracking=tracking,
            sources=[] if tracking.error else sources_of(snapshot),
            units=read_units(snapshot, UNITS.name),
        )
