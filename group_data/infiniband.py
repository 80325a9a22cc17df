"""Nodes whose rails are InfiniBand."""

from railwright.schema import ModulesSpec, RailsSpec

fabric = "infiniband"
rails = RailsSpec(rate_gbps=400)
modules = ModulesSpec(load={"rdma_ucm", "ib_umad", "ib_ipoib", "nvme_rdma"})
