"""What each kind of traffic of a step amounts to, worked by hand on round numbers.

The host: 8 GPUs, NVLink of 100 GB/s and rails of 10 GB/s a GPU, without latency. The model: hidden
1000, 8 layers, 10 heads of 100 (2 for KV), a vocabulary of 1000. A micro-batch has 1000 tokens, so
its activations are 1000 · 1000 · 2 bytes = 2 MB.
"""

import pytest

from railwright.sizing.collectives import Group, Link, flat_all_reduce
from railwright.sizing.host import Host
from railwright.sizing.memory import Recipe, fullest_share
from railwright.sizing.parallel import Batch, Layout, Parallelism, laid_out
from railwright.sizing.step import (
    StepSettings,
    computation,
    context_traffic,
    data_traffic,
    expert_traffic,
    pipeline_traffic,
    step_time,
    tensor_traffic,
)
from railwright.sizing.transformer import Experts, Transformer
from railwright.sizing.units import read, seconds, size

HOST = Host(
    gpu="made up", gpus=8, peak=read("100 TFLOP/s"), hbm=read("80 GB"), nvlink=read("100 GB/s"),
    pcie=read("50 GB/s"), rails=8, rail_rate=read("10 GB/s"), latency_scale=0.0,
)  # fmt: skip
MODEL = Transformer.model_validate(
    {"layers": 8, "hidden": 1000, "heads": 10, "kv_heads": 2, "feed_forward": 4000,
     "activation": "swiglu", "vocabulary": 1000}
)  # fmt: skip
SPARSE = MODEL.model_copy(
    update={"experts": Experts(routed=4, per_token=2, feed_forward=1000, dense_layers=2)}
)
ACTIVATIONS = 2e6


def layout(
    model: Transformer = MODEL, recompute: str = "selective", total: int = 8, **parallel: object
) -> Layout:
    batch = Batch.model_validate({"sequence": 1000, "total": total, "recompute": recompute})
    return laid_out(model, Parallelism.model_validate(parallel), batch)


def test_tensor_parallel_ranks_reduce_twice_each_way_through_a_layer() -> None:
    """8 layers · 8 micro-batches · 4 all-reduces of 2 MB over 2 ranks: 2·½·2 MB/100 GB/s."""
    found = tensor_traffic(layout(tensor=2), HOST)
    assert found.value == pytest.approx(8 * 8 * 4 * ACTIVATIONS / 100e9)


def test_full_recomputation_reduces_half_as_often_again() -> None:
    whole = tensor_traffic(layout(tensor=2, recompute="full"), HOST)
    assert whole.value == pytest.approx(1.5 * tensor_traffic(layout(tensor=2), HOST).value)


def test_a_stage_has_its_layers_traffic_alone() -> None:
    half = tensor_traffic(layout(tensor=2, pipeline=2), HOST)
    assert half.value == pytest.approx(tensor_traffic(layout(tensor=2), HOST).value / 2)


def test_tensor_parallelism_over_nodes_goes_over_the_rails_too() -> None:
    """10 ranks on nodes of 2 GPUs: 5 nodes of 2."""
    pairs = HOST.model_copy(update={"gpus": 2, "rails": 2})
    found = tensor_traffic(layout(tensor=10), pairs)
    once = 2 * 0.5 * ACTIVATIONS / 100e9 + 2 * 0.8 * (ACTIVATIONS / 2) / 10e9
    assert found.value == pytest.approx(8 * 8 * 4 * once)


def test_context_parallel_ranks_gather_keys_and_values() -> None:
    """1000 tokens · 2 · 2 · 100 elements · 2 B = 0.8 MB, half of it over NVLink, twice a layer."""
    found = context_traffic(layout(context=2), HOST)
    assert found.value == pytest.approx(8 * 8 * 2 * 0.5 * 0.8e6 / 100e9)


def test_stages_send_activations_forth_and_gradients_back() -> None:
    """2 stages of 16 GPUs are on 4 nodes: 2 · 8 sends of 2 MB over a rail."""
    found = pipeline_traffic(layout(pipeline=2, tensor=2, data=8, total=64), HOST)
    assert found.value == pytest.approx(2 * 8 * ACTIVATIONS / 10e9)


def test_chunks_send_as_many_times_as_there_are() -> None:
    once = pipeline_traffic(layout(pipeline=2), HOST)
    twice = pipeline_traffic(layout(pipeline=2, chunks=2), HOST)
    assert once.value == pytest.approx(2 * 8 * ACTIVATIONS / 100e9)
    assert twice.value == pytest.approx(2 * once.value)


def test_a_split_sequence_is_sent_in_parts() -> None:
    whole = pipeline_traffic(layout(pipeline=2, tensor=2), HOST)
    part = pipeline_traffic(layout(pipeline=2, tensor=2, sequence_parallel=True), HOST)
    assert part.value == pytest.approx(whole.value / 2)


def test_tokens_go_to_their_experts_and_back() -> None:
    """6 layers with experts · 8 · 4 exchanges of 2 copies of 2 MB, half of it to the other."""
    found = expert_traffic(layout(SPARSE, expert=2, data=2, total=16), HOST)
    assert found.value == pytest.approx(6 * 8 * 4 * 0.5 * 2 * ACTIVATIONS / 100e9)


def test_experts_on_many_nodes_wait_for_the_fabric() -> None:
    """4 ranks, one on each node: three quarters go over the rail."""
    alone = HOST.model_copy(update={"gpus": 1, "rails": 1})
    found = expert_traffic(layout(SPARSE, expert=4, data=4, total=32), alone)
    assert found.value == pytest.approx(6 * 8 * 4 * 0.75 * 2 * ACTIVATIONS / 10e9)


@pytest.mark.parametrize(
    ("zero", "bytes_each_way"), [(0, 4 + 4), (1, 4 + 2), (2, 8 * 4 + 2), (3, 8 * (4 + 2 + 2))]
)
def test_gradients_are_reduced_and_weights_gathered_by_zero_stage(
    zero: int, bytes_each_way: float
) -> None:
    """fp32 gradients, bf16 weights. ZeRO-2 keeps no whole sum of gradients, and so reduces each of
    8 micro-batches'; ZeRO-3 also gathers weights twice for each."""
    found = layout(data=2, total=16, zero=zero)
    parameters = fullest_share(found).common
    took = data_traffic(found, HOST, Recipe(), "hierarchical").total
    assert took.value == pytest.approx(bytes_each_way * parameters * 0.5 / 100e9)


def test_experts_are_reduced_among_their_own_replicas() -> None:
    """Of 4 replicas 2 hold the same experts, and all hold the rest."""
    found = layout(SPARSE, data=4, expert=2, total=32)
    share = fullest_share(found)
    assert share.experts == 6 * SPARSE.routed_parameters / 2
    took = data_traffic(found, HOST, Recipe(), "hierarchical").total
    expected = 6 * (0.75 * share.common + 0.5 * share.experts) / 100e9
    assert took.value == pytest.approx(expected)


def test_replicas_on_two_nodes_reduce_inside_first_and_then_on_their_rail() -> None:
    found = layout(data=16, total=128, zero=0)
    amount = 4 * fullest_share(found).common
    took = data_traffic(found, HOST, Recipe(), "hierarchical").total
    expected = 2 * 7 / 8 * amount / 100e9 + 2 * 0.5 * (amount / 8) / 10e9
    assert took.value == pytest.approx(expected)


def test_rings_over_nodes_go_at_the_pace_of_all_rails_of_a_node() -> None:
    """8 rails of 10 GB/s, one ring through each: 80 GB/s, which NVLink carries."""
    found = layout(data=16, total=128, zero=0)
    amount = 4 * fullest_share(found).common
    took = data_traffic(found, HOST, Recipe(), "ring").total
    assert took.value == pytest.approx(2 * 15 / 16 * amount / 80e9)


def test_rings_go_no_faster_than_nvlink() -> None:
    found = layout(data=16, total=128, zero=0)
    amount = 4 * fullest_share(found).common
    fast = HOST.model_copy(update={"rail_rate": read("40 GB/s")})
    took = data_traffic(found, fast, Recipe(), "ring").total
    assert took.value == pytest.approx(2 * 15 / 16 * amount / 100e9)


def test_a_ring_of_ranks_that_are_alone_in_their_nodes_goes_at_one_rails_pace() -> None:
    found = layout(tensor=10, data=2, total=16, zero=0)
    wide = HOST.model_copy(update={"gpus": 10, "rails": 10})
    amount = 4 * fullest_share(found).common
    took = data_traffic(found, wide, Recipe(), "ring").total
    assert took.value == pytest.approx(2 * 1 / 2 * amount / 10e9)


def test_a_tree_sends_all_twice_at_the_pace_of_all_rails_of_a_node() -> None:
    found = layout(data=16, total=128, zero=0)
    took = data_traffic(found, HOST, Recipe(), "tree").total
    assert took.value == pytest.approx(2 * 4 * fullest_share(found).common / 80e9)


def test_a_ring_at_a_measured_busbw_takes_what_was_measured() -> None:
    """nccl-tests' doc/PERFORMANCE.md: an all-reduce of S takes 2(n−1)/n · S / busbw."""
    measured = {"bus_bandwidth": [
        {"where": "node", "size": "8 GB", "rate": "473 GB/s"},
        {"where": "fabric", "size": "8 GB", "rate": "370 GB/s"},
    ]}  # fmt: skip
    host = Host.model_validate({**dict(HOST), "measured": measured})
    amount = size(8e9)
    took = flat_all_reduce(
        amount, Group(per_node=8, nodes=2), host.inside(amount), host.fabric(amount)
    )
    assert round(took.value, 5) == 0.04054


def test_of_a_rings_steps_two_for_each_node_go_over_the_fabric() -> None:
    """NCCL's src/graph/tuning.cc, nInterSteps: of 30 steps over 2 nodes 4."""
    inside = Link(bandwidth=read("1e30 B/s"), ring_step=seconds(3))
    fabric = Link(bandwidth=read("1e30 B/s"), ring_step=seconds(14))
    group = Group(per_node=8, nodes=2)
    assert flat_all_reduce(size(1), group, inside, fabric).value == pytest.approx(26 * 3 + 4 * 14)
    alone = Group(per_node=1, nodes=2)
    assert flat_all_reduce(size(1), alone, inside, fabric).value == pytest.approx(2 * 14)
    whole = Group(per_node=8, nodes=1)
    assert flat_all_reduce(size(1), whole, inside, fabric).value == pytest.approx(14 * 3)


def test_nothing_is_sent_where_there_is_nobody_else() -> None:
    alone = layout()
    for traffic in (tensor_traffic, context_traffic, expert_traffic, pipeline_traffic):
        assert traffic(alone, HOST) == seconds(0)
    assert data_traffic(alone, HOST, Recipe(), "hierarchical").total == seconds(0)


@pytest.mark.parametrize(
    ("zero", "share"), [(0, 2 / 3 / 8), (1, 1 / 8), (2, 2 / 3 + 1 / 3 / 8), (3, 1)]
)
def test_data_parallel_traffic_hides_behind_the_micro_batches_in_which_it_goes(
    zero: int, share: float
) -> None:
    """Of 8 micro-batches gradients go with the last one's backward (two thirds of computation) and
    weights with the first one's forward; ZeRO-2 reduces in each, ZeRO-3 gathers in each too."""
    slow = HOST.model_copy(update={"rail_rate": read("0.0001 GB/s")})
    found = layout(data=16, total=128, zero=zero)
    step = step_time(found, slow, Recipe(), StepSettings(overlap=0.5))
    traffic = data_traffic(found, slow, Recipe(), "hierarchical").total
    room = 0.5 * share * step.parts["computation"].value
    assert step.hidden.value == pytest.approx(room)
    assert step.parts["data parallel"].value == pytest.approx(traffic.value - room)


def test_all_stages_wait_for_the_one_that_has_a_layer_more() -> None:
    """8 layers over 3 stages: 3 in one, as if there were 9."""
    odd = step_time(layout(pipeline=3, total=12), HOST, Recipe(), StepSettings())
    even = computation(layout(pipeline=4, total=12), HOST, StepSettings())
    assert odd.parts["computation"].value * 3 == pytest.approx(even.value * 4 * 9 / 8)
    traffic = tensor_traffic(layout(tensor=2, pipeline=3), HOST)
    assert traffic.value == pytest.approx(3 / 8 * tensor_traffic(layout(tensor=2), HOST).value)


def test_tensor_ranks_gather_each_copy_of_a_token_that_was_sent_to_an_expert() -> None:
    """2 dense layers with 2 all-reduces, 6 with one and one of 2 copies."""
    plain = tensor_traffic(layout(SPARSE, tensor=2, data=2, total=16), HOST)
    spread = tensor_traffic(layout(SPARSE, tensor=2, data=2, expert=2, total=16), HOST)
    assert spread.value == pytest.approx(plain.value * (2 * 2 + 6 * 3) / 16)


def test_the_bubble_is_in_proportion_to_what_a_stage_takes() -> None:
    """2 stages, 8 micro-batches: one part in eight more."""
    step = step_time(layout(pipeline=2, tensor=2), HOST, Recipe(), StepSettings())
    stage = step.parts["computation"].value + step.parts["tensor parallel"].value
    assert step.parts["pipeline bubble"].value == pytest.approx(stage / 8)


def test_a_checkpoints_stall_is_spread_over_the_steps_between_two() -> None:
    settings = StepSettings(checkpoint_stall=seconds(60), checkpoint_every=100)
    step = step_time(layout(), HOST, Recipe(), settings)
    assert step.parts["checkpoint stall"].value == pytest.approx(0.6)


def test_recomputation_is_computed_and_is_no_progress() -> None:
    once = step_time(layout(recompute="none"), HOST, Recipe(), StepSettings())
    again = step_time(layout(recompute="full"), HOST, Recipe(), StepSettings())
    ratio = again.parts["computation"] / once.parts["computation"]
    assert ratio.number == pytest.approx(4 / 3)
    assert again.mfu == pytest.approx(once.mfu * 3 / 4)


def test_measured_bandwidth_is_taken_at_the_size_of_the_collective() -> None:
    measured = {"bus_bandwidth": [
        {"where": "node", "size": "2 MB", "rate": "20 GB/s"},
        {"where": "node", "size": "2 GB", "rate": "90 GB/s"},
    ]}  # fmt: skip
    slow = Host.model_validate({**dict(HOST), "measured": measured})
    assert slow.inside(size(ACTIVATIONS)).bandwidth == read("20 GB/s")
    assert tensor_traffic(layout(tensor=2), slow).value == pytest.approx(
        5 * tensor_traffic(layout(tensor=2), HOST).value
    )
