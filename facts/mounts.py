"""What is mounted, whether it answers, what fstab says, and the mount units that are ours."""

import re

from facts.probe import Section
from railwright.model import Model
from railwright.snapshot import Snapshot

MOUNTS = Section(name="mounts", for_storage=True, script="cat /proc/self/mounts")

# Each is asked on its own, all side by side: one that hangs must neither hold up the others nor
# be waited for where it cannot be killed. The end of the section's time tells those then.
ANSWERS = Section(
    name="mount_answers",
    for_storage=True,
    deadline_s=8,
    script=r"""
asked() {
    reason=$(timeout -s KILL 5 stat -f -c ok -- "$1" 2>&1)
    printf '%s %s %s\n' "$1" "$?" "$reason"
}
for path in $RW_MOUNTS; do
    ! grep -qF -e " $path " /proc/self/mounts || asked "$path" &
done
wait
""",
)

FSTAB = Section(name="fstab", for_storage=True, script="files /etc/fstab")

UNITS = Section(
    name="mount_units",
    for_storage=True,
    script=r"""
for unit in /etc/systemd/system/*.mount; do
    ! grep -qs '^\[X-Railwright\]' "$unit" || files "$unit"
done
for link in /etc/systemd/system/*.wants/*.mount; do
    [ ! -L "$link" ] || meta "$link"
done
true
""",
)

STATES = Section(
    name="mount_states",
    for_storage=True,
    script=r"""
set --
for path in $RW_MOUNTS; do set -- "$@" "$(systemd-escape -p --suffix=mount -- "$path")"; done
[ $# -eq 0 ] || units "$@"
""",
)

SECTIONS = (MOUNTS, ANSWERS, FSTAB, UNITS, STATES)

HANGS = "hangs"
ANSWERED = "answers"
_KILLED = "137"

_OCTAL = re.compile(r"\\([0-7]{3})")


class MountEntry(Model):
    """A line of /proc/self/mounts."""

    source: str
    target: str
    fstype: str
    options: tuple[str, ...]


class FstabEntry(MountEntry):
    """A line of /etc/fstab; ``line`` counts from 1."""

    line: int


class MountsSeen(Model):
    """``answers`` is what each mounted directory said: ``ANSWERED``, ``HANGS``, or a reason."""

    entries: tuple[MountEntry, ...]
    answers: dict[str, str]
    fstab: tuple[FstabEntry, ...]

    def on(self, target: str) -> MountEntry | None:
        """What is mounted on ``target``: of several, the last lies on top."""
        return next((entry for entry in reversed(self.entries) if entry.target == target), None)


def parse_mounts(text: str) -> list[MountEntry]:
    """Read /proc/self/mounts. Raises ValueError for a line of another kind."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        words = line.split(" ")
        if len(words) != 6:
            raise ValueError(f"expected a mount of six words, got {line[:80]!r}")
        source, target, fstype, options, *_ = map(plain, words)
        found.append(
            MountEntry(
                source=source, target=target, fstype=fstype, options=tuple(options.split(","))
            )
        )
    return found


def plain(text: str) -> str:
    """A word without the escapes of /proc and fstab. Source: mangle() in fs/proc_namespace.c."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)


def parse_fstab(text: str) -> list[FstabEntry]:
    """Read /etc/fstab; lines that are too short for a mount are passed over, as mount does."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if len(words) < 3 or words[0].startswith("#"):
            continue
        source, target, fstype, options = (*map(plain, words[:4]), "defaults")[:4]
        found.append(
            FstabEntry(
                line=number,
                source=source,
                target=target.rstrip("/") or "/",
                fstype=fstype,
                options=tuple(options.split(",")),
            )
        )
    return found


def parse_answers(text: str) -> dict[str, str]:
    """Read what section ``mount_answers`` has told by its end. Raises ValueError."""
    found = {}
    for line in filter(str.strip, text.splitlines()):
        path, _, told = line.partition(" ")
        code, _, reason = told.partition(" ")
        if not (path.startswith("/") and code.isdigit()):
            raise ValueError(f"expected 'PATH STATUS REASON', got {line[:80]!r}")
        if code == _KILLED:
            found[path] = HANGS
        else:
            found[path] = ANSWERED if code == "0" else reason or f"exit {code}"
    return found


def read_mounts(snapshot: Snapshot) -> MountsSeen:
    """Raises ValueError where a section cannot be read."""
    fstab = next((file.content or "" for file in snapshot.files(FSTAB.name)), "")
    return MountsSeen(
        entries=tuple(parse_mounts(snapshot.text(MOUNTS.name))),
        # Whoever has not answered by the end of the section's time hangs.
        answers=parse_answers(snapshot.section(ANSWERS.name).stdout),
        fstab=tuple(parse_fstab(fstab)),
    )
