"""Symbol versions: does a module fit the kernel, and the modules that it builds upon?

With CONFIG_MODVERSIONS each symbol has a CRC of its type. A module carries those of the symbols
that it was built against, and the kernel refuses it where one differs from that of the module
which exports the symbol now ("disagrees about version of symbol"). Source: check_version() in
kernel/module/version.c, Linux 6.1.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from facts.modinfo import ModuleFile
from facts.symvers import Export
from railwright.drivers.finding import Finding
from railwright.model import Model
from railwright.schema.base import module_name

Table = Literal["own", "kernel", "ofed"]
"""Where exports were read: in the exporting modules themselves (``modprobe --show-exports``), in
the kernel's Module.symvers, in that of OFED's sources."""

VMLINUX = "vmlinux"
_DEBIAN = re.compile(r"-(cloud-|rt-)?(amd64|arm64)$")
"""Names of Debian's kernels: 6.1.0-57-amd64. Ubuntu's end in -generic and the like."""
_SHOWN = 3
"""Symbols that are named in one finding; the others are counted."""


class KernelSymbols(Model):
    """Symbols of one kernel and of the modules on disk for it.

    ``needed`` is module to the symbols that it was built against; ``exporters`` is symbol to
    module as depmod lists them for what is on disk (modules.symbols), without versions. ``below``
    is module to all that have to be loaded before it, as depmod finds them by name (modules.dep).
    """

    needed: dict[str, dict[str, int]]
    tables: dict[Table, dict[str, Export]]
    exporters: dict[str, str] = Field(default={})
    below: dict[str, frozenset[str]] = Field(default={})


class OnDisk(Model):
    """The modules on disk for a kernel: their files, when each was written (seconds since the
    epoch), and what each is built with (a DKMS module or a package)."""

    files: dict[str, ModuleFile]
    written: dict[str, int] = Field(default={})
    sources: dict[str, str] = Field(default={})

    def place(self, module: str) -> str:
        """The module and its path, for a person."""
        if module == VMLINUX:
            return "the kernel itself"
        file = self.files.get(module)
        return f"{module} ({file.path})" if file else f"{module}, which is not on disk"


def symbol_findings(
    module: str, kernel: str, symbols: KernelSymbols, disk: OnDisk
) -> list[Finding]:
    """What of ``module``'s symbols does not fit ``kernel`` and the modules on disk for it."""
    differs: dict[str, list[str]] = {}
    older: dict[str, list[str]] = {}
    unknown: list[str] = []
    for symbol, crc in sorted(symbols.needed.get(module, {}).items()):
        found = _export_of(symbol, symbols, disk)
        exporter = symbols.exporters.get(symbol)
        if found is not None:
            if found.crc != crc and found.crc and crc:
                differs.setdefault(exporter_of(found), []).append(symbol)
        elif exporter is None:
            unknown.append(symbol)
        elif _built_before(module, exporter, disk):
            older.setdefault(exporter, []).append(symbol)
    return [
        *(_differs(module, kernel, disk.place(other), names) for other, names in differs.items()),
        *(_older(module, kernel, disk.place(other), names) for other, names in older.items()),
        *_unknown(module, kernel, unknown, symbols.tables),
        *_without_versions(module, kernel, symbols, disk),
    ]


def exporter_of(export: Export) -> str:
    """The module of an export, whose path a Module.symvers may give."""
    return module_name(export.module.rpartition("/")[2])


def _export_of(symbol: str, symbols: KernelSymbols, disk: OnDisk) -> Export | None:
    """What will export ``symbol``. Its own file tells best; of two modules of one name (OFED's
    ib_core, the kernel's) that counts which is on disk."""
    own, from_ofed, from_kernel = (
        symbols.tables.get(table, {}).get(symbol) for table in ("own", "ofed", "kernel")
    )
    if own is not None:
        return own
    if from_ofed is not None:
        file = disk.files.get(exporter_of(from_ofed))
        if file is not None and not file.is_inbox:
            return from_ofed
    if from_kernel is None:
        return None
    file = disk.files.get(exporter_of(from_kernel))
    if file is None and exporter_of(from_kernel) != VMLINUX:
        # A module that was not asked for: the kernel's own, if depmod has it.
        return from_kernel if not symbols.exporters or symbol in symbols.exporters else None
    return from_kernel if file is None or file.is_inbox else None


def _built_before(module: str, exporter: str, disk: OnDisk) -> bool:
    """Whether ``module`` cannot have been built against ``exporter`` as it is now.

    Asked where no table has the exporter's versions (nvidia leaves none behind, and older kmods
    do not list exports). What comes of one source is built together; else the order of the two
    builds tells.
    """
    if _of_one_source(module, exporter, disk):
        return False
    files = [disk.files.get(name) for name in (module, exporter)]
    if any(file is None for file in files):
        return True
    if all(file is not None and file.is_inbox for file in files):
        return False
    mine, theirs = disk.written.get(module), disk.written.get(exporter)
    return mine is None or theirs is None or mine < theirs


def _of_one_source(module: str, other: str, disk: OnDisk) -> bool:
    source = disk.sources.get(module)
    return source is not None and source == disk.sources.get(other)


def _differs(module: str, kernel: str, place: str, names: list[str]) -> Finding:
    return Finding(
        kind="symbols",
        subject=module,
        kernel=kernel,
        found=f"disagrees about the version of {_listed(names)} with {place}",
        remedy=f"build {module} anew for {kernel}, against {place}",
    )


def _older(module: str, kernel: str, place: str, names: list[str]) -> Finding:
    return Finding(
        kind="symbols",
        subject=module,
        kernel=kernel,
        found=f"is not known to be built after {place}, from which it takes {_listed(names)}",
        remedy=f"build {module} anew for {kernel}, after {place}",
    )


def _unknown(
    module: str, kernel: str, names: list[str], tables: Mapping[Table, object]
) -> Iterator[Finding]:
    if names and "kernel" not in tables:
        yield Finding(
            kind="unreadable",
            subject=module,
            kernel=kernel,
            found="cannot be held against the kernel's symbols: no Module.symvers was read",
            remedy=f"install the headers of kernel {kernel}",
        )
    elif names:
        yield Finding(
            kind="symbols",
            subject=module,
            kernel=kernel,
            found=f"needs {_listed(names)}, which nothing on disk for this kernel exports",
            remedy=f"install what exports it for {kernel}, then build {module} anew",
        )


def _without_versions(
    module: str, kernel: str, symbols: KernelSymbols, disk: OnDisk
) -> Iterator[Finding]:
    """Modules that ``module`` takes symbols of, of which it has no version: it was built before
    they were there, as in one transaction of packages that says nothing of their order.

    Linux loads such a module unchecked, with one warning; Debian's kernels refuse it ("no symbol
    version for ...", seen on 6.1). Sources: check_version() of Linux 6.1, and Debian's patch
    module-disable-matching-missing-crc.
    """
    if not _DEBIAN.search(kernel):
        return
    below = symbols.below.get(module, frozenset())
    through = frozenset(name for one in below for name in symbols.below.get(one, ()))
    exports = [_export_of(symbol, symbols, disk) for symbol in symbols.needed.get(module, {})]
    known = {exporter_of(export) for export in exports if export is not None}
    known |= {symbols.exporters.get(symbol, "") for symbol in symbols.needed.get(module, {})}
    for name in sorted(below - through - known):
        file = disk.files.get(name)
        if file is not None and not file.is_inbox and not _of_one_source(module, name, disk):
            yield Finding(
                kind="symbols",
                subject=module,
                kernel=kernel,
                found=f"has no version of the symbols that it takes from {disk.place(name)}",
                remedy=f"build {module} anew for {kernel}, after {name}",
            )


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
