"""A node's modules as one snapshot shows them."""

from dataclasses import dataclass
from functools import cached_property

from facts.modules import (
    KernelModules,
    Parameters,
    images_of,
    parse_parameters,
    read_kernel,
)
from railwright.drivers.options import modules_of
from railwright.files import FileRecord
from railwright.modprobe import MODPROBE_PATH, modprobe_content
from railwright.owned import HEADER
from railwright.resolve.initramfs import may_load
from railwright.resolve.modules import ModprobeConfig, modprobe_config
from railwright.schema import ModulesSpec, Node
from railwright.schema.base import module_name
from railwright.snapshot import Snapshot

_LINK_MODULES = frozenset(
    ("8021q", "bonding", "bridge", "ib_ipoib", "ipvlan", "macvlan", "team", "vxlan")
)
"""They make interfaces without a device, and unloading them takes the interfaces away."""


@dataclass(frozen=True)
class ModulesView:
    """What is asked of a node's modules and what is there.

    ``config`` is as it is, ``ours`` as it will be with our file in place: what still beats us
    then is what overrides us.
    """

    spec: ModulesSpec
    kernel: str
    is_container: bool
    files: tuple[FileRecord, ...]
    modules: KernelModules
    parameters: Parameters
    images: dict[str, FileRecord]

    @classmethod
    def of(cls, node: Node, snapshot: Snapshot) -> "ModulesView":
        """Raises ValueError where a section cannot be read."""
        return cls(
            spec=modules_of(node),
            kernel=snapshot.facts("identity").get("kernel", ""),
            is_container=snapshot.is_container,
            files=tuple(snapshot.files("modules_config")),
            modules=read_kernel(snapshot),
            parameters=parse_parameters(snapshot.text("modules_parameters")),
            images=images_of(snapshot.files("modules_initramfs")),
        )

    @cached_property
    def config(self) -> ModprobeConfig:
        return modprobe_config(self.files, self.modules.cmdline)

    @cached_property
    def ours(self) -> ModprobeConfig:
        content = modprobe_content(self.achievable) or HEADER
        ours = FileRecord(path=MODPROBE_PATH, kind="file", content=content, size=len(content))
        others = (file for file in self.files if file.path != MODPROBE_PATH)
        return modprobe_config((*others, ours), self.modules.cmdline)

    @cached_property
    def achievable(self) -> ModulesSpec:
        """What of the spec goes into our files.

        A module that no kernel of the host has would fail systemd-modules-load.service at each
        boot; an option of a module that is built in does nothing there.
        """
        options = {
            module: parameters
            for module, parameters in self.spec.options.items()
            if not self.is_builtin(module_name(module))
        }
        load = frozenset(name for name in self.spec.load if not self.lacks(module_name(name)))
        return self.spec.model_copy(update={"load": load, "options": options})

    def is_builtin(self, module: str) -> bool:
        return module in self.modules.builtin.get(self.kernel, ())

    def is_loaded(self, module: str) -> bool:
        return module in self.modules.loaded or self.is_builtin(module)

    def exists(self, module: str) -> bool:
        """Whether modprobe would find it for the running kernel."""
        return (
            self.is_loaded(module)
            or module in self.modules.files.get(self.kernel, {})
            or self.config.is_alias(module)
        )

    def other_kernels(self, module: str) -> list[str]:
        """Versions of other kernels on the host that have ``module``."""
        found = {v for v, files in self.modules.files.items() if module in files}
        found.update(v for v, listed in self.modules.builtin.items() if module in listed)
        return sorted(found - {self.kernel})

    def lacks(self, module: str) -> bool:
        """Whether no kernel of the host has ``module``; a container cannot tell."""
        return not (self.is_container or self.exists(module) or self.other_kernels(module))

    def shown(self, module: str, parameter: str) -> str | None:
        """The value that the kernel shows of a parameter."""
        values = self.parameters.values.get(module, {})
        wanted = module_name(parameter)
        return next((value for name, value in values.items() if module_name(name) == wanted), None)

    def images_with(self, module: str) -> list[str]:
        """Kernel versions whose initramfs may load ``module``."""
        paths = {v: self.modules.files.get(v, {}).get(module) for v in self.images}
        return [version for version, path in sorted(paths.items()) if path and may_load(path)]

    def stale_images(self, module: str, decider: str) -> list[str]:
        """Those of ``images_with`` that are older than the file of ``decider``."""
        path = decider.rpartition(":")[0]
        mtime = next((file.mtime for file in self.files if file.path == path), None)
        if mtime is None:
            return []
        return [v for v in self.images_with(module) if (self.images[v].mtime or 0) < mtime]

    def holders(self, module: str) -> str | None:
        """Why ``module`` cannot be unloaded without harm, None where it can.

        A network driver lets itself be unloaded although its interfaces are up: no reference is
        counted for them.
        """
        loaded = self.modules.loaded.get(module)
        if loaded is None:
            return None
        if module in self.modules.interfaces:
            return f"it drives {', '.join(self.modules.interfaces[module])}"
        if module in _LINK_MODULES:
            return "it makes network interfaces"
        if loaded.users:
            return f"it is used by {', '.join(loaded.users)}"
        return f"it is in use ({loaded.references} references)" if loaded.references else None
