"""NFS over RDMA: mounted only where rpcrdma is of the RDMA stack in use, and proven after.

With a rpcrdma of another stack a mount hangs or ends in a protocol error
(Mellanox/doca-driver-build#89), so it is looked at before. That the mount goes over RDMA is what
/proc/mounts shows, and nothing else: ``mountproto=tcp`` beside it is right.
"""

from collections.abc import Iterator

from deploys.packages import COMPONENT as PACKAGES
from deploys.packages import arriving
from facts.mounts import SECTIONS as MOUNTS
from facts.rdma_modules import SECTION as RDMA_MODULES
from facts.rdma_modules import read_rdma_modules
from railwright.actions import Action
from railwright.component import Component
from railwright.mounts import OwnedMount, mount_actions, mount_settings
from railwright.resolve.rdma_modules import Refusal, brings, refusal
from railwright.schema import Node
from railwright.schema.nfs import NfsRdmaMount
from railwright.settings import HOSTS_KERNEL, Setting, Standing, State, looked_at
from railwright.snapshot import Snapshot

NAME = "nfs"
_MODULE = "module rpcrdma"
_DESIRED = "of the RDMA stack in use"


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    mounts = mounts_of(node)
    refused = _refused(node, snapshot) if mounts and not snapshot.is_container else None
    lacks = {mount.where: refused.found for mount in mounts} if refused else {}
    found = mount_settings(NAME, mounts, snapshot, node.effects.allow, lacks=lacks)
    if not mounts:
        return found
    return [*found, _module(refused, snapshot)]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    by_key = {setting.key: setting for setting in settings}
    yield from mount_actions(NAME, mounts_of(node), snapshot, by_key, node.effects.allow)


def mounts_of(node: Node) -> list[OwnedMount]:
    """The mounts of ``node`` by their directory."""
    return [_mount(where, mount) for where, mount in node.storage.of(NfsRdmaMount).items()]


def _mount(where: str, mount: NfsRdmaMount) -> OwnedMount:
    keeps = "hard" if mount.hard else "soft"
    sizes = {"nconnect": mount.nconnect, "rsize": mount.rsize, "wsize": mount.wsize}
    return OwnedMount(
        where=where,
        what=mount.source,
        fstype="nfs" if mount.version == "3" else "nfs4",
        options=(
            *(f"proto={mount.netid}", f"port={mount.port}", f"vers={mount.version}", keeps),
            *(f"{name}={value}" for name, value in sizes.items() if value is not None),
            *mount.options,
        ),
        timeout_s=mount.timeout_s,
        # Sizes are what the server grants; nconnect is passed over by kernels up to 6.7.
        shown=(f"proto={mount.netid}", f"vers={mount.version}", keeps),
    )


def _refused(node: Node, snapshot: Snapshot) -> Refusal | None:
    """Why rpcrdma must not be used; None where packages of this run bring the right one."""
    if any(brings("rpcrdma", package) for package in arriving(node, snapshot)):
        return None
    return refusal("rpcrdma", read_rdma_modules(snapshot))


def _module(refused: Refusal | None, snapshot: Snapshot) -> Setting:
    if snapshot.is_container:
        return looked_at(NAME, _MODULE, _DESIRED, HOSTS_KERNEL)
    state = State(standing=Standing.RIGHT, value=_DESIRED)
    if refused is not None:
        state = State(standing=Standing.WRONG, detail=refused.found)
    return looked_at(NAME, _MODULE, _DESIRED, state, remedy=refused.remedy if refused else None)


COMPONENT = Component(
    name=NAME,
    sections=(*MOUNTS, RDMA_MODULES, *PACKAGES.sections),
    settings=settings,
    actions=actions,
    upon=frozenset({PACKAGES.name, "ofed", "rails"}),
)
