"""A node as the gds component sees it, built by hand."""

import base64
from collections.abc import Mapping
from typing import Any

from deploys.gds import actions, settings
from railwright.actions import Action, RunScript
from railwright.schema import Node
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, MTIME

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
PATH = "/etc/cufile.json"
LINK = "/usr/local/cuda-12.8/gds/cufile.json"
# In the manner of the file of GDS: comments, deep indents, a comma after the last section.
STOCK = """{
    // NOTE : a process takes another file by CUFILE_ENV_PATH_JSON=<filepath>
            "properties": {
                            // fall back to POSIX
                            "allow_compat_mode": true,
                            "use_pci_p2pdma": false,
                            "rdma_dev_addr_list": [ ]
            },
            "vendor": { "own": [ 1, 2 ] },
}
"""
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Tue\n"
PLATFORM: dict[str, str] = {
    "machine": "x86_64",
    "p2pdma": "yes",
    "nvidia_fs": "yes",
    "virtual": "none",
    "multipath": "N",
}


def platform(
    *lines: str, driver: str = OPEN, gpu: str = "NVIDIA H100 80GB HBM3", **facts: str
) -> str:
    """What the section of the platform prints: a host on which P2PDMA works, but for ``facts``."""
    told = [f"{key}={value}" for key, value in {**PLATFORM, **facts}.items()]
    more = lines or ("iommu identity", "libcufile libcufile.so.1.14.1", "nvme nvme0 pcie")
    return "\n".join([*told, *more, f"Model: \t\t {gpu}", driver])


def encoded(content: bytes, mode: str = "644", link: str | None = None) -> str:
    """/etc/cufile.json as the probe prints it."""
    kind = "link" if link else "file"
    target = f"{MARKER} target {link}\n" if link else ""
    head = f"\n{MARKER} file {kind} {mode} root {MTIME} {len(content)} {PATH}\n{target}"
    return f"{head}{MARKER} base64\n{base64.encodebytes(content).decode('ascii')}"


def snapshot(
    text: str | None = STOCK,
    *,
    cufile: str | None = None,
    environment: str = "",
    told: str | None = None,
    identity: str = "kernel=6.8.0-45-generic\nos=ubuntu\nos_version=24.04\n",
) -> Snapshot:
    """``text`` is the file's, None where there is none; ``cufile`` the whole answer about it."""
    answer = cufile if cufile is not None else encoded(text.encode()) if text is not None else ""
    sections = {
        "identity": identity,
        "gds_cufile": answer,
        "gds_environment": environment,
        "gds_platform": platform() if told is None else told,
    }
    return Snapshot(
        host="n1",
        marker=MARKER,
        sections={name: Section(stdout=stdout, rc=0) for name, stdout in sections.items()},
    )


def node(mode: str | None = None, rails: bool = False, **cufile: Any) -> Node:
    """A node with these sections of cufile.json; with ``rails`` two that serve a GPU, and one."""
    nics = {0: {"pci": "0000:10:00.0", "gpu": 0}, 1: {"pci": "0000:20:00.0", "gpu": 1}}
    data: dict[str, Any] = {"name": "n1", "gds": {"mode": mode, "cufile": cufile}}
    if mode is not None:
        data["gpu_driver"] = {"version": "580.95.05"}
    if mode == "nvidia-fs":
        data["gds"]["version"] = "2.26.6"
    if rails:
        data |= {
            "fabric": {"kind": "roce"},
            "rails": {
                "nics": {**nics, 2: {"pci": "0000:30:00.0"}},
                "plan": {"prefix": "10.64.0.0/16", "rail_prefix_length": 24},
            },
        }
    return Node.model_validate(data)


def of(key: str, asked: Node, seen: Snapshot) -> Setting:
    return next(setting for setting in settings(asked, seen) if setting.key == key)


def verdicts(asked: Node, seen: Snapshot) -> Mapping[str, Verdict]:
    return {s.key: verdict(s, asked.effects.allow) for s in settings(asked, seen)}


def done(asked: Node, seen: Snapshot) -> list[Action]:
    return list(actions(asked, seen, settings(asked, seen)))


def written(asked: Node, seen: Snapshot) -> str | None:
    """The file that a run writes, None where it writes none."""
    found = done(asked, seen)
    if not found:
        return None
    (script,) = found
    assert isinstance(script, RunScript)
    body = script.script.partition("<<'END' || exit 1\n")[2].partition("\nEND\n")[0]
    return base64.b64decode(body).decode()
