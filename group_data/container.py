"""The molecule container: as the lab, with huge pages allocated by the unit."""

from railwright.schema import (
    HoldsSpec,
    HugepagePool,
    HugepagesSpec,
    LimitsSpec,
    ModulesSpec,
    PcieSpec,
    Rail,
    RailPlan,
    RailsSpec,
    TimeSource,
    TimeSpec,
)

limits = LimitsSpec(nproc=262144, services={"railwright-lab-job.service"})
hugepages = HugepagesSpec(
    pools={"2M": HugepagePool(per_node={0: 32}, allocate="runtime")},
)
modules = ModulesSpec(load={"sunrpc"}, options={"nvme_core": {"io_timeout": 60}}, blacklist={"rds"})
time = TimeSpec(sources={"ntp.example.net": TimeSource()})
# There are no NICs in a container; what is written for them can be looked at all the same.
rails = RailsSpec(
    nics={0: Rail(pci="0000:13:00.0"), 1: Rail(pci="0000:14:00.0")}, plan=RailPlan(host_index=0)
)
pcie = PcieSpec(acs_in_vm=True, max_read_request_bytes=4096)
holds = HoldsSpec(packages={"railwright-lab-held": "1.0"})
