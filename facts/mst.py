"""Devices of the Mellanox Software Tools, as ``mst status`` lists them, with and without ``-v``.

Formats: recorded outputs; the script itself is not public.
"""

import re

from railwright.model import Model


class MstModules(Model):
    """Whether the two kernel modules are loaded; ``mst start`` loads what it needs of them."""

    pci: bool
    pciconf: bool


class MstDevice(Model):
    """One PCI function; None for what ``mst status`` does not tell without ``-v``.

    ``mst`` is None where no module is loaded; ``numa`` None where the platform does not say (-1).
    """

    type: str | None = None
    mst: str | None = None
    pci: str | None = None
    rdma: tuple[str, ...] = ()
    nets: tuple[str, ...] = ()
    numa: int | None = None


class MstStatus(Model):
    """What ``mst status`` says; without modules it lists PCI addresses at most."""

    modules: MstModules
    devices: tuple[MstDevice, ...]


_MODULE = re.compile(r"MST PCI (configuration )?module (is not )?loaded")
_SHORT = re.compile(r"(/dev/mst/\S+)\s+-\s+.*")
_DOMAIN = re.compile(r"domain:bus:dev\.fn=(\S+).*")
_PCI = re.compile(r"(?:[0-9a-fA-F]{4,}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
# Headings, remarks, and the second line that the short listing has of a device.
_REMARK = re.compile(
    r"-+$|(MST|PCI) modules:|(MST|PCI) devices:|DEVICE_TYPE\s|Chip revision is:"
    r"|No MST devices were found|You may need to run|-[EWI]- |Inband devices:|Cable devices:",
    re.IGNORECASE,
)


def parse_mst_status(text: str) -> MstStatus:
    """Read ``mst status``. Raises ValueError where it does not tell of the modules."""
    loaded: dict[bool, bool] = {}
    devices: list[MstDevice] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if module := _MODULE.fullmatch(line):
            loaded[bool(module[1])] = not module[2]
        elif short := _SHORT.fullmatch(line):
            devices.append(MstDevice(mst=short[1]))
        elif (domain := _DOMAIN.fullmatch(line)) and devices:
            devices[-1] = devices[-1].model_copy(update={"pci": domain[1]})
        elif _PCI.fullmatch(line):
            devices.append(MstDevice(pci=line))
        elif not _REMARK.match(line):
            _add(devices, _row(line))
    if set(loaded) != {True, False}:
        raise ValueError("expected mst status to tell of two modules")
    modules = MstModules(pci=loaded[False], pciconf=loaded[True])
    return MstStatus(modules=modules, devices=tuple(devices))


def _row(line: str) -> MstDevice:
    words = line.split()
    if len(words) < 2 or not words[1].startswith(("/dev/mst/", "NA")):
        raise ValueError(f"expected a device of mst status, got {line[:80]!r}")
    pci, numa = None, None
    rdma: tuple[str, ...] = ()
    nets: tuple[str, ...] = ()
    for word in words[2:]:
        if _PCI.fullmatch(word):
            pci = word
        elif word.startswith("net-"):
            nets = tuple(name.removeprefix("net-") for name in word.split(","))
        elif re.fullmatch(r"-?[0-9]+", word):
            numa = int(word)
        elif word not in ("NA", "N/A"):
            rdma = tuple(word.split(","))
    return MstDevice(
        type=words[0],
        mst=None if words[1] == "NA" else words[1],
        pci=pci,
        rdma=rdma,
        nets=nets,
        numa=numa if numa is not None and numa >= 0 else None,
    )


def _add(devices: list[MstDevice], row: MstDevice) -> None:
    """A ConnectX-3 has two ways in and two rows, of which only the second tells of the rest."""
    before = devices[-1] if devices else None
    if before and before.type == row.type and before.pci is None and row.pci:
        devices[-1] = row.model_copy(update={"mst": before.mst})
    else:
        devices.append(row)
