"""Packages that unattended upgrades must not touch."""

from typing import Annotated

from pydantic import Field, StringConstraints

from railwright.schema.base import PackageName, Spec

PackageVersion = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][A-Za-z0-9.+:~-]*$")]


class HoldsSpec(Spec):
    """Packages kept at what they are: a driver's libraries, fabric manager, kernel."""

    packages: dict[PackageName, PackageVersion | None] = Field(
        default={},
        description="Package to the exact version it must have, or null for the version it has "
        "when it is first held.",
    )
