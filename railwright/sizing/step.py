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
    flat_all_reduce,
    hierarchical_all_reduce,
    reduce_scatter,
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
    in it, and must not be put in. ``overlap``: the share of the computation that traffic may hide
    behind; which computation that is, ``step_time`` says.
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
    proportion to that. Pipeline traffic hides behind backward. Of data-parallel traffic gradients
    hide behind backward and weights behind forward, of one micro-batch alone: gradients are summed
    on each replica until the last one (Megatron-Core's param_and_grad_buffer.py,
    is_last_microbatch). ZeRO-2 reduces each micro-batch's, ZeRO-3 gathers for each too. What does
    not fit is added.
    """
    compute = computation(layout, host, settings)
    exposed = {
        "tensor parallel": tensor_traffic(layout, host),
        "context parallel": context_traffic(layout, host),
        "expert all-to-all": expert_traffic(layout, host),
    }
    stage = compute.value + sum(part.value for part in exposed.values())
    bubble = stage * layout.bubble / (1 - layout.bubble)
    left, hidden = _left_over(layout, host, recipe, settings, compute)
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


def _left_over(
    layout: Layout, host: Host, recipe: Recipe, settings: StepSettings, compute: Quantity
) -> tuple[dict[str, Quantity], float]:
    """What of the traffic that may hide does not, by its name, and the seconds that do."""
    data = data_traffic(layout, host, recipe, settings.algorithm)
    pipeline = pipeline_traffic(layout, host)
    room = settings.overlap * compute.value
    backward, forward = room * _BACKWARD, room * (1 - _BACKWARD)
    once = 1 / layout.micro_batches
    zero = layout.parallel.zero
    hidden_back = min(data.backward.value, backward * (1 if zero >= 2 else once))
    hidden_forth = min(data.forward.value, forward * (1 if zero == 3 else once))
    hidden_pipeline = min(pipeline.value, backward - hidden_back)
    exposed = (data.backward.value - hidden_back) + (data.forward.value - hidden_forth)
    left = {
        "data parallel": seconds(exposed),
        "pipeline transfers": seconds(pipeline.value - hidden_pipeline),
    }
    return left, hidden_back + hidden_forth + hidden_pipeline


def computation(layout: Layout, host: Host, settings: StepSettings) -> Quantity:
    """Operations that are done, recomputation too, over what kernels reach of all GPUs' peak.

    Where layers do not come out over the stages, all wait for the stage that has one more.
    """
    per_token = done_per_token(layout.model, layout.batch.sequence, layout.batch.recompute)
    done = Quantity(layout.batch.tokens * per_token, "FLOP")
    fullest = layout.stage_layers * layout.parallel.pipeline / layout.model.layers
    return done * fullest / (host.peak * (layout.parallel.gpus * settings.efficiency))


def _group(ranks: int, stride: int, host: Host) -> Group:
    """Ranks that are ``stride`` apart: those that share a node, and the nodes they are on."""
    per_node = math.gcd(max(1, host.gpus // stride), ranks)
    return Group(per_node=per_node, nodes=ranks // per_node)


def _passes(layout: Layout) -> int:
    """Ways through a layer: forward and back, and forward again where all is recomputed."""
    return 3 if layout.batch.recompute == "full" else 2


def _micro_layers(layout: Layout) -> int:
    """Layers that the fullest stage goes through in a step, over all micro-batches."""
    return layout.stage_layers * layout.micro_batches


def _all_reduce(amount: Quantity, group: Group, host: Host, algorithm: Algorithm) -> Quantity:
    inside, fabric = host.inside(amount), host.fabric(amount)
    if algorithm == "tree":
        return tree_all_reduce(amount, group, inside, fabric)
    if algorithm == "ring":
        return flat_all_reduce(amount, group, inside, fabric)
    return hierarchical_all_reduce(amount, group, inside, fabric)


def _halves(amount: Quantity, group: Group, host: Host, algorithm: Algorithm) -> Quantity:
    """A reduce-scatter or an all-gather of ``amount``: half of an all-reduce."""
    if algorithm == "hierarchical":
        return reduce_scatter(amount, group, host.inside(amount), host.fabric(amount))
    return _all_reduce(amount, group, host, algorithm) / 2


def tensor_traffic(layout: Layout, host: Host) -> Quantity:
    """Two all-reduces of the activations for each way through a layer.

    Sequence parallelism sends as much in reduce-scatters and all-gathers. In a layer whose experts
    are spread the second of them is of each token's copies, which tensor ranks gather after the
    exchange. Source: Shoeybi et al. 2019, arXiv 1909.08053, section 3; Korthikanti et al. 2022,
    section 4.2.2; Megatron-Core's token_dispatcher.py (MoEAlltoAllTokenDispatcher).
    """
    tensor = layout.parallel.tensor
    if tensor == 1:
        return seconds(0)
    amount = size(layout.local_tokens * layout.model.hidden * _ACTIVATION)
    group = _group(tensor, 1, host)
    ways = _passes(layout) * layout.micro_batches
    once = _all_reduce(amount, group, host, "hierarchical")
    experts = layout.model.experts
    if experts is not None and layout.parallel.expert > 1:
        sparse = layout.stage_expert_layers
        copies = _all_reduce(amount * experts.per_token, group, host, "hierarchical")
        return once * ways * (2 * layout.stage_layers - sparse) + copies * ways * sparse
    return once * ways * 2 * layout.stage_layers


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
    layers = layout.stage_expert_layers * layout.micro_batches
    return once * (2 * _passes(layout) * layers)


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


class DataTraffic(Model):
    """Data-parallel traffic of a step, by when it may go."""

    forward: Seconds
    backward: Seconds

    @property
    def total(self) -> Quantity:
        return self.forward + self.backward

    def __add__(self, other: "DataTraffic") -> "DataTraffic":
        return DataTraffic(
            forward=self.forward + other.forward, backward=self.backward + other.backward
        )


def data_traffic(layout: Layout, host: Host, recipe: Recipe, algorithm: Algorithm) -> DataTraffic:
    """Gradients are reduced and, with ZeRO, weights gathered; experts among their own replicas.

    ZeRO-2 reduces for each micro-batch, as nobody keeps a whole sum; ZeRO-3 also gathers weights
    for each, forward and back. Source: ZeRO, arXiv 1910.02054, section 7.
    """
    parallel, share = layout.parallel, fullest_share(layout)
    common = _group(parallel.replicas, parallel.tensor, host)
    experts = _group(parallel.expert_replicas, parallel.tensor * parallel.expert, host)
    took = _synchronised(share.common, common, layout, host, recipe, algorithm)
    return took + _synchronised(share.experts, experts, layout, host, recipe, algorithm)


def _synchronised(
    parameters: float, group: Group, layout: Layout, host: Host, recipe: Recipe, way: Algorithm
) -> DataTraffic:
    if group.ranks == 1 or not parameters:
        return DataTraffic(forward=seconds(0), backward=seconds(0))
    gradients = size(parameters * WIDTH[recipe.gradients])
    weights = size(parameters * WIDTH[recipe.weights])
    zero, count = layout.parallel.zero, layout.micro_batches
    if zero == 0:
        whole = _all_reduce(gradients, group, host, way)
        return DataTraffic(forward=seconds(0), backward=whole)
    reduced = _halves(gradients, group, host, way) * (count if zero >= 2 else 1)
    gathered = _halves(weights, group, host, way) * (count if zero == 3 else 1)
    again = gathered if zero == 3 else seconds(0)
    return DataTraffic(forward=gathered, backward=reduced + again)
