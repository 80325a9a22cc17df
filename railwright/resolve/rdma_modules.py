"""Whether a module that goes over RDMA is of the stack that is in use."""

from collections.abc import Mapping

from facts.modinfo import ModuleFile
from facts.rdma_modules import STACK, RdmaModules
from railwright.model import Model


class Refusal(Model):
    """Why a module must not be used, and what puts that right."""

    found: str
    remedy: str


_PACKAGES = {"rpcrdma": "mlnx-nfsrdma-dkms", "nvme_rdma": "mlnx-nvme-dkms"}
"""NVIDIA's packages of modules that are built upon its stack; RPMs have the names without -dkms."""


def brings(module: str, package: str) -> bool:
    """Whether ``package`` is one of NVIDIA's that has ``module``."""
    return _PACKAGES[module].removesuffix("-dkms") in package


def refusal(module: str, modules: RdmaModules) -> Refusal | None:
    """Why ``module`` must not be used; None where it is of the stack that mlx5_core is of.

    One of the kernel's own next to NVIDIA's mlx5_core does not work: mounts hang, or end in a
    protocol error (Mellanox/doca-driver-build#89).
    """
    if modules.files is None:
        return Refusal(
            found=f"whether {module} fits the RDMA stack is not known: there is no modinfo",
            remedy="install kmod",
        )
    file, other = modules.files.get(module), _of_nvidia(modules.files)
    package = _PACKAGES[module]
    if file is None:
        what = f"install {package}" if other else "install the kernel's modules"
        return Refusal(found=f"the running kernel has no module {module}", remedy=what)
    if other is not None and file.is_inbox:
        return Refusal(
            found=f"{module} is the kernel's own ({file.path}), {other.name} is not ({other.path})",
            remedy=f"install {package} of the release that {other.name} is of",
        )
    if other is None and not file.is_inbox and modules.files:
        return Refusal(
            found=f"{module} is built for another RDMA stack ({file.path}) than the kernel's own, "
            "which is there",
            remedy=f"remove {package}, or install the stack that it is of",
        )
    return None


def _of_nvidia(files: Mapping[str, ModuleFile]) -> ModuleFile | None:
    """The first module of the stack that did not come with the kernel, mlx5_core before others."""
    found = (files[name] for name in reversed(STACK) if name in files)
    return next((file for file in found if not file.is_inbox), None)
