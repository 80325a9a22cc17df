"""Versions of the GSP firmware on disk: the driver loads that of its own version and no other."""

import re

from facts.probe import Section
from railwright.snapshot import Snapshot

# Compressed where the kernel takes that. Source: nvidia's rm_firmware paths, nv-firmware.h.
FIRMWARE = Section(
    name="nvidia_firmware",
    for_drivers=True,
    script="""
for file in /lib/firmware/nvidia/*/gsp_*.bin* /lib/firmware/updates/nvidia/*/gsp_*.bin*; do
    [ -r "$file" ] || continue
    file=${file%/*}
    echo "${file##*/}"
done
true
""",
)


def parse_firmware(text: str) -> frozenset[str]:
    """Read section ``nvidia_firmware``. Raises ValueError for what is no version."""
    versions = frozenset(text.split())
    odd = next((v for v in sorted(versions) if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", v)), None)
    if odd is not None:
        raise ValueError(f"expected a version of GSP firmware, got {odd[:40]!r}")
    return versions


def read_firmware(snapshot: Snapshot) -> frozenset[str]:
    """The versions on the node. Raises ValueError where they were not read."""
    return parse_firmware(snapshot.text(FIRMWARE.name))
