"""Local scratch: the disks of a node that hold nothing, as one file system."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StrictInt, model_validator

from railwright.schema.base import Finding, Size, Spec, reject, size_kib, word
from railwright.schema.mounted import Mounted, MountOption
from railwright.schema.repositories import Packaged

Level = Literal[0, 1, 10]

if TYPE_CHECKING:
    ScratchName = str
    DiskId = str
    ModelGlob = str
else:
    # The label is rw-NAME, and XFS has 12 characters for one. Source: xfs_admin(8), -L.
    ScratchName = word(r"[a-z][a-z0-9-]{0,8}", "a name of a-z, 0-9 and -, 9 characters at most")
    DiskId = word(
        r"(?!md-|dm-|lvm-)[A-Za-z0-9](?:(?!-part[0-9]+$)[A-Za-z0-9._:+=@#-])*",
        "a whole disk's name in /dev/disk/by-id, such as nvme-SAMSUNG_MZQL23T8HCLS_S64HNE0T100001",
    )
    ModelGlob = word(r"[A-Za-z0-9 ._/*?+-]+", "a disk's model, such as SAMSUNG MZQL2*")

LEAST_DISKS: dict[int | None, int] = {None: 1, 0: 2, 1: 2, 10: 4}
"""RAID10 of two or three is RAID1 by another name. Source: md(4), RAID10."""


class DiskRule(Spec):
    """Which disks of a node are taken, of those that hold nothing and are not in use."""

    count: Annotated[StrictInt, Field(ge=1, le=128)] = Field(
        description="How many there must be: where more or fewer can be taken, none is."
    )
    model: ModelGlob | None = Field(default=None, description="Model, with * and ?.")
    min_size: Size | None = Field(default=None, description="Size that a disk has at least.")
    max_size: Size | None = Field(default=None, description="Size that a disk has at most.")
    transport: Literal["nvme", "sata", "sas", "virtio"] | None = Field(
        default=None, description="How it is attached."
    )
    numa_node: Annotated[StrictInt, Field(ge=0, le=255)] | None = Field(
        default=None, description="NUMA node that it is attached to: an array for each socket."
    )

    @model_validator(mode="after")
    def _tells_disks_apart(self) -> "DiskRule":
        if not (self.model or self.min_size or self.max_size or self.transport):
            given = self.model_dump(exclude_none=True)
            reject([Finding((), given, "model, min_size, max_size or transport beside count")])
        if self.min_size and self.max_size and size_kib(self.min_size) > size_kib(self.max_size):
            reject([Finding(("max_size",), self.max_size, f"{self.min_size} or more")])
        return self

    def __str__(self) -> str:
        told = {
            "model": self.model,
            "of at least": self.min_size,
            "of at most": self.max_size,
            "by": self.transport,
            "on NUMA node": self.numa_node,
        }
        words = [f"{word} {value}" for word, value in told.items() if value is not None]
        return f"{self.count} disks ({', '.join(words)})"


class LocalScratch(Mounted):
    """A file system on disks of the node, made once: from then on it is found by its name."""

    kind: Literal["scratch"] = Field(default="scratch", description="Local scratch.")
    name: ScratchName = Field(
        default="scratch",
        description="Name: the array is railwright-NAME, the file system's label rw-NAME.",
    )
    raid: Level | None = Field(description="RAID level; null is one disk without RAID.")
    disks: tuple[DiskId, ...] | DiskRule = Field(
        description="Names in /dev/disk/by-id, or the rule by which they are chosen. Never taken "
        "are disks that are in use or hold anything, not so much as a partition table."
    )
    chunk: Size = Field(default="512KiB", description="Chunk of RAID0 and RAID10; mdadm's default.")
    filesystem: Literal["xfs", "ext4"] = Field(default="xfs", description="File system.")
    options: tuple[MountOption, ...] = Field(
        default=("noatime",),
        description="Options of mount. noatime: reads need not write. Never discard: fstrim.timer "
        "trims once a week instead of with each file removed.",
    )

    def model_post_init(self, _: Any) -> None:
        self.__pydantic_fields_set__.add("kind")

    @model_validator(mode="after")
    def _can_be_made(self) -> "LocalScratch":
        reject([*self._of_disks(), *self._of_words()])
        return self

    def _of_disks(self) -> Iterator[Finding]:
        least = LEAST_DISKS[self.raid]
        if self.raid is None and self.count != 1:
            yield Finding(("disks",), self.count, "one disk where raid is null")
        elif self.count < least:
            yield Finding(("disks",), self.count, f"{least} disks or more for RAID{self.raid}")
        if isinstance(self.disks, tuple) and len(set(self.disks)) < len(self.disks):
            yield Finding(("disks",), self.disks, "each disk once")

    def _of_words(self) -> Iterator[Finding]:
        chunk = self.chunk_kib
        # A chunk is whole pages, and a power of two for RAID10. Source: md(4).
        if chunk < 4 or chunk & (chunk - 1):
            yield Finding(("chunk",), self.chunk, "a power of two of 4KiB or more")
        if "discard" in self.options:
            yield Finding(("options",), self.options, "no discard: fstrim.timer trims")

    @property
    def count(self) -> int:
        """How many disks it is made of."""
        return self.disks.count if isinstance(self.disks, DiskRule) else len(self.disks)

    @property
    def chunk_kib(self) -> int:
        return size_kib(self.chunk)

    @property
    def array(self) -> str:
        """The array's name, as it is in /dev/md."""
        return f"railwright-{self.name}"

    @property
    def label(self) -> str:
        """The file system's label."""
        return f"rw-{self.name}"


class ScratchSpec(Packaged):
    """What a node has once for all of its scratches: the packages mdadm, and xfsprogs for XFS."""


def scratch_findings(
    scratches: Mapping[str, LocalScratch], gds_mode: str | None
) -> Iterator[Finding]:
    """What one scratch cannot know alone; ``scratches`` are those of storage.mounts, by their
    directory, ``gds_mode`` is that of gds. Paths lead from the node on.
    """
    names: dict[str, str] = {}
    disks: dict[str, str] = {}
    for where, scratch in sorted(scratches.items()):
        path = ("storage", "mounts", where)
        other = names.setdefault(scratch.name, where)
        if other != where:
            yield Finding((*path, "name"), scratch.name, f"another name than that of {other}")
        for disk in scratch.disks if isinstance(scratch.disks, tuple) else ():
            other = disks.setdefault(disk, where)
            if other != where:
                yield Finding((*path, "disks"), disk, f"another disk than one of {other}")
        if gds_mode == "p2pdma" and scratch.raid == 0:
            # Source: GDS release notes, known limitations: P2PDMA does not go over RAID0.
            expected = "1, 10 or null, or gds.mode nvidia-fs: P2PDMA does not go over RAID0"
            yield Finding((*path, "raid"), scratch.raid, expected)
