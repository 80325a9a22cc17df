"""The molecule container: as the lab, with huge pages allocated by the unit."""

from railwright.schema import (
    HoldsSpec,
    HugepagePool,
    HugepagesSpec,
    LimitsSpec,
    ModulesSpec,
    TimeSource,
    TimeSpec,
)

limits = LimitsSpec(nproc=262144, services={"railwright-lab-job.service"})
hugepages = HugepagesSpec(
    pools={"2M": HugepagePool(per_node={0: 32}, allocate="runtime")},
)
modules = ModulesSpec(load={"sunrpc"}, options={"nvme_core": {"io_timeout": 60}}, blacklist={"rds"})
time = TimeSpec(sources={"ntp.example.net": TimeSource()})
holds = HoldsSpec(packages={"railwright-lab-held": "1.0"})
