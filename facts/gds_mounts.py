"""Mounts that GPUDirect Storage could be used on, and what keeps it from them."""

from typing import ClassVar

from facts.mounts import plain
from facts.probe import Section, SnapshotFact
from railwright.gds.choice import Reason
from railwright.gds.mounts import FILE_SYSTEMS, Mount, reason_against
from railwright.model import Model
from railwright.snapshot import Snapshot

# The device under a link of /dev/mapper; no process is started for what is not on a device.
MOUNTS = Section(
    name="gds_mounts",
    for_drivers=True,
    script=f"""
while read -r source target fstype options _; do
    case $fstype in {" | ".join(sorted(FILE_SYSTEMS))}) ;; *) continue ;; esac
    device=-
    case $source in /dev/*) device=$(readlink -f "$source") device=${{device##*/}} ;; esac
    printf '%s\\n' "$fstype $source $device $options $target"
done </proc/self/mounts
true
""",
)


class GdsMounts(Model):
    """``mounts`` by where they are mounted; ``against`` are those that IO goes through the host
    on, and why."""

    mounts: dict[str, Mount]
    against: dict[str, Reason]


class GdsMountsFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.gds_mounts.GdsMountsFact``."""

    sections: ClassVar[tuple[Section, ...]] = (MOUNTS,)

    def read(self, snapshot: Snapshot) -> GdsMounts:
        mounts = {mount.target: mount for mount in parse_mounts(snapshot.text(MOUNTS.name))}
        against = ((target, reason_against(mount)) for target, mount in mounts.items())
        return GdsMounts(
            mounts=mounts, against={target: reason for target, reason in against if reason}
        )


def parse_mounts(text: str) -> list[Mount]:
    """Read section ``gds_mounts``. Raises ValueError for a line of another kind."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        words = line.split(" ")
        if len(words) != 5 or words[0] not in FILE_SYSTEMS:
            raise ValueError(f"expected a mount of five words, got {line[:80]!r}")
        fstype, source, device, options, target = words
        found.append(
            Mount(
                target=plain(target),
                fstype=fstype,
                source=plain(source),
                device=None if device == "-" else device,
                options=tuple(options.split(",")),
            )
        )
    return found
