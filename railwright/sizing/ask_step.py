"""``railwright size step``: the time of one training step, and what it waits for."""

from typing import Annotated

from pydantic import Field

from railwright.sizing.document import Answer, Breakdown, Line, Section
from railwright.sizing.fields import Seconds
from railwright.sizing.host import Host
from railwright.sizing.limits import limit_of
from railwright.sizing.measured import Where
from railwright.sizing.parallel import Layout
from railwright.sizing.question import LayoutQuestion, Many, host_lines
from railwright.sizing.rules import RuleResult, all_reduce_rule, step_rule
from railwright.sizing.step import Algorithm, Step, StepSettings, step_time
from railwright.sizing.training import rough_flops
from railwright.sizing.units import Quantity, seconds

_IN_NETWORK = 1.25
"""Bus bandwidth over the line rate, as reductions in the network or by NVSwitch may have it."""


class StepQuestion(LayoutQuestion):
    """The time of one training step."""

    efficiency: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.65, description="What kernels reach of the peak (assumed; 0.6 to 0.75 is usual)."
    )
    overlap: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0, description="Share of the computation behind which traffic may hide."
    )
    algorithm: Algorithm = Field(
        default="hierarchical", description="Of data-parallel collectives; hierarchical is by rail."
    )
    checkpoint_stall: Seconds = Field(
        default=seconds(0), description="Time that a checkpoint stops training."
    )
    checkpoint_every: Many = Field(default=500, description="Steps between checkpoints.")

    def answer(self) -> Answer:
        host = self.host()
        layout = self.layout(host)
        step = step_time(layout, host, self.recipe(), self._settings())
        parallel = layout.parallel
        question = (
            f"{layout.model.name} on {self.node_count()} nodes, {parallel.gpus} GPUs: tensor "
            f"{parallel.tensor} × pipeline {parallel.pipeline} × context {parallel.context} × data "
            f"{parallel.data}, {layout.micro_batches} micro-batches, {step.tokens:,} tokens a step"
        )
        mfu = Quantity(step.mfu)
        return Answer(
            command="step",
            question=question,
            facts=host_lines(host),
            sections=(_parts(step), self._outcome(step)),
            results={"step": step.total, "throughput": step.tokens_per_second, "MFU": mfu},
            speed=step.tokens_per_second,
            breakdown=Breakdown(title="Time of a step", bars={"": step.parts}),
            limit=limit_of(host, lambda one: self._total(layout, one), "step", _why(step)),
            rules=self._rules(layout, host, step),
            notes=_notes(layout, host),
        )

    def _settings(self) -> StepSettings:
        return StepSettings(
            efficiency=self.efficiency,
            overlap=self.overlap,
            algorithm=self.algorithm,
            checkpoint_stall=self.checkpoint_stall,
            checkpoint_every=self.checkpoint_every,
        )

    def _total(self, layout: Layout, host: Host) -> Quantity:
        return step_time(layout, host, self.recipe(), self._settings()).total

    def _outcome(self, step: Step) -> Section:
        lines = [
            Line(name="hidden behind computation", amount=step.hidden),
            Line(name="step, if nothing were hidden", amount=step.unhidden_total),
            Line(name="throughput", amount=step.tokens_per_second),
            Line(name="throughput of a GPU", amount=step.tokens_per_second / step.gpus),
            Line(name="MFU", says=f"{step.mfu:.1%}"),
        ]
        if self.measured is not None and self.measured.mfu is not None:
            lines.append(Line(name="MFU measured", says=f"{self.measured.mfu:.1%}"))
        return Section(title="What comes of it", lines=tuple(lines))

    def _rules(self, layout: Layout, host: Host, step: Step) -> tuple[RuleResult, ...]:
        gpus, nodes = layout.parallel.gpus, self.node_count()
        latency = host.fabric(Quantity(1.0, "B")).ring_step
        node_rate = host.rail_rate * host.rails
        reduced = all_reduce_rule(layout.model.parameters, 2, gpus, nodes, node_rate, latency)
        flops = rough_flops(layout.model.active_parameters, layout.batch.tokens)
        whole = step_rule(flops, gpus, host.peak, step.mfu, reduced.gives, step.hidden)
        return (reduced, whole)


def _parts(step: Step) -> Section:
    total = step.total.value
    lines = [
        Line(name=name, amount=part, says=f"({part.value / total:.1%})")
        for name, part in step.parts.items()
    ]
    return Section(title="One step", lines=(*lines, Line(name="total", amount=step.total)))


def _why(step: Step) -> str:
    largest = max(step.parts, key=lambda name: step.parts[name].value)
    share = step.parts[largest].value / step.total.value
    return f"changing it would bring most; the largest part of a step is {largest} ({share:.0%})"


def _notes(layout: Layout, host: Host) -> tuple[str, ...]:
    found = ["MFU is a result here: bubble and network are in it"]
    places: tuple[Where, ...] = ("node", "fabric")
    for where in places:
        if not host.measured.curve(where):
            found.append(
                f"no measured bus bandwidth ({where}): the rate at best is taken, so the time is "
                "a lower bound"
            )
    curve = host.measured.curve("fabric")
    fastest = max((rate.value for _, rate in curve), default=0.0)
    if fastest > _IN_NETWORK * host.fabric_best.value * host.gpus:
        found.append(
            f"measured over the fabric: {Quantity(fastest, 'B/s')}, more than the rails of a node "
            f"carry ({host.fabric_best * host.gpus}): is it of these nodes?"
        )
    if host.fabric_best.value < host.rail_rate.value * host.rails / host.gpus:
        found.append(f"the GPU's slot ({host.pcie}) is slower than its share of the rails")
    if layout.parallel.tensor > host.gpus:
        found.append("tensor parallelism spans nodes: its traffic goes over the fabric")
    found.append("not in it: the optimizer's own step, stragglers, other jobs on the fabric")
    return tuple(found)
