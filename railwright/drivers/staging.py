"""May drivers be reloaded on this node now? What a snapshot says of what they carry."""

from collections.abc import Iterable

from facts.block_path import SECTIONS as BLOCK
from facts.block_path import BlockStack, read_block_stack
from facts.drivers import Drivers
from facts.nics import SECTIONS as NICS
from facts.nics import Nics, read_nics
from railwright.drivers.carried import carried
from railwright.drivers.holders import Reload, plan_reload
from railwright.settings import Effect
from railwright.snapshot import Snapshot

SECTIONS = (*NICS, *BLOCK)


def reload_of(modules: Iterable[str], drivers: Drivers, snapshot: Snapshot) -> Reload:
    """How ``modules`` may be reloaded on the node; what cannot be read is a reason not to."""
    asked = tuple(modules)
    try:
        nics, stack = read_nics(snapshot), read_block_stack(snapshot)
        _check(nics, stack)
    except ValueError as error:
        reason = f"what they carry cannot be read ({error})"
        return Reload(modules=asked, unload=(), load=(), reasons=(reason,))
    builtin = drivers.running.builtin if drivers.running else frozenset[str]()
    return plan_reload(asked, drivers.loaded, carried(nics, stack), builtin)


def _check(nics: Nics, stack: BlockStack) -> None:
    """Raises ValueError where devices are missing, which would seem to carry nothing."""
    seen = {device.name for device in stack.devices.devices if device.kind == "net"}
    lost = sorted((nics.way_in or frozenset()) - seen)
    if lost or not seen:
        raise ValueError(f"the drivers of {', '.join(lost) or 'network interfaces'} are not known")


def effect_of(reload: Reload) -> Effect:
    """What it takes to bring what is on disk into the kernel."""
    return Effect.DRIVER if reload.live else Effect.REBOOT
