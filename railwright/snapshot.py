"""What one probe of a node brought back, before anything is made of it."""

from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from railwright.files import FileRecord
from railwright.model import Model

FORMAT: Literal[1] = 1


class SnapshotError(ValueError):
    """A probe's output, or a saved snapshot, that cannot be read."""


class Section(Model):
    """The output of one section of the probe.

    ``rc`` is None where the section did not end by itself: it ran past its deadline, or wrote
    more than its cap. What it wrote until then is kept, and is not to be trusted as complete.
    """

    stdout: str
    stderr: str = ""
    rc: int | None
    ended: Literal["exit", "deadline", "capped"] = "exit"

    @property
    def complete(self) -> bool:
        return self.ended == "exit"


class Snapshot(Model):
    """A node at one moment: the raw output of each section that was asked for.

    ``marker`` is the line prefix, unique to the probe, that parts records within a section.
    ``settled`` tells that it was taken in a run whose packages have been dealt with: what is not
    there now does not come.
    """

    format: Literal[1] = FORMAT
    host: str
    marker: str
    sections: dict[str, Section]
    settled: bool = Field(default=False, exclude=True)

    def section(self, name: str) -> Section:
        """The section ``name``. Raises SnapshotError where it was not taken."""
        try:
            return self.sections[name]
        except KeyError:
            raise SnapshotError(f"the snapshot of {self.host} has no section {name!r}") from None

    def text(self, name: str) -> str:
        """What ``name`` printed. Raises SnapshotError where it is missing or incomplete."""
        section = self.section(name)
        if not section.complete:
            raise SnapshotError(f"section {name!r} of {self.host} ended by {section.ended}")
        return section.stdout

    def files(self, name: str) -> list[FileRecord]:
        """The files that section ``name`` listed.

        Raises SnapshotError as ``text`` does, and where the section failed: no list is not the
        same as a list of nothing.
        """
        text, rc = self.text(name), self.section(name).rc
        if rc != 0 or text.partition(f"{self.marker} file ")[0].strip():
            raise SnapshotError(f"section {name!r} of {self.host} is no list of files (exit {rc})")
        return parse_files(text, self.marker)

    def left_over(self, name: str) -> list[FileRecord]:
        """The files of ours that ``name`` listed, of a node that asks for none.

        The section is not taken of a node that has none, nor is it in an older snapshot. Raises
        SnapshotError where it was taken and is no list.
        """
        return self.files(name) if name in self.sections else []

    @property
    def is_container(self) -> bool:
        """Whether the node shares its kernel, and so has no running state of its own."""
        return "container" in self.facts("identity")

    def facts(self, name: str) -> dict[str, str]:
        """The ``key=value`` lines of section ``name``."""
        lines = self.text(name).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


def parse_probe(output: str, host: str) -> Snapshot:
    """Read what the probe printed. Raises SnapshotError where it is not a probe's output."""
    head, _, body = output.partition("\n")
    words = head.split(" ")
    if len(words) != 3 or words[:2] != ["railwright-probe", str(FORMAT)]:
        raise SnapshotError(f"expected 'railwright-probe {FORMAT} MARKER', got {head[:80]!r}")
    marker = words[2]
    sections = {}
    for part in f"\n{body}".split(f"\n{marker} begin ")[1:]:
        name, _, rest = part.partition("\n")
        sections[name] = _parse_section(name, rest, marker)
    if f"\n{marker} done" not in body:
        raise SnapshotError("the probe's output breaks off")
    return Snapshot(host=host, marker=marker, sections=sections)


def _parse_section(name: str, text: str, marker: str) -> Section:
    body, found, status = f"\n{text}".partition(f"\n{marker} end {name} ")
    if not found:
        raise SnapshotError(f"section {name!r} has no end")
    # The probe puts a line break of its own before each marker.
    body = body.removeprefix("\n")
    stdout, ran, trailer = f"\n{body}".rpartition(f"\n{marker} rc ")
    if not ran:
        ended: Literal["deadline", "capped"] = (
            "deadline" if status.split("\n")[0] == "124" else "capped"
        )
        return Section(stdout=body, rc=None, ended=ended)
    rc, _, rest = trailer.partition("\n")
    prefix = f"{marker} err "
    errors = [line.removeprefix(prefix) for line in rest.splitlines() if line.startswith(prefix)]
    return Section(stdout=stdout.removeprefix("\n"), stderr="\n".join(errors), rc=int(rc))


def parse_files(text: str, marker: str) -> list[FileRecord]:
    """Read the records that the probe's ``files`` function prints (its comment has the shape)."""
    records = []
    for part in f"\n{text}".split(f"\n{marker} file ")[1:]:
        header, has_content, content = part.partition(f"\n{marker} content\n")
        first, *more = header.split("\n")
        kind, mode, owner, mtime, size, path = first.split(" ", 5)
        target = next((x.split(" ", 2)[2] for x in more if x.startswith(f"{marker} target ")), None)
        records.append(
            FileRecord.model_validate(
                {
                    "path": str(PurePosixPath(path)),
                    "kind": kind,
                    "mode": None if mode == "-" else mode,
                    "owner": None if owner == "-" else owner,
                    "mtime": None if mtime == "-" else mtime,
                    "size": None if size == "-" else size,
                    "target": target,
                    "content": content.removesuffix("\n") if has_content else None,
                }
            )
        )
    return records
