"""Nodes whose rails are RoCE."""

from railwright.schema import ModulesSpec

fabric = "roce"
modules = ModulesSpec(load={"rdma_ucm", "nvme_rdma"})
