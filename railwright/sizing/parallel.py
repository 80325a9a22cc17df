"""How a model is laid over GPUs, and what of it cannot be: refused with the reason."""

from typing import Annotated, Literal

from pydantic import Field

from railwright.model import Model
from railwright.sizing.transformer import Transformer

Degree = Annotated[int, Field(ge=1)]
Zero = Annotated[int, Field(ge=0, le=3)]
Recompute = Literal["none", "selective", "full"]


class SizingError(ValueError):
    """What cannot be, and why."""


class Parallelism(Model):
    """Degrees of parallelism. GPUs are tensor × pipeline × context × data.

    Experts are spread over ranks that are data-parallel for the rest, as Megatron-Core does, so
    ``expert`` divides data × context. ``zero``: 0 shards nothing, 1 optimizer states, 2 gradients
    too, 3 weights too, over data × context.
    """

    tensor: Degree = 1
    pipeline: Degree = 1
    context: Degree = 1
    data: Degree = 1
    expert: Degree = 1
    zero: Zero = 1
    sequence_parallel: bool = False
    chunks: Degree = Field(default=1, description="Model chunks a stage (interleaved pipeline).")

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.context * self.data

    @property
    def replicas(self) -> int:
        """Ranks that hold the same weights, and over which ZeRO shards."""
        return self.data * self.context

    @property
    def expert_replicas(self) -> int:
        """Ranks that hold the same experts."""
        return self.replicas // self.expert


class Batch(Model):
    """What one step works on: sequences of ``sequence`` tokens.

    ``attention``: with flash no scores are kept for the way back; scores keeps them, as Megatron
    did before.
    """

    sequence: Degree = 8192
    micro: Degree = Field(default=1, description="Sequences that go through at once, a replica.")
    total: Degree = Field(default=1024, description="Sequences a step, all replicas together.")
    recompute: Recompute = "selective"
    attention: Literal["flash", "scores"] = "flash"

    @property
    def tokens(self) -> int:
        """Tokens a step."""
        return self.total * self.sequence

    def micro_batches(self, data: int) -> int:
        """Micro-batches a step on each replica. Raises SizingError where they do not come out."""
        if self.total % (self.micro * data):
            raise SizingError(
                f"a batch of {self.total} sequences is no multiple of micro-batch {self.micro} × "
                f"data parallel {data} = {self.micro * data}"
            )
        return self.total // (self.micro * data)


class Layout(Model):
    """A model laid over GPUs, checked as a whole by ``laid_out``."""

    model: Transformer
    parallel: Parallelism
    batch: Batch

    @property
    def micro_batches(self) -> int:
        return self.batch.micro_batches(self.parallel.data)

    @property
    def stage_layers(self) -> int:
        """Layers of the stage that has most; stages differ by one where it does not come out."""
        return most_layers(self.model, self.parallel)

    @property
    def stage_expert_layers(self) -> int:
        """Layers with experts of the stage that has most of them."""
        return min(self.stage_layers, self.model.expert_layers)

    @property
    def local_tokens(self) -> float:
        """Tokens of one micro-batch on one rank, before tensor parallelism."""
        return self.batch.micro * self.batch.sequence / self.parallel.context

    @property
    def bubble(self) -> float:
        """Share of a step in which a stage waits: (p − 1) / (m·v + p − 1).

        1F1B, interleaved with v chunks. Source: Narayanan et al. 2021, arXiv 2104.04473, section
        2.2, whose bubble is over the time without it: (p − 1) / (m·v).
        """
        waits = self.parallel.pipeline - 1
        return waits / (self.micro_batches * self.parallel.chunks + waits)


def most_layers(model: Transformer, parallel: Parallelism) -> int:
    """Layers of the stage that has most."""
    return -(-model.layers // parallel.pipeline)


def check_serving(model: Transformer, parallel: Parallelism) -> None:
    """Raises SizingError with every reason why ``model`` cannot be served so."""
    reasons = _tensor_reasons(model, parallel) + _expert_reasons(model, parallel)
    if parallel.pipeline > model.layers:
        reasons.append(f"{model.layers} layers do not fill pipeline {parallel.pipeline}")
    if reasons:
        raise SizingError("; ".join(reasons))


def laid_out(model: Transformer, parallel: Parallelism, batch: Batch) -> Layout:
    """The three together. Raises SizingError with every reason why they cannot be."""
    reasons = [
        *_tensor_reasons(model, parallel),
        *_pipeline_reasons(model, parallel, batch),
        *_sequence_reasons(parallel, batch),
        *_expert_reasons(model, parallel),
    ]
    try:
        batch.micro_batches(parallel.data)
    except SizingError as error:
        reasons.append(str(error))
    if reasons:
        raise SizingError("; ".join(reasons))
    return Layout(model=model, parallel=parallel, batch=batch)


def spread(gpus: int, parallel: Parallelism) -> Parallelism:
    """``parallel`` with the data parallelism that fills ``gpus``. Raises SizingError if none."""
    model_parallel = parallel.tensor * parallel.pipeline * parallel.context
    if gpus % model_parallel:
        raise SizingError(
            f"{gpus} GPUs are no multiple of tensor {parallel.tensor} × pipeline "
            f"{parallel.pipeline} × context {parallel.context} = {model_parallel}"
        )
    return parallel.model_copy(update={"data": gpus // model_parallel})


def _tensor_reasons(model: Transformer, parallel: Parallelism) -> list[str]:
    tensor = parallel.tensor
    kv_fits = model.kv_heads % tensor == 0 or tensor % model.kv_heads == 0
    wants = [
        (model.heads % tensor == 0, "the number of heads", model.heads),
        (kv_fits, "the number of KV heads", model.kv_heads),
        (model.feed_forward % tensor == 0, "the feed-forward width", model.feed_forward),
        (model.hidden % tensor == 0, "the hidden width", model.hidden),
    ]
    return [f"tensor {tensor} does not divide {what} {of}" for fits, what, of in wants if not fits]


def _pipeline_reasons(model: Transformer, parallel: Parallelism, batch: Batch) -> list[str]:
    stages, chunks = parallel.pipeline, parallel.chunks
    found = []
    if stages * chunks > model.layers:
        found.append(
            f"{model.layers} layers do not fill pipeline {stages} × chunks {chunks} = "
            f"{stages * chunks}"
        )
    if chunks > 1 and stages == 1:
        found.append(f"chunks {chunks} need a pipeline of more than one stage")
    if chunks > 1 and batch.total % (batch.micro * parallel.data) == 0:
        count = batch.micro_batches(parallel.data)
        if count % stages:
            found.append(
                f"interleaving needs micro-batches ({count}) to be a multiple of pipeline {stages}"
            )
    return found


def _sequence_reasons(parallel: Parallelism, batch: Batch) -> list[str]:
    parts = parallel.context * (parallel.tensor if parallel.sequence_parallel else 1)
    found = []
    if batch.sequence % parts:
        found.append(f"a sequence of {batch.sequence} tokens does not split into {parts} parts")
    if parallel.sequence_parallel and parallel.tensor == 1:
        found.append("sequence parallelism needs tensor parallelism of more than 1")
    return found


def _expert_reasons(model: Transformer, parallel: Parallelism) -> list[str]:
    expert = parallel.expert
    if expert == 1:
        return []
    if model.experts is None:
        return [f"expert {expert}: {model.name} has no experts"]
    found = []
    if model.experts.routed % expert:
        found.append(f"expert {expert} does not divide the {model.experts.routed} experts")
    if parallel.replicas % expert:
        found.append(
            f"expert {expert} does not divide data {parallel.data} × context {parallel.context} = "
            f"{parallel.replicas}"
        )
    return found
