"""Time: chrony and its sources."""

from typing import TYPE_CHECKING

from pydantic import Field

from railwright.schema.base import Spec, word

if TYPE_CHECKING:
    SourceAddress = str
else:
    SourceAddress = word(r"[A-Za-z0-9][A-Za-z0-9.:-]*", "a host name or an address")


class TimeSource(Spec):
    """One line of chrony's sources."""

    port: int = Field(default=123, ge=1, le=65535, description="UDP port.")
    pool: bool = Field(default=False, description="The name stands for several servers.")
    iburst: bool = Field(default=True, description="Four quick requests at start.")
    prefer: bool = Field(default=False, description="Prefer this source over others.")


class TimeSpec(Spec):
    """chrony; without sources the component leaves the host's time alone."""

    sources: dict[SourceAddress, TimeSource] = Field(
        default={}, description="NTP server (name or address) to its options."
    )
    max_offset_ms: float = Field(
        default=10.0,
        gt=0,
        description="Milliseconds the clock may be off before it counts as degraded: logs and "
        "traces of one job are compared across nodes at this grain.",
    )
