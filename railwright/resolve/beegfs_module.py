"""BeeGFS's kernel module: built for which kernels, against what, and which build is loaded.

dkms builds it for each kernel; beegfs-client.service builds it for the running one when it starts,
which is while a node boots its new kernel.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from facts.beegfs import FORCED, BeegfsModule
from facts.units import Unit
from railwright.actions import Action, Run, RunScript
from railwright.files import FileRecord
from railwright.resolve.beegfs_wanted import BUILD_FILES
from railwright.schema.beegfs import Build
from railwright.schema.beegfs_keys import Major
from railwright.settings import NOTHING, Effect, Setting, Standing, State, persists
from railwright.templates import render

_BUILT = "built"
_KO = re.compile(r"/lib/modules/([^/]+)/.+/beegfs\.ko")
_VERSION = re.compile(r"([0-9]+)\.")
_INIT = "/etc/init.d/beegfs-client"


@dataclass(frozen=True)
class ModuleView:
    """All that decides how the module stands.

    ``rebuilt`` tells that what it is built against is about to change. ``sources`` is the folder
    of nvidia-fs that it is built against, None where it is not. ``comes``: its package is
    installed in this run.
    """

    build: Build
    major: Major
    kernel: str
    module: BeegfsModule
    files: Sequence[FileRecord]
    client: Unit | None
    build_file: FileRecord | None
    asked: bool
    rebuilt: bool
    sources: str | None
    comes: bool

    @property
    def version(self) -> str | None:
        """The version of the major asked for that dkms has, the last of several."""
        known = [m.version for m in self.module.dkms.modules if m.module == "beegfs"]
        fits = [version for version in known if _major(version) == self.major]
        return fits[-1] if fits else None

    @property
    def can_build(self) -> bool:
        if self.comes:
            return True
        if self.build == "dkms":
            return self.version is not None
        return self.client is not None and self.client.loaded

    def has_headers(self, kernel: str) -> bool:
        """Whether there is what a module is built with for ``kernel``."""
        path = f"/lib/modules/{kernel}/build"
        return any(file.path == path and file.target != "" for file in self.files)

    @property
    def built(self) -> dict[str, FileRecord]:
        """The module by the kernel that it is there for."""
        rows = ((_KO.match(file.path), file) for file in self.files)
        return {row[1]: file for row, file in rows if row is not None}


def module_settings(component: str, view: ModuleView) -> Iterator[Setting]:
    if view.sources is not None:
        yield _configured(component, view, view.sources)
    built = view.built
    others = built.keys() - {view.kernel} if view.build == "dkms" else set()
    for kernel in (view.kernel, *sorted(others)):
        yield _module(component, view, kernel, built.get(kernel))


def _major(version: str | None) -> int | None:
    found = _VERSION.match(version or "")
    return int(found[1]) if found else None


def module_key(kernel: str) -> str:
    return f"module for {kernel}"


def missing(view: ModuleView, by_key: Mapping[str, Setting]) -> str | None:
    """Why nothing can be mounted: there is no module, and this run builds none."""
    setting = by_key.get(module_key(view.kernel))
    if setting is None or setting.acts or setting.persisted.standing is Standing.RIGHT:
        return None
    return f"there is no module of BeeGFS {view.major} for kernel {view.kernel}"


def _configured(component: str, view: ModuleView, folder: str) -> Setting:
    """nvidia-fs' sources, of which the module takes what their configure script has found."""
    there = {file.path for file in view.files}
    header = f"{folder}/config-host.h"
    found = header in there
    can = f"{folder}/nvfs-dma.h" in there
    return Setting(
        component=component,
        key=header,
        desired="configured",
        persisted=State(
            standing=Standing.RIGHT if found else Standing.ABSENT,
            value="configured" if found else None,
            detail=None if found or can else f"there is no {folder}",
        ),
        running=NOTHING,
        acts=can,
        remedy=None if can else "install nvidia-fs-dkms",
        why="the module is built with GPUDirect Storage by what configure of nvidia-fs writes "
        "(Makefile of beegfs-client)",
    )


def _module(component: str, view: ModuleView, kernel: str, file: FileRecord | None) -> Setting:
    persisted = _on_disk(view, kernel, file)
    running, effect = NOTHING, Effect.LIVE
    if kernel == view.kernel and view.module.is_outdated:
        detail = "another build is on disk than the one that is loaded"
        running = State(
            standing=Standing.WRONG, value=view.module.loaded_version or "loaded", detail=detail
        )
        # What is mounted holds it; a reboot loads what is on disk.
        effect = Effect.REBOOT
    package = "beegfs-client-dkms" if view.build == "dkms" else "beegfs-client"
    lacks = None if view.can_build else f"install {package}"
    if lacks is None and kernel != view.kernel and not view.has_headers(kernel):
        lacks = f"install the headers of kernel {kernel}"
    return Setting(
        component=component,
        key=module_key(kernel),
        desired=_BUILT,
        persisted=persisted,
        running=running,
        effect=effect,
        acts=lacks is None,
        remedy=lacks,
    )


def _on_disk(view: ModuleView, kernel: str, file: FileRecord | None) -> State:
    if file is None:
        return State(standing=Standing.ABSENT, detail=f"kernel {kernel} has none")
    major = _major(view.module.disk_version)
    if kernel == view.kernel and major is not None and major != view.major:
        value = f"BeeGFS {view.module.disk_version}"
        return State(standing=Standing.WRONG, value=value, decider=file.path)
    why = _outdated(view, file)
    if why is not None:
        return State(standing=Standing.STALE, value="outdated", decider=file.path, detail=why)
    return State(standing=Standing.RIGHT, value=_BUILT, decider=file.path)


def _outdated(view: ModuleView, file: FileRecord) -> str | None:
    """Why the module is not what a build would make now."""
    path = BUILD_FILES[view.build]
    if view.rebuilt:
        return f"{path} changes"
    if view.build == "autobuild" and any(f.path == FORCED for f in view.files):
        return f"{FORCED} asks for a build"
    since = view.build_file.mtime if view.build_file else None
    if view.asked and since is not None and file.mtime is not None and file.mtime < since:
        return f"built before {path} was changed"
    return None


def module_actions(view: ModuleView, by_key: Mapping[str, Setting]) -> Iterator[Action]:
    """Configures nvidia-fs, then builds what is due."""
    header = f"{view.sources}/config-host.h"
    if view.sources is not None and _is_due(by_key.get(header)):
        yield RunScript(
            name="railwright-beegfs-configure",
            script='cd "$1" && ./configure\n',
            arguments=(view.sources,),
        )
    kernels = [k for k in (view.kernel, *view.built) if _is_due(by_key.get(module_key(k)))]
    if not kernels:
        return
    if view.build == "autobuild":
        yield Run(command=(_INIT, "rebuild"))
        return
    for kernel in dict.fromkeys(kernels) if view.version is not None else ():
        yield RunScript(
            name="railwright-dkms",
            script=render("ofed/railwright-dkms.sh.j2"),
            arguments=(kernel, f"beegfs/{view.version}"),
        )


def _is_due(setting: Setting | None) -> bool:
    return setting is not None and persists(setting)
