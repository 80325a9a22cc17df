"""Layouts that cannot be are refused, with the reason."""

import pytest

from railwright.sizing.parallel import Batch, Parallelism, SizingError, laid_out, spread
from railwright.sizing.training import rough_flops, training_time
from railwright.sizing.transformer import Experts, Transformer, by_name
from railwright.sizing.units import read

LLAMA, MIXTRAL = "llama-3-70b", "mixtral-8x7b"


def refused(model: str, batch: dict[str, object] | None = None, **parallel: object) -> str:
    steps = Batch.model_validate({"sequence": 8192, "total": 64, **(batch or {})})
    with pytest.raises(SizingError) as error:
        laid_out(by_name(model), Parallelism.model_validate(parallel), steps)
    return str(error.value)


@pytest.mark.parametrize(
    ("parallel", "batch", "reason"),
    [
        ({"tensor": 3}, {}, "tensor 3 does not divide the number of heads 64"),
        ({"tensor": 128}, {}, "tensor 128 does not divide the number of heads 64"),
        ({"pipeline": 81}, {}, "80 layers do not fill pipeline 81 × chunks 1 = 81"),
        ({"chunks": 2}, {}, "chunks 2 need a pipeline of more than one stage"),
        ({"pipeline": 8, "chunks": 2}, {"total": 60}, "micro-batches (60) to be a multiple of"),
        ({"data": 3}, {}, "64 sequences is no multiple of micro-batch 1 × data parallel 3 = 3"),
        ({"data": 8}, {"micro": 16}, "no multiple of micro-batch 16 × data parallel 8 = 128"),
        ({"context": 3}, {}, "a sequence of 8192 tokens does not split into 3 parts"),
        ({"sequence_parallel": True}, {}, "needs tensor parallelism of more than 1"),
        ({"expert": 2}, {}, "expert 2: llama-3-70b has no experts"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(
    parallel: dict[str, object], batch: dict[str, object], reason: str
) -> None:
    assert reason in refused(LLAMA, batch, **parallel)


@pytest.mark.parametrize(
    ("parallel", "reason"),
    [
        ({"expert": 3, "data": 3}, "expert 3 does not divide the 8 experts"),
        ({"expert": 8, "data": 4}, "expert 8 does not divide data 4 × context 1 = 4"),
    ],
)
def test_experts_that_do_not_come_out_are_refused(parallel: dict[str, object], reason: str) -> None:
    assert reason in refused(MIXTRAL, {"total": 24}, **parallel)


def test_all_reasons_are_told_at_once() -> None:
    told = refused(LLAMA, {"total": 10}, tensor=3, data=4, context=3)
    assert all(word in told for word in ("heads", "sequence of 8192", "batch of 10"))


def test_what_can_be_is_not_refused() -> None:
    parallel = Parallelism(tensor=8, pipeline=8, chunks=2, context=2, data=4)
    found = laid_out(by_name(LLAMA), parallel, Batch(sequence=8192, total=64))
    assert found.micro_batches == 16
    assert found.bubble == 7 / (16 * 2 + 7)
    assert found.parallel.gpus == 512


def test_fewer_kv_heads_than_tensor_ranks_are_held_more_than_once() -> None:
    found = laid_out(by_name(LLAMA), Parallelism(tensor=16), Batch(total=1))
    assert found.parallel.tensor == 16


def test_data_parallelism_fills_all_gpus() -> None:
    assert spread(128, Parallelism(tensor=8, pipeline=4)).data == 4
    with pytest.raises(SizingError, match="100 GPUs are no multiple of tensor 8 × pipeline 4"):
        spread(100, Parallelism(tensor=8, pipeline=4))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"heads": 7}, "hidden 4096 to be a multiple of heads 7"),
        ({"kv_heads": 5}, "heads 32 to be a multiple of kv_heads 5"),
        ({"experts": Experts(routed=8, per_token=2, feed_forward=1, dense_layers=9)}, "8 at most"),
    ],
)
def test_a_model_that_cannot_be_is_refused(given: dict[str, object], reason: str) -> None:
    whole = {"layers": 8, "hidden": 4096, "heads": 32, "vocabulary": 1000, **given}
    with pytest.raises(ValueError, match=reason):
        Transformer.model_validate(whole)


def test_more_experts_of_a_token_than_there_are_are_refused() -> None:
    with pytest.raises(ValueError, match="per_token of 8 experts at most, got 9"):
        Experts(routed=8, per_token=9, feed_forward=1)


def test_a_model_that_is_not_known_is_told_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no model 'llama3-70b' \(did you mean llama-3-70b\?\)"):
        by_name("llama3-70b")


@pytest.mark.parametrize(
    ("mfu", "effective", "gpus"), [(0, 1, 8), (1.1, 1, 8), (0.4, 0, 8), (0.4, 1, 0)]
)
def test_a_training_that_never_ends_is_refused(mfu: float, effective: float, gpus: int) -> None:
    with pytest.raises(SizingError, match="expected"):
        training_time(rough_flops(1e9, 1e9), gpus, read("1 TFLOP/s"), mfu, effective)
