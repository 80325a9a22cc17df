"""May drivers be reloaded on this node now? What a snapshot says of what they carry."""

from collections.abc import Iterable

from facts.block_path import SECTIONS as BLOCK
from facts.block_path import read_block_stack
from facts.drivers import Drivers
from facts.nics import SECTIONS as NICS
from facts.nics import read_nics
from railwright.drivers.carried import carried
from railwright.drivers.holders import Reload, plan_reload
from railwright.settings import Effect
from railwright.snapshot import Snapshot

SECTIONS = (*NICS, *BLOCK)


def reload_of(modules: Iterable[str], drivers: Drivers, snapshot: Snapshot) -> Reload:
    """How ``modules`` may be reloaded on the node; what cannot be read is a reason not to."""
    asked = tuple(modules)
    try:
        things = carried(read_nics(snapshot), read_block_stack(snapshot))
    except ValueError as error:
        reason = f"what they carry cannot be read ({error})"
        return Reload(modules=asked, unload=(), load=(), reasons=(reason,))
    builtin = drivers.running.builtin if drivers.running else frozenset[str]()
    return plan_reload(asked, drivers.loaded, things, builtin)


def effect_of(reload: Reload) -> Effect:
    """What it takes to bring what is on disk into the kernel."""
    if not reload.live:
        return Effect.REBOOT
    return Effect.DRIVER if reload.unload else Effect.LIVE
