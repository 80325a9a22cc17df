"""What packages of drivers, their repositories and holds say of each other."""

import re
from collections.abc import Iterator

from railwright.schema.base import Finding
from railwright.schema.drivers import DriverSet, GpuDriverSpec
from railwright.schema.holds import HoldsSpec

_DRIVER_PACKAGE = re.compile(
    r"(nvidia-(driver(-libs|-cuda|-cuda-libs)?|open|dkms|utils|compute-utils|persistenced|imex"
    r"|fabric-?manager|headless(-no-dkms)?|kernel-(open|source|common|support))"
    r"|libnvidia-(compute|cfg1|common|decode|encode|extra|fbc1|gl|ml|nscq)"
    r"|kmod-nvidia-(open|latest)-dkms|cuda-drivers(-fabricmanager)?)"
    r"(-[0-9]{3})?(-server)?(-open)?"
)
"""Packages of Ubuntu, Debian and NVIDIA that have the driver's own version."""


def repository_findings(drivers: DriverSet) -> Iterator[Finding]:
    known = ", ".join(sorted(drivers.repositories)) or "none"
    for name, spec in drivers.packaged():
        if spec.repository is not None and spec.repository not in drivers.repositories:
            yield Finding(
                (name, "repository"), spec.repository, f"one of repositories, which has {known}"
            )
    distribution = drivers.platform.distribution
    manager = {"ubuntu": "apt", "debian": "apt", "rhel": "dnf"}.get(distribution or "")
    for name, repository in sorted(drivers.repositories.items()):
        path = ("repositories", name)
        if manager is not None and repository.kind != manager:
            yield Finding(
                (*path, "kind"),
                repository.kind,
                f"{manager}: platform.distribution is {distribution}",
            )
        release = re.search(r"/doca/([^/]+)/", repository.url)
        ofed = drivers.ofed
        used = ofed.kind == "doca_ofed" and ofed.repository == name and ofed.version is not None
        if used and release is not None and release[1] != ofed.version:
            yield Finding(
                (*path, "url"), repository.url, f"/doca/{ofed.version}/ in it, as ofed.version says"
            )


def package_findings(drivers: DriverSet, holds: HoldsSpec) -> Iterator[Finding]:
    """Packages that are given several versions, or another than the driver's."""
    said: dict[str, tuple[str, str]] = {}
    for name, spec in drivers.packaged():
        for package, pinned in sorted(spec.packages.items()):
            where, other = said.setdefault(package, (name, pinned))
            if other != pinned:
                yield Finding(
                    (name, "packages", package), pinned, f"{other}, as {where}.packages says"
                )
    for name, spec in drivers.packaged():
        for package in sorted(spec.removes):
            where = said[package][0] if package in said else "holds"
            if package in said or package in holds.packages:
                yield Finding(
                    (name, "removes", package), package, f"not there: {where}.packages has it"
                )
    for package, held in sorted(holds.packages.items()):
        where, pinned = said.get(package, ("", held or ""))
        if held is not None and held != pinned:
            yield Finding(
                ("holds", "packages", package), held, f"{pinned}, as {where}.packages says"
            )
        elif held is not None and package not in said:
            yield from _of_another(("holds", "packages", package), held, drivers.gpu_driver)
    for package, pinned in sorted(drivers.gpu_driver.packages.items()):
        yield from _of_another(("gpu_driver", "packages", package), pinned, drivers.gpu_driver)


def _of_another(
    path: tuple[str, str, str], version: str, driver: GpuDriverSpec
) -> Iterator[Finding]:
    """A package of the driver that has not the driver's version."""
    ours = driver.version is not None and _DRIVER_PACKAGE.fullmatch(path[-1]) is not None
    if ours and _upstream(version) != driver.version:
        yield Finding(
            path,
            version,
            f"{driver.version}, as gpu_driver.version says: these are of one version or do not run",
        )


def _upstream(version: str) -> str:
    """``580.95.05`` of ``1:580.95.05-0ubuntu1``."""
    return re.split(r"[-+~]", version.rpartition(":")[2], maxsplit=1)[0]
