"""What inventories ask of Lustre's and BeeGFS's clients: the stand-ins' packages, and mounts.

Each function gives a part of a node's overlay as a fresh dictionary; ``mounts`` of several parts
are put together by whoever asks.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tests.drivers.asked import repository
from tests.standins.debs_beegfs import package as beegfs_package
from tests.standins.debs_lustre import PACKAGE as LUSTRE_PACKAGE
from tests.standins.debs_lustre import VERSION as LUSTRE_VERSION

Overlay = dict[str, Any]

TUNABLES: Mapping[str, int] = {"peer_credits": 32, "peer_credits_hiw": 16, "concurrent_sends": 64}
PARAMETERS: Mapping[str, int | str] = {"osc.*.max_rpcs_in_flight": 32}


def repositories(url: str, *names: str) -> Overlay:
    """The stand-ins' repositories below ``url``, such as lustre and beegfs."""
    return {name: repository(name, url) for name in names}


def lustre(
    network: str = "o2ib",
    rails: Literal["all"] | Sequence[int] = "all",
    *,
    tunables: Mapping[str, int] | None = None,
    parameters: Mapping[str, int | str] = PARAMETERS,
    **more: Any,
) -> Overlay:
    """``lustre`` of a node: the client, and one network of LNet over ``rails``.

    Of o2ib the tunables are ``TUNABLES`` unless others are given; of tcp none.
    """
    given = TUNABLES if tunables is None and network.startswith("o2ib") else tunables or {}
    over = rails if isinstance(rails, str) else list(rails)
    return {
        "version": LUSTRE_VERSION,
        "repository": "lustre",
        "packages": dict.fromkeys(
            ("lustre-client-modules-dkms", "lustre-client-utils"), LUSTRE_PACKAGE
        ),
        "networks": {network: {"rails": over, "tunables": dict(given)}},
        "parameters": dict(parameters),
        **more,
    }


def lustre_mount(*addresses: str, network: str = "o2ib", **more: Any) -> Overlay:
    """A mount of file system scr, whose MGS runs on one of the hosts with these addresses."""
    mgs = [[f"{address}@{network}"] for address in addresses]
    return {"kind": "lustre", "mgs": mgs, "fsname": "scr", **more}


def beegfs(major: Literal[7, 8], build: Literal["dkms", "autobuild"], **more: Any) -> Overlay:
    """``beegfs`` of a node with the kernel's own RDMA stack."""
    client = "beegfs-client-dkms" if build == "dkms" else "beegfs-client"
    beside = "beegfs-helperd" if major == 7 else "beegfs-tools"
    return {
        "major": major,
        "build": build,
        "ofed_headers": False,
        "repository": "beegfs",
        "packages": dict.fromkeys((client, beside), beegfs_package(major)),
        **more,
    }


def beegfs_mount(management: str, **more: Any) -> Overlay:
    """A mount over RDMA on all rails, with no way back to TCP, and without a secret."""
    return {
        "kind": "beegfs",
        "management": management,
        "auth": "disabled",
        "rdma": True,
        "tcp_fallback": False,
        "rails": "all",
        **more,
    }
