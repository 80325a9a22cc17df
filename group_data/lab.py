"""The virtual nodes of tests/lab: small, and with stand-ins for what they lack."""

import os

from railwright.schema import (
    Effect,
    EffectsSpec,
    HoldsSpec,
    HugepagePool,
    HugepagesSpec,
    KernelSpec,
    LimitsSpec,
    ModulesSpec,
    PcieSpec,
    Rail,
    RailsSpec,
    SysctlSpec,
    TimeSource,
    TimeSpec,
)

# Jobs of these nodes are stand-ins, and so are their NICs: services may be restarted and links
# dropped. A reboot is asked for by hand.
effects = EffectsSpec(
    allow={Effect.LIVE, Effect.NEW_PROCESSES, Effect.SERVICE, Effect.LINK},
)
# A PCIe switch with four NICs on each NUMA node; there are no GPUs.
_SLOTS = ("13", "14", "15", "16", "83", "84", "85", "86")
rails = RailsSpec(nics={rail: Rail(pci=f"0000:{bus}:00.0") for rail, bus in enumerate(_SLOTS)})
# The virtual machine's bridges are its own.
pcie = PcieSpec(acs_in_vm=True)
sysctl = SysctlSpec(
    values={
        "kernel.panic": 10,
        "kernel.pid_max": 4194304,
        "net.ipv4.tcp_mtu_probing": 1,
        "net.ipv4.conf.default.arp_ignore": 1,
        "net.ipv4.conf.default.arp_announce": 2,
        # Comes into being with its module, which is loaded below.
        "sunrpc.tcp_max_slot_table_entries": 128,
        "net.netfilter.nf_conntrack_max": 1048576,
    }
)
limits = LimitsSpec(
    nproc=262144,
    # A stand-in for slurmd.
    services={"railwright-lab-job.service"},
)
hugepages = HugepagesSpec(
    pools={"2M": HugepagePool(per_node={0: 32, 1: 64}, allocate="boot")},
)
kernel = KernelSpec(arguments={"nowatchdog": True}, max_cstate=1)
# None that an initramfs may load: making one takes many minutes where the processor is emulated.
modules = ModulesSpec(
    load={"sunrpc", "nf_conntrack", "rdma_rxe"},
    options={"nf_conntrack": {"acct": True}},
    blacklist={"rds"},
)
# The lab's own chronyd, as QEMU's user-mode network shows the machine that runs it.
_FIRST_PORT = int(os.environ.get("RAILWRIGHT_LAB_PORTS", "2200"))
_DISTRO = {"bookworm": 0, "trixie": 100}[os.environ.get("DISTRO", "bookworm")]
time = TimeSpec(
    sources={"10.0.2.2": TimeSource(port=_FIRST_PORT + _DISTRO)},
    max_offset_ms=100.0,
)
holds = HoldsSpec(packages={"railwright-lab-held": "1.0"})
