"""What dkms has to build, for which kernels, and in which order.

dkms orders only by BUILD_DEPENDS, which few modules declare: nvidia-peermem, nvidia-fs, Lustre and
BeeGFS are built against OFED's symbols, so that what is built before OFED does not load with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from facts.dkms import Dkms, DkmsModule
from railwright.drivers.finding import Finding, Kind
from railwright.drivers.next_kernel import KernelCheck, Stack
from railwright.drivers.symbols import OnDisk
from railwright.model import Model

_STACKS: dict[Stack, tuple[str, ...]] = {
    "ofed": ("mlnx-ofed-kernel", "mlnx-ofa_kernel"),
    "gpu": ("nvidia", "nvidia-open", "nvidia-current", "nvidia-current-open"),
    "peer_memory": ("nvidia", "nvidia-open", "nvidia-current", "nvidia-current-open"),
    "gds": ("nvidia-fs",),
    "lustre": ("lustre-client-modules", "lustre-client", "lustre"),
    "beegfs": ("beegfs",),
}
"""Names that the packages of NVIDIA, Debian, Ubuntu, Whamcloud and BeeGFS give dkms."""

_OVER_OFED = (
    *("iser", "isert", "srp", "knem", "xpmem"),
    *("mlnx-nvme", "mlnx-nfsrdma", "mlnx-iser", "mlnx-isert", "mlnx-srp"),
)

ORDER: tuple[tuple[str, ...], ...] = (
    _STACKS["ofed"],
    _OVER_OFED,
    _STACKS["gpu"],
    _STACKS["gds"],
    _STACKS["lustre"],
    _STACKS["beegfs"],
)
"""Modules in the order in which they are built. Others of dkms (zfs) are nobody's business here."""

_OUTDATED: frozenset[Kind] = frozenset({"absent", "symbols", "vermagic"})
"""Absent, and yet installed by dkms' own account: its file is empty, as after a power cut."""

Built = Literal["installed", "absent", "stale"]

ARRIVING = "(to be installed)"
"""The version of what only a package that is not installed yet will bring."""


class Build(Model):
    """One module of dkms for one kernel. ``stale``: it is there, and does not fit; ``why``: how."""

    module: str
    version: str
    kernel: str
    built: Built
    why: str | None = None

    @property
    def key(self) -> str:
        return f"dkms {self.module} for {self.kernel}"


def names_of(stack: Stack) -> frozenset[str]:
    """The names by which dkms may know ``stack``."""
    return frozenset(_STACKS[stack])


def dkms_of(stack: Stack, dkms: Dkms) -> str | None:
    """The name under which dkms knows ``stack``; None where it does not."""
    known = {entry.module for entry in dkms.modules}
    return next((name for name in _STACKS[stack] if name in known), None)


def builds(
    dkms: Dkms,
    kernels: Iterable[str],
    checks: Mapping[str, KernelCheck],
    disks: Mapping[str, OnDisk],
    arriving: frozenset[str] = frozenset(),
) -> tuple[Build, ...]:
    """Every build that the node needs, kernel by kernel, in the order in which they are made.

    What lies over one that has to be built is stale with it: it was built against the old one.
    ``arriving`` are names of dkms whose packages are installed first, in the same run.
    """
    return tuple(
        build
        for kernel in dict.fromkeys(kernels)
        for build in _for_kernel(dkms, kernel, checks.get(kernel), disks.get(kernel), arriving)
    )


def due(found: Iterable[Build]) -> tuple[Build, ...]:
    return tuple(build for build in found if build.built != "installed")


def _for_kernel(
    dkms: Dkms,
    kernel: str,
    check: KernelCheck | None,
    disk: OnDisk | None,
    arriving: frozenset[str],
) -> Iterator[Build]:
    below: str | None = None
    for names in ORDER:
        rank_is_due = None
        for name in names:
            version = _version(dkms, name)
            if version is None and name not in arriving:
                continue
            built, why = _state(dkms.of(name, kernel), _faults(name, check, disk))
            if name in arriving:
                built, why = "absent" if built == "absent" else "stale", "its package comes first"
            if built == "installed" and below is not None:
                built, why = "stale", f"{below} is built anew, upon which it lies"
            if built != "installed":
                rank_is_due = name
            yield Build(
                module=name, version=version or ARRIVING, kernel=kernel, built=built, why=why
            )
        below = below or rank_is_due


def _version(dkms: Dkms, name: str) -> str | None:
    """The version that is to be built: the one in use, of several that are only added the last."""
    entries = [e for e in dkms.modules if e.module == name and e.state != "broken"]
    placed = [e for e in entries if e.state in ("installed", "installed-weak")]
    return (placed or entries)[-1].version if entries else None


def _state(entry: DkmsModule | None, faults: tuple[Finding, ...]) -> tuple[Built, str | None]:
    if entry is None or entry.state in ("added", "broken"):
        return "absent", None
    if entry.state == "built":
        return "absent", "built, and not installed"
    if entry.differs or entry.missing:
        return "stale", "the module in place " + (
            "differs from what was built" if entry.differs else "is missing"
        )
    if faults:
        return "stale", "; ".join(f"{fault.subject} {fault.found}" for fault in faults)
    return "installed", None


def _faults(name: str, check: KernelCheck | None, disk: OnDisk | None) -> tuple[Finding, ...]:
    if check is None or disk is None:
        return ()
    return tuple(
        finding
        for finding in check.findings
        if finding.kind in _OUTDATED and disk.sources.get(finding.subject) == name
    )
