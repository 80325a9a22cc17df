"""Versions of the symbols that modules need and export, which must agree before a module loads.

``modprobe --dump-modversions FILE`` lists what a module was built against; Module.symvers of the
kernel's build folder (symvers-VERSION.gz on RHEL), and of OFED's sources, what there is.
Formats: kmod's tools/modprobe.c; Documentation/kbuild/modules.rst.
"""

import re

from railwright.model import Model


class Export(Model):
    """A symbol that ``module`` exports; ``crc`` is its version, 0 where the kernel has none.

    ``module`` is as written there: ``vmlinux``, or a path without ``.ko``.
    """

    crc: int
    module: str


_NEED = re.compile(r"(0x[0-9a-f]+)\s+([\w.$]+)")


def parse_modversions(text: str) -> dict[str, int]:
    """Version by symbol. Nothing is listed of a module built without versions.

    Raises ValueError for a line of another kind, and for two versions of one symbol.
    """
    found: dict[str, int] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        need = _NEED.fullmatch(line)
        if need is None:
            raise ValueError(f"expected 0xCRC SYMBOL, got {line[:80]!r}")
        crc = int(need[1], 16)
        if found.setdefault(need[2], crc) != crc:
            raise ValueError(f"expected one version of {need[2]}, got two")
    return found


def parse_symvers(text: str) -> dict[str, Export]:
    """Exports by symbol. Raises ValueError for a line of another kind.

    Lines have the namespace after the kind of export since Linux 5.4, and before it until 5.9;
    neither is needed here.
    """
    found = {}
    for line in filter(str.strip, text.splitlines()):
        fields = line.split("\t")
        if len(fields) < 4 or not re.fullmatch("0x[0-9a-f]+", fields[0]) or not fields[1]:
            raise ValueError(f"expected a line of Module.symvers, got {line[:80]!r}")
        found[fields[1]] = Export(crc=int(fields[0], 16), module=fields[2])
    return found
