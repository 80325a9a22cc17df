"""What fills the memory of a GPU, in training and in serving."""

from typing import Literal

from pydantic import Field

from railwright.model import Model
from railwright.sizing.activations import fullest_end, working_bytes
from railwright.sizing.fields import Bytes
from railwright.sizing.parallel import Layout, Parallelism, most_layers
from railwright.sizing.transformer import Transformer
from railwright.sizing.units import Quantity, size

Number = Literal["fp32", "bf16", "fp16", "fp8"]
Optimizer = Literal["adam", "adam-bf16", "adam-8bit", "sgd-momentum"]

WIDTH: dict[Number, int] = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
"""Bytes of a number."""

MOMENTS: dict[Optimizer, int] = {"adam": 8, "adam-bf16": 4, "adam-8bit": 2, "sgd-momentum": 4}
"""Bytes of a parameter's moments. 8-bit Adam: Dettmers et al. 2021, arXiv 2110.02861; bf16 moments:
DeepSeek-V3, arXiv 2412.19437, section 3.3.2."""


class Recipe(Model):
    """What is held of each parameter in training. ``master`` null: the weights are the master.

    The default is Megatron-Core's bf16 training: 2 + 4 + 4 + 8 = 18 bytes. The ZeRO paper's
    16 are 2 + 2 + 4 + 8 (arXiv 1910.02054, section 3.1).
    """

    weights: Number = "bf16"
    gradients: Number = "fp32"
    master: Number | None = "fp32"
    optimizer: Optimizer = "adam"

    @property
    def optimizer_bytes(self) -> int:
        """Bytes of a parameter's optimizer states, with the master copy."""
        return MOMENTS[self.optimizer] + (WIDTH[self.master] if self.master else 0)

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of a parameter in a checkpoint: all but gradients, which are not saved."""
        return WIDTH[self.weights] + self.optimizer_bytes

    @property
    def total_bytes(self) -> int:
        """Bytes of a parameter where nothing is sharded."""
        return self.checkpoint_bytes + WIDTH[self.gradients]


class States(Model):
    """Model states of one GPU."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes

    @property
    def total(self) -> Quantity:
        return self.weights + self.gradients + self.optimizer


class Share(Model):
    """Parameters that one GPU holds before ZeRO: of the common part and of the experts."""

    common: float
    experts: float = 0


class Memory(Model):
    """What one GPU of the fullest stage holds, a line each."""

    lines: dict[str, Bytes]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> Quantity:
        return size(sum(one.value for one in self.lines.values()))


class Serving(Model):
    """What is asked of a model that answers: sequences at once, and tokens of each."""

    sequences: int = Field(default=1, ge=1)
    tokens: int = Field(default=8192, ge=1)
    weights: Number = "bf16"
    cache: Number = "bf16"


def state_bytes(share: Share, parallel: Parallelism, recipe: Recipe) -> States:
    """Model states of one GPU that holds ``share``, by ZeRO stage.

    Source: Rajbhandari et al. 2020, arXiv 1910.02054, section 5; stage 1 is Megatron-Core's
    distributed optimizer (its developer guide: 6 + 12/d bytes with bf16 and fp32 gradients).
    """

    def held(each: float, sharded_from: int) -> Quantity:
        shards = parallel.zero >= sharded_from
        common = share.common / (parallel.replicas if shards else 1)
        experts = share.experts / (parallel.expert_replicas if shards else 1)
        return size(each * (common + experts))

    return States(
        weights=held(WIDTH[recipe.weights], 3),
        gradients=held(WIDTH[recipe.gradients], 2),
        optimizer=held(recipe.optimizer_bytes, 1),
    )


def even_share(parameters: float, parallel: Parallelism) -> Share:
    """The share of a model of which nothing but its size is known: all stages alike."""
    return Share(common=parameters / (parallel.tensor * parallel.pipeline))


def fullest_share(layout: Layout) -> Share:
    """The share of the stage that holds most: the one with the embedding or the output matrix."""
    return stage_share(layout.model, layout.parallel)


def stage_share(model: Transformer, parallel: Parallelism) -> Share:
    """The same of a model that is trained or served so."""
    layers = most_layers(model, parallel)
    ends = model.embedding_parameters
    if parallel.pipeline == 1:
        ends += model.output_parameters
    elif not model.tied_embeddings:
        ends = max(ends, model.output_parameters)
    # Dense layers come first, but the fullest stage may be any: the layers with experts count.
    sparse = min(layers, model.expert_layers)
    dense = layers - sparse
    common = dense * model.dense_layer_parameters + sparse * model.common_parameters + ends
    experts = sparse * model.routed_parameters / parallel.expert
    return Share(common=common / parallel.tensor, experts=experts / parallel.tensor)


def gathered_bytes(layout: Layout, recipe: Recipe) -> Quantity:
    """Weights that ZeRO-3 gathers: the layer that is computed, and the next one."""
    if layout.parallel.zero < 3:
        return size(0)
    model, parallel = layout.model, layout.parallel
    layer = model.common_parameters + model.routed_parameters / parallel.expert
    return size(2 * WIDTH[recipe.weights] * layer / parallel.tensor)


def training_memory(layout: Layout, recipe: Recipe, runtime: Quantity) -> Memory:
    """Memory of one GPU in training; ``runtime`` is what driver and libraries take."""
    states = state_bytes(fullest_share(layout), layout.parallel, recipe)
    activations, logits = fullest_end(layout)
    lines = {
        "weights": states.weights,
        "gradients": states.gradients,
        "optimizer states": states.optimizer,
        "gathered weights": gathered_bytes(layout, recipe),
        "activations": activations,
        "working set of recomputation": working_bytes(layout),
        "logits": logits,
        "runtime": runtime,
    }
    return Memory(
        lines={name: one for name, one in lines.items() if one.value}, notes=_notes(layout)
    )


def _notes(layout: Layout) -> tuple[str, ...]:
    model, parallel = layout.model, layout.parallel
    found = []
    if model.layers % parallel.pipeline:
        found.append(
            f"{model.layers} layers over {parallel.pipeline} stages: the fullest has "
            f"{layout.stage_layers}"
        )
    if parallel.zero >= 2 and parallel.pipeline > 1:
        found.append(
            "DeepSpeed refuses ZeRO-2 and ZeRO-3 with a pipeline; FSDP gathers for each micro-batch"
        )
    if model.experts is not None:
        found.append("tokens are taken to be spread evenly over the experts")
    found.append("not in it: buckets of collectives and fragmentation beyond `runtime`")
    return tuple(found)


def serving_memory(
    model: Transformer, parallel: Parallelism, serving: Serving, runtime: Quantity
) -> Memory:
    """Memory of one GPU of the fullest stage that serves: weights, KV cache, and what driver and
    libraries take."""
    share = stage_share(model, parallel)
    lines = {
        "weights": size(WIDTH[serving.weights] * (share.common + share.experts)),
        "KV cache": kv_cache_bytes(model, parallel, serving),
        "runtime": runtime,
    }
    return Memory(lines=lines, notes=("not in it: activations of the prompt that is read",))


def kv_cache_bytes(model: Transformer, parallel: Parallelism, serving: Serving) -> Quantity:
    """KV cache of one GPU of the fullest stage. Heads that are fewer than the tensor ranks are held
    more than once; the latent vector of multi-head latent attention by every tensor rank."""
    ways = 1 if model.latent else min(parallel.tensor, model.kv_heads)
    part = most_layers(model, parallel) / model.layers / ways
    each = model.kv_bytes_per_token(WIDTH[serving.cache])
    return size(each * serving.sequences * serving.tokens * part)
