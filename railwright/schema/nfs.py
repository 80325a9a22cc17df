"""NFS over RDMA."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt, model_validator

from railwright.schema.base import Finding, module_name, reject, word
from railwright.schema.fabric import InfinibandFabric, RoceFabric
from railwright.schema.modules import ModulesSpec
from railwright.schema.mounted import Mounted
from railwright.schema.rails import RailsSpec

if TYPE_CHECKING:
    NfsServer = str
    Export = str
else:
    NfsServer = word(
        r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?|\[[0-9a-f:]+\]",
        "a host name, an IPv4 address, or an IPv6 address in []",
    )
    # The kernel shows a mount of NFS 4 by its path without spare slashes, whatever was mounted.
    # Source: nfs_path() in fs/nfs/namespace.c.
    Export = word(
        r"/|(/[A-Za-z0-9._@+-]+)+",
        "the absolute path of an export without a slash at its end, such as /export/data",
    )


def _whole_pages(size: int) -> int:
    if size % 4096:
        reject([Finding((), size, "a multiple of 4096, to which the kernel rounds it down")])
    return size


IoBytes = Annotated[StrictInt, Field(ge=4096, le=1 << 20), AfterValidator(_whole_pages)]

_OWN = {
    "proto": "which is rdma: this is NFS over RDMA",
    "rdma": "which is given by itself: this is NFS over RDMA",
    "port": "it in port",
    "vers": "it in version",
    "nfsvers": "it in version",
    "minorversion": "it in version",
    "nconnect": "it in nconnect",
    "rsize": "it in rsize",
    "wsize": "it in wsize",
    "hard": "it in hard",
    "soft": "it in hard",
    "softerr": "hard: false, or nothing",
}


class NfsRdmaMount(Mounted):
    """An NFS export that is mounted over RDMA, and over nothing else."""

    kind: Literal["nfs"] = Field(default="nfs", description="NFS over RDMA.")
    server: NfsServer = Field(description="The server, by an address on the rails' network.")
    export: Export = Field(description="Path of the export.")
    # IANA, nfsrdma; rpc.nfsd(8).
    port: Annotated[StrictInt, Field(ge=1, le=65535)] = Field(
        default=20049, description="Port of the server's NFS over RDMA."
    )
    version: Literal["3", "4.0", "4.1", "4.2"] = Field(
        default="4.2", description="Version of NFS, and no other."
    )
    nconnect: Annotated[StrictInt, Field(ge=1, le=16)] | None = Field(
        default=None,
        description="Connections to the server. Kernels up to 6.7 pass over it for RDMA; the first "
        "mount of a server decides for all.",
    )
    rsize: IoBytes | None = Field(
        default=None, description="Bytes of a read at most; null is what the server offers."
    )
    wsize: IoBytes | None = Field(
        default=None, description="Bytes of a write at most; null is what the server offers."
    )
    hard: StrictBool = Field(
        default=True,
        description="Wait for a server that is away. False lets IO fail, and with it data be lost.",
    )

    def model_post_init(self, _: Any) -> None:
        self.__pydantic_fields_set__.add("kind")

    @property
    def netid(self) -> str:
        """What proto is given, and shows: mount looks for no IPv6 address by ``rdma``.

        Source: nfs_get_proto() in nfs-utils, xprt_rdma_format_addresses6() in the kernel.
        """
        return "rdma6" if self.server.startswith("[") else "rdma"

    @property
    def source(self) -> str:
        """What is mounted, as /proc/mounts has it too."""
        return f"{self.server}:{self.export}"

    @model_validator(mode="after")
    def _options_of_its_own(self) -> "NfsRdmaMount":
        names = [(option, option.partition("=")[0]) for option in self.options]
        reject([Finding(("options",), o, _OWN[name]) for o, name in names if name in _OWN])
        return self


def nfs_findings(
    mounts: Mapping[str, NfsRdmaMount],
    rails: RailsSpec,
    fabric: RoceFabric | InfinibandFabric | None,
    modules: ModulesSpec,
) -> list[Finding]:
    """``mounts`` are those of storage.mounts that are NFS, by their directory."""
    found = list(_several(mounts))
    for where in mounts:
        if fabric is None or not rails.nics:
            expected = "a fabric and rails.nics beside it: RDMA goes over the rails' devices"
            found.append(Finding(("storage", "mounts", where, "kind"), "nfs", expected))
    for name in sorted(modules.blacklist):
        if module_name(name) == "rpcrdma" and mounts:
            expected = f"not there: storage.mounts {next(iter(mounts))} goes over it"
            found.append(Finding(("modules", "blacklist", name), name, expected))
    return found


def _several(mounts: Mapping[str, NfsRdmaMount]) -> Iterator[Finding]:
    """Mounts of one server have its connections in common. Source: nfs(5), nconnect."""
    first: dict[tuple[str, str], str] = {}
    for where, mount in mounts.items():
        earlier = first.setdefault((mount.server, mount.version), where)
        if mount.nconnect != mounts[earlier].nconnect:
            expected = (
                f"{mounts[earlier].nconnect}, as storage.mounts {earlier} has it: the connections "
                f"to {mount.server} are the same"
            )
            yield Finding(("storage", "mounts", where, "nconnect"), mount.nconnect, expected)
