"""What must hold of any size: more is never worse, and in the limit the formulas meet."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from railwright.sizing.checkpoint import daly, waste, young
from railwright.sizing.collectives import (
    Group,
    Link,
    all_to_all,
    hierarchical_all_reduce,
    reduce_scatter,
    ring_all_reduce,
    tree_all_reduce,
)
from railwright.sizing.host import Host, HostFacts, host_of
from railwright.sizing.limits import changed_hosts
from railwright.sizing.memory import Recipe, Serving, serving_memory, training_memory
from railwright.sizing.parallel import Batch, Layout, Parallelism, laid_out
from railwright.sizing.step import StepSettings, computation, step_time
from railwright.sizing.training import rough_flops, training_time
from railwright.sizing.transformer import by_name, published
from railwright.sizing.units import Quantity, read, seconds, size

POWERS = st.sampled_from([1, 2, 4, 8])
DENSE = st.sampled_from(sorted(name for name, one in published().items() if not one.experts))
RUNTIME = size(4e9)
ENDLESS = Quantity(1e40, "B/s")


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Any layout that can be, of any published model."""
    model = by_name(draw(st.sampled_from(sorted(published()))))
    tensor = draw(POWERS)
    parallel = Parallelism(
        tensor=tensor,
        pipeline=draw(POWERS),
        context=draw(st.sampled_from([1, 2])),
        data=draw(st.sampled_from([8, 16, 64])),
        expert=draw(POWERS) if model.experts else 1,
        zero=draw(st.integers(0, 3)),
        sequence_parallel=tensor > 1 and draw(st.booleans()),
    )
    batch = Batch(
        sequence=draw(st.sampled_from([2048, 8192, 32768])),
        micro=draw(st.sampled_from([1, 2])),
        total=draw(st.sampled_from([256, 1024])),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        attention=draw(st.sampled_from(["flash", "scores"])),
    )
    return laid_out(model, parallel, batch)


def changed(layout: Layout, **parallel: object) -> Layout:
    whole = layout.parallel.model_copy(update=parallel)
    return laid_out(layout.model, whole, layout.batch)


def memory(layout: Layout) -> float:
    return training_memory(layout, Recipe(), RUNTIME).total.value


def host(**more: object) -> Host:
    return host_of(HostFacts(gpu="h100")).model_copy(update=more)


@given(layouts())
def test_more_replicas_never_take_more_memory_of_a_gpu(layout: Layout) -> None:
    assume(layout.batch.total % (layout.batch.micro * layout.parallel.data * 2) == 0)
    assert memory(changed(layout, data=layout.parallel.data * 2)) <= memory(layout)


@given(layouts(), st.integers(0, 2))
def test_a_higher_zero_stage_never_takes_more_for_model_states(layout: Layout, stage: int) -> None:
    names = ("weights", "gradients", "optimizer states")
    held = []
    for zero in (stage, stage + 1):
        lines = training_memory(changed(layout, zero=zero), Recipe(), RUNTIME).lines
        held.append(sum(lines[name].value for name in names))
    assert held[1] <= held[0]


@given(layouts())
def test_more_tensor_parallelism_never_takes_more_memory(layout: Layout) -> None:
    assume(layout.parallel.tensor <= 4)
    assert memory(changed(layout, tensor=layout.parallel.tensor * 2)) <= memory(layout) * (1 + 1e-9)


@given(layouts())
def test_recomputing_more_never_keeps_more_activations(layout: Layout) -> None:
    kept = []
    for recompute in ("none", "selective", "full"):
        batch = layout.batch.model_copy(update={"recompute": recompute})
        found = training_memory(laid_out(layout.model, layout.parallel, batch), Recipe(), RUNTIME)
        kept.append(found.lines["activations"].value)
    assert kept[0] >= kept[1]
    assert kept[1] >= kept[2]


@given(layouts())
def test_the_lines_of_memory_add_up_and_none_is_negative(layout: Layout) -> None:
    found = training_memory(layout, Recipe(), RUNTIME)
    assert all(line.value > 0 for line in found.lines.values())
    assert found.total.value == pytest.approx(math.fsum(one.value for one in found.lines.values()))


@given(DENSE, POWERS)
def test_a_whole_model_on_one_gpu_takes_all_its_bytes(name: str, data: int) -> None:
    model = by_name(name)
    layout = laid_out(model, Parallelism(data=data, zero=0), Batch(total=8))
    lines = training_memory(layout, Recipe(), RUNTIME).lines
    states = sum(lines[one].value for one in ("weights", "gradients", "optimizer states"))
    assert states == pytest.approx(18 * model.parameters)


@given(st.integers(1, 1000), st.integers(1, 100_000))
def test_kv_cache_grows_with_sequences_and_tokens(sequences: int, tokens: int) -> None:
    model, parallel = by_name("llama-3-70b"), Parallelism(tensor=8)

    def cache(times: int) -> float:
        asked = Serving(sequences=sequences * times, tokens=tokens)
        return serving_memory(model, parallel, asked, RUNTIME).lines["KV cache"].value

    assert cache(2) == pytest.approx(2 * cache(1))


@given(layouts())
def test_with_an_endless_network_a_step_is_computation_and_bubble(layout: Layout) -> None:
    free = host(nvlink=ENDLESS, pcie=ENDLESS, rail_rate=ENDLESS, latency_scale=0.0)
    settings = StepSettings()
    step = step_time(layout, free, Recipe(), settings)
    alone = computation(layout, free, settings).value / (1 - layout.bubble)
    assert step.total.value == pytest.approx(alone, rel=1e-6)
    assert step.mfu <= settings.efficiency * (1 + 1e-6)


@given(layouts())
def test_no_better_fact_of_the_host_makes_a_step_slower(layout: Layout) -> None:
    settings = StepSettings()
    before = step_time(layout, host(rails=4), Recipe(), settings).total.value
    for one in changed_hosts(host(rails=4)):
        after = step_time(layout, one.host, Recipe(), settings).total.value
        assert after <= before * (1 + 1e-9), one.fact


@given(layouts(), st.floats(0, 1), st.floats(0, 1))
def test_hiding_more_never_takes_longer_and_never_less_than_all_hidden(
    layout: Layout, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    slow = step_time(layout, host(), Recipe(), StepSettings(overlap=less))
    fast = step_time(layout, host(), Recipe(), StepSettings(overlap=more))
    assert fast.total.value <= slow.total.value * (1 + 1e-9)
    assert slow.unhidden_total.value == pytest.approx(fast.unhidden_total.value)
    assert slow.total.value <= slow.unhidden_total.value * (1 + 1e-9)


@given(layouts())
def test_the_parts_of_a_step_add_up(layout: Layout) -> None:
    step = step_time(layout, host(), Recipe(), StepSettings())
    assert step.total.value == pytest.approx(math.fsum(one.value for one in step.parts.values()))
    assert 0 < step.mfu < 1


SIZES = st.floats(1, 1e12).map(size)
GROUPS = st.builds(Group, per_node=st.integers(1, 16), nodes=st.integers(1, 512))
RATES = st.floats(1e9, 1e12).map(lambda rate: Quantity(rate, "B/s"))
STEPS = st.floats(0, 1e-4).map(seconds)
LINKS = st.builds(Link, bandwidth=RATES, ring_step=STEPS, tree_step=STEPS)


@given(SIZES, GROUPS, LINKS, LINKS)
def test_two_halves_are_an_all_reduce(
    amount: Quantity, group: Group, inside: Link, fabric: Link
) -> None:
    whole = hierarchical_all_reduce(amount, group, inside, fabric)
    half = reduce_scatter(amount, group, inside, fabric)
    assert whole.value == pytest.approx(2 * half.value)


@given(SIZES, st.integers(1, 4096), LINKS)
def test_on_one_node_hierarchy_is_a_ring(amount: Quantity, ranks: int, link: Link) -> None:
    group = Group(per_node=ranks, nodes=1)
    found = hierarchical_all_reduce(amount, group, link, link)
    assert found.value == pytest.approx(ring_all_reduce(amount, ranks, link).value)


@given(SIZES, LINKS)
def test_one_rank_waits_for_nobody(amount: Quantity, link: Link) -> None:
    alone = Group(per_node=1, nodes=1)
    assert hierarchical_all_reduce(amount, alone, link, link).value == 0
    assert tree_all_reduce(amount, alone, link, link).value == 0
    assert all_to_all(amount, alone, link, link).value == 0


@given(SIZES, GROUPS, LINKS, LINKS)
def test_a_collective_takes_longer_with_more_bytes(
    amount: Quantity, group: Group, inside: Link, fabric: Link
) -> None:
    for collective in (hierarchical_all_reduce, tree_all_reduce, reduce_scatter, all_to_all):
        once = collective(amount, group, inside, fabric)
        twice = collective(amount * 2, group, inside, fabric)
        assert once.value <= twice.value


@given(SIZES, GROUPS, RATES)
def test_a_ring_never_beats_its_bandwidth(amount: Quantity, group: Group, rate: Quantity) -> None:
    took = ring_all_reduce(amount, group.ranks, Link(bandwidth=rate))
    assert took.value <= 2 * (amount / rate).value
    if group.ranks > 1:
        assert took.value >= (amount / rate).value * (1 - 1e-9)


@given(st.integers(4, 13))
def test_for_small_amounts_a_tree_beats_a_ring_over_many_nodes(power: int) -> None:
    """Latency decides: log2(k) steps against k."""
    nodes = 2**power
    link = Link(bandwidth=read("50 GB/s"), ring_step=read("14 us"), tree_step=read("28 us"))
    group = Group(per_node=1, nodes=nodes)
    tree = tree_all_reduce(size(1000), group, link, link)
    assert tree < ring_all_reduce(size(1000), nodes, link)


COSTS = st.floats(0.1, 1e4).map(seconds)
MTBFS = st.floats(60, 1e8).map(seconds)


@given(COSTS, MTBFS)
def test_daly_is_near_young_less_the_cost_where_failures_are_rare(
    cost: Quantity, mtbf: Quantity
) -> None:
    assume(cost.value < mtbf.value / 1000)
    first = young(cost, mtbf).value - cost.value
    assert daly(cost, mtbf).value == pytest.approx(first, rel=0.02)


@given(COSTS, MTBFS, st.floats(0.2, 5))
def test_no_other_interval_loses_less_than_youngs(
    cost: Quantity, mtbf: Quantity, times: float
) -> None:
    best = young(cost, mtbf)
    assert waste(best, cost, seconds(0), mtbf).total <= waste(
        best * times, cost, seconds(0), mtbf
    ).total * (1 + 1e-9)


@given(st.integers(1, 10**5), st.floats(0.01, 1), st.floats(1e6, 1e13))
def test_twice_the_gpus_take_half_the_time(gpus: int, mfu: float, tokens: float) -> None:
    flops, peak = rough_flops(70e9, tokens), read("989 TFLOP/s")
    once = training_time(flops, gpus, peak, mfu)
    twice = training_time(flops, 2 * gpus, peak, mfu)
    assert once.time.value == pytest.approx(2 * twice.time.value)
    assert once.gpu_time.value == pytest.approx(twice.gpu_time.value)
