"""Activations that are kept for the way back, part by part.

After Korthikanti et al. 2022, arXiv 2205.05198, sections 4.1 to 4.3, which counts bytes of a layer
with 16-bit numbers and dropout: 11·sbh + 5·a·s²·b in attention, 19·sbh in the feed-forward part,
4·sbh in the norms. Here the widths are the model's own, so that grouped queries, gated activations
and experts are counted as what they are; a GPT layer comes out as the paper's 34·sbh + 5·a·s²·b.
"""

from railwright.sizing.parallel import Layout
from railwright.sizing.units import Quantity, size

_WIDTH = 2  # Bytes of a 16-bit number.
_SCORES = 5  # Scores, their dropout mask and what comes of it: 2 + 1 + 2 bytes.


def layer_bytes(layout: Layout) -> Quantity:
    """Bytes that one layer keeps of one micro-batch, on one rank."""
    tokens, tensor = layout.local_tokens, layout.parallel.tensor
    whole_ways = tensor if layout.parallel.sequence_parallel else 1
    if layout.batch.recompute == "full":
        # The layer's input alone.
        return size(tokens * _WIDTH * layout.model.hidden / whole_ways)
    bytes_per_token = _whole_bytes(layout) / whole_ways + _split_bytes(layout) / tensor
    kept = size(tokens * (bytes_per_token + _copied_bytes(layout)))
    return kept + _scores(layout) if layout.batch.recompute == "none" else kept


def _whole_bytes(layout: Layout) -> float:
    """Bytes of a token that every tensor rank has, unless the sequence is split: the two inputs,
    the two norms' inputs and the two dropout masks. The paper's 10."""
    masks = 2 * layout.model.hidden if layout.model.dropout else 0
    return 4 * _WIDTH * layout.model.hidden + masks


def _split_bytes(layout: Layout) -> float:
    """Bytes of a token that are split over the tensor ranks. The paper's 24."""
    model = layout.model
    keys = 2 * model.kv_heads * model.head
    if model.latent is not None:
        keys = model.heads * (model.latent.head + model.latent.rotary + model.latent.value)
    attention = model.query_width + keys + model.value_width
    return _WIDTH * (attention + _inner_width(layout))


def _inner_width(layout: Layout) -> int:
    """Elements that a feed-forward part keeps: before and after the activation, gated one more."""
    model = layout.model
    times = 3 if model.activation == "swiglu" else 2
    if model.experts is None:
        return times * model.feed_forward
    experts = model.experts
    passed = experts.per_token + experts.shared
    # What comes back of a token's experts is kept for the weighing.
    return times * passed * experts.feed_forward + experts.per_token * model.hidden


def _copied_bytes(layout: Layout) -> float:
    """Bytes of a token's copies that go into its experts: whole on each tensor rank, of which each
    has a part of every expert's width."""
    experts = layout.model.experts
    return _WIDTH * experts.per_token * layout.model.hidden if experts else 0


def _scores(layout: Layout) -> Quantity:
    """Attention scores of one layer on one rank: 5·a·s²·b/t; none with flash attention."""
    if layout.batch.attention == "flash":
        return size(0)
    scores = layout.model.heads * layout.batch.sequence * layout.local_tokens
    return size(_SCORES * scores / layout.parallel.tensor)


def in_flight(layout: Layout) -> float:
    """Layers' worth that the first stage keeps at its fullest.

    1F1B: each of p micro-batches is kept, so all layers' worth, or fewer where there are fewer
    micro-batches. Interleaved with v chunks: (p − 1)/(p·v) more (the paper's section 4.2.3).
    """
    stages, chunks = layout.parallel.pipeline, layout.parallel.chunks
    kept = stages * (1 + (stages - 1) / (stages * chunks)) if chunks > 1 else stages
    return layout.stage_layers * min(kept, layout.micro_batches)


def last_in_flight(layout: Layout) -> float:
    """Layers' worth that the last stage keeps: of one micro-batch, which goes back at once;
    interleaved, of p micro-batches in all chunks but its last."""
    stages, chunks = layout.parallel.pipeline, layout.parallel.chunks
    return layout.stage_layers * ((chunks - 1) * stages + 1) / chunks


def activation_bytes(layout: Layout) -> Quantity:
    """All layers' activations of the first stage, which keeps most of them."""
    return layer_bytes(layout) * in_flight(layout)


def fullest_end(layout: Layout) -> tuple[Quantity, Quantity]:
    """Activations and logits of the first or of the last stage, whichever has more.

    The last stage keeps fewer activations and has the logits, which of a small model with a large
    vocabulary are more than all else.
    """
    logits = logits_bytes(layout)
    if layout.parallel.pipeline == 1:
        return activation_bytes(layout), logits
    first = (activation_bytes(layout), size(0))
    last = (layer_bytes(layout) * last_in_flight(layout), logits)
    return max(first, last, key=lambda kept: (kept[0] + kept[1]).value)


def working_bytes(layout: Layout) -> Quantity:
    """What recomputation brings back at a time: one layer, or its scores."""
    if layout.batch.recompute == "none":
        return size(0)
    if layout.batch.recompute == "selective":
        return _scores(layout)
    whole = layout.batch.model_copy(update={"recompute": "none"})
    return layer_bytes(layout.model_copy(update={"batch": whole}))


def logits_bytes(layout: Layout) -> Quantity:
    """Logits in fp32, and the inputs of output norm and matrix, of the last stage: 4·s·b/t·(h + v)
    (the paper's section 4.3)."""
    width = layout.model.hidden + layout.model.vocabulary
    return size(4 * layout.local_tokens * width / layout.parallel.tensor)
