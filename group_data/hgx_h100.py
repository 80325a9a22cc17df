"""HGX H100: two sockets, eight GPUs."""

from railwright.schema import HoldsSpec, KernelSpec, ModulesSpec

kernel = KernelSpec(governor="performance")
modules = ModulesSpec(blacklist={"nouveau"})
# The driver's module, its libraries and fabric manager must be of one version to the patch level.
holds = HoldsSpec(
    packages={
        "nvidia-driver-580-server-open": None,
        "libnvidia-compute-580-server": None,
        "nvidia-fabricmanager-580": None,
    }
)
