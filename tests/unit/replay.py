"""Recorded snapshots played back through pyinfra's ``@fake`` connector."""

from railwright.snapshot import FORMAT, Section, Snapshot


def probe_output(snapshot: Snapshot) -> str:
    """What the probe printed when ``snapshot`` was taken: the inverse of ``parse_probe``."""
    marker = snapshot.marker
    parts = [f"railwright-probe {FORMAT} {marker}\n"]
    for name, section in snapshot.sections.items():
        parts.append(f"\n{marker} begin {name}\n{_body(section, marker)}")
        parts.append(f"\n{marker} end {name} {124 if section.ended == 'deadline' else 0}\n")
    parts.append(f"\n{marker} done\n")
    return "".join(parts)


def _body(section: Section, marker: str) -> str:
    if section.rc is None:
        return section.stdout
    errors = "".join(f"{marker} err {line}\n" for line in section.stderr.splitlines())
    return f"{section.stdout}\n{marker} rc {section.rc}\n{errors}"
