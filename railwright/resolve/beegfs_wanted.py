"""What the inventory asks of BeeGFS's files on a node, in the words of those files."""

from collections.abc import Iterable, Mapping

from railwright.model import Model
from railwright.mounts import OwnedMount
from railwright.owned import HEADER, OwnedFile
from railwright.resolve.nics import FoundRail
from railwright.schema import Node
from railwright.schema.beegfs import FIELDS, STOCK_CONFIG, BeegfsMount
from railwright.schema.beegfs_keys import CLIENT_PORT, MANAGEMENT_PORT, Major, superseded
from railwright.schema.mounted import Secret
from railwright.secrets import SecretFile

OURS = "/etc/railwright/beegfs"
CERTIFICATE = "/etc/beegfs/cert.pem"
"""Where the tools of 8 look for it (defaultTlsCertFile in beegfs-go)."""
BUILD_FILES = {
    "dkms": "/etc/beegfs/beegfs-client-build.mk",
    "autobuild": "/etc/beegfs/beegfs-client-autobuild.conf",
}
OFED_HEADERS = "/usr/src/ofa_kernel/default/include"
HELPERD_CONFIG = "/etc/beegfs/beegfs-helperd.conf"
MOUNTS_CONFIG = "/etc/beegfs/beegfs-mounts.conf"

Keys = dict[str, str | None]
"""Key to its value; None is a key that must not be there."""


class Lists(Model):
    """The interfaces of a mount; ``error`` says why they are not known.

    ``told`` are those that servers are told of, ``rdma`` those that RDMA is bound to, each in the
    order of preference; None where the mount leaves that alone.
    """

    told: tuple[str, ...] | None = None
    rdma: tuple[str, ...] | None = None
    error: str | None = None


def beegfs_mounts(node: Node) -> dict[str, BeegfsMount]:
    """The mounts of BeeGFS by their directory, those with the stock configuration first."""
    found = node.storage.of(BeegfsMount)
    return dict(sorted(found.items(), key=lambda item: (item[1].config != STOCK_CONFIG, item[0])))


def auth_path(mount: BeegfsMount) -> str:
    """The file of its secret; that of the stock configuration is where the tools of 8 look."""
    if mount.config == STOCK_CONFIG:
        return "/etc/beegfs/conn.auth"
    return f"{mount.config.removesuffix('.conf')}.auth"


def secret_files(node: Node) -> list[SecretFile]:
    """The secrets of all mounts, and the certificate of the tools; root alone reads them.

    The tools need the secret too, so that a certificate for root is one for all who use them.
    """
    found: dict[str, SecretFile] = {}
    for where, mount in beegfs_mounts(node).items():
        field = f"storage.mounts.{where}"
        if isinstance(mount.auth, Secret):
            path = auth_path(mount)
            found[path] = SecretFile(
                path=path, content=(mount.auth,), field=f"{field}.auth", mode="400"
            )
        if mount.tls_certificate is not None:
            found.setdefault(
                CERTIFICATE,
                SecretFile(
                    path=CERTIFICATE,
                    content=(mount.tls_certificate,),
                    field=f"{field}.tls_certificate",
                ),
            )
    return list(found.values())


def lists_of(mount: BeegfsMount, rails: Iterable[FoundRail]) -> Lists:
    """The interfaces that ``mount`` goes over, by the names that its rails have or will have."""
    names: list[str] = []
    chosen = mount.rails if isinstance(mount.rails, tuple) else None
    for rail in rails if mount.rails is not None else ():
        if chosen is not None and rail.plan.rail not in chosen:
            continue
        name = rail.plan.name or (rail.interface.name if rail.interface else None)
        if name is None:
            return Lists(error=f"{rail.key}: {rail.error or 'it has no interface'}")
        names.append(name)
    told = tuple(dict.fromkeys((*names, *mount.interfaces)))
    by_rdma = mount.rails is not None and mount.rdma is not False
    return Lists(told=told or None, rdma=tuple(names) if by_rdma else None)


def told_path(mount: BeegfsMount) -> str:
    return f"{OURS}/{mount.stem}.interfaces"


def rdma_path(mount: BeegfsMount) -> str:
    return f"{OURS}/{mount.stem}.rdma-interfaces"


def interface_files(mount: BeegfsMount, lists: Lists) -> list[OwnedFile]:
    """The lists of interfaces as the client reads them: one a line, comments with #."""
    pairs = ((told_path(mount), lists.told), (rdma_path(mount), lists.rdma))
    return [
        OwnedFile(path=path, content=HEADER + "".join(f"{name}\n" for name in names))
        for path, names in pairs
        if names
    ]


def client_keys(mount: BeegfsMount, major: Major, lists: Lists) -> Keys:
    """The keys of the client's configuration."""
    found: Keys = {"sysMgmtdHost": mount.management}
    found |= dict.fromkeys(MANAGEMENT_PORT[major], str(mount.management_port))
    found |= dict.fromkeys(CLIENT_PORT[major], str(mount.client_port))
    found |= auth_keys(mount)
    if lists.told:
        found["connInterfacesFile"] = told_path(mount)
    if lists.rdma:
        found["connRDMAInterfacesFile"] = rdma_path(mount)
    for field, key in FIELDS.items():
        value = getattr(mount, field)
        if value is not None:
            found[key] = written(value)
    found |= {key: written(value) for key, value in mount.other.items()}
    return found | dict.fromkeys(superseded(major))


def auth_keys(mount: BeegfsMount) -> Keys:
    """How connections are authenticated, for the client and for its helper (7).

    Where a file is named 7 takes it, whatever connDisableAuthentication says
    (__Config_initConnAuthHash in Config.c).
    """
    if mount.auth == "disabled":
        return {"connAuthFile": "", "connDisableAuthentication": "true"}
    return {"connAuthFile": auth_path(mount), "connDisableAuthentication": "false"}


def build_keys(node: Node) -> Keys:
    """What the module is built against; nothing where the inventory does not say."""
    beegfs, found = node.beegfs, Keys()
    if beegfs.ofed_headers is not None:
        found["OFED_INCLUDE_PATH"] = OFED_HEADERS if beegfs.ofed_headers else None
    if beegfs.gds is not None:
        source = beegfs.nvidia_source or f"/usr/src/nvidia-{node.gpu_driver.version}/nvidia"
        found["NVFS_INCLUDE_PATH"] = nvidia_fs_source(node) if beegfs.gds else None
        found["NVIDIA_INCLUDE_PATH"] = source if beegfs.gds else None
    return found


def nvidia_fs_source(node: Node) -> str:
    return f"/usr/src/nvidia-fs-{node.gds.version}"


def written(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_ON, _OFF = frozenset({"true", "1", "yes", "y", "on"}), frozenset({"false", "0", "no", "n", "off"})


def same(one: str, other: str) -> bool:
    """Whether two values mean the same: switches by their meaning, numbers as numbers.

    Source: StringTk_strToBool in client_module/source/common/toolkit/StringTk.c, which takes all
    but the words for true as false.
    """
    words = (one.strip().lower(), other.strip().lower())
    if words[0] == words[1] or all(word in _ON for word in words):
        return True
    if all(word in _OFF for word in words):
        return True
    try:
        return int(words[0]) == int(words[1])
    except ValueError:
        return False


def owned_mounts(mounts: Mapping[str, BeegfsMount], after: tuple[str, ...]) -> list[OwnedMount]:
    """The mount units: ``cfgFile`` is all that the client has to be given."""
    return [
        OwnedMount(
            where=where,
            what="beegfs_nodev",
            fstype="beegfs",
            options=(f"cfgFile={mount.config}", *mount.options),
            after=after,
            timeout_s=mount.timeout_s,
            shown=(f"cfgFile={mount.config}",),
        )
        for where, mount in mounts.items()
    ]
