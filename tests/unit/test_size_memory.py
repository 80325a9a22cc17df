"""What a GPU holds, part by part, and what storage must hold: worked by hand."""

import pytest

from railwright.sizing.activations import (
    activation_bytes,
    fullest_end,
    in_flight,
    layer_bytes,
    working_bytes,
)
from railwright.sizing.ask_storage import StorageQuestion
from railwright.sizing.memory import (
    Recipe,
    Serving,
    Share,
    fullest_share,
    gathered_bytes,
    kv_cache_bytes,
    serving_memory,
    state_bytes,
)
from railwright.sizing.parallel import (
    Batch,
    Layout,
    Parallelism,
    SizingError,
    check_serving,
    laid_out,
)
from railwright.sizing.storage import Feed, storage_need
from railwright.sizing.transformer import Transformer, by_name
from railwright.sizing.units import Quantity, read, seconds, size

LLAMA = by_name("llama-3-70b")


def layout(model: Transformer = LLAMA, **given: object) -> Layout:
    fields = {name: given.pop(name) for name in list(given) if name in Batch.model_fields}
    batch = Batch.model_validate({"sequence": 8192, "total": 64, **fields})
    return laid_out(model, Parallelism.model_validate(given), batch)


@pytest.mark.parametrize(
    ("recipe", "whole", "saved"),
    [
        (Recipe(), 18, 14),
        (Recipe(gradients="bf16"), 16, 14),
        (Recipe(optimizer="adam-8bit"), 12, 8),
        (Recipe(optimizer="adam-bf16"), 14, 10),
        (Recipe(optimizer="sgd-momentum"), 14, 10),
        (Recipe(weights="fp32", master=None), 16, 12),
        (Recipe(optimizer="adam-8bit", master=None), 8, 4),
    ],
)
def test_bytes_of_a_parameter(recipe: Recipe, whole: int, saved: int) -> None:
    assert (recipe.total_bytes, recipe.checkpoint_bytes) == (whole, saved)


def test_experts_are_sharded_over_their_own_replicas() -> None:
    parallel = Parallelism(data=16, expert=4, zero=3)
    found = state_bytes(Share(common=16e9, experts=4e9), parallel, Recipe())
    assert found.total.value == pytest.approx(18 * (16e9 / 16 + 4e9 / 4))


def test_context_parallel_ranks_are_replicas_of_the_weights() -> None:
    found = state_bytes(Share(common=16e9), Parallelism(data=4, context=4, zero=1), Recipe())
    assert found.optimizer == size(12e9)
    assert found.weights == size(32e9)


def test_the_fullest_stage_has_the_embedding_or_the_output() -> None:
    whole = fullest_share(layout())
    assert whole.common == LLAMA.parameters
    stage = fullest_share(layout(pipeline=4, tensor=2))
    ends = max(LLAMA.embedding_parameters, LLAMA.output_parameters)
    assert stage.common == (20 * LLAMA.dense_layer_parameters + ends) / 2


def test_zero3_gathers_the_layer_in_use_and_the_next() -> None:
    assert gathered_bytes(layout(data=8, zero=2), Recipe()) == size(0)
    found = gathered_bytes(layout(data=8, zero=3, tensor=2), Recipe())
    assert found.value == 2 * 2 * LLAMA.dense_layer_parameters / 2


def test_a_llama_layer_keeps_its_own_widths() -> None:
    """Bytes of a token and hidden width 8192: inputs and norms 8, Q and what attention hands on 4,
    K and V half (8 of 64 heads, twice), gate, up and their product 3 · 3.5 · 2. No dropout."""
    found = layer_bytes(layout())
    assert found.value == pytest.approx(8192 * 8192 * (8 + 4 + 0.5 + 21))


def test_a_layer_with_experts_keeps_what_its_tokens_pass() -> None:
    """Mixtral: 2 experts of 14336, gated; the token's two copies, sent and brought back."""
    mixtral = by_name("mixtral-8x7b")
    found = layer_bytes(layout(mixtral)).value / (8192 * 4096)
    inner = 3 * 2 * 14336 / 4096 + 2 * 2
    keys = 2 * 1024 / 4096
    assert found == pytest.approx(8 + 2 * (1 + keys + 1 + inner))


def test_the_first_stage_keeps_a_micro_batch_for_each_stage_or_as_many_as_there_are() -> None:
    assert in_flight(layout(pipeline=4)) == 80
    assert in_flight(layout(pipeline=4, total=2)) == 40


def test_interleaving_keeps_more() -> None:
    """Korthikanti et al. 2022, section 4.2.3: L·(1 + (p − 1)/(p·m))."""
    assert in_flight(layout(pipeline=4, chunks=5)) == pytest.approx(80 * (1 + 3 / 20))


def test_context_parallelism_splits_all_activations() -> None:
    whole, half = layout(), layout(context=2)
    assert activation_bytes(half).value == pytest.approx(activation_bytes(whole).value / 2)


def test_what_is_recomputed_is_there_one_layer_at_a_time() -> None:
    full = layout(recompute="full")
    assert working_bytes(full) == layer_bytes(layout(recompute="none"))
    assert working_bytes(layout(recompute="none")) == size(0)
    assert working_bytes(layout(recompute="selective")) == size(0)
    scores = layout(recompute="selective", attention="scores")
    assert working_bytes(scores).value == 5 * 64 * 8192 * 8192


@pytest.mark.parametrize(
    ("name", "tensor", "ways", "layers"),
    [
        ("llama-3-70b", 4, 4, 40 / 80),
        ("llama-3-70b", 16, 8, 40 / 80),
        ("deepseek-v3", 8, 1, 31 / 61),
    ],
)
def test_kv_heads_are_split_as_far_as_there_are_and_a_latent_vector_not_at_all(
    name: str, tensor: int, ways: int, layers: float
) -> None:
    """Of 61 layers over 2 stages the fullest has 31."""
    model, asked = by_name(name), Serving(sequences=3, tokens=1000)
    found = kv_cache_bytes(model, Parallelism(tensor=tensor, pipeline=2), asked)
    assert found.value == pytest.approx(model.kv_bytes_per_token() * 3000 * layers / ways)


def test_a_served_stage_has_whole_layers_and_an_end_of_the_model() -> None:
    """126 layers over 4 stages: 32, with the embedding."""
    model = by_name("llama-3-405b")
    parallel = Parallelism(tensor=8, pipeline=4)
    found = serving_memory(model, parallel, Serving(), size(0)).lines["weights"]
    ends = max(model.embedding_parameters, model.output_parameters)
    assert found.value == 2 * (32 * model.dense_layer_parameters + ends) / 8


@pytest.mark.parametrize(
    ("name", "degrees", "reason"),
    [
        ("llama-3-70b", {"expert": 4, "data": 4}, "llama-3-70b has no experts"),
        ("mixtral-8x7b", {"expert": 3, "data": 3}, "expert 3 does not divide the 8 experts"),
        ("llama-3-70b", {"pipeline": 81}, "80 layers do not fill pipeline 81"),
        ("llama-3-70b", {"tensor": 3}, "tensor 3 does not divide the number of heads 64"),
    ],
)
def test_a_model_that_cannot_be_served_so_is_refused(
    name: str, degrees: dict[str, int], reason: str
) -> None:
    with pytest.raises(SizingError, match=reason):
        check_serving(by_name(name), Parallelism.model_validate(degrees))


def test_of_a_small_model_with_many_words_the_last_stage_is_the_fullest() -> None:
    """8B over 2 stages, all recomputed: 16 layers' inputs of one micro-batch and the logits are
    more than 32 layers' inputs."""
    found = fullest_end(layout(by_name("llama-3-8b"), pipeline=2, recompute="full"))
    assert found[0].value == 16 * 8192 * 4096 * 2
    assert found[1].value == 4 * 8192 * (4096 + 128256)


def test_of_a_large_model_the_first_stage_is_the_fullest() -> None:
    many = layout(pipeline=4)
    assert fullest_end(many) == (activation_bytes(many), size(0))


def test_interleaved_stages_keep_no_more_than_there_are_micro_batches() -> None:
    assert in_flight(layout(pipeline=4, chunks=5, total=4)) == 80


def test_a_tokens_copies_for_its_experts_are_whole_on_each_tensor_rank() -> None:
    """Each tensor rank has a part of every expert's width, and so needs the whole token."""
    mixtral = by_name("mixtral-8x7b")
    one, four = (
        layer_bytes(layout(mixtral, tensor=tensor, sequence_parallel=tensor > 1)).value
        for tensor in (1, 4)
    )
    copies = 8192 * 2 * 4096 * 2
    assert four - copies == pytest.approx((one - copies) / 4)


def test_a_cache_of_fp8_is_half_and_so_are_weights() -> None:
    parallel, runtime = Parallelism(tensor=8), size(0)
    full = serving_memory(LLAMA, parallel, Serving(), runtime)
    half = serving_memory(LLAMA, parallel, Serving(weights="fp8", cache="fp8"), runtime)
    assert half.total.value == pytest.approx(full.total.value / 2)


def test_storage_holds_the_data_and_the_checkpoints_that_are_kept() -> None:
    feed = Feed(per_second=1e6, each=size(4), count=1e12)
    found = storage_need(
        feed, size(980e9), kept=3, write_within=seconds(120), read_within=seconds(60)
    )
    assert found.capacity == size(4e12 + 3 * 980e9)
    assert found.reading_data == read("4 MB/s")
    assert round(found.writing_checkpoint.value / 1e9, 3) == 8.167
    assert found.read == found.reading_checkpoint == Quantity(980e9 / 60, "B/s")


def test_samples_are_read_beside_tokens() -> None:
    """64 GPUs · 100 samples/s · 1 MB."""
    asked = {"gpu": "h100", "nodes": 8, "parameters": 70e9, "tokens": 1e12}
    alone = StorageQuestion.model_validate(asked).answer()
    both = StorageQuestion.model_validate(
        {**asked, "samples": 100, "sample_bytes": "1 MB"}
    ).answer()

    def rate(answer: object) -> float:
        lines = {line.name: line.amount for line in answer.sections[0].lines}  # type: ignore[attr-defined]
        return float(lines["data while training, read"].value)

    assert rate(both) - rate(alone) == pytest.approx(6.4e9)
