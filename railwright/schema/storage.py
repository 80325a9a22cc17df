"""What a node mounts: each by the directory that it is mounted on."""

from collections.abc import Iterator
from typing import Annotated, TypeVar

from pydantic import Field

from railwright.schema.base import Finding, Spec
from railwright.schema.beegfs import BeegfsMount
from railwright.schema.lustre import LustreMount
from railwright.schema.mounted import MountPoint
from railwright.schema.nfs import NfsRdmaMount
from railwright.schema.nvmeof import NvmeofVolume
from railwright.schema.scratch import LocalScratch

Mount = Annotated[
    LustreMount | BeegfsMount | NvmeofVolume | NfsRdmaMount | LocalScratch,
    Field(discriminator="kind"),
]

AnyMount = TypeVar("AnyMount", LustreMount, BeegfsMount, NvmeofVolume, NfsRdmaMount, LocalScratch)


class StorageSpec(Spec):
    """File systems of a node, near and far."""

    mounts: dict[MountPoint, Mount] = Field(
        default={}, description="Directory to what is mounted on it."
    )

    def of(self, kind: type[AnyMount]) -> dict[str, AnyMount]:
        """The mounts of one kind, by their directory."""
        return {where: one for where, one in sorted(self.mounts.items()) if isinstance(one, kind)}


def storage_findings(storage: StorageSpec) -> Iterator[Finding]:
    """Directories that lie within each other: which is mounted first is left to chance."""
    places = sorted(storage.mounts)
    for inner in places:
        outer = next((one for one in places if inner.startswith(f"{one}/")), None)
        if outer is not None:
            expected = f"a directory that is not within {outer}, which is mounted too"
            yield Finding(("storage", "mounts", inner), storage.mounts[inner].kind, expected)
