"""What the inventories here ask of a node: the stand-ins' packages, release by release."""

import json
import os
from pathlib import Path
from typing import Any

from tests.standins.releases import DRIVERS, NVIDIA_FS, OFED
from tests.standins.rpms import Rpm, driver, gds, ofed

NAME = "railwright-dnf"
HOST = f"@podman/{NAME}"
MOUNTED = "/srv/standins"
"""Where a node has the folder of the stand-ins."""
FOLDER = Path(os.environ.get("RAILWRIGHT_STANDINS", MOUNTED))
"""The same on this machine, where keys are read."""

CLOSED = "kmod-nvidia-latest-dkms"
"""The closed flavour of the driver's modules, which the open one conflicts with."""
_BY_CHANCE = frozenset({CLOSED, "mlnx-tools"})
"""Packages that no inventory names: the other flavour, and one that others need in any version."""


def packages(release: int) -> dict[str, dict[str, str]]:
    """Package to version for each of ofed, gpu_driver and gds; ``release`` is 0 or 1."""
    parts = {
        "ofed": ofed(OFED[release]),
        "gpu_driver": driver(DRIVERS[release]),
        "gds": gds(NVIDIA_FS[release]),
    }
    return {
        part: dict(_named(rpm) for rpm in rpms if _is_named(rpm)) for part, rpms in parts.items()
    }


def _is_named(rpm: Rpm) -> bool:
    return rpm.name not in _BY_CHANCE


def _named(rpm: Rpm) -> tuple[str, str]:
    return rpm.name, rpm.version


def repository(name: str, **given: Any) -> dict[str, Any]:
    """``dnf/NAME``, with the key of the stand-ins that has the same name."""
    fingerprints = json.loads((FOLDER / "keys/fingerprints.json").read_text(encoding="utf-8"))
    asked = {
        "kind": "dnf",
        "url": f"file://{MOUNTED}/dnf/{name}",
        "key": str(FOLDER / f"keys/{name}.asc"),
        "fingerprint": fingerprints.get(name),
    }
    return {**asked, **given}


def node(release: int, **repositories: dict[str, Any]) -> dict[str, Any]:
    """A node's overlay; ``repositories`` stand in the place of the ones of that name."""
    named = packages(release)
    return {
        "repositories": {
            "doca": repository("doca"),
            "cuda": repository("cuda"),
            **repositories,
        },
        "ofed": {
            "kind": "doca_ofed",
            "version": OFED[release].doca,
            "repository": "doca",
            "packages": named["ofed"],
        },
        "gpu_driver": {
            "version": DRIVERS[release],
            "repository": "cuda",
            "packages": named["gpu_driver"],
            "removes": [CLOSED],
            "fabric_manager": True,
            "persistence": True,
            "options": {"NVreg_EnableStreamMemOPs": True},
        },
        "gds": {
            "mode": "nvidia-fs",
            "version": NVIDIA_FS[release],
            "repository": "cuda",
            "packages": named["gds"],
            "cufile": {"properties": {"allow_compat_mode": False}},
        },
    }


ALLOWED = {"allow": ["live", "new_processes", "service"]}
"""Effects that an upgrade needs: packages' own scripts may restart their daemons."""


def vanished(asked: dict[str, Any]) -> dict[str, Any]:
    """``asked`` with a version of one package that no repository has any more."""
    ofed_packages = {**asked["ofed"]["packages"], "doca-ofed": "3.1.0-091000.el9"}
    return {**asked, "ofed": {**asked["ofed"], "packages": ofed_packages}}
