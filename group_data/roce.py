"""Nodes whose rails are RoCE."""

from railwright.schema import ModulesSpec, RailPlan, RailsSpec

# Lossless as NVIDIA's switches have it by default; another DSCP or priority is said here:
# fabric = RoceFabric(qos=RoceQos(roce_dscp=..., lossless={...})).
fabric = "roce"
# A subnet of 4093 hosts for each rail, with its gateway on the leaf switch.
rails = RailsSpec(plan=RailPlan(prefix="10.64.0.0/12", rail_prefix_length=20), rate_gbps=400)
modules = ModulesSpec(load={"rdma_ucm", "nvme_rdma"})
