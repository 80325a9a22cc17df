"""What GPUs cost in three ways of having them, from figures that the user fills in.

No price comes with railwright. The currency is the one that the figures are in, and mixing two is
refused. A plan is YAML; ``railwright size cost --example`` prints one.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from railwright.model import Model
from railwright.sizing.fields import Bytes, Power, Seconds, Span
from railwright.sizing.parallel import SizingError
from railwright.sizing.units import Quantity, UnitError, read

Share = Annotated[float, Field(ge=0, le=1)]
_MONTH = read("1 month")


def _price(per: str) -> Callable[[object], object]:
    """A reader of an amount of money, of any currency, per ``per``."""
    wanted = read(f"1 {per}").unit if per else ""

    def check(given: object) -> object:
        amount = read(given) if isinstance(given, str) else given
        if not isinstance(amount, Quantity):
            raise UnitError(f"expected an amount of money with its currency, got {given!r}")
        money = amount * Quantity(1.0, wanted) if wanted else amount
        if len(money.unit) != 3 or not money.unit.isupper() or money.value < 0:
            raise UnitError(f"expected an amount such as 100 EUR{'/' + per if per else ''}")
        return amount

    return check


Money = Annotated[Quantity, BeforeValidator(_price(""))]
PerMonth = Annotated[Quantity, BeforeValidator(_price("month"))]
PerGpuHour = Annotated[Quantity, BeforeValidator(_price("GPU·h"))]
PerKwh = Annotated[Quantity, BeforeValidator(_price("kWh"))]
PerByte = Annotated[Quantity, BeforeValidator(_price("TB"))]


class Own(Model):
    """Hardware of one's own: bought once, written off over its life, and run."""

    kind: Literal["own"]
    purchase: Money = Field(description="Servers, network and storage together.")
    life: Span = Field(description="Time over which it is written off.")
    resale: Share = Field(default=0.0, description="Share of the price that is left after it.")
    interest: Share = Field(default=0.0, description="Interest a year, on half of the price.")
    power: Power = Field(description="Of one GPU with its share of the server, under load.")
    idle_power: Share = Field(default=0.3, description="Share of that power where it idles.")
    pue: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        description="Power usage effectiveness."
    )
    energy: PerKwh
    space: PerMonth | None = None
    support: Share = Field(default=0.0, description="Share of the price a year.")
    staff: PerMonth | None = None


class Reserved(Model):
    """Rented for a term, paid whether used or not."""

    kind: Literal["reserved"]
    rate: PerGpuHour
    term: Seconds = Field(description="Time that is paid for at least.")
    storage: PerMonth | None = None
    egress: PerByte | None = None
    staff: PerMonth | None = None


class OnDemand(Model):
    """Rented by the hour, paid while used."""

    kind: Literal["on_demand"]
    rate: PerGpuHour
    storage: PerMonth | None = None
    egress: PerByte | None = None
    staff: PerMonth | None = None


Delivery = Annotated[Own | Reserved | OnDemand, Field(discriminator="kind")]


class CostPlan(Model):
    """What is compared: so many GPUs for so long, in each of the ways."""

    gpus: Annotated[int, Field(ge=1)]
    time: Span
    used: Share = Field(default=1.0, description="Share of the time that the GPUs work.")
    egress_per_month: Bytes = Quantity(0.0, "B")
    ways: dict[str, Delivery] = Field(min_length=1)


class WayCost(Model):
    """What one way costs over the whole time."""

    name: str
    parts: dict[str, Quantity]
    total: Quantity
    per_used_gpu_hour: Quantity | None = Field(description="Null where no hour is used.")


def costs(plan: CostPlan) -> tuple[WayCost, ...]:
    """Each way's cost, in the plan's order. Raises SizingError for figures in two currencies."""
    try:
        found = tuple(_cost(plan, name, way) for name, way in plan.ways.items())
        _sum([way.total for way in found])
        return found
    except UnitError as error:
        raise SizingError(f"the figures are not in one currency: {error}") from error


def _cost(plan: CostPlan, name: str, way: Own | Reserved | OnDemand) -> WayCost:
    parts = _own(plan, way) if isinstance(way, Own) else _rented(plan, way)
    parts = {part: amount for part, amount in parts.items() if amount.value}
    price = way.purchase if isinstance(way, Own) else way.rate
    total = _sum([Quantity(0.0, price.unit.split("/")[0]), *parts.values()])
    hours = plan.gpus * plan.time.value * plan.used / 3600
    per_hour = total / hours if hours else None
    return WayCost(name=name, parts=parts, total=total, per_used_gpu_hour=per_hour)


def _sum(amounts: list[Quantity]) -> Quantity:
    total = amounts[0]
    for amount in amounts[1:]:
        total = total + amount
    return total


def _own(plan: CostPlan, way: Own) -> dict[str, Quantity]:
    lives = (plan.time / way.life).number
    years = (plan.time / read("1 year")).number
    busy = plan.used + (1 - plan.used) * way.idle_power
    energy = way.power * plan.time * (plan.gpus * busy * way.pue)
    return {
        "hardware": way.purchase * ((1 - way.resale) * lives),
        "interest": way.purchase * (way.interest / 2 * years),
        "energy": energy * way.energy,
        "space": _over(plan, way.space),
        "support": way.purchase * (way.support * years),
        "staff": _over(plan, way.staff),
    }


def _rented(plan: CostPlan, way: Reserved | OnDemand) -> dict[str, Quantity]:
    paid = plan.time * plan.used
    if isinstance(way, Reserved):
        paid = max(plan.time, way.term)
    hours = Quantity(plan.gpus * paid.value, "GPU·s")
    egress = Quantity(0.0, way.rate.unit.split("/")[0])
    if way.egress is not None:
        egress = way.egress * plan.egress_per_month * (plan.time / _MONTH).number
    return {
        "GPUs": way.rate * hours,
        "storage": _over(plan, way.storage),
        "egress": egress,
        "staff": _over(plan, way.staff),
    }


def _over(plan: CostPlan, monthly: Quantity | None) -> Quantity:
    return monthly * plan.time if monthly is not None else Quantity(0.0)


def break_even(plan: CostPlan, one: str, other: str) -> Quantity | None:
    """The share of time in use at which both ways cost the same; None where they never do.

    The cost of each way is a straight line over the share, so two points of it are enough.
    """
    lines = []
    for name in (one, other):
        ends = []
        for used in (0.0, 1.0):
            at = plan.model_copy(update={"used": used, "ways": {name: plan.ways[name]}})
            ends.append(costs(at)[0].total.value)
        lines.append((ends[0], ends[1] - ends[0]))
    (start, slope), (other_start, other_slope) = lines
    if slope == other_slope:
        return None
    share = (other_start - start) / (slope - other_slope)
    return Quantity(share) if 0 < share <= 1 else None


def load_plan(path: Path) -> CostPlan:
    """The plan in ``path``. Raises ValueError in words where it is none."""
    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        return CostPlan.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        reason = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{path}: {where}: {reason}") from error
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: {error}") from error


EXAMPLE = """\
# Put your own figures in: these are round numbers and nobody's prices.
gpus: 256
time: 36 months
used: 0.7                        # the share of the time that the GPUs work
egress_per_month: 20 TB
ways:
  own:
    kind: own
    purchase: 10,000,000 EUR     # servers, network and storage
    life: 48 months
    resale: 0.1
    interest: 0.05
    power: 1300 W                # of one GPU with its share of the server
    pue: 1.3
    energy: 0.15 EUR/kWh
    space: 20,000 EUR/month
    support: 0.04
    staff: 30,000 EUR/month
  reserved:
    kind: reserved
    rate: 2.00 EUR/GPU·h
    term: 36 months
    storage: 15,000 EUR/month
    egress: 50 EUR/TB
    staff: 10,000 EUR/month
  on demand:
    kind: on_demand
    rate: 4.00 EUR/GPU·h
    storage: 15,000 EUR/month
    egress: 50 EUR/TB
    staff: 10,000 EUR/month
"""
