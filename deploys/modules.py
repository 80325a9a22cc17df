"""Kernel modules: loaded at boot and now, their options, and those that must never load.

What modprobe.d says holds from the root file system on. A module that an initramfs loads gets
what was copied into the initramfs when that was made, so an image that is older than the file
that decides is stale for the modules that it may load (railwright.resolve.initramfs).
"""

from collections.abc import Iterator

from facts.modules import SECTIONS
from railwright.actions import Action, Run
from railwright.component import Component
from railwright.drivers.options import modules_of
from railwright.modprobe import (
    LOAD_PATH,
    MODPROBE_PATH,
    Value,
    load_content,
    modprobe_content,
    names,
    options_of,
    same,
    text_of,
)
from railwright.owned import OwnedFile, owned_file_action, owned_file_setting
from railwright.resolve.modules import Decided, loaded_at_boot, refuses
from railwright.resolve.modules_view import ModulesView
from railwright.schema import ModulesSpec, Node
from railwright.schema.base import module_name
from railwright.settings import HOSTS_KERNEL, Effect, Setting, Standing, State, enforces, persists
from railwright.snapshot import Snapshot

_NAME = "modules"


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    files = snapshot.files("modules_config")
    ours = any(file.path in (LOAD_PATH, MODPROBE_PATH) for file in files)
    if modules_of(node) == ModulesSpec() and not ours:
        return []
    view = ModulesView.of(node, snapshot)
    owned = (owned_file_setting(_NAME, owned, files) for owned in _owned(view.achievable))
    at_boot = loaded_at_boot(files)
    return [
        *filter(None, owned),
        *(_load(view, name, at_boot.get(name)) for name in names(view.spec.load)),
        *(
            _option(view, module, parameter, value)
            for module, parameters in options_of(view.spec).items()
            for parameter, value in parameters.items()
        ),
        *(_blacklist(view, name) for name in names(view.spec.blacklist)),
    ]


def actions(node: Node, snapshot: Snapshot, settings: list[Setting]) -> Iterator[Action]:
    if not settings:
        return
    by_key = {setting.key: setting for setting in settings}
    view = ModulesView.of(node, snapshot)
    for owned in _owned(view.achievable):
        yield from owned_file_action(owned, by_key.get(owned.path))
    for version in _images_to_make(view, by_key):
        yield _make_image(view.images[version].path, version)
    due = {
        key
        for key, setting in by_key.items()
        # What a reboot brings is left to it: a module that is held is not unloaded.
        if enforces(setting, node.effects.allow) and setting.effect is not Effect.REBOOT
    }
    for name in sorted(names(view.spec.blacklist)):
        if f"blacklist {name}" in due:
            yield Run(command=("modprobe", "-r", name))
    for module, parameters in sorted(options_of(view.spec).items()):
        waits = {f"option {module}.{name}" for name in parameters} & due
        if waits and view.is_loaded(module):
            yield Run(command=("modprobe", "-r", module))
            yield Run(command=("modprobe", module))
    for name in sorted(names(view.spec.load)):
        if f"load {name}" in due:
            yield Run(command=("modprobe", name))


def _images_to_make(view: ModulesView, by_key: dict[str, Setting]) -> list[str]:
    """Kernel versions whose initramfs must be made anew.

    Those that may load a module of our file where that changes, and those that are stale.
    """
    ours = by_key.get(MODPROBE_PATH)
    versions: set[str] = set()
    if ours is not None and persists(ours):
        before = {line.module for line in view.config.lines if MODPROBE_PATH in line.decider}
        after = {line.module for line in view.ours.lines if MODPROBE_PATH in line.decider}
        for module in before | after:
            versions.update(view.images_with(module))
    for key, setting in by_key.items():
        if setting.persisted.standing is Standing.STALE and setting.persisted.decider:
            module = key.split(" ")[1].partition(".")[0]
            versions.update(view.stale_images(module, setting.persisted.decider))
    return sorted(versions)


def _make_image(path: str, version: str) -> Run:
    if path.startswith("/boot/initrd.img-"):
        return Run(command=("update-initramfs", "-u", "-k", version))
    return Run(command=("dracut", "--force", path, version))


def _refusal(view: ModulesView, name: str) -> Decided | None:
    """What makes ``modprobe name`` itself load nothing."""
    install = view.ours.install(name)
    return view.ours.refusal(name) or (install if refuses(install) else None)


def _load(view: ModulesView, name: str, listed: str | None) -> Setting:
    refused = _refusal(view, name)
    blocker = refused or view.ours.blacklisting(name)
    lacks = view.lacks(name)
    remedy = None
    if blocker:
        remedy = f"take {name} out of {blocker.decider}"
    elif lacks:
        remedy = f"install {name} for kernel {view.kernel}"
    running = _load_running(view, name)
    return Setting(
        component=_NAME,
        key=f"load {name}",
        desired="loaded",
        persisted=_load_persisted(view, name, blocker, listed),
        running=running,
        effect=Effect.REBOOT if running.standing is Standing.LATE else Effect.LIVE,
        acts=not (refused or lacks),
        remedy=remedy,
    )


def _load_persisted(
    view: ModulesView, name: str, blocker: Decided | None, listed: str | None
) -> State:
    if view.is_builtin(name):
        return State(standing=Standing.RIGHT, value="loaded", detail="built into the kernel")
    if blocker:
        return State(standing=Standing.OVERRIDDEN, value="blacklisted", decider=blocker.decider)
    before = view.config.blacklisting(name)
    if before:
        # Our file as it still is: the module was blacklisted until now.
        return State(standing=Standing.WRONG, value=before.value, decider=before.decider)
    if listed is None:
        return State(standing=Standing.ABSENT)
    return State(standing=Standing.RIGHT, value="loaded", decider=listed)


def _load_running(view: ModulesView, name: str) -> State:
    if view.is_container:
        return HOSTS_KERNEL
    if view.is_loaded(name):
        return State(standing=Standing.RIGHT, value="loaded")
    if view.exists(name):
        return State(standing=Standing.ABSENT)
    detail = f"kernel {view.kernel} has no module {name}"
    others = view.other_kernels(name)
    if others:
        detail += f"; it comes with {', '.join(others)}"
        return State(standing=Standing.LATE, detail=detail)
    return State(standing=Standing.ABSENT, detail=detail)


def _option(view: ModulesView, module: str, parameter: str, value: Value) -> Setting:
    held = view.holders(module)
    running = _option_running(view, module, parameter, value)
    differs = running.standing is Standing.WRONG
    # A module built in is given its parameters by the kernel command line alone.
    builtin = view.is_builtin(module)
    remedy = None
    if builtin:
        remedy = f"{module} is built into the kernel: set kernel.arguments {module}.{parameter}"
    elif differs and held:
        remedy = f"cannot be reloaded: {held}"
    effect = Effect.DRIVER if differs else Effect.LIVE
    return Setting(
        component=_NAME,
        key=f"option {module}.{parameter}",
        desired=text_of(value),
        persisted=_option_persisted(view, module, parameter, value),
        running=running,
        effect=Effect.REBOOT if differs and (held or builtin) else effect,
        acts=not builtin,
        remedy=remedy,
    )


def _option_persisted(view: ModulesView, module: str, parameter: str, value: Value) -> State:
    if view.is_builtin(module):
        found = wins = view.config.argument(module, parameter)
    else:
        found = view.config.option(module, parameter)
        wins = view.ours.option(module, parameter)
    if wins and not wins.decider.startswith(MODPROBE_PATH) and not same(value, wins.value):
        return State(standing=Standing.OVERRIDDEN, value=wins.value, decider=wins.decider)
    if found is None:
        return State(standing=Standing.ABSENT)
    if not same(value, found.value):
        return State(standing=Standing.WRONG, value=found.value, decider=found.decider)
    right = State(standing=Standing.RIGHT, value=text_of(value), decider=found.decider)
    return _unless_stale(view, module, right)


def _unless_stale(view: ModulesView, module: str, right: State) -> State:
    """``right``, or that an initramfs was made before it."""
    stale = view.stale_images(module, right.decider or "")
    if not stale:
        return right
    paths = ", ".join(view.images[version].path for version in stale)
    return State(
        standing=Standing.STALE,
        value="not in the initramfs",
        decider=right.decider,
        detail=f"{paths} is older than the file that decides",
    )


def _option_running(view: ModulesView, module: str, parameter: str, value: Value) -> State:
    if view.is_container:
        return HOSTS_KERNEL
    if not view.is_loaded(module):
        if module in names(view.spec.load) and view.exists(module) and not _refusal(view, module):
            return State(standing=Standing.ABSENT, detail=f"{module} is not loaded")
        detail = f"{module} is not loaded: takes effect when it is"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    found = view.shown(module, parameter)
    if found is not None:
        right = same(value, found)
        return State(
            standing=Standing.RIGHT if right else Standing.WRONG,
            value=text_of(value) if right else found,
            detail=None if right else view.holders(module),
        )
    declared = {module_name(name) for name in view.parameters.declared.get(module, ())}
    if module_name(parameter) in declared:
        detail = "the kernel does not show this parameter"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    detail = f"{module} shows no such parameter; it has: {', '.join(sorted(declared)) or 'none'}"
    return State(standing=Standing.UNREADABLE, detail=detail)


def _blacklist(view: ModulesView, name: str) -> Setting:
    builtin = view.is_builtin(name)
    held = view.holders(name)
    remedy = None
    if builtin:
        remedy = f"{name} is built into the kernel: no blacklist keeps it out"
    elif held:
        remedy = f"cannot be unloaded: {held}"
    return Setting(
        component=_NAME,
        key=f"blacklist {name}",
        desired="not loaded",
        persisted=_blacklist_persisted(view, name),
        running=_blacklist_running(view, name),
        effect=Effect.REBOOT if held or builtin else Effect.DRIVER,
        acts=not builtin,
        remedy=remedy,
    )


def _blacklist_persisted(view: ModulesView, name: str) -> State:
    if view.is_builtin(name):
        return State(standing=Standing.WRONG, value="built into the kernel")
    wins = view.ours.install(name)
    if wins and not refuses(wins):
        # Of several install commands the first holds, and ours is in the last file.
        return State(
            standing=Standing.OVERRIDDEN, value=f"install {wins.value}", decider=wins.decider
        )
    listed = view.config.blacklisting(name)
    if listed is None:
        return State(standing=Standing.ABSENT)
    install = view.config.install(name)
    if install is None or not refuses(install):
        return State(
            standing=Standing.WRONG, value="loaded when asked for by name", decider=listed.decider
        )
    right = State(standing=Standing.RIGHT, value="not loaded", decider=install.decider)
    return _unless_stale(view, name, right)


def _blacklist_running(view: ModulesView, name: str) -> State:
    if view.is_container:
        return HOSTS_KERNEL
    if not view.is_loaded(name):
        return State(standing=Standing.RIGHT, value="not loaded")
    return State(standing=Standing.WRONG, value="loaded", detail=view.holders(name))


def _owned(spec: ModulesSpec) -> tuple[OwnedFile, OwnedFile]:
    return (
        OwnedFile(path=LOAD_PATH, content=load_content(spec)),
        OwnedFile(path=MODPROBE_PATH, content=modprobe_content(spec)),
    )


COMPONENT = Component(name=_NAME, sections=SECTIONS, settings=settings, actions=actions)
