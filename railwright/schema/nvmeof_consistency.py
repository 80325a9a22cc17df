"""What volumes over a fabric say of each other, of the rails, the fabric and the drivers."""

from collections.abc import Iterable, Iterator, Mapping

from railwright.schema.base import Finding, module_name
from railwright.schema.drivers import DriverSet
from railwright.schema.fabric import InfinibandFabric, RoceFabric
from railwright.schema.modules import ModulesSpec
from railwright.schema.nvmeof import NvmeofSpec, NvmeofVolume
from railwright.schema.rails import RailsSpec

Fabric = RoceFabric | InfinibandFabric | None


def nvmeof_findings(
    nvmeof: NvmeofSpec,
    volumes: Mapping[str, NvmeofVolume],
    rails: RailsSpec,
    fabric: Fabric,
    drivers: DriverSet,
    modules: ModulesSpec,
) -> list[Finding]:
    """``volumes`` are those of storage.mounts that are NVMe over Fabrics, by their directory."""
    found = list(_module_findings(nvmeof, volumes, modules))
    for where, volume in volumes.items():
        path = ("storage", "mounts", where)
        found += _rail_findings(path, volume, rails)
        found += _fabric_findings(path, volume, fabric, rails)
        if len(volume.portals) > 1 and nvmeof.multipath is False:
            expected = (
                "one: nvmeof.multipath is false, and without it each portal is a drive of its own"
            )
            found.append(Finding((*path, "portals"), len(volume.portals), expected))
        if drivers.gds.mode == "p2pdma":
            # NVIDIA GDS documentation, NVMe P2PDMA: drives on PCIe alone.
            expected = "none with gds.mode p2pdma, which is for drives on PCIe"
            found.append(Finding((*path, "kind"), volume.kind, expected))
    if drivers.gds.mode == "p2pdma" and nvmeof.multipath:
        expected = "false: gds.mode p2pdma does not go with NVMe multipath"
        found.append(Finding(("nvmeof", "multipath"), True, expected))
    return [*found, *_twice(volumes)]


def _rail_findings(
    path: tuple[str, ...], volume: NvmeofVolume, rails: RailsSpec
) -> Iterator[Finding]:
    for number, portal in enumerate(volume.portals):
        if portal.rail is None:
            continue
        place = (*path, "portals", str(number), "rail")
        nic = rails.nics.get(portal.rail)
        if nic is None:
            known = ", ".join(map(str, sorted(rails.nics))) or "none"
            yield Finding(place, portal.rail, f"a rail of rails.nics, which has {known}")
        elif nic.address is None and rails.plan.prefix is None:
            expected = f"rails.plan.prefix, or rails.nics {portal.rail} address, to leave from"
            yield Finding(place, portal.rail, expected)
        elif portal.address.version != 4:
            expected = "none: rails have IPv4 addresses, and the portal's is IPv6"
            yield Finding(place, portal.rail, expected)


def _fabric_findings(
    path: tuple[str, ...], volume: NvmeofVolume, fabric: Fabric, rails: RailsSpec
) -> Iterator[Finding]:
    if volume.transport != "rdma":
        return
    if fabric is None or not rails.nics:
        expected = "tcp, or a fabric and rails.nics: RDMA goes over the rails' devices"
        yield Finding((*path, "transport"), "rdma", expected)
    elif isinstance(fabric, RoceFabric) and volume.tos is not None:
        qos = fabric.qos
        if qos.priority_of(volume.tos >> 2) not in qos.lossless:
            expected = (
                f"{qos.traffic_class} or null: the priority of DSCP {volume.tos >> 2} is not in "
                "fabric.qos.lossless"
            )
            yield Finding((*path, "tos"), volume.tos, expected)


def _module_findings(
    nvmeof: NvmeofSpec, volumes: Mapping[str, NvmeofVolume], modules: ModulesSpec
) -> Iterator[Finding]:
    for name, options in sorted(modules.options.items()):
        value = options.get("multipath")
        if module_name(name) != "nvme_core" or value is None or nvmeof.multipath is None:
            continue
        if (value not in (False, 0, "N", "n", "0")) != nvmeof.multipath:
            expected = f"{str(nvmeof.multipath).lower()}, as nvmeof.multipath says"
            yield Finding(("modules", "options", name, "multipath"), value, expected)
    needed = {f"nvme_{volume.transport}": where for where, volume in volumes.items()}
    if volumes:
        needed["nvme_fabrics"] = next(iter(volumes))
    for name in sorted(modules.blacklist):
        if module_name(name) in needed:
            where = needed[module_name(name)]
            expected = f"not there: storage.mounts {where} goes over it"
            yield Finding(("modules", "blacklist", name), name, expected)


def _place(volume: NvmeofVolume) -> tuple[str, str]:
    return volume.nqn, f"{volume.namespace.kind} {volume.namespace.value}"


def _twice(volumes: Mapping[str, NvmeofVolume]) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    tuned: dict[str, str] = {}
    for where, volume in volumes.items():
        earlier = first.setdefault(_place(volume), where)
        path = ("storage", "mounts", where)
        if earlier != where:
            expected = f"another one than that of storage.mounts {earlier}"
            yield Finding((*path, "namespace"), _place(volume)[1], expected)
        # Connections are those of a subsystem, whichever of its namespaces are mounted.
        other = tuned.setdefault(volume.nqn, where)
        if _connection(volume) != _connection(volumes[other]):
            expected = f"portals, options and keys as those of storage.mounts {other}, of that nqn"
            yield Finding((*path, "nqn"), volume.nqn, expected)


def _connection(volume: NvmeofVolume) -> NvmeofVolume:
    """``volume`` without what is the namespace's own."""
    own = {"options": (), "timeout_s": 90, "filesystem": "ext4", "format": "never"}
    own |= {"expected": type(volume.expected)()}
    fixed = type(volume.namespace).model_construct(nsid=1)
    return volume.model_copy(update={**own, "namespace": fixed})


def shared(
    volumes: Iterable[tuple[str, Mapping[str, NvmeofVolume]]],
) -> Iterator[tuple[str, str, str, str]]:
    """Volumes that two nodes ask for: node, directory, and those of the node that came before.

    ``volumes`` are each node's, by its name. ext4 and xfs are of one node: two that mount the same
    namespace write over each other.
    """
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for node, mounts in volumes:
        for where, volume in mounts.items():
            earlier = first.setdefault(_place(volume), (node, where))
            if earlier[0] != node:
                yield node, where, *earlier
