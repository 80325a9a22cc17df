"""Rules of thumb that are often printed, by name: what each gives, and what it leaves out.

They stand beside the full answer, so that a figure from an article can be found again and judged.
None of them is used in it.
"""

import math

from railwright.model import Model
from railwright.sizing.units import Quantity, seconds, size


class RuleResult(Model):
    """What a rule gives."""

    rule: str
    formula: str
    gives: Quantity
    leaves_out: tuple[str, ...]


def zero3_memory(
    parameters: float, gpus: int, activation_factor: float = 0.0, tensor: int = 1
) -> RuleResult:
    """``zero3-by-all-gpus``: 16·Φ/N + 2·Φ·Q/P, without KV cache and scratch.

    ``activation_factor`` is Q, which articles name and do not define.
    """
    sharded = 16 * parameters / gpus
    activations = 2 * parameters * activation_factor / tensor
    return RuleResult(
        rule="zero3-by-all-gpus",
        formula="16·Φ/N + 2·Φ·Q/P",
        gives=size(sharded + activations),
        leaves_out=(
            "gradients in fp32, as most train: 18 bytes of a parameter in place of 16",
            "sharding within the data-parallel group alone: N is all GPUs only where neither "
            "tensor nor pipeline parallelism is used",
            "layers that ZeRO-3 gathers, buckets of collectives, and what driver and libraries "
            "take",
            "activations: they go with tokens × hidden × layers and not with Φ, so Q has no value",
            "a KV cache belongs to serving; training keeps none",
        ),
    )


def checkpoint_bandwidth(parameters: float, window: Quantity) -> RuleResult:
    """``checkpoint-8-bytes``: 4·Φ·2 bytes over the window."""
    return RuleResult(
        rule="checkpoint-8-bytes",
        formula="4·Φ·2 B / τ",
        gives=size(4 * parameters * 2) / window,
        leaves_out=(
            "bytes: bf16 weights, fp32 master and Adam's two moments are 2 + 4 + 4 + 4 = 14 of a "
            "parameter, not 8",
            "that training need not wait for the write: asynchronous checkpoints wait for the "
            "copy to the host",
            "how often: the interval follows from the cost and the MTBF",
        ),
    )


def training_time_rule(
    parameters: float, tokens: float, gpus: int, peak: Quantity, mfu: float
) -> RuleResult:
    """``six-p-d``: 6·P·D / (N·T·MFU)."""
    flops = Quantity(6 * parameters * tokens, "FLOP")
    return RuleResult(
        rule="six-p-d",
        formula="6·P·D / (N · T_peak · MFU)",
        gives=flops / (peak * (gpus * mfu)),
        leaves_out=(
            "attention over the sequence: 12·L·H·Q·T more of a token",
            "that 6·P is FLOP of a token and not FLOP/s, and that the peak must be the dense one",
            "parameters that a token does not go through (mixture of experts): P is the active",
            "failures, restarts and checkpoints: the share of time that makes progress",
        ),
    )


def all_reduce_rule(
    parameters: float, number_bytes: int, gpus: int, nodes: int, node_rate: Quantity, step: Quantity
) -> RuleResult:
    """``flat-all-reduce``: 2·(N−1)/N · Φ·S/B + α·log2(nodes), with B of a node and N of GPUs."""
    amount = size(parameters * number_bytes)
    ring = amount * (2 * (gpus - 1) / gpus) / node_rate
    return RuleResult(
        rule="flat-all-reduce",
        formula="2·(N−1)/N · Φ·S/B_node + α·log2(N_nodes)",
        gives=ring + step * math.log2(nodes),
        leaves_out=(
            "that a rank reduces its own share: Φ / (tensor · pipeline), among the data-parallel "
            "ranks, not all GPUs",
            "that B is a node's only where all its GPUs are in the ring; with tensor parallelism "
            "over a node each rank has one rail, an eighth of it",
            "the ring's latency, 2·(N−1)·α; log2 belongs to a tree",
            "gradients in fp32: S is 4, not 2",
            "NVLink inside nodes, and one rail for each GPU",
        ),
    )


def step_rule(
    flops: Quantity, gpus: int, peak: Quantity, mfu: float, network: Quantity, hidden: Quantity
) -> RuleResult:
    """``mfu-plus-network``: FLOPs/(N·peak·MFU) + T_comm − T_overlap."""
    compute = flops / (peak * (gpus * mfu))
    return RuleResult(
        rule="mfu-plus-network",
        formula="FLOPs/(N · peak · MFU) + T_comm − T_overlap + T_checkpoint",
        gives=seconds(compute.value + network.value - hidden.value),
        leaves_out=(
            "that MFU has the waiting for the network in it already: it is counted twice",
            "the pipeline's bubble, (p − 1)/(m·v + p − 1)",
            "operations that recomputation adds",
            "which traffic can hide: tensor-parallel traffic waits, data-parallel need not",
        ),
    )
