"""Packages of NVIDIA's CUDA repository for Debian 12: the open GPU driver, fabric manager, and GDS.

Sources: names as ``apt-mark hold`` and ``dpkg -l`` list them on machines with that repository
(nvidia-kernel-open-dkms, firmware-nvidia-gsp, nvidia-kernel-support, libnvidia-ml1,
nvidia-driver-cuda, nvidia-persistenced, all of one version), and the DKMS module nvidia as their
``dkms status`` has it. NVIDIA publishes no control files of these; its parts go by exact versions.
GDS: dpkg's log of nvidia-gds-12-9, and libcufile's postinst ("update-alternatives: using
/usr/local/cuda-X/gds/cufile.json to provide /etc/cufile.json"). Left out is what a display needs,
CUDA itself, and nvidia-drm.
"""

from collections.abc import Iterator
from typing import Any

from tests.standins.debs import (
    HEADERS,
    Deb,
    alternative_scripts,
    dkms_scripts,
    service_scripts,
)
from tests.standins.releases import (
    CUDA,
    CUDA_CONFIG,
    CUDA_PACKAGE,
    CUFILE,
    CUFILE_MARKS,
    DRIVERS,
    NVIDIA_FS,
    driver_marks,
    fs_marks,
)

_C = CUDA.replace(".", "-")
PRIORITY = int(CUDA.replace(".", ""))
"""Of an alternative: CUDA's release without its dot."""


def packages() -> Iterator[Deb]:
    """Packages of NVIDIA's CUDA repository for Debian 12."""
    for version in DRIVERS:
        yield from _driver(version)
    for version in NVIDIA_FS:
        yield from _fs(version)
    yield from _gds()


def _driver(version: str) -> Iterator[Deb]:
    package, marks = f"{version}-1", driver_marks(version)
    same = f"(= {package})"

    def deb(name: str, about: str, depends: str = "", **more: Any) -> Deb:
        values = {"relations": {"Depends": depends} if depends else {}, **more}
        return Deb(name=name, version=package, about=about, marks=marks, **values)

    yield deb(
        "nvidia-open",
        "all of the GPU driver with its open modules, without what a display needs",
        f"nvidia-driver-cuda {same}, nvidia-kernel-open-dkms {same}",
    )
    yield deb(
        "nvidia-driver-cuda",
        "nvidia-smi, and all that computing needs of the driver",
        f"libnvidia-ml1 {same}, nvidia-persistenced {same}, nvidia-kernel-support {same}",
        parts={"nvidia_smi": ""},
    )
    yield deb("libnvidia-ml1", "the driver's library NVML, by name", parts={"libnvidia_ml": ""})
    yield deb("firmware-nvidia-gsp", "firmware of GPUs, by name", parts={"firmware": ""})
    yield deb(
        "nvidia-kernel-support",
        "what keeps nouveau from loading",
        parts={"nvidia_kernel_support": ""},
        conffiles=("/etc/modprobe.d/nvidia-blacklists-nouveau.conf",),
    )
    yield deb(
        "nvidia-kernel-open-dkms",
        "sources of the GPU driver's open modules, for dkms",
        parts={"nvidia_dkms": f"usr/src/nvidia-{version}"},
        relations={
            "Depends": f"dkms, firmware-nvidia-gsp {same}, nvidia-kernel-support {same}",
            "Recommends": HEADERS,
            "Provides": f"nvidia-kernel-{version}",
            "Conflicts": "nvidia-kernel-dkms",
            "Replaces": "nvidia-kernel-dkms",
        },
        scripts=dkms_scripts("nvidia", "nvidia-kernel-open-dkms", version),
    )
    yield deb(
        "nvidia-persistenced",
        "a daemon that keeps GPUs open",
        "init-system-helpers (>= 1.54~)",
        parts={"nvidia_persistenced": ""},
        scripts=service_scripts("nvidia-persistenced.service"),
    )
    # Nobody enables it: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide.
    yield deb(
        "nvidia-fabricmanager",
        "fabric manager of NVSwitches",
        parts={"nvidia_fabricmanager": ""},
    )


def _fs(version: str) -> Iterator[Deb]:
    package = f"{version}-1"
    yield Deb(
        name="nvidia-fs-dkms",
        version=package,
        about="sources of GPUDirect Storage's module, for dkms",
        marks=fs_marks(version),
        relations={"Depends": "dkms", "Recommends": HEADERS},
        parts={"nvidia_fs_dkms": f"usr/src/nvidia-fs-{version}"},
        scripts=dkms_scripts("nvidia-fs", "nvidia-fs-dkms", version),
    )
    yield Deb(
        name="nvidia-fs",
        version=package,
        about="GPUDirect Storage's module",
        relations={"Depends": f"nvidia-fs-dkms (= {package})"},
    )


def _gds() -> Iterator[Deb]:
    library, marks = f"{CUFILE}-1", CUFILE_MARKS
    yield Deb(
        name=f"cuda-toolkit-{_C}-config-common",
        version=CUDA_CONFIG,
        about=f"/usr/local/cuda for CUDA {CUDA}",
        architecture="all",
        scripts=alternative_scripts("cuda", "/usr/local/cuda", f"/usr/local/cuda-{CUDA}", PRIORITY),
    )
    yield Deb(
        name=f"libcufile-{_C}",
        version=library,
        about="cuFile's library by name, and its configuration",
        marks=marks,
        relations={"Depends": f"cuda-toolkit-{_C}-config-common"},
        parts={"libcufile": ""},
        scripts=alternative_scripts(
            "cufile.json", "/etc/cufile.json", f"/usr/local/cuda-{CUDA}/gds/cufile.json", PRIORITY
        ),
    )
    yield Deb(
        name=f"gds-tools-{_C}",
        version=library,
        about="gdscheck",
        marks=marks,
        relations={"Depends": f"libcufile-{_C} (>= {CUFILE})"},
        parts={"gds_tools": ""},
    )
    yield Deb(
        name=f"nvidia-gds-{_C}",
        version=CUDA_PACKAGE,
        about=f"GPUDirect Storage of CUDA {CUDA}",
        relations={
            "Depends": f"gds-tools-{_C} (>= {CUFILE}), libcufile-{_C} (>= {CUFILE}), "
            f"nvidia-fs (>= {NVIDIA_FS[0]})"
        },
    )
    yield Deb(
        name="nvidia-gds",
        version=CUDA_PACKAGE,
        about="GPUDirect Storage",
        relations={"Depends": f"nvidia-gds-{_C} (>= {CUDA_PACKAGE.partition('-')[0]})"},
    )
