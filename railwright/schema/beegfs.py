"""BeeGFS's client: its packages, how its kernel module is built, and what is mounted of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, field_validator

from railwright.schema.base import Finding, reject, word
from railwright.schema.beegfs_keys import (
    CLIENT_PORT,
    MANAGEMENT_PORT,
    MISTAKEN,
    Major,
    kind_of,
)
from railwright.schema.mounted import Mounted, RailChoice, Secret
from railwright.schema.repositories import Packaged

if TYPE_CHECKING:
    Host = str
    InterfaceName = str
    ClientConfig = str
    SourceFolder = str
    KeyText = str
    Key = str
else:
    Host = word(
        r"[A-Za-z0-9]([A-Za-z0-9.-]{0,253}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,45}",
        "a host's name or address, such as mgmt01 or 10.20.0.21",
    )
    # IFNAMSIZ leaves 15 characters.
    InterfaceName = word(r"[A-Za-z][A-Za-z0-9._-]{0,14}", "an interface, such as eno1")
    ClientConfig = word(
        r"/etc/beegfs/[A-Za-z0-9][A-Za-z0-9._-]{0,100}\.conf",
        "a file of /etc/beegfs that ends in .conf, such as /etc/beegfs/scratch.conf",
    )
    SourceFolder = word(r"/[A-Za-z0-9._/+-]+", "the absolute path of a folder, without blanks")
    KeyText = word(r"([!-~]+( [!-~]+)*)?", "one line of printable ASCII")
    Key = word(r"[A-Za-z][A-Za-z0-9]*", "a key of beegfs-client.conf, such as quotaEnabled")

Port = Annotated[StrictInt, Field(ge=1, le=65535)]
Build = Literal["dkms", "autobuild"]

STOCK_CONFIG = "/etc/beegfs/beegfs-client.conf"

FIELDS: dict[str, str] = {
    "rdma": "connUseRDMA",
    "tcp_fallback": "connTCPFallbackEnabled",
    "rdma_buf_num": "connRDMABufNum",
    "rdma_buf_size": "connRDMABufSize",
    "rdma_fragment_size": "connRDMAFragmentSize",
    "rdma_key_type": "connRDMAKeyType",
    "rdma_type_of_service": "connRDMATypeOfService",
    "max_internode_num": "connMaxInternodeNum",
    "file_cache_type": "tuneFileCacheType",
}
"""Fields of a mount that are one key each."""

_BY_FIELD: dict[str, str] = {
    **{key: field for field, key in FIELDS.items()},
    **dict.fromkeys((*CLIENT_PORT[7], *CLIENT_PORT[8]), "client_port"),
    **dict.fromkeys((*MANAGEMENT_PORT[7], *MANAGEMENT_PORT[8]), "management_port"),
    "sysMgmtdHost": "management",
    "connAuthFile": "auth",
    "connDisableAuthentication": "auth",
    "connInterfacesFile": "rails and interfaces",
    "connInterfacesList": "rails and interfaces",
    "connRDMAInterfacesFile": "rails",
}
"""Keys that a field sets, with its name."""


class BeegfsSpec(Packaged):
    """BeeGFS's client as a node has it once; ``major`` null leaves it alone."""

    major: Major | None = Field(
        default=None, description="Major release; clients and servers of 7 and 8 do not mix."
    )
    build: Build = Field(
        default="dkms",
        description="What builds the kernel module: dkms (beegfs-client-dkms), for each kernel "
        "when it is installed, or beegfs-client.service (beegfs-client), while a node boots.",
    )
    ofed_headers: StrictBool | None = Field(
        default=None,
        description="Build against OFED's headers (OFED_INCLUDE_PATH), or the kernel's own. With "
        "those of another stack the module is refused for its symbols (ThinkParQ/beegfs#64).",
    )
    gds: StrictBool | None = Field(
        default=None,
        description="Build with GPUDirect Storage, against the sources of nvidia-fs (gds.version) "
        "and of the GPU driver (gpu_driver.version).",
    )
    nvidia_source: SourceFolder | None = Field(
        default=None,
        description="Where the GPU driver's nv-p2p.h is; null is /usr/src/nvidia-VERSION/nvidia.",
    )

    @property
    def version(self) -> str | None:
        """The client's version: that of the package that has its module."""
        clients = ("beegfs-client-dkms", "beegfs-client")
        return next((self.packages[name] for name in clients if name in self.packages), None)


class BeegfsMount(Mounted):
    """A BeeGFS, by a client configuration of its own; what is null there stays as it is."""

    kind: Literal["beegfs"] = Field(default="beegfs", description="BeeGFS.")
    management: Host = Field(description="Host of the management service.")
    management_port: Port = Field(default=8008, description="Its port, both UDP and TCP.")
    client_port: Port = Field(
        default=8004, description="UDP port of this client; each mount of a node has its own."
    )
    auth: Secret | Literal["disabled"] = Field(
        description="Secret of connection authentication, the same on all of the file system's "
        "hosts; 'disabled' lets anybody in who reaches the servers."
    )
    tls_certificate: Secret | None = Field(
        default=None,
        description="Certificate of the management service, for the tools of 8, as "
        "/etc/beegfs/cert.pem; connections of the kernel's client have no TLS.",
    )
    config: ClientConfig = Field(
        default=STOCK_CONFIG,
        description="Its configuration; keys that are not named here stay as they are there.",
    )
    rdma: StrictBool | None = Field(default=None, description="Use RDMA.")
    tcp_fallback: StrictBool | None = Field(
        default=None,
        description="Take TCP where RDMA does not connect: false shows that at once, in place of "
        "a slow file system (ThinkParQ/beegfs#100).",
    )
    rails: RailChoice | None = Field(
        default=None,
        description="Rails that it goes over: RDMA by these alone, in turn; servers are told of "
        "them first.",
    )
    interfaces: tuple[InterfaceName, ...] = Field(
        default=(),
        description="Interfaces that servers are told of after the rails, such as the one that "
        "the management service answers on.",
    )
    rdma_buf_num: Annotated[StrictInt, Field(ge=3, le=1024)] | None = Field(
        default=None,
        description="Buffers of a connection; the protocol needs 3. Together they hold at least "
        "one chunk, which the default of 70 times 8 KiB does for 512 KiB.",
    )
    rdma_buf_size: Annotated[StrictInt, Field(ge=4096, le=1 << 20, multiple_of=4096)] | None = (
        Field(default=None, description="Bytes of a buffer, a multiple of 4096.")
    )
    rdma_fragment_size: Annotated[StrictInt, Field(ge=4096)] | Literal["page", "none"] | None = (
        Field(default=None, description="Contiguous bytes of a buffer; none does not divide it.")
    )
    rdma_key_type: Literal["global", "dma", "register"] | None = Field(
        default=None,
        description="Remote keys; register does not go together with GPUDirect Storage.",
    )
    rdma_type_of_service: Annotated[StrictInt, Field(ge=0, le=255)] | None = Field(
        default=None, description="Type of service of connections: the traffic class of RoCE."
    )
    max_internode_num: Annotated[StrictInt, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="Connections to one server; each takes 2 times the buffers there as well.",
    )
    file_cache_type: Literal["buffered", "native", "none"] | None = Field(
        default=None, description="Cache: small buffers, the page cache, or none."
    )
    other: dict[Key, StrictBool | StrictInt | KeyText] = Field(
        default={}, description="Other keys of the configuration, such as quotaEnabled."
    )

    def model_post_init(self, _: Any) -> None:
        self.__pydantic_fields_set__.add("kind")

    @property
    def stem(self) -> str:
        """The name of its configuration, which files beside it have too."""
        return self.config.rpartition("/")[2].removesuffix(".conf")

    @field_validator("other", mode="after")
    @classmethod
    def _known(cls, other: dict[str, bool | int | str]) -> dict[str, bool | int | str]:
        reject([finding for key, value in other.items() for finding in _key_findings(key, value)])
        return other


def _key_findings(key: str, value: bool | int | str) -> Iterator[Finding]:
    if key in _BY_FIELD:
        yield Finding((key,), value, f"it to be set by {_BY_FIELD[key]}")
    elif key in MISTAKEN:
        yield Finding((key,), value, f"{MISTAKEN[key]}: no release of BeeGFS has {key}")
    elif (kind := kind_of(key)) is None:
        yield Finding((key,), value, "a key that the client of BeeGFS 7.4 or 8 has")
    elif kind == "switch" and not isinstance(value, bool):
        yield Finding((key,), value, "true or false")
    elif kind == "number" and (isinstance(value, bool) or not isinstance(value, int)):
        yield Finding((key,), value, "a number")
    elif kind == "text" and isinstance(value, bool):
        yield Finding((key,), value, "a text")
    elif key == "sysTargetOfflineTimeoutSecs" and isinstance(value, int) and value < 30:
        yield Finding((key,), value, "at least 30: the client refuses less")
