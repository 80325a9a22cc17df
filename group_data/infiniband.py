"""Nodes whose rails are InfiniBand."""

from railwright.schema import ModulesSpec

fabric = "infiniband"
modules = ModulesSpec(load={"rdma_ucm", "ib_umad", "ib_ipoib", "nvme_rdma"})
