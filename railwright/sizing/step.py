"""One training step: computation, what waits for the network, and what hides behind it.

Ranks are laid out in Megatron-Core's order, tensor innermost, then context, data and pipeline, so
that tensor parallelism stays inside nodes where it fits. Seconds are of one step.
"""

import math
from typing import Annotated, Literal

from pydantic import Field

from railwright.model import Model
from railwright.sizing.collectives import (
    Group,
    all_to_all,
    hierarchical_all_reduce,
    reduce_scatter,
    ring_all_reduce,
    send,
    tree_all_reduce,
)
from railwright.sizing.fields import FlopRate, Seconds
from railwright.sizing.host import Host
from railwright.sizing.memory import WIDTH, Recipe, fullest_share
from railwright.sizing.parallel import Layout
from railwright.sizing.training import done_per_token, flops_per_token
from railwright.sizing.units import Quantity, seconds, size

Algorithm = Literal["hierarchical", "tree", "ring"]

_ACTIVATION = 2  # Bytes of a 16-bit number.
_BACKWARD = 2 / 3  # Backward's share of forward and backward.


class StepSettings(Model):
    """What is assumed of a step.

    ``efficiency``: what kernels reach of the peak; MFU is a result here, with bubble and network
    in it, and must not be put in. ``overlap``: the share of backward's computation behind which
    data-parallel and pipeline traffic may hide.
    """

    efficiency: Annotated[float, Field(gt=0, le=1)] = 0.65
    overlap: Annotated[float, Field(ge=0, le=1)] = 1.0
    algorithm: Algorithm = "hierarchical"
    checkpoint_stall: Seconds = seconds(0)
    checkpoint_every: Annotated[int, Field(ge=1)] = 500


class Step(Model):
    """A step's time by its parts, which add up to ``total``; ``hidden`` is not in it."""

    parts: dict[str, Seconds]
    hidden: Seconds
    unhidden_total: Seconds
    tokens: int
    gpus: int
    flops_per_token: float
    peak: FlopRate

    @property
    def total(self) -> Quantity:
        return seconds(sum(part.value for part in self.parts.values()))

    @property
    def tokens_per_second(self) -> Quantity:
        return Quantity(self.tokens / self.total.value, "token/s")

    @property
    def mfu(self) -> float:
        """Useful operations over what all GPUs could do in that time."""
        done = self.tokens * self.flops_per_token
        return done / (self.gpus * self.peak.value * self.total.value)


def step_time(layout: Layout, host: Host, recipe: Recipe, settings: StepSettings) -> Step:
    """The time of a step on nodes like ``host``.

    A stage computes and waits for tensor, context and expert traffic; the pipeline's bubble is in
    proportion to that. Data-parallel and pipeline traffic hides behind backward as far as there is
    computation, the rest of it is added.
    """
    compute = computation(layout, host, settings)
    exposed = {
        "tensor parallel": tensor_traffic(layout, host),
        "context parallel": context_traffic(layout, host),
        "expert all-to-all": expert_traffic(layout, host),
    }
    stage = compute.value + sum(part.value for part in exposed.values())
    bubble = stage * layout.bubble / (1 - layout.bubble)
    hideable = {
        "data parallel": data_traffic(layout, host, recipe, settings.algorithm),
        "pipeline transfers": pipeline_traffic(layout, host),
    }
    room = settings.overlap * _BACKWARD * compute.value
    left, hidden = _left_over(hideable, room)
    stall = settings.checkpoint_stall / settings.checkpoint_every
    parts = {"computation": compute, **exposed, "pipeline bubble": seconds(bubble), **left}
    parts["checkpoint stall"] = stall
    return Step(
        parts={name: part for name, part in parts.items() if part.value or name == "computation"},
        hidden=seconds(hidden),
        unhidden_total=seconds(sum(part.value for part in parts.values()) + hidden),
        tokens=layout.batch.tokens,
        gpus=layout.parallel.gpus,
        flops_per_token=flops_per_token(layout.model, layout.batch.sequence),
        peak=host.peak,
    )


def _left_over(traffic: dict[str, Quantity], room: float) -> tuple[dict[str, Quantity], float]:
    """What of each does not fit in ``room`` seconds, and the seconds that are hidden in all."""
    left, hidden = {}, 0.0
    for name, took in traffic.items():
        hides = min(took.value, room - hidden)
        hidden += hides
        left[name] = seconds(took.value - hides)
    return left, hidden


def computation(layout: Layout, host: Host, settings: StepSettings) -> Quantity:
    """Operations that are done, recomputation too, over what kernels reach of all GPUs' peak."""
    per_token = done_per_token(layout.model, layout.batch.sequence, layout.batch.recompute)
    done = Quantity(layout.batch.tokens * per_token, "FLOP")
    return done / (host.peak * (layout.parallel.gpus * settings.efficiency))


def _group(ranks: int, stride: int, host: Host) -> Group:
    """Ranks that are ``stride`` apart: those that share a node, and the nodes they are on."""
    per_node = math.gcd(max(1, host.gpus // stride), ranks)
    return Group(per_node=per_node, nodes=ranks // per_node)


def _passes(layout: Layout) -> int:
    """Ways through a layer: forward and back, and forward again where all is recomputed."""
    return 3 if layout.batch.recompute == "full" else 2


def _micro_layers(layout: Layout) -> float:
    """Layers that one stage goes through in a step, over all micro-batches."""
    return layout.model.layers / layout.parallel.pipeline * layout.micro_batches


def _all_reduce(amount: Quantity, group: Group, host: Host, algorithm: Algorithm) -> Quantity:
    inside, fabric = host.inside(amount), host.fabric(amount)
    if algorithm == "tree":
        return tree_all_reduce(amount, group, inside, fabric)
    if algorithm == "ring":
        return ring_all_reduce(amount, group.ranks, fabric if group.nodes > 1 else inside)
    return hierarchical_all_reduce(amount, group, inside, fabric)


def _halves(amount: Quantity, group: Group, host: Host, algorithm: Algorithm) -> Quantity:
    """A reduce-scatter or an all-gather of ``amount``: half of an all-reduce."""
    if algorithm == "hierarchical":
        return reduce_scatter(amount, group, host.inside(amount), host.fabric(amount))
    return _all_reduce(amount, group, host, algorithm) / 2


def tensor_traffic(layout: Layout, host: Host) -> Quantity:
    """Two all-reduces of the activations for each way through a layer.

    Sequence parallelism sends as much in reduce-scatters and all-gathers. Source: Shoeybi et al.
    2019, arXiv 1909.08053, section 3; Korthikanti et al. 2022, section 4.2.2.
    """
    tensor = layout.parallel.tensor
    if tensor == 1:
        return seconds(0)
    amount = size(layout.local_tokens * layout.model.hidden * _ACTIVATION)
    once = _all_reduce(amount, _group(tensor, 1, host), host, "hierarchical")
    return once * (2 * _passes(layout) * _micro_layers(layout))


def context_traffic(layout: Layout, host: Host) -> Quantity:
    """Keys and values are gathered for each way forward, their gradients scattered on the way back.

    Source: Llama 3, arXiv 2407.21783, section 3.3.2 (all-gather based context parallelism).
    """
    parallel = layout.parallel
    if parallel.context == 1:
        return seconds(0)
    model = layout.model
    tokens = layout.batch.micro * layout.batch.sequence
    ways = 1 if model.latent else min(parallel.tensor, model.kv_heads)
    amount = size(tokens * model.kv_width * _ACTIVATION / ways)
    group = _group(parallel.context, parallel.tensor, host)
    once = _halves(amount, group, host, "hierarchical")
    return once * (_passes(layout) * _micro_layers(layout))


def expert_traffic(layout: Layout, host: Host) -> Quantity:
    """Each token goes to its experts and back, for each way through a layer with experts."""
    model, parallel = layout.model, layout.parallel
    if model.experts is None or parallel.expert == 1:
        return seconds(0)
    split = parallel.tensor if parallel.sequence_parallel else 1
    tokens = layout.local_tokens / split * model.experts.per_token
    amount = size(tokens * model.hidden * _ACTIVATION)
    group = _group(parallel.expert, parallel.tensor, host)
    once = all_to_all(amount, group, host.inside(amount), host.fabric(amount))
    share = model.expert_layers / model.layers
    return once * (2 * _passes(layout) * _micro_layers(layout) * share)


def pipeline_traffic(layout: Layout, host: Host) -> Quantity:
    """Activations go to the next stage and gradients back, for each micro-batch and chunk."""
    parallel = layout.parallel
    if parallel.pipeline == 1:
        return seconds(0)
    split = parallel.tensor if parallel.sequence_parallel else 1
    amount = size(layout.local_tokens * layout.model.hidden * _ACTIVATION / split)
    inside = parallel.gpus <= host.gpus
    link = host.inside(amount) if inside else host.fabric(amount)
    return send(amount, link) * (2 * layout.micro_batches * parallel.chunks)


def data_traffic(layout: Layout, host: Host, recipe: Recipe, algorithm: Algorithm) -> Quantity:
    """Gradients are reduced and, with ZeRO, weights gathered; experts among their own replicas.

    ZeRO-3 does so for each micro-batch, and gathers weights forward and back. Source: ZeRO, arXiv
    1910.02054, section 7.
    """
    parallel, share = layout.parallel, fullest_share(layout)
    common = _group(parallel.replicas, parallel.tensor, host)
    experts = _group(parallel.expert_replicas, parallel.tensor * parallel.expert, host)
    took = _synchronised(share.common, common, layout, host, recipe, algorithm)
    return took + _synchronised(share.experts, experts, layout, host, recipe, algorithm)


def _synchronised(
    parameters: float, group: Group, layout: Layout, host: Host, recipe: Recipe, way: Algorithm
) -> Quantity:
    if group.ranks == 1 or not parameters:
        return seconds(0)
    gradients = size(parameters * WIDTH[recipe.gradients])
    weights = size(parameters * WIDTH[recipe.weights])
    if layout.parallel.zero == 0:
        return _all_reduce(gradients, group, host, way)
    reduced = _halves(gradients, group, host, way)
    gathered = _halves(weights, group, host, way)
    if layout.parallel.zero == 3:
        return (reduced + gathered * 2) * layout.micro_batches
    return reduced + gathered
