"""Resource limits: of logins (PAM), of systemd services, and of services that run."""

from typing import Annotated

from pydantic import Field, StrictInt

from railwright.schema.base import Size, Spec, UnitName, Unlimited

Count = Annotated[StrictInt, Field(ge=1)]


class LimitsSpec(Spec):
    """Limits of new logins and new services; None leaves a limit alone.

    Soft and hard limit are set alike, for root too: ``*`` in limits.conf(5) does not match root.
    Services alone keep a soft limit of 1024 open files: select() breaks above it, and programs
    that can do better raise it themselves (systemd's NEWS of version 240).
    """

    memlock: Size | Unlimited | None = Field(
        default=None, description="Locked memory. RDMA registration needs 'unlimited'."
    )
    nofile: Count | None = Field(
        default=None,
        description="Open files. 'unlimited' is refused: above fs.nr_open no login succeeds.",
        le=2**30,
    )
    nproc: Count | Unlimited | None = Field(default=None, description="Processes of a user.")
    stack: Size | Unlimited | None = Field(default=None, description="Stack.")
    services: frozenset[UnitName] = Field(
        default=frozenset(),
        description="Units that start jobs (slurmd.service): what they have is checked too.",
    )
