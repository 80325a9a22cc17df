"""What a node's drivers ask of its kernel modules: nouveau kept out, parameters of nvidia, and
whether the kernel joins the paths of an NVMe drive.

Here is what the inventory alone tells, so that the probe can ask for those modules.
"""

from railwright.schema import ModulesSpec, Node
from railwright.schema.base import module_name
from railwright.schema.drivers import GpuDriverSpec
from railwright.schema.drivers_consistency import P2PDMA_DWORDS
from railwright.schema.modules import Parameter, ParameterText

NOUVEAU, NVME_CORE = "nouveau", "nvme_core"


def has_ofed(node: Node) -> bool:
    """Whether the node is asked to have NVIDIA's stack in place of the kernel's own."""
    return node.ofed.kind in ("doca_ofed", "mlnx_ofed")


def asks_for_drivers(node: Node) -> bool:
    """Whether the node asks for anything that a kernel upgrade could leave without a module."""
    return node.ofed.kind is not None or node.gpu_driver.version is not None


def modules_of(node: Node) -> ModulesSpec:
    """The node's kernel modules with what its GPU driver needs of them.

    One file of modprobe.d has them all: of NVreg_RegistryDwords given twice the later one takes
    the former's keys away, and nouveau is kept out as any other module is.
    """
    options, blacklist = {**node.modules.options}, node.modules.blacklist
    driver, multipath = node.gpu_driver, node.nvmeof.multipath
    if multipath is not None:
        core = next((name for name in options if module_name(name) == NVME_CORE), NVME_CORE)
        options[core] = {**options.get(core, {}), "multipath": multipath}
    if driver.version is not None:
        nvidia = nvidia_options(driver, p2pdma=node.gds.mode == "p2pdma")
        if nvidia:
            options["nvidia"] = nvidia
        blacklist |= {NOUVEAU}
    if driver.version is None and multipath is None:
        return node.modules
    return node.modules.model_copy(update={"options": options, "blacklist": blacklist})


def nvidia_options(driver: GpuDriverSpec, *, p2pdma: bool) -> dict[Parameter, int | ParameterText]:
    """The parameters of the module nvidia, its registry keys merged into one.

    A switch is a number there, and the module does not load with a Y for one. Source: nv-linux.h
    of open-gpu-kernel-modules (NV_MODULE_PARAMETER is module_param(x, int, 0)).
    """
    keys = {**(P2PDMA_DWORDS if p2pdma else {}), **driver.registry_dwords}
    text = ";".join(f"{key}={value}" for key, value in sorted(keys.items()))
    options = {k: int(v) if isinstance(v, bool) else v for k, v in driver.options.items()}
    return {**options, **({"NVreg_RegistryDwords": text} if text else {})}
