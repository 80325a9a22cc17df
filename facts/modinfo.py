"""A module on disk as ``modinfo`` tells it, and as /sys/module tells it when it is loaded.

Format: kmod's tools/modinfo.c. One modinfo may be asked of many modules; each then begins with its
``filename:``.
"""

import re

from pydantic import Field

from railwright.model import Model
from railwright.schema.base import module_name

BUILTIN = "(builtin)"


class ModuleFile(Model):
    """One module on disk; ``name`` is with ``_``. ``filename`` is ``(builtin)`` where the kernel
    has it in itself.

    ``srcversion`` is a hash over the source: two builds of one source have it in common, and a
    loaded module with another one comes from another source. ``version`` is what the maker wrote,
    which inbox modules mostly lack. ``parm`` is description by parameter.
    """

    name: str
    filename: str
    version: str | None = None
    srcversion: str | None = None
    vermagic: str | None = None
    license: str | None = None
    depends: tuple[str, ...] = ()
    softdep: tuple[str, ...] = ()
    signer: str | None = None
    parm: dict[str, str] = Field(default={})

    @property
    def is_builtin(self) -> bool:
        return self.filename == BUILTIN

    @property
    def path(self) -> str:
        """The path below /lib/modules/VERSION, as modules.dep has it."""
        found = re.fullmatch(r"(?:/usr)?/lib/modules/[^/]+/(.+)", self.filename)
        return found[1] if found else self.filename

    @property
    def is_inbox(self) -> bool:
        """Whether it came with the kernel: dkms and vendors install to updates, extra, weak-updates
        (depmod.d(5))."""
        return self.is_builtin or self.path.startswith("kernel/")

    @property
    def kernel(self) -> str | None:
        """The kernel that it was built for, by its vermagic."""
        return self.vermagic.split(" ")[0] if self.vermagic else None


class LoadedModule(Model):
    """What /sys/module says of a module that is loaded; ``holders`` are modules that need it.

    ``refcnt`` is None where the kernel cannot unload modules, and of one that is built in;
    ``initstate`` is live, coming or going.
    """

    srcversion: str | None = None
    version: str | None = None
    refcnt: int | None = None
    initstate: str | None = None
    holders: tuple[str, ...] = ()


_LINE = re.compile(r"([A-Za-z][\w.-]*):(?:\s+(.*))?")


def parse_modinfo(text: str, rc: int = 0) -> ModuleFile | None:
    """Read ``modinfo MODULE``; None where there is no such module.

    Raises ValueError for another text, and for more than one module.
    """
    if rc != 0 and re.search(r"ERROR: Module \S+ not found", text):
        return None
    found = parse_modinfos(text)
    if len(found) != 1:
        raise ValueError(f"expected one module of modinfo, got {len(found)} (exit {rc})")
    return next(iter(found.values()))


def parse_modinfos(text: str) -> dict[str, ModuleFile]:
    """Modules by name, as ``modinfo A B ...`` prints them. Raises ValueError for another text.

    Those that it does not find it names on the other stream alone.
    """
    blocks: list[list[str]] = []
    for line in text.splitlines():
        # kmod prints the name of a module that is built in before its (builtin).
        starts = line.startswith("filename:") and not _is_named_alone(blocks)
        if starts or (line.startswith("name:") and _is_whole(blocks)):
            blocks.append([])
        if line.strip() and not blocks:
            raise ValueError(f"expected modinfo's filename: first, got {line[:80]!r}")
        if line.strip():
            blocks[-1].append(line)
    modules = [_module(block) for block in blocks]
    return {module.name: module for module in modules}


def _is_named_alone(blocks: list[list[str]]) -> bool:
    return bool(blocks) and len(blocks[-1]) == 1 and blocks[-1][0].startswith("name:")


def _is_whole(blocks: list[list[str]]) -> bool:
    """Whether the last block has its name already (a second one begins another module)."""
    return not blocks or any(line.startswith("name:") for line in blocks[-1])


def _module(lines: list[str]) -> ModuleFile:
    values: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            # Signatures go on over lines that begin with a tab, and so may what people wrote.
            if not key:
                raise ValueError(f"expected KEY: VALUE of modinfo, got {line[:80]!r}")
            continue
        key = found[1]
        values.setdefault(key, []).append((found[2] or "").strip())
    first = {key: listed[0] for key, listed in values.items() if listed[0]}
    if "filename" not in first:
        raise ValueError(f"expected modinfo's filename, got {lines[0][:80]!r}")
    name = first.get("name") or first["filename"].rpartition("/")[2].partition(".ko")[0]
    return ModuleFile(
        name=module_name(name),
        filename=first["filename"],
        version=first.get("version"),
        srcversion=first.get("srcversion"),
        vermagic=first.get("vermagic"),
        license=first.get("license"),
        depends=tuple(module_name(m) for m in first.get("depends", "").split(",") if m),
        softdep=tuple(values.get("softdep", ())),
        signer=first.get("signer"),
        parm=dict(_parameter(line) for line in values.get("parm", ())),
    )


def _parameter(line: str) -> tuple[str, str]:
    name, _, said = line.partition(":")
    return name, said
