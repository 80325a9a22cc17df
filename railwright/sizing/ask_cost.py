"""``railwright size cost``: ways of having GPUs, compared by the figures of a plan."""

from itertools import combinations
from typing import Annotated

from pydantic import Field

from railwright.sizing.cost import CostPlan, WayCost, break_even, costs
from railwright.sizing.document import Answer, Breakdown, Line, Section
from railwright.sizing.fields import Span
from railwright.sizing.question import Many, Question
from railwright.sizing.units import Quantity


class CostQuestion(Question):
    """The plan, and what is changed of it."""

    found: CostPlan
    gpus: Many | None = Field(default=None, description="GPUs; default: the plan's.")
    time: Span | None = Field(default=None, description="Time; default: the plan's.")
    used: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="Share of the time that GPUs work; default: the plan's."
    )

    def answer(self) -> Answer:
        given = {"gpus": self.gpus, "time": self.time, "used": self.used}
        update = {name: value for name, value in given.items() if value is not None}
        plan = self.found.model_copy(update=update)
        ways = costs(plan)
        cheapest = min(ways, key=lambda way: way.total.value)
        return Answer(
            command="cost",
            question=f"{plan.gpus} GPUs for {plan.time}, used {plan.used:.0%} of it",
            sections=(*(_section(way) for way in ways), _break_evens(plan)),
            results={way.name: way.total for way in ways},
            breakdown=Breakdown(title="Cost", bars={way.name: way.parts for way in ways}),
            notes=(
                f"least: {cheapest.name}",
                "all figures are the plan's; none comes with railwright",
                "the purchase is the plan's as a whole: it does not follow --gpus",
                "not in it: taxes, prices that change, GPUs that fail, time until delivery",
            ),
        )


def _section(way: WayCost) -> Section:
    lines = [Line(name=name, amount=amount) for name, amount in way.parts.items()]
    lines.append(Line(name="total", amount=way.total))
    if way.per_used_gpu_hour is not None:
        lines.append(Line(name="of a GPU hour that is used", amount=way.per_used_gpu_hour))
    return Section(title=way.name, lines=tuple(lines))


def _break_evens(plan: CostPlan) -> Section:
    lines = []
    for one, other in combinations(plan.ways, 2):
        share = break_even(plan, one, other)
        lines.append(Line(name=f"{one} and {other}", says=_says(share)))
    return Section(title="Cost the same when used", lines=tuple(lines))


def _says(share: Quantity | None) -> str:
    return "at no share of the time" if share is None else f"{share.number:.1%} of the time"
