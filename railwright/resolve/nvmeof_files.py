"""What is persisted of volumes over a fabric: our files and units, the host's identity, and what
nvme-cli would connect too."""

import re
from collections.abc import Iterator, Mapping, Sequence

from facts.nvme import (
    FOLDER,
    HOSTID,
    HOSTNQN,
    NOTES,
    RULES_PATH,
    SCRIPT_PATH,
    Foreign,
    names_on_node,
)
from railwright.actions import Action, InstallFile, RunScript
from railwright.files import FileRecord
from railwright.nvmeof import Volume, keys_path, unit_of
from railwright.owned import HEADER, OwnedFile, first_wrong, owned_file_setting
from railwright.schema.nvmeof import NvmeofSpec
from railwright.settings import NOTHING, Setting, Standing, State, persists
from railwright.templates import render

COMPONENT = "nvmeof"
_KEPT = "made once"
_FORMS = {HOSTNQN: r"nqn\.\S{1,219}", HOSTID: r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"}


def common_files(spec: NvmeofSpec, volumes: Sequence[Volume]) -> tuple[OwnedFile, ...]:
    """Files that all volumes have in common; without a volume there must be none of them."""
    if not volumes:
        return tuple(OwnedFile(path=path, content=None) for path in (SCRIPT_PATH, RULES_PATH))
    nqns = sorted({volume.spec.nqn for volume in volumes}) if spec.iopolicy else []
    rules = render(
        "nvmeof/railwright-nvmeof.rules.j2",
        header=HEADER,
        policies=[(nqn, spec.iopolicy) for nqn in nqns],
        volumes=volumes,
    )
    return (
        OwnedFile(path=SCRIPT_PATH, content=script(), mode="755"),
        OwnedFile(path=RULES_PATH, content=rules),
    )


def script() -> str:
    """The script that the units run."""
    return render("nvmeof/railwright-nvmeof.sh.j2", header=HEADER, folder=FOLDER, notes=NOTES)


def format_script() -> str:
    """The script that makes a file system on a namespace with nothing on it."""
    return render("nvmeof/railwright-nvmeof-format.sh.j2")


def volume_files(volume: Volume) -> tuple[OwnedFile, OwnedFile]:
    """What one volume has: what its unit is to connect, and the unit."""
    unit = render(
        "nvmeof/railwright-nvmeof.service.j2",
        header=HEADER,
        where=volume.where,
        script=SCRIPT_PATH,
        volume=volume.name,
    )
    return (
        OwnedFile(path=volume.conf_path, content=volume.conf()),
        OwnedFile(path=volume.unit.path, content=unit),
    )


def file_settings(
    spec: NvmeofSpec, volumes: Sequence[Volume], files: Sequence[FileRecord]
) -> Iterator[Setting]:
    """Our files for what is asked for. Keys that nothing asks for must not stay."""
    owned = [*common_files(spec, volumes)]
    for volume in volumes:
        owned += volume_files(volume)
        if volume.keys is None:
            owned.append(OwnedFile(path=keys_path(volume.name), content=None))
    settings = (owned_file_setting(COMPONENT, one, files) for one in owned)
    yield from (setting for setting in settings if setting is not None)


def is_whole(spec: NvmeofSpec, volume: Volume, files: Sequence[FileRecord]) -> bool:
    """Whether the unit of ``volume`` and what it runs and reads are as they must be."""
    owned = [*common_files(spec, [volume])[:1], *volume_files(volume)]
    return first_wrong(owned, files) is None and volume.unit.is_enabled(files)


def left_names(volumes: Sequence[Volume], files: list[FileRecord]) -> list[str]:
    """Volumes that files of ours are for, and nothing asks for any more."""
    return sorted(names_on_node(files) - {volume.name for volume in volumes})


def nqn_of(name: str, files: Sequence[FileRecord]) -> str | None:
    """The subsystem that our file of the volume ``name`` says it is of."""
    path = f"{FOLDER}/{name}.conf"
    conf = next((file.content for file in files if file.path == path), None)
    found = re.search(r"^nqn (\S+)$", conf or "", re.MULTILINE)
    return found[1] if found else None


def left_files(name: str) -> tuple[OwnedFile, ...]:
    paths = (f"{FOLDER}/{name}.conf", keys_path(name), unit_of(name).path)
    return tuple(OwnedFile(path=path, content=None) for path in paths)


def identity_settings(
    spec: NvmeofSpec, volumes: Sequence[Volume], files: Sequence[FileRecord], *, container: bool
) -> Iterator[Setting]:
    """Who the host is to targets. Made where it is not there, and else never changed by itself:
    targets know it by that."""
    for path, wanted in ((HOSTNQN, spec.host_nqn), (HOSTID, spec.host_id)):
        if wanted is None and not volumes:
            continue
        record = next((file for file in files if file.path == path), None)
        text = None if record is None or record.content is None else record.content.strip()
        yield _identity(path, wanted, record, text, container=container)


def _identity(
    path: str, wanted: str | None, record: FileRecord | None, text: str | None, *, container: bool
) -> Setting:
    remedy = None
    if record is not None and text is None:
        detail = f"expected a file that can be read, got {record.kind}"
        state = State(standing=Standing.UNREADABLE, decider=path, detail=detail)
    elif wanted is None and container:
        detail = "an image has none: its copies would be one host to targets"
        state = State(standing=Standing.NOT_APPLICABLE, value=text or None, detail=detail)
    elif not text:
        state = State(standing=Standing.ABSENT)
    elif wanted is not None:
        standing = Standing.RIGHT if text == wanted else Standing.WRONG
        state = State(standing=standing, value=text, decider=path)
    elif re.fullmatch(_FORMS[path], text):
        state = State(standing=Standing.RIGHT, value=text, decider=path)
    else:
        state = State(standing=Standing.WRONG, value=text[:60], decider=path)
        remedy = f"mend {path} by hand, or remove it: targets may know the host by it"
    return Setting(
        component=COMPONENT,
        key=path,
        desired=wanted or (text if state.standing is Standing.RIGHT and text else _KEPT),
        persisted=state,
        running=NOTHING,
        acts=remedy is None,
        remedy=remedy,
    )


def identity_actions(spec: NvmeofSpec, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Puts the identity in place; what is made is one UUID for both files."""
    made = False
    for path, wanted in ((HOSTNQN, spec.host_nqn), (HOSTID, spec.host_id)):
        setting = by_key.get(path)
        if setting is None or not persists(setting):
            continue
        made = made or wanted is None
        if wanted is not None:
            yield InstallFile(path=path, content=f"{wanted}\n")
    if made:
        text = render("nvmeof/railwright-nvmeof-identity.sh.j2")
        yield RunScript(name="railwright-nvmeof-identity", script=text)


def rival_settings(volume: Volume, foreign: Foreign) -> Iterator[Setting]:
    """What nvme-cli's own unit connects too, and so maybe first, with options of its own."""
    words = {volume.spec.nqn, *(portal.traddr for portal in volume.portals)}
    places = [m.place for m in foreign.mentions if m.word in words]
    if places:
        yield Setting(
            component=COMPONENT,
            key=f"autoconnect of {volume.where}",
            desired=volume.unit.name,
            persisted=State(
                standing=Standing.OVERRIDDEN,
                value=places[0],
                decider="nvmf-autoconnect.service",
                detail=f"nvme-cli {foreign.version or 'of some version'} connects it too: who is "
                "first decides the options, and the kernel refuses the other",
            ),
            running=NOTHING,
            acts=False,
            remedy=f"take it out of {', '.join(dict.fromkeys(places))}, or disable that unit",
        )
