"""May a module be reloaded now, or must that wait for a reboot?

A module goes only when all that use it are gone, so a reload takes its users along, up to the last.
It is done live where none of them carries ssh, the root file system, a mount or swap, and none is
in use by anything but modules. Otherwise it is staged: what is on disk is loaded at the next boot.
"""

from collections.abc import Iterable, Iterator, Mapping

from facts.modinfo import LoadedModule
from railwright.drivers.carried import Carried
from railwright.model import Model


class Reload(Model):
    """How ``modules`` are reloaded: all of ``unload``, in that order, then all of ``load``.

    ``reasons`` are why not now; where there are none, ``live`` is True.
    """

    modules: tuple[str, ...]
    unload: tuple[str, ...]
    load: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        return not self.reasons

    @property
    def words(self) -> str:
        """The verdict in one line."""
        names = ", ".join(self.modules)
        if self.reasons:
            return f"{names} cannot be reloaded now, staged for reboot: {'; '.join(self.reasons)}"
        if not self.unload:
            return f"{names}: not loaded, nothing to unload"
        return f"{names} can be reloaded now: unload {', '.join(self.unload)}"


def plan_reload(
    modules: Iterable[str],
    loaded: Mapping[str, LoadedModule],
    carried: Iterable[Carried],
    builtin: frozenset[str] = frozenset(),
) -> Reload:
    """Whether ``modules`` (names with ``_``) may be reloaded together, and in which order.

    ``loaded`` has the modules and all that hold them, to the last; ``builtin`` are modules that
    are part of the kernel.
    """
    asked = tuple(dict.fromkeys(modules))
    unload = unload_order(asked, loaded)
    return Reload(
        modules=asked,
        unload=unload,
        load=(*reversed(unload), *(m for m in asked if m not in unload and m not in builtin)),
        reasons=(
            *(f"{name} is built into the kernel" for name in asked if name in builtin),
            *_cuts(asked, unload, loaded, carried),
            *_held(unload, loaded),
        ),
    )


def users_of(module: str, loaded: Mapping[str, LoadedModule]) -> tuple[str, ...]:
    """The modules that use ``module`` directly."""
    entry = loaded.get(module)
    return entry.holders if entry else ()


def unload_order(modules: Iterable[str], loaded: Mapping[str, LoadedModule]) -> tuple[str, ...]:
    """``modules``, as far as they are loaded, and all that use them; users before the used."""
    order: list[str] = []
    done: set[str] = set()
    stack = [(name, False) for name in sorted(set(modules), reverse=True)]
    while stack:
        name, users_are_placed = stack.pop()
        if users_are_placed:
            order.append(name)
        elif name not in done and name in loaded:
            done.add(name)
            stack.append((name, True))
            stack += [(user, False) for user in sorted(users_of(name, loaded), reverse=True)]
    return tuple(order)


def _cuts(
    asked: tuple[str, ...],
    unload: tuple[str, ...],
    loaded: Mapping[str, LoadedModule],
    carried: Iterable[Carried],
) -> Iterator[str]:
    for thing in carried:
        hit = [name for name in unload if name in thing.modules]
        if hit:
            name = next((module for module in hit if module in asked), hit[0])
            way = _way(name, asked, loaded)
            through = f", which uses {way}" if way else ""
            yield f"{thing.what} goes over {thing.over}, by {name}{through}"


def _way(module: str, asked: tuple[str, ...], loaded: Mapping[str, LoadedModule]) -> str:
    """Through which modules ``module`` uses one that was asked for, nearest first."""
    used_by = {name: [n for n in loaded if name in users_of(n, loaded)] for name in loaded}
    ways: list[tuple[str, ...]] = [(module,)]
    seen = {module}
    while ways:
        way = ways.pop(0)
        if way[-1] in asked:
            return " over ".join(way[1:])
        for lower in used_by.get(way[-1], []):
            if lower not in seen:
                seen.add(lower)
                ways.append((*way, lower))
    return ""


def _held(unload: tuple[str, ...], loaded: Mapping[str, LoadedModule]) -> Iterator[str]:
    for name in unload:
        entry = loaded[name]
        unknown = [user for user in entry.holders if user not in loaded]
        if unknown:
            yield f"{name} is held by {', '.join(unknown)}, of which nothing was read"
        elif entry.refcnt is None:
            yield f"how often {name} is in use was not read"
        elif entry.initstate != "live":
            yield f"{name} is in the state {entry.initstate or 'unknown'}"
        elif (others := entry.refcnt - len(entry.holders)) > 0:
            times = "once" if others == 1 else f"{others} times"
            yield f"{name} is in use {times} by what is no module (a program, a mount, a device)"
