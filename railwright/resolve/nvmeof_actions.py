"""What brings volumes over a fabric to what they must be."""

from collections.abc import Iterator, Mapping, Sequence

from facts.nvme import FOLDER, RULES_PATH, SCRIPT_PATH
from railwright.actions import Action, Run, RunScript, WriteValue
from railwright.files import FileRecord
from railwright.mounts import unit_name
from railwright.nvmeof import Volume, unit_of
from railwright.owned import owned_file_action
from railwright.owned_unit import unit_actions
from railwright.resolve.nvmeof import VolumeView, tuned
from railwright.resolve.nvmeof_files import (
    common_files,
    format_script,
    left_files,
    left_names,
    nqn_of,
    volume_files,
)
from railwright.schema.nvmeof import NvmeofSpec
from railwright.secret_files import secret_actions
from railwright.settings import Effect, Setting, enforces, persists

_TRIGGER = (
    *("udevadm", "trigger", "--action=change", "--sysname-match=nvme*"),
    *("--subsystem-match=block", "--subsystem-match=nvme-subsystem"),
)


def persisting(
    spec: NvmeofSpec, volumes: Sequence[Volume], by_key: Mapping[str, Setting]
) -> Iterator[Action]:
    """Puts the files of what is asked for right, and has the units started at boot."""
    if volumes:
        for file in common_files(spec, volumes):
            yield from owned_file_action(file, by_key.get(file.path))
    yield from secret_actions([v.keys for v in volumes if v.keys is not None], by_key)
    for volume in volumes:
        yield from unit_actions(volume.unit, volume_files(volume), by_key)
        unasked = next(file for file in left_files(volume.name) if file.path.endswith(".keys"))
        yield from owned_file_action(unasked, by_key.get(unasked.path))


def linking(views: Sequence[VolumeView], by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Has udev look at what is connected by the rules as they now are."""
    wrong = any(_enforced(view, "namespace of", by_key) for view in views)
    rules = by_key.get(RULES_PATH)
    if views and (wrong or (rules is not None and persists(rules))):
        yield Run(command=("udevadm", "control", "--reload"))
        if any(view.live for view in views):
            yield Run(command=_TRIGGER)
            yield Run(command=("udevadm", "settle", "--timeout=30"))


def parting(views: Sequence[VolumeView], by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Disconnects what is to be connected anew. Volumes of one subsystem have its connections in
    common, so that all of them are let go before any is disconnected."""
    anew = [view.volume for view in views if reconnects(view, by_key)]
    for volume in anew:
        # Not while the unit could connect it by what it read before.
        yield Run(command=("systemctl", "stop", volume.unit.name))
        yield Run(command=("systemctl", "stop", unit_name(volume.where)))
    for volume in anew:
        yield Run(command=(SCRIPT_PATH, "down", volume.name))


def connecting(view: VolumeView, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Connects what is not, and makes the file system where that is asked for and nothing is."""
    volume = view.volume
    if view.connects or reconnects(view, by_key):
        yield Run(command=(SCRIPT_PATH, "once", volume.name))
    else:
        yield from _live(view, by_key)
    made = by_key.get(view.key("file system of"))
    if made is not None and persists(made):
        spec = volume.spec
        yield RunScript(
            name="railwright-nvmeof-format",
            script=format_script(),
            arguments=(volume.link, spec.nqn, spec.filesystem),
        )


def dropping(views: Sequence[VolumeView], by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Disconnects paths that nobody asks for, each once: volumes of one subsystem share them."""
    names = (
        controller.name
        for view in views
        for controller in view.others
        if _enforced(view, f"path {controller.name} of", by_key)
    )
    for name in dict.fromkeys(names):
        yield WriteValue(path=f"/sys/class/nvme/{name}/delete_controller", value="1")


def _live(view: VolumeView, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """What the kernel takes without a new connection."""
    if _enforced(view, "connections of", by_key):
        for controller, asked, fields in tuned(view):
            if fields:
                folder = f"/sys/class/nvme/{controller.name}"
                loss = "-1" if asked.loss == "never" else str(asked.loss)
                # First the delay, by which the kernel counts how long it goes on.
                yield WriteValue(path=f"{folder}/reconnect_delay", value=str(asked.delay))
                yield WriteValue(path=f"{folder}/ctrl_loss_tmo", value=loss)
    if _enforced(view, "iopolicy of", by_key):
        for name, (nqn, policy) in view.seen.iopolicies.items():
            if nqn == view.volume.spec.nqn and policy != view.spec.iopolicy:
                path = f"/sys/class/nvme-subsystem/{name}/iopolicy"
                yield WriteValue(path=path, value=str(view.spec.iopolicy))


def reconnects(view: VolumeView, by_key: Mapping[str, Setting]) -> bool:
    """Whether the run makes the connections anew."""
    setting = by_key.get(view.key("connections of"))
    return (
        setting is not None and setting.effect is Effect.REMOUNT and enforces(setting, view.allowed)
    )


def _enforced(view: VolumeView, what: str, by_key: Mapping[str, Setting]) -> bool:
    setting = by_key.get(view.key(what))
    return setting is not None and enforces(setting, view.allowed)


def keeping(view: VolumeView, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Mounts again what was taken away, and has the unit run by what it now has to read."""
    volume = view.volume
    if reconnects(view, by_key):
        yield Run(command=("systemctl", "start", unit_name(volume.where)))
    unit = by_key.get(volume.unit.key)
    due = unit is not None and enforces(unit, view.allowed)
    if due or reconnects(view, by_key) or _changed(volume, by_key):
        yield Run(command=("systemctl", "restart", volume.unit.name))


def _changed(volume: Volume, by_key: Mapping[str, Setting]) -> bool:
    keys = {volume.keys.key} if volume.keys is not None else set()
    watched = {SCRIPT_PATH, *keys, *(file.path for file in volume_files(volume))}
    return any(key in by_key and persists(by_key[key]) for key in watched)


def leaving(
    spec: NvmeofSpec,
    volumes: Sequence[Volume],
    files: list[FileRecord],
    by_key: Mapping[str, Setting],
    *,
    container: bool,
) -> Iterator[Action]:
    """Disconnects what is not asked for any more, and takes our files away. Its mount is gone.

    The connections of a subsystem stay where another volume of it is asked for.
    """
    stay = {volume.spec.nqn for volume in volumes}
    for name in left_names(volumes, files):
        owned = left_files(name)
        units = [file for file in owned if file.path == unit_of(name).path]
        yield from unit_actions(unit_of(name), units, by_key)
        conf = by_key.get(f"{FOLDER}/{name}.conf")
        if (
            conf is not None
            and persists(conf)
            and not container
            and nqn_of(name, files) not in stay
        ):
            yield Run(command=(SCRIPT_PATH, "down", name))
        for file in owned:
            if file not in units:
                yield from owned_file_action(file, by_key.get(file.path))
    if not volumes:
        for file in common_files(spec, ()):
            yield from owned_file_action(file, by_key.get(file.path))
