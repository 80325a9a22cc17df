"""The set that a node really is, held against what is known of sets (``railwright.compat``).

``validate`` judges what an inventory says, and nothing tells it which kernel a node boots next or
which Lustre client is there. Here the node itself says so, and what the inventory asks for is put
upon it: a set that is known not to work is refused before anything is changed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar

from facts.dkms import Dkms
from facts.driver_kernels import DISK, DriversOnDisk, read_kernels
from facts.drivers import DKMS, OFED, SMI, read_dkms, read_gpus, read_ofed
from facts.next_boot import INSTALLED, NextKernel, read_next_kernel
from railwright.compat import Facts, judge
from railwright.compat.facts import BY_OS_RELEASE, WORDS, Part
from railwright.compat.versions import parse_version
from railwright.drivers.dkms_order import dkms_of
from railwright.model import Model
from railwright.schema import Node
from railwright.schema.drivers_compat import FIELDS, facts_of
from railwright.snapshot import Snapshot

Found = TypeVar("Found")

_PLATFORM: tuple[Part, ...] = ("distribution", "release", "architecture", "kernel")
_MODULES: dict[Part, str] = {
    "driver": "nvidia", "nvidia_fs": "nvidia_fs", "lustre": "lustre", "beegfs": "beegfs",
}  # fmt: skip
"""Whose version on disk is that of the part."""


class RealSet(Model):
    """A node's set for the kernel that boots next, and for the one that runs where that is another.

    ``node`` is what the node says of itself, for the next kernel. ``unread`` is what could not be
    read of it, in words: the sets are judged without it.
    """

    node: Facts
    coming: Facts
    running: Facts | None = None
    unread: tuple[str, ...] = ()


class Judgement(Model):
    """Why a run may not touch a node, and what is not known of its set, in words.

    ``warnings`` are also what is bad until the next boot alone, and what could not be read.
    """

    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def judgement(node: Node, snapshot: Snapshot) -> Judgement:
    """The node's set as ``snapshot`` has it; of a node that asks for no drivers nothing is said.

    Refused is a set that is known to be bad with the kernel that boots next, and a node that is
    another platform than the one by which the inventory was judged.
    """
    if not node.drivers.is_asked_for:
        return Judgement()
    real = real_set(node, snapshot)
    found = judge(real.coming)
    bad = [str(one) for one in found if one.verdict == "bad"]
    unknown = [str(one) for one in found if one.verdict == "unknown"]
    now = judge(real.running) if real.running else []
    left = [
        f"until it is rebooted: {one}"
        for one in now
        if one.verdict == "bad" and str(one) not in bad
    ]
    return Judgement(
        refused=(*_other_platform(node, real.node), *bad),
        warnings=(*real.unread, *_other_gpu(node, real.node), *unknown, *left),
    )


def refusal(node: Node, snapshot: Snapshot) -> list[str]:
    """Why a run may not touch the node as ``snapshot`` has it; nothing where it may."""
    return list(judgement(node, snapshot).refused)


def real_set(node: Node, snapshot: Snapshot) -> RealSet:
    """The node's set: what is asked for, upon what the node is."""
    unread: list[str] = []
    identity = snapshot.facts("identity") if "identity" in snapshot.sections else {}
    # A container's kernel is its host's.
    inside = "container" in identity
    upcoming = None if inside else _next_kernel(snapshot, unread)
    running = None if inside else identity.get("kernel")
    coming = upcoming.version if upcoming and upcoming.version else running
    kernels = _read(snapshot, DISK.name, read_kernels, unread) or {}
    own = _own(snapshot, identity, unread)
    here = _with_kernel(own, coming, kernels)
    wanted = facts_of(node.drivers)
    other = running is not None and running != coming
    return RealSet(
        node=here,
        coming=_merged(wanted, here),
        running=_merged(wanted, _with_kernel(own, running, kernels)) if other else None,
        unread=tuple(unread),
    )


def _read(
    snapshot: Snapshot, section: str, read: Callable[[Snapshot], Found], unread: list[str]
) -> Found | None:
    """What ``read`` makes of a section that was taken; what it cannot read is noted."""
    if section not in snapshot.sections:
        return None
    try:
        return read(snapshot)
    except ValueError as error:
        unread.append(f"a part of the set could not be read, and was not judged: {error}")
        return None


def _next_kernel(snapshot: Snapshot, unread: list[str]) -> NextKernel | None:
    found = _read(snapshot, INSTALLED.name, read_next_kernel, unread)
    if found is not None and found.version is None:
        unread.append(f"it is not known which kernel boots next: {found.problem or 'no word why'}")
    return found


def _own(snapshot: Snapshot, identity: dict[str, str], unread: list[str]) -> Facts:
    """What the node says of itself, whichever kernel it boots."""
    ofed = _read(snapshot, OFED.name, read_ofed, unread)
    dkms = _read(snapshot, DKMS.name, read_dkms, unread)
    gpus = _read(snapshot, SMI.name, read_gpus, unread)
    machine = identity.get("machine")
    return Facts.model_validate(
        {
            "distribution": BY_OS_RELEASE.get(identity.get("os", "")),
            "release": _version(identity.get("os_version")),
            "architecture": machine if machine in WORDS["architecture"] else None,
            "rdma": ofed.kind if ofed else None,
            "mlnx_ofed": ofed.version if ofed and ofed.kind == "mlnx_ofed" else None,
            "gpu": gpu_of(gpu.name or "" for gpu in gpus.gpus) if gpus else None,
            "lustre": _client("lustre", dkms),
            "beegfs": _client("beegfs", dkms),
        }
    )


def _client(stack: Literal["lustre", "beegfs"], dkms: Dkms | None) -> str | None:
    """The version that dkms has of a storage client, of several the last listed."""
    name = dkms_of(stack, dkms) if dkms else None
    versions = [one.version for one in dkms.modules if one.module == name] if dkms else []
    return _version(versions[-1]) if versions else None


def _with_kernel(own: Facts, kernel: str | None, kernels: dict[str, DriversOnDisk]) -> Facts:
    """``own`` with ``kernel``, and with the versions of the modules that are on disk for it."""
    files = kernels[kernel].disk.files if kernel in kernels else {}
    found: dict[str, str | None] = {"kernel": _version(kernel)}
    for part, module in _MODULES.items():
        version = _version(files[module].version) if module in files else None
        if version is not None:
            found[part] = version
    return own.model_copy(update=found)


def _merged(wanted: Facts, node: Facts) -> Facts:
    """The platform is the node's; of all else the node has what nobody asks to be otherwise."""
    found = {part: value for part in Facts.model_fields if (value := getattr(wanted, part))}
    for part in Facts.model_fields:
        value = getattr(node, part)
        if value is not None and (part in _PLATFORM or part not in found):
            found[part] = value
    if wanted.release is not None and node.release and _begins(wanted.release, node.release):
        # Of Debian's point releases os-release tells the first number alone.
        found["release"] = wanted.release
    if wanted.rdma not in (None, "mlnx_ofed"):
        found.pop("mlnx_ofed", None)
    if wanted.gds == "p2pdma":
        found.pop("nvidia_fs", None)
    return Facts.model_validate(found)


def _begins(whole: str, start: str) -> bool:
    first = parse_version(start).numbers
    return parse_version(whole).numbers[: len(first)] == first


def _other_platform(node: Node, real: Facts) -> Iterator[str]:
    """Where the node is not the platform that the inventory names: it was judged by that one."""
    for part in _PLATFORM:
        said, found = getattr(node.platform, part), real.value(part)
        if said is None or found is None or said == found:
            continue
        if part == "release" and _begins(said, found):
            continue
        boots = " next" if part == "kernel" else ""
        yield (
            f"{'.'.join(FIELDS[part])} is {said}, and the node {'boots' if boots else 'is'} "
            f"{found}{boots}: bring the node to it, or say {found} and let the set be judged anew"
        )


def _other_gpu(node: Node, real: Facts) -> Iterator[str]:
    said = node.gpu_driver.gpu
    if said is not None and real.gpu is not None and said != real.gpu:
        yield f"gpu_driver.gpu is {said}, and nvidia-smi lists {real.gpu}"


def gpu_of(names: Iterable[str]) -> str | None:
    """The model by nvidia-smi's names (``NVIDIA H100 80GB HBM3``); None where they are of several,
    or of none that is known."""
    words = (name.lower().replace("-", " ").split() for name in names)
    models = {next((word for word in one if word in WORDS["gpu"]), None) for one in words}
    return models.pop() if len(models) == 1 else None


def _version(text: str | None) -> str | None:
    """``text`` where it is a version; what a maker wrote need not be one."""
    try:
        return text if text is None or parse_version(text) else None
    except ValueError:
        return None
