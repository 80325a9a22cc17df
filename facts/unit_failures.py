"""Why units failed, in their own words: the last lines of the journal since the boot."""

import re

from facts.probe import Section
from railwright.snapshot import Snapshot

# What systemd itself says of a unit tells no more than that it failed.
_SYSTEMD = re.compile(
    r"\S+\.service: |(Failed to start|Start(ing|ed)|Stopp(ing|ed)|Deactivated|Finished) "
)


def failures(name: str, *units: str) -> Section:
    """A section that brings the last words of those of the drivers' ``units`` that have failed."""
    return Section(
        name=name,
        for_drivers=True,
        script=f"""
for unit in {" ".join(units)}; do
    systemctl is-failed -q "$unit" || continue
    echo "failed $unit"
    journalctl -q --no-pager -b -o cat -n 20 -u "$unit" | sed 's/^/said /'
done
true
""",
    )


def read_failures(snapshot: Snapshot, section: str) -> dict[str, str]:
    """Failed unit to the last that it said, "" where it said nothing. Raises ValueError."""
    found: dict[str, str] = {}
    unit = ""
    for line in filter(None, snapshot.text(section).splitlines()):
        kind, _, rest = line.partition(" ")
        if kind == "failed" and rest:
            unit = rest
            found[unit] = ""
        elif kind == "said" and unit:
            if rest.strip() and not _SYSTEMD.match(rest):
                found[unit] = rest.strip()[:200]
        else:
            raise ValueError(f"expected a failed unit and its words, got {line[:80]!r}")
    return found
