"""Packages that unattended upgrades must not touch."""

from typing import TYPE_CHECKING

from pydantic import Field

from railwright.schema.base import PackageName, Spec, word

if TYPE_CHECKING:
    PackageVersion = str
else:
    PackageVersion = word(r"[0-9A-Za-z][A-Za-z0-9.+:~-]*", "an exact version, such as 580.95.05-1")


class HoldsSpec(Spec):
    """Packages kept at what they are: a driver's libraries, fabric manager, kernel."""

    packages: dict[PackageName, PackageVersion | None] = Field(
        default={},
        description="Package to the exact version it must have, or null for the version it has "
        "when it is first held.",
    )
