"""Whether the servers of a mounted Lustre answer; nothing that asks them holds up the probe."""

from collections.abc import Iterable, Iterator, Sequence

from facts.lfs import LustreDf
from facts.lustre import NO_ANSWER, read_devices, read_targets
from railwright.schema.lustre import LustreMount
from railwright.settings import Setting, Standing, State, looked_at
from railwright.snapshot import Snapshot

_INACTIVE = "inactive device"
_FULL_PCT = 100
_ANSWER = "answer"


def target_settings(
    component: str, mounted: Iterable[tuple[str, LustreMount]], snapshot: Snapshot
) -> Iterator[Setting]:
    """The targets of each mount that is ``mounted``, by where that is."""
    said = read_targets(snapshot)
    try:
        not_up, unread = read_devices(snapshot).not_up, None
    except ValueError as error:
        not_up, unread = [], str(error)
    for where, mount in mounted:
        names = [name for name in not_up if name.startswith(f"{mount.fsname}-")]
        running = _answers(said.get(where, NO_ANSWER), names, unread)
        silent = running.standing is Standing.DEGRADED
        yield looked_at(
            component,
            f"targets {where}",
            _ANSWER,
            running,
            remedy="lfs check servers, and the servers' own logs" if silent else None,
        )


def _answers(df: LustreDf | str, not_up: Sequence[str], unread: str | None) -> State:
    if isinstance(df, str):
        return State(standing=Standing.DEGRADED, value="silent", detail=df)
    # What an administrator has taken out of use is told, and no fault of this node.
    silent = {name: why for name, why in df.silent.items() if why != _INACTIVE}
    if silent:
        told = "; ".join(f"{name}: {why}" for name, why in sorted(silent.items()))
        return State(standing=Standing.DEGRADED, value="silent", detail=told)
    full = (name for name, one in df.osts.items() if (one.use_pct or 0) >= _FULL_PCT)
    notes = {
        "inactive": sorted(df.silent),
        "full": sorted(f"OST{int(index):04x}" for index in full),
        "not up": sorted(not_up),
        "unread": [unread] if unread else [],
    }
    told = "; ".join(f"{what}: {', '.join(names)}" for what, names in notes.items() if names)
    return State(standing=Standing.RIGHT, value=_ANSWER, detail=told or None)
