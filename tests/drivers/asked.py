"""What inventories ask of a node with apt: the stand-ins' packages, release by release."""

import json
from typing import Any

from tests.lab.layout import layout
from tests.standins.releases import CUDA_PACKAGE, CUFILE, DRIVERS, NVIDIA_FS, OFED

FOLDER = layout("bookworm").cache / "standins"
"""Where ``python -m tests.standins`` leaves them on this machine; keys are read there."""
MOUNTED = "file:///srv/standins/apt"
"""Their repositories of apt, as a container has them."""

Overlay = dict[str, Any]


def node(release: int, fs: int, url: str) -> Overlay:
    """A node's overlay: OFED, GPU driver and GDS of ``release`` 0 or 1, nvidia-fs of ``fs``.

    ``url`` is where the node has the stand-ins' repositories.
    """
    driver, ofed = DRIVERS[release], OFED[release]
    return {
        "repositories": {"doca": repository("doca", url), "cuda": repository("cuda", url)},
        "ofed": {
            "kind": "doca_ofed",
            "version": ofed.doca,
            "repository": "doca",
            "packages": {
                "doca-ofed": f"{ofed.doca}-{ofed.build}",
                "mlnx-ofed-kernel-dkms": f"{ofed.dkms}-1",
                "mlnx-ofed-kernel-utils": f"{ofed.dkms}-1",
                "mlnx-tools": ofed.tools,
                "ofed-scripts": f"{ofed.scripts}-1",
            },
        },
        "gpu_driver": {
            "version": driver,
            "branch": int(driver.partition(".")[0]),
            "repository": "cuda",
            "packages": dict.fromkeys(_DRIVER, f"{driver}-1"),
            "fabric_manager": True,
            "peer_memory": "nvidia_peermem",
            "options": {"NVreg_EnableStreamMemOPs": True},
        },
        "gds": {
            "mode": "nvidia-fs",
            "version": NVIDIA_FS[fs],
            "repository": "cuda",
            "packages": {
                "nvidia-gds": CUDA_PACKAGE,
                "nvidia-gds-13-0": CUDA_PACKAGE,
                "nvidia-fs": f"{NVIDIA_FS[fs]}-1",
                "nvidia-fs-dkms": f"{NVIDIA_FS[fs]}-1",
                "gds-tools-13-0": f"{CUFILE}-1",
                "libcufile-13-0": f"{CUFILE}-1",
            },
            "cufile": {"properties": {"allow_compat_mode": False}},
        },
    }


_DRIVER = (
    "nvidia-open",
    "nvidia-driver-cuda",
    "nvidia-kernel-open-dkms",
    "nvidia-kernel-support",
    "firmware-nvidia-gsp",
    "libnvidia-ml1",
    "nvidia-persistenced",
    "nvidia-fabricmanager",
)


def repository(name: str, url: str, **given: Any) -> Overlay:
    """``NAME`` below ``url``, with the key of the stand-ins that has the same name."""
    fingerprints = json.loads((FOLDER / "keys/fingerprints.json").read_text(encoding="utf-8"))
    asked = {
        "kind": "apt",
        "url": f"{url}/{name}",
        "suite": "./",
        "key": str(FOLDER / f"keys/{name}.asc"),
        "fingerprint": fingerprints.get(name),
        "never": ["dkms"],
    }
    return {**asked, **given}


def vanished(asked: Overlay) -> Overlay:
    """``asked`` with a version of one package that no repository has any more."""
    packages = {**asked["ofed"]["packages"], "mlnx-tools": "25.07-0.2507097"}
    return {**asked, "ofed": {**asked["ofed"], "packages": packages}}


def signed_by_another(asked: Overlay, url: str) -> Overlay:
    """``asked`` with a repository that has the same packages, signed by a key of somebody else."""
    other = {"doca": {**asked["repositories"]["doca"], "url": f"{url}/doca-other-key"}}
    return {**asked, "repositories": {**asked["repositories"], **other}}
