"""Lustre's client: its packages, the networks of LNet, tunables, and what is mounted of it."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictInt, model_validator

from railwright.schema.base import Finding, RefusedError, Spec, reject, word
from railwright.schema.mounted import Mounted, RailChoice
from railwright.schema.repositories import Packaged

if TYPE_CHECKING:
    LustreVersion = str
    InterfaceName = str
    FileSystemName = str
    Subdirectory = str
    ClientParameter = str
    ClientValueText = str
else:
    LustreVersion = word(
        r"[0-9]+\.[0-9]+\.[0-9]+(\.[0-9]+|-[0-9]+)?", "an exact version, such as 2.16.1"
    )
    # IFNAMSIZ leaves 15 characters.
    InterfaceName = word(r"[A-Za-z][A-Za-z0-9._-]{0,14}", "an interface, such as eth0")
    # LUSTRE_MAXFSNAME is 8 (lustre_disk.h).
    FileSystemName = word(r"[A-Za-z0-9_-]{1,8}", "a file system's name of at most 8 characters")
    Subdirectory = word(
        r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+", "a directory within the file system, such as /users"
    )
    ClientParameter = word(
        r"[a-z][a-z0-9_]*(\.[A-Za-z0-9_*?-]+)*", "a parameter, such as osc.*.max_rpcs_in_flight"
    )
    ClientValueText = word(r"[A-Za-z0-9_.:%+-]+", "a value without blanks")


_NETWORK = re.compile(r"(o2ib|tcp)([1-9][0-9]{0,4})?")


def _checked_network(text: str) -> str:
    found = _NETWORK.fullmatch(text)
    # LNET_MKNET() keeps the number in 16 bits.
    if found is None or int(found[2] or 0) >= 2**16:
        expected = "o2ib or tcp, or with a number from 1 to 65535 behind it (o2ib0 is o2ib)"
        raise RefusedError([Finding((), text, expected)])
    return text


NetworkName = Annotated[str, AfterValidator(_checked_network)]
"""A network of LNet as its tools print it: ``o2ib``, ``o2ib1``, ``tcp``."""


def _checked_nid(text: str) -> str:
    address, at, network = text.partition("@")
    try:
        IPv4Address(address)
        if at:
            _checked_network(network)
            return text
    except ValueError:
        pass
    raise RefusedError([Finding((), text, "a NID ADDRESS@NETWORK, such as 10.77.3.1@o2ib")])


Nid = Annotated[str, AfterValidator(_checked_nid)]


def network_of(nid: str) -> str:
    """The network of a NID."""
    return nid.partition("@")[2]


def is_o2ib(network: str) -> bool:
    """Whether ``network`` is one of RDMA."""
    return network.startswith("o2ib")


ClientValue = StrictInt | ClientValueText

PEER_CREDITS, CREDITS, PEER_TIMEOUT_S = 8, 256, 180
"""Defaults of both LNDs. Source: DEFAULT_PEER_CREDITS, DEFAULT_CREDITS, DEFAULT_PEER_TIMEOUT in
lnet/include/lnet/lib-lnet.h."""
_NTX, _FMR_POOL_SIZE = 512, 512


class LnetTunables(Spec):
    """Tunables of the interfaces of one network; what is null has LNet's own default.

    What o2iblnd would change without a word is refused instead. Source of the ranges:
    kiblnd_tunables_setup() and kiblnd_msg's ibm_credits (8 bits) in lnet/klnds/o2iblnd. The
    obsolete map_on_demand is left out: kernels since 4.9 have it always.
    """

    peer_credits: Annotated[StrictInt, Field(ge=1, le=255)] | None = Field(
        default=None,
        description="Sends in flight to one peer; null is 8, which is also o2ib's least. Servers "
        "negotiate it down to theirs.",
    )
    credits: Annotated[StrictInt, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Sends in flight of one interface; null is 256."
    )
    peer_buffer_credits: Annotated[StrictInt, Field(ge=0, le=65535)] | None = Field(
        default=None, description="Router buffers for one peer; null is 0."
    )
    peer_timeout: Annotated[StrictInt, Field(ge=0, le=3600)] | None = Field(
        default=None, description="Seconds until a silent peer is dead; 0 never, null is 180."
    )
    peer_credits_hiw: Annotated[StrictInt, Field(ge=4, le=254)] | None = Field(
        default=None,
        description="Credits from which on they are given back at once: from half of peer_credits "
        "to one less than it. O2ib alone; lnet.conf calls it peercredits_hiw.",
    )
    concurrent_sends: Annotated[StrictInt, Field(ge=4, le=510)] | None = Field(
        default=None,
        description="Work requests in flight of a connection: from half of peer_credits to twice "
        "it. O2ib alone; null is peer_credits.",
    )
    conns_per_peer: Annotated[StrictInt, Field(ge=1, le=127)] | None = Field(
        default=None, description="Connections to each peer; null is 1."
    )
    ntx: Annotated[StrictInt, Field(ge=1, le=65535)] | None = Field(
        default=None, description="Message descriptors of each pool. O2ib alone; null is 512."
    )
    fmr_pool_size: Annotated[StrictInt, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="Memory regions of each pool, a quarter of ntx at least. O2ib alone; null is "
        "512.",
    )
    tos: Annotated[StrictInt, Field(ge=0, le=255)] | None = Field(
        default=None,
        description="Type of service of the connections, such as 106 on RoCE; older lnetctl know "
        "none.",
    )

    @property
    def given(self) -> dict[str, int]:
        """Those that are not null, by name."""
        told = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in told.items() if value is not None}

    @model_validator(mode="after")
    def _fit_together(self) -> "LnetTunables":
        reject(list(self._findings()))
        return self

    def _findings(self) -> Iterator[Finding]:
        peer = self.peer_credits or PEER_CREDITS
        all_ = self.credits or CREDITS
        if peer > all_:
            yield Finding(("peer_credits",), peer, f"at most {all_}, as credits has it")
        hiw, sends = self.peer_credits_hiw, self.concurrent_sends
        if hiw is not None and not peer // 2 <= hiw < peer:
            expected = f"{peer // 2} to {peer - 1}: peer_credits is {peer}"
            yield Finding(("peer_credits_hiw",), hiw, expected)
        if sends is not None and not peer // 2 <= sends <= 2 * peer:
            expected = f"{peer // 2} to {2 * peer}: peer_credits is {peer}"
            yield Finding(("concurrent_sends",), sends, expected)
        # kiblnd_net_init_pools() fails otherwise, and with it the interface.
        ntx, pool = self.ntx or _NTX, self.fmr_pool_size or _FMR_POOL_SIZE
        if pool < ntx // 4:
            yield Finding(("fmr_pool_size",), pool, f"{ntx // 4} at least: ntx is {ntx}")


O2IB_ALONE = ("peer_credits_hiw", "concurrent_sends", "ntx", "fmr_pool_size")


class LnetNetwork(Spec):
    """One network of LNet: over rails of the node, or over interfaces by name.

    LNet spreads what it sends over all of them (multi-rail).
    """

    rails: RailChoice | None = Field(
        default=None, description="Rails that it lies on: 'all', or their numbers."
    )
    interfaces: tuple[InterfaceName, ...] = Field(
        default=(), description="Interfaces in place of rails."
    )
    tunables: LnetTunables = Field(default=LnetTunables(), description="Tunables of each of them.")

    @model_validator(mode="after")
    def _over_each_once(self) -> "LnetNetwork":
        if self.rails is not None and self.interfaces:
            reject([Finding(("interfaces",), self.interfaces, "either rails or interfaces")])
        if self.rails == ():
            reject([Finding(("rails",), (), "one rail at least, or 'all'")])
        for name in ("rails", "interfaces"):
            listed = getattr(self, name)
            if isinstance(listed, tuple) and len(set(listed)) < len(listed):
                reject([Finding((name,), listed, "each of them once")])
        return self


class LustreSpec(Packaged):
    """Lustre's client on a node."""

    version: LustreVersion | None = Field(
        default=None, description="The client's exact version; null is not looked at."
    )
    networks: dict[NetworkName, LnetNetwork] = Field(
        default={}, description="Networks of LNet by name; they are all that it has."
    )
    parameters: dict[ClientParameter, ClientValue] = Field(
        default={},
        description="Parameters of lctl set_param, such as osc.*.max_rpcs_in_flight; set after "
        "each mount, for a client cannot persist them (set_param -P is the MGS's).",
    )

    @model_validator(mode="after")
    def _tunables_are_the_networks_own(self) -> "LustreSpec":
        reject([*self._network_findings(), *self._parameter_findings()])
        return self

    def _network_findings(self) -> Iterator[Finding]:
        for name, network in sorted(self.networks.items()):
            given = network.tunables.given
            path = ("networks", name, "tunables")
            if not is_o2ib(name):
                for tunable in O2IB_ALONE:
                    if tunable in given:
                        yield Finding((*path, tunable), given[tunable], f"none: {name} is no o2ib")
            elif given.get("peer_credits", PEER_CREDITS) < PEER_CREDITS:
                expected = f"{PEER_CREDITS} at least: o2ib has no fewer"
                yield Finding((*path, "peer_credits"), given["peer_credits"], expected)

    def _parameter_findings(self) -> Iterator[Finding]:
        # mdc refuses as many changes in flight as requests. Source: Lustre manual, "Tuning the
        # client metadata RPC stream".
        for name, value in sorted(self.parameters.items()):
            head, _, last = name.rpartition(".")
            other = self.parameters.get(f"{head}.max_rpcs_in_flight")
            if last != "max_mod_rpcs_in_flight" or not isinstance(value, int):
                continue
            if isinstance(other, int) and value >= other:
                yield Finding(
                    ("parameters", name), value, f"less than max_rpcs_in_flight, which is {other}"
                )


Flock = Literal["flock", "localflock", "noflock"]


class LustreMount(Mounted):
    """A Lustre file system that is mounted."""

    kind: Literal["lustre"] = Field(default="lustre", description="Lustre.")
    mgs: tuple[tuple[Nid, ...], ...] = Field(
        description="Nodes that the MGS may run on, each with all of its NIDs."
    )
    fsname: FileSystemName = Field(description="Name of the file system.")
    subdirectory: Subdirectory | None = Field(
        default=None, description="Directory of it that is mounted; null is all of it."
    )
    flock: Flock = Field(
        default="flock",
        description="Locks of files: on all nodes alike, on this one alone (faster), or none.",
    )

    def model_post_init(self, _: Any) -> None:
        self.__pydantic_fields_set__.add("kind")

    @property
    def device(self) -> str:
        """What is mounted, as /proc/mounts has it too: ``NID,NID:NID:/fsname/sub``."""
        nodes = ":".join(",".join(nids) for nids in self.mgs)
        return f"{nodes}:/{self.fsname}{self.subdirectory or ''}"

    @property
    def nids(self) -> tuple[str, ...]:
        return tuple(nid for nids in self.mgs for nid in nids)

    @model_validator(mode="after")
    def _reaches_someone(self) -> "LustreMount":
        if not self.mgs or not all(self.mgs):
            reject([Finding(("mgs",), self.mgs, "a node at least, and of each a NID at least")])
        if len(set(self.nids)) < len(self.nids):
            reject([Finding(("mgs",), self.mgs, "each NID once")])
        for option in self.options:
            if option in ("flock", "localflock", "noflock"):
                reject([Finding(("options",), option, "it in flock")])
        return self
