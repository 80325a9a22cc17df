"""systemd units, as ``systemctl show`` tells of them."""

import re

from railwright.model import Model
from railwright.snapshot import Snapshot


class Unit(Model):
    """What systemd says of one unit: ``file_state`` is that of ``systemctl is-enabled``.

    ``result`` is how it ended (``success``, ``exit-code``), None where it was not asked for.
    """

    name: str
    loaded: bool
    masked: bool
    active: str
    file_state: str
    result: str | None = None


def unit_blocks(text: str) -> list[dict[str, str]]:
    """Read ``systemctl show`` of several units: the properties of each; lines of others go by."""
    blocks = []
    for part in re.split(r"\n\s*\n", text.strip()):
        lines = [line for line in part.splitlines() if re.match(r"[A-Za-z0-9]+=", line)]
        if lines:
            blocks.append(dict(line.split("=", 1) for line in lines))
    return blocks


def parse_units(text: str) -> dict[str, Unit]:
    """Read ``systemctl show`` of several units, by their Id. Raises ValueError."""
    found = {}
    for block in unit_blocks(text):
        try:
            unit = Unit(
                name=block["Id"],
                loaded=block["LoadState"] in ("loaded", "masked"),
                masked=block["LoadState"] == "masked",
                active=block["ActiveState"],
                file_state=block["UnitFileState"],
                result=block.get("Result"),
            )
        except KeyError as missing:
            raise ValueError(f"systemctl show without {missing}: {str(block)[:80]}") from None
        found[unit.name] = unit
    return found


def read_units(snapshot: Snapshot, section: str) -> dict[str, Unit]:
    """The units of a section that calls ``units`` of the probe.

    Raises ValueError where systemd did not answer.
    """
    text = snapshot.text(section)
    if not text.strip():
        reason = " ".join(snapshot.section(section).stderr.split()) or "no output"
        raise ValueError(f"systemctl show: {reason}")
    return parse_units(text)
