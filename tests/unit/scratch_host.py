"""A node with disks as the scratch component sees it, built by hand."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deploys.scratch import DROP_IN, TIMER, TRIM, TRIM_STATE, _drop_in, _mount, actions, settings
from facts import block_path, mounts
from facts.block_devices import ARRAYS, DISKS, PLACES, SIGNATURES, BlockDevices, read_block_devices
from facts.mdadm import CONFIG
from railwright.actions import Action, RunScript
from railwright.schema import Node
from railwright.schema.scratch import LocalScratch
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, enablement, metadata, record
from tests.unit.units import unit

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
GIB = 2**30
UUID = "11112222:33334444:55556666:77778888"
RULE = "/usr/lib/udev/rules.d/64-md-raid-assembly.rules"
ALL_TOOLS = ("mdadm", "mkfs.xfs", "mkfs.ext4")


@dataclass(frozen=True)
class D:
    """A disk: ``signatures`` are types with labels, ``superblock`` its array's name and level."""

    name: str
    id: str | None = ""
    gib: float = 4
    signatures: tuple[tuple[str, str | None], ...] = ()
    superblock: tuple[str, str, int] | None = None
    uuid: str = UUID
    upper: tuple[str, ...] = ()
    model: str = "Virtio Block"
    read_only: bool = False
    removable: bool = False
    transport: str | None = "virtio"
    numa: int = -1
    fabric: str = "-"
    wipefs: int = 0
    number: str = ""

    @property
    def by_id(self) -> str | None:
        return f"virtio-{self.name}" if self.id == "" else self.id


ROOT = D("vda", signatures=(("gpt", None), ("PMBR", None)), upper=("vda1", "vda2"), number="254:0")
B, C = D("vdb"), D("vdc")


def member(disk: D, name: str = "any:railwright-scratch", level: str = "raid0", of: int = 2) -> D:
    """``disk`` as a member of an array."""
    return replace(disk, signatures=(("linux_raid_member", name),), superblock=(name, level, of))


@dataclass(frozen=True)
class Array:
    """An assembled array."""

    members: Mapping[str, str]
    name: str = "md127"
    level: str = "raid0"
    disks: int = 2
    chunk: str = "524288"
    state: str = "clean"
    degraded: str = "-"
    sync: str = "-"
    signatures: tuple[tuple[str, str | None], ...] = (("xfs", "rw-scratch"),)


def _signed(name: str, rc: int, signatures: Iterable[tuple[str, str | None]]) -> str:
    rows = [{"device": name, "type": kind, "label": label} for kind, label in signatures]
    told = json.dumps({"signatures": rows}) if rc == 0 else ""
    return f"signatures {name} {rc} {told}\n"


def _signatures(disks: Iterable[D], arrays: Iterable[Array]) -> str:
    lines = []
    for disk in disks:
        lines.append(_signed(disk.name, disk.wipefs, disk.signatures))
        if disk.superblock:
            name, level, of = disk.superblock
            keys = {"LEVEL": level, "DEVICES": of, "NAME": name, "UUID": disk.uuid}
            lines += [f"superblock {disk.name} MD_{key}={value}\n" for key, value in keys.items()]
    lines += [_signed(array.name, 0, array.signatures) for array in arrays]
    return "".join(lines)


def _arrays(arrays: Iterable[Array], tools: Iterable[str]) -> str:
    lines = [f"tool {tool}" for tool in tools]
    for array in arrays:
        keys = {
            "level": array.level,
            "raid_disks": array.disks,
            "chunk_size": array.chunk,
            "array_state": array.state,
            "degraded": array.degraded,
            "sync_action": array.sync,
            "sync_completed": "none" if array.sync == "idle" else "12 / 34",
        }
        lines += [f"array {array.name} {key} {value}" for key, value in keys.items()]
        lines += [f"member {array.name} {name} {state}" for name, state in array.members.items()]
    return "".join(f"{line}\n" for line in lines)


def _stack(disks: Iterable[D], arrays: Iterable[Array], more: str) -> str:
    lines = []
    for position, disk in enumerate(disks):
        lines.append(f"number {disk.name} {disk.number or f'254:{16 * position}'}")
        for at, upper in enumerate(disk.upper, start=1):
            lines += [f"under {upper} {disk.name}", f"number {upper} 254:{16 * position + at}"]
    for array in arrays:
        lines += [f"under {array.name} {name}" for name in array.members]
        lines.append(f"number {array.name} 9:127")
    return "\n".join(lines) + "\n" + more


def _lsblk(disks: Iterable[D]) -> str:
    rows = [
        {
            "name": disk.name,
            "type": "disk",
            "size": int(disk.gib * GIB),
            "ro": disk.read_only,
            "rm": disk.removable,
            "model": disk.model,
            "serial": None,
            "tran": disk.transport,
        }
        for disk in disks
    ]
    return json.dumps({"blockdevices": rows})


def host(
    *disks: D,
    arrays: tuple[Array, ...] = (),
    mounted: str = "",
    stack: str = "",
    config: str = "",
    rules: str | None = None,
    tools: Iterable[str] = ALL_TOOLS,
    files: str = "",
    trim: str = "",
    ticks: str = "inactive",
    lines: str = "",
    container: bool = False,
    active: str = "inactive",
) -> Snapshot:
    """``mounted`` are lines of section ``block_mounts``, ``lines`` are those of /proc/mounts."""
    disks = disks or (ROOT, B, C)
    places = [f"id {d.by_id} ../../{d.name}" for d in disks if d.by_id]
    places += [f"place {d.name} {d.numa} {d.fabric}" for d in disks]
    texts = {
        "identity": "container=podman\n" if container else "kernel=6.1.0\n",
        block_path.MOUNTS.name: f"mount 254:1 / ext4 /dev/vda1 -\n{mounted}",
        block_path.STACK.name: _stack(disks, arrays, stack),
        DISKS.name: _lsblk(disks),
        PLACES.name: "\n".join(places) + "\n",
        SIGNATURES.name: _signatures(disks, arrays),
        ARRAYS.name: _arrays(arrays, tools),
        CONFIG.name: config + (metadata(RULE) if rules is None else rules),
        TRIM.name: trim,
        TRIM_STATE.name: unit(TIMER.name, active=ticks),
        mounts.MOUNTS.name: f"/dev/vda1 / ext4 rw 0 0\n{lines}",
        mounts.ANSWERS.name: "/scratch 0 ok\n" if lines else "",
        mounts.FSTAB.name: "",
        mounts.UNITS.name: files,
        mounts.STATES.name: unit("scratch.mount", active=active),
    }
    sections = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
    return Snapshot(host="n1", marker=MARKER, sections=sections)


def seen(*disks: D, **more: Any) -> BlockDevices:
    return read_block_devices(host(*disks, **more))


def scratch(**fields: Any) -> LocalScratch:
    """A RAID0 of vdb and vdc, but for ``fields``."""
    return LocalScratch.model_validate({"raid": 0, "disks": ("virtio-vdb", "virtio-vdc"), **fields})


def node(allow: frozenset[Effect] = LIVE, **scratches: LocalScratch) -> Node:
    """A node with these scratches, by the last part of where each is mounted."""
    mounts = {f"/{name}": one for name, one in scratches.items()}
    return Node.model_validate(
        {"name": "n1", "storage": {"mounts": mounts}, "effects": {"allow": allow}}
    )


def converged(asked: Node, *disks: D, **more: Any) -> Snapshot:
    """``asked`` (one scratch, at /scratch) as it is after a run, but for ``more``."""
    one = asked.storage.mounts["/scratch"]
    assert isinstance(one, LocalScratch)
    alone = one.raid is None
    made = Array({"vdb": "in_sync", "vdc": "in_sync"}, level=f"raid{one.raid}")
    own = member(B, level=f"raid{one.raid}"), member(C, level=f"raid{one.raid}")
    single = replace(B, signatures=((one.filesystem, one.label),))
    mount = _mount("/scratch", one, None)
    device = "vdb" if alone else "md127"
    values: dict[str, Any] = {
        "arrays": () if alone else (made,),
        "files": record(mount.path, str(mount.owned("scratch").content)) + enablement(mount.unit),
        "trim": record(DROP_IN, str(_drop_in({"/scratch": one}).content)) + enablement(TIMER),
        "ticks": "active",
        "lines": f"/dev/{device} /scratch {one.filesystem} rw,noatime 0 0\n",
        "active": "active",
    }
    disks = disks or ((ROOT, single, C) if alone else (ROOT, *own))
    return host(*disks, **{**values, **more})


def by_key(asked: Node, snapshot: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings(asked, snapshot)}


def verdicts(asked: Node, snapshot: Snapshot) -> dict[str, Verdict]:
    allowed = asked.effects.allow
    return {key: verdict(setting, allowed) for key, setting in by_key(asked, snapshot).items()}


def done(asked: Node, snapshot: Snapshot) -> list[Action]:
    return list(actions(asked, snapshot, settings(asked, snapshot)))


def made(asked: Node, snapshot: Snapshot) -> list[tuple[str, ...]]:
    """The arguments of the script, each time that it is to be run."""
    scripts = [action for action in done(asked, snapshot) if isinstance(action, RunScript)]
    assert all(script.name == "railwright-scratch" for script in scripts)
    return [script.arguments for script in scripts]
