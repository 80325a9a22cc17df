"""What GPUDirect Storage says of a host: ``gdscheck -p``.

Older releases say of each storage whether it is Supported, newer ones (1.16) list the routes that
IO can take (``nvfs, compat``). Neither says that the IO of a file takes one. What lines mean, and
what helps, is in railwright.gds.meaning.
"""

import re
from typing import Literal

from pydantic import Field

from railwright.model import Model

COMPAT = "compat"
P2PDMA = "p2pdma"
SPECTRUM_SCALE = "IBM Spectrum Scale"
Iommu = Literal["disabled", "enabled_or_pt", "enabled"]


class Storage(Model):
    """A line of the driver configuration, as NVMe or BeeGFS; one of the two is None.

    ``routes`` are nvfs, p2pdma, dmabuf, c2c (of Grace) and compat, by which the CPU copies.
    """

    supported: bool | None = None
    routes: tuple[str, ...] | None = None


class RdmaSupport(Model):
    """The lines below Userspace RDMA; None where the release has no such line."""

    peerdirect: bool | None = None
    dmabuf: bool | None = None
    library_loaded: bool | None = None
    devices_configured: bool | None = None
    up: int | None = None
    down: int | None = None


class GdsGpu(Model):
    """A GPU: ``bar_mib`` is its window for peers, ``supported`` whether GDS can use it."""

    name: str
    bar_mib: int
    supported: bool
    iommu: str | None = None


class GdsCheck(Model):
    """The report; ``error`` is why there is none, and then the rest is empty.

    ``gds`` is the release, ``nvidia_fs`` the version of the module that is loaded (None where it
    is not), ``libcufile`` what older releases say of the library. ``properties`` are those of
    cufile.json in force, as printed; ``environment`` the variables that override them.
    ``acs_enabled`` are the PCIe switches that send peers' traffic up to the root.
    """

    gds: str | None = None
    nvidia_fs: str | None = None
    nvidia_fs_minimum: str | None = None
    libcufile: str | None = None
    platform: str | None = None
    environment: dict[str, str] = Field(default={})
    storages: dict[str, Storage] = Field(default={})
    userspace_rdma: bool | None = None
    rdma: RdmaSupport = RdmaSupport()
    properties: dict[str, str] = Field(default={})
    gpus: dict[int, GdsGpu] = Field(default={})
    iommu: Iommu | None = None
    acs_enabled: tuple[str, ...] = ()
    driver_info: str | None = None
    cuda_driver: int | None = None
    verified: bool | None = None
    warnings: tuple[str, ...] = ()
    error: Literal["cufile_json", "not_installed"] | None = None
    message: str | None = None

    def direct(self, storage: str) -> bool:
        """Whether IO can go straight between the storage and GPU memory."""
        there = self.storages[storage]
        if there.routes is None:
            return bool(there.supported)
        # With use_pci_p2pdma it is listed for Spectrum Scale too, whose data come by network.
        void = {COMPAT, P2PDMA} if storage == SPECTRUM_SCALE else {COMPAT}
        return bool(set(there.routes) - void)

    @property
    def open_driver(self) -> bool | None:
        """Whether the open kernel module is loaded, which nvidia-fs asks for since 2.17.5."""
        return None if self.driver_info is None else "Open Driver Installed" in self.driver_info

    @property
    def compat_allowed(self) -> bool | None:
        """Whether IO may silently be copied by the CPU; None where it is not told."""
        value = self.properties.get("properties.use_compat_mode")
        return None if value is None else value == "true"

    @property
    def p2pdma_blockers(self) -> tuple[str, ...]:
        """Properties that are false and keep P2PDMA from what others allow it to."""
        master = "properties.use_pci_p2pdma"
        asked = [
            key
            for key, value in self.properties.items()
            if key.endswith(".use_pci_p2pdma") and key != master and value == "true"
        ]
        return (master,) if asked and self.properties.get(master) == "false" else ()


_BROKEN = re.compile(r"(?i)configuration load error|config file|parse error|cufile\.json")
_ABSENT = re.compile(r"gdscheck(?:\.py)?: (?:command )?not found|gdscheck\S*: No such file")
_TITLE = re.compile(r"[A-Z][A-Z ]+:")
_HEADS = {
    "gds": re.compile(r"GDS release version: (\S+)"),
    "nvidia_fs": re.compile(r"nvidia_fs version: +(\S+)"),
    "nvidia_fs_minimum": re.compile(r"nvidia_fs minimum version: (\S+)"),
    "libcufile": re.compile(r"libcufile version: (\S+)"),
}
_PLATFORM = re.compile(r"Platform: (\S+)")
_ENTRY = re.compile(r"(\S.*?)\s*:\s*(.*)")
_GPU = re.compile(
    r"GPU index ([0-9]+) (.*?) bar: ?[0-9]+ bar size \(MiB\): ?([0-9]+)(.*?)"
    r"(?:, IOMMU State: (.*))?"
)
_STATUS = re.compile(r"Up: *([0-9]+) Down: *([0-9]+)")
_ACS = re.compile(r"Found ACS enabled for switch ([0-9a-fA-F:.]+)")
_ROUTES = re.compile(r"[a-z0-9_]+(?:, *[a-z0-9_]+)*")
_DRIVERS = "DRIVER CONFIGURATION:"


def parse_gdscheck(text: str, rc: int = 0) -> GdsCheck:
    """Read ``gdscheck -p``. Raises ValueError for what is no report and no known complaint."""
    if rc == 127 or _ABSENT.search(text):
        return GdsCheck(error="not_installed", message=text.strip()[:200])
    sections = _sections(text)
    if _DRIVERS not in sections:
        if rc != 0 and _BROKEN.search(text):
            return GdsCheck(error="cufile_json", message=" ".join(text.split())[:200])
        raise ValueError(f"expected gdscheck's report, got {text.strip()[:80]!r} (exit {rc})")
    head = "\n".join(sections[""])
    heads = {name: found[1] for name, at in _HEADS.items() if (found := at.search(head))}
    platform = _PLATFORM.search(head)
    storages, rdma, userspace = _drivers(sections[_DRIVERS])
    about = sections.get("PLATFORM INFO:", [])
    entries = dict(_entries(about))
    return GdsCheck(
        gds=heads.get("gds"),
        nvidia_fs=heads.get("nvidia_fs"),
        nvidia_fs_minimum=heads.get("nvidia_fs_minimum"),
        libcufile=heads.get("libcufile"),
        platform=platform[1] if platform else None,
        environment=dict(_entries(sections.get("ENVIRONMENT:", []))),
        storages=storages,
        userspace_rdma=userspace,
        rdma=rdma,
        properties=dict(_entries(sections.get("CUFILE CONFIGURATION:", []))),
        gpus=dict(_gpu(line) for line in sections.get("GPU INFO:", [])),
        iommu=_iommu(entries.get("IOMMU")),
        acs_enabled=tuple(found[1] for line in about if (found := _ACS.fullmatch(line))),
        driver_info=entries.get("Nvidia Driver Info Status"),
        cuda_driver=_number(entries.get("Cuda Driver Version Installed")),
        verified=_verified(about),
        warnings=tuple(
            line.partition(":")[2].strip()
            for line in map(str.strip, text.splitlines())
            if line.lower().startswith("warn:")
        ),
    )


def _sections(text: str) -> dict[str, list[str]]:
    """Lines by the title that stands above them between two rules; what comes first has none."""
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    for line in map(str.strip, text.splitlines()):
        if _TITLE.fullmatch(line):
            current = found.setdefault(line, [])
        elif line and line.strip("=") and not line.lower().startswith("warn:"):
            current.append(line)
    return found


def _entries(lines: list[str]) -> list[tuple[str, str]]:
    return [(found[1], found[2].strip()) for line in lines if (found := _ENTRY.fullmatch(line))]


def _drivers(lines: list[str]) -> tuple[dict[str, Storage], RdmaSupport, bool | None]:
    storages: dict[str, Storage] = {}
    rdma: dict[str, bool | int | None] = {}
    userspace: bool | None = None
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise ValueError(f"expected STORAGE : Supported of gdscheck, got {line[:80]!r}")
        name, said = entry[1], entry[2].strip()
        if name.startswith("--"):
            rdma |= _rdma(name.removeprefix("--"), said)
        elif name == "Userspace RDMA":
            userspace = said == "Supported"
        else:
            storages[name] = _storage(name, said)
    if not storages:
        raise ValueError("expected storages in gdscheck's driver configuration, got none")
    return storages, RdmaSupport.model_validate(rdma), userspace


def _storage(name: str, said: str) -> Storage:
    if said in ("Supported", "Unsupported"):
        return Storage(supported=said == "Supported")
    if not _ROUTES.fullmatch(said):
        raise ValueError(f"expected {name} to be Supported or a list of routes, got {said[:60]!r}")
    return Storage(routes=tuple(route.strip() for route in said.split(",")))


def _rdma(name: str, said: str) -> dict[str, bool | int | None]:
    """Lines of other names, as newer releases have, are passed over."""
    if name == "Mellanox PeerDirect":
        return {"peerdirect": said == "Enabled"}
    if name == "DmaBuf support":
        return {"dmabuf": said == "Enabled"}
    if name == "rdma library":
        return {"library_loaded": said.startswith("Loaded")}
    if name == "rdma devices":
        return {"devices_configured": said == "Configured"}
    if (status := _STATUS.fullmatch(said)) and name.endswith("_status"):
        return {"up": int(status[1]), "down": int(status[2])}
    return {}


def _gpu(line: str) -> tuple[int, GdsGpu]:
    found = _GPU.fullmatch(line)
    if found is None:
        raise ValueError(f"expected a GPU of gdscheck, got {line[:80]!r}")
    gpu = GdsGpu(
        name=found[2],
        bar_mib=int(found[3]),
        supported=found[4].strip() == "supports GDS",
        iommu=found[5],
    )
    return int(found[1]), gpu


def _iommu(said: str | None) -> Iommu | None:
    if said is None:
        return None
    known: dict[str, Iommu] = {
        "disabled": "disabled",
        "enabled": "enabled",
        "pass-through or enabled": "enabled_or_pt",
    }
    if said.lower() not in known:
        raise ValueError(f"expected gdscheck's IOMMU to be disabled or enabled, got {said[:60]!r}")
    return known[said.lower()]


def _number(said: str | None) -> int | None:
    return int(said) if said is not None and re.fullmatch("[0-9]+", said) else None


def _verified(lines: list[str]) -> bool | None:
    said = next((line for line in lines if line.startswith("Platform verification")), None)
    return None if said is None else said == "Platform verification succeeded"
