"""What Lustre's client and its mounts say of the rest of a node.

What is known of its versions is data (``railwright.compat``); here is what holds whatever they are.
"""

import re
from collections.abc import Iterator, Mapping

from railwright.schema.base import Finding, module_name
from railwright.schema.drivers import OfedSpec, PlatformSpec
from railwright.schema.lustre import (
    LnetNetwork,
    LustreMount,
    LustreSpec,
    is_o2ib,
    network_of,
)
from railwright.schema.modules import ModulesSpec
from railwright.schema.rails import RailsSpec

_MODULE_NETWORKS = ("networks", "ip2nets")
_IN_KERNEL = "kmod-lustre-client-lnet-in-kernel-o2iblnd"
_OVER_OFED = "kmod-lustre-client-lnet-o2iblnd"
"""RPMs of o2iblnd, each built against one RDMA stack. Source: lustre.spec.in."""
_PREBUILT = re.compile(r"lustre-client-modules-([0-9]+\.[0-9]+\.[0-9]+-.+)")
_CLIENT = re.compile(r"(kmod-)?lustre-client(-modules|-utils|-dkms|-lnet-.*)?(-dkms|-[0-9].*)?")


def lustre_findings(
    lustre: LustreSpec,
    mounts: Mapping[str, LustreMount],
    rails: RailsSpec,
    ofed: OfedSpec,
    modules: ModulesSpec,
    platform: PlatformSpec,
) -> list[Finding]:
    """All that does not fit together; ``mounts`` are those of Lustre by their mount point."""
    return [
        *_network_findings(lustre, rails, ofed),
        *_mount_findings(lustre, mounts),
        *_parameter_findings(lustre, mounts),
        *_module_findings(lustre, modules),
        *_package_findings(lustre, ofed, platform),
    ]


def rails_of(network: LnetNetwork, rails: RailsSpec) -> tuple[int, ...]:
    """The numbers of the rails that ``network`` lies on; none of one over interfaces by name."""
    if network.rails == "all":
        return tuple(sorted(rails.nics))
    return network.rails or ()


def _network_findings(lustre: LustreSpec, rails: RailsSpec, ofed: OfedSpec) -> Iterator[Finding]:
    for name, network in sorted(lustre.networks.items()):
        path = ("lustre", "networks", name)
        if is_o2ib(name) and ofed.kind is None:
            yield Finding(
                ("ofed", "kind"),
                None,
                f"the RDMA stack in use (inbox, doca_ofed): lustre.networks {name} is built on it",
            )
        if network.rails is None and not network.interfaces:
            yield Finding((*path, "rails"), None, "'all', numbers of rails, or interfaces")
        if network.rails == "all" and not rails.nics:
            yield Finding((*path, "rails"), "all", "rails.nics beside it: the node has no rails")
        for rail in rails_of(network, rails):
            nic = rails.nics.get(rail)
            if nic is None:
                known = ", ".join(map(str, sorted(rails.nics))) or "none"
                yield Finding((*path, "rails"), rail, f"a rail of rails.nics, which has {known}")
            elif nic.address is None and rails.plan.prefix is None:
                yield Finding(
                    (*path, "rails"),
                    rail,
                    f"rails.plan.prefix, or rails.nics.{rail}.address: a NID is an address, "
                    "on InfiniBand too",
                )


def _mount_findings(lustre: LustreSpec, mounts: Mapping[str, LustreMount]) -> Iterator[Finding]:
    known = ", ".join(sorted(lustre.networks)) or "none"
    for where, mount in sorted(mounts.items()):
        for nids in mount.mgs:
            if not any(network_of(nid) in lustre.networks for nid in nids):
                yield Finding(
                    ("storage", "mounts", where, "mgs"),
                    ",".join(nids),
                    f"a NID in one of lustre.networks, which has {known}",
                )


def _parameter_findings(lustre: LustreSpec, mounts: Mapping[str, LustreMount]) -> Iterator[Finding]:
    if lustre.parameters and not mounts:
        yield Finding(
            ("lustre", "parameters"),
            dict(lustre.parameters),
            "a mount of Lustre in storage.mounts beside them: they are set after it is mounted",
        )


def _module_findings(lustre: LustreSpec, modules: ModulesSpec) -> Iterator[Finding]:
    """Parameters of modules that say once more what lnet.conf says."""
    if not lustre.networks:
        return
    taken: dict[str, set[str]] = {
        "lnet": set(_MODULE_NETWORKS),
        "ko2iblnd": set(),
        "ksocklnd": set(),
    }
    for name, network in lustre.networks.items():
        module = "ko2iblnd" if is_o2ib(name) else "ksocklnd"
        taken[module] = taken.get(module, set()) | network.tunables.given.keys()
    for module, options in sorted(modules.options.items()):
        for option in sorted(taken.get(module_name(module), set()) & options.keys()):
            yield Finding(
                ("modules", "options", module, option),
                options[option],
                "it in lustre.networks alone: of two places the one that LNet is started by wins",
            )
    for name in sorted(modules.blacklist):
        if module_name(name) in ("lnet", "ko2iblnd", "ksocklnd", "lustre"):
            yield Finding(
                ("modules", "blacklist", name), name, "not there: lustre.networks needs it"
            )


def _package_findings(
    lustre: LustreSpec, ofed: OfedSpec, platform: PlatformSpec
) -> Iterator[Finding]:
    over_ofed = ofed.kind in ("doca_ofed", "mlnx_ofed")
    for package, pinned in sorted(lustre.packages.items()):
        path = ("lustre", "packages", package)
        if lustre.version is not None and _CLIENT.fullmatch(package):
            upstream = pinned.rpartition(":")[2]
            if not re.match(re.escape(lustre.version) + r"(?![0-9])", upstream):
                yield Finding(path, pinned, f"{lustre.version}, as lustre.version says")
        wrong, right = (_IN_KERNEL, _OVER_OFED) if over_ofed else (_OVER_OFED, _IN_KERNEL)
        if package == wrong and ofed.kind is not None:
            yield Finding(path, pinned, f"{right} in its place: ofed.kind is {ofed.kind}")
        prebuilt = _PREBUILT.fullmatch(package)
        if prebuilt and platform.kernel not in (None, prebuilt[1]):
            yield Finding(
                path,
                package,
                f"lustre-client-modules-{platform.kernel}, as platform.kernel says, or the "
                "modules' source (lustre-client-modules-dkms)",
            )
