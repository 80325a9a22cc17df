"""HGX H100: two sockets, eight GPUs."""

from railwright.schema import HoldsSpec, KernelSpec, ModulesSpec, PcieSpec, Rail, RailsSpec

# Addresses depend on the board and its slots: `pyinfra INVENTORY fact facts.pcie.PcieFact` tells
# those of yours, and which NIC is the nearest of each GPU.
_NICS = ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc")
rails = RailsSpec(
    nics={gpu: Rail(pci=f"0000:{bus}:00.0", gpu=gpu) for gpu, bus in enumerate(_NICS)},
    gpus=8,
)
pcie = PcieSpec(max_read_request_bytes=4096, relaxed_ordering=True)
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
