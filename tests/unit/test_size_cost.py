"""Costs of own, reserved and on-demand GPUs, by figures that a plan has."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from railwright.sizing.cost import EXAMPLE, CostPlan, break_even, costs, load_plan
from railwright.sizing.parallel import SizingError
from railwright.sizing.units import Quantity, read

OWN = {
    "kind": "own",
    "purchase": "1,000,000 EUR",
    "life": "4 years",
    "power": "1000 W",
    "pue": 1.5,
    "energy": "0.10 EUR/kWh",
}
DEMAND = {"kind": "on_demand", "rate": "2 EUR/GPU·h"}
RESERVED = {"kind": "reserved", "rate": "1 EUR/GPU·h", "term": "2 years"}


def plan(used: float = 1.0, time: str = "1 year", **ways: dict[str, object]) -> CostPlan:
    whole = ways or {"own": OWN, "reserved": RESERVED, "on demand": DEMAND}
    return CostPlan.model_validate({"gpus": 100, "time": time, "used": used, "ways": whole})


def total(of: CostPlan, name: str) -> float:
    (found,) = [way for way in costs(of) if way.name == name]
    assert found.total.unit == "EUR"
    return found.total.value


def test_own_hardware_is_written_off_and_fed() -> None:
    """A quarter of a million, and 100 × 1 kW × 8766 h × 1.5 × 0.10 EUR."""
    (found,) = [way for way in costs(plan()) if way.name == "own"]
    assert found.parts["hardware"].value == pytest.approx(250_000)
    assert found.parts["energy"].value == pytest.approx(100 * 8766 * 1.5 * 0.10)
    assert found.total.value == pytest.approx(250_000 + 131_490)


def test_idle_gpus_draw_their_share_of_power() -> None:
    (found,) = costs(plan(used=0.0, own=OWN))
    assert found.parts["energy"].value == pytest.approx(0.3 * 131_490)


def test_interest_support_and_resale_follow_the_price() -> None:
    more = {**OWN, "interest": 0.06, "support": 0.05, "resale": 0.2, "staff": "1000 EUR/month"}
    (found,) = costs(plan(own=more))
    assert found.parts["hardware"].value == pytest.approx(200_000)
    assert found.parts["interest"].value == pytest.approx(30_000)
    assert found.parts["support"].value == pytest.approx(50_000)
    assert found.parts["staff"].value == pytest.approx(12_000)


def test_on_demand_costs_while_used_and_reserved_for_its_whole_term() -> None:
    hours = 100 * 8766
    assert total(plan(used=0.5), "on demand") == pytest.approx(hours)
    assert total(plan(used=0.5), "reserved") == pytest.approx(2 * hours)
    assert total(plan(time="3 years"), "reserved") == pytest.approx(3 * hours)


def test_egress_is_paid_by_the_byte() -> None:
    way = {**DEMAND, "egress": "50 EUR/TB"}
    whole = {"gpus": 1, "time": "12 months", "used": 0.0, "egress_per_month": "10 TB"}
    (found,) = costs(CostPlan.model_validate({**whole, "ways": {"one": way}}))
    assert found.parts == {"egress": found.total}
    assert found.total.value == pytest.approx(6000)


def test_a_used_gpu_hour_costs_the_total_over_the_hours() -> None:
    (found,) = costs(plan(used=0.5, one=DEMAND))
    assert found.per_used_gpu_hour.value == pytest.approx(2.0)


def test_both_cost_the_same_at_the_break_even() -> None:
    share = break_even(plan(), "own", "on demand")
    assert share is not None
    at = plan(used=share.number)
    assert total(at, "own") == pytest.approx(total(at, "on demand"))


def test_ways_that_never_cost_the_same_have_no_break_even() -> None:
    dear = {**DEMAND, "rate": "3 EUR/GPU·h", "staff": "1 EUR/month"}
    assert break_even(plan(one=DEMAND, other=dear), "one", "other") is None
    assert break_even(plan(one=DEMAND, other=DEMAND), "one", "other") is None


def test_two_currencies_are_refused() -> None:
    with pytest.raises(SizingError, match="not in one currency: EUR and USD do not mix"):
        costs(plan(own={**OWN, "staff": "1000 USD/month"}))


def test_ways_in_two_currencies_are_not_compared() -> None:
    dollars = {**DEMAND, "rate": "2 USD/GPU·h"}
    with pytest.raises(SizingError, match="not in one currency: EUR and USD do not mix"):
        costs(plan(one=DEMAND, other=dollars))


def test_a_way_that_costs_nothing_does_so_in_its_own_currency() -> None:
    found = costs(plan(used=0.0, one={**DEMAND, "rate": "2 USD/GPU·h"}))
    assert found[0].total == Quantity(0.0, "USD")


def test_hours_that_nobody_uses_have_no_cost_each() -> None:
    unused = {way.name: way.per_used_gpu_hour for way in costs(plan(used=0.0))}
    assert set(unused.values()) == {None}
    used = {way.name: way.per_used_gpu_hour for way in costs(plan(used=0.5))}
    assert used["on demand"] == Quantity(pytest.approx(2.0), "EUR")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"purchase": "1,000,000"}, "expected an amount such as 100 EUR"),
        ({"energy": "0.10 EUR"}, "expected an amount such as 100 EUR/kWh"),
        ({"energy": 0.10}, "with its currency"),
        ({"pue": 0.9}, "greater than or equal to 1"),
        ({"life": "0 years"}, "expected more than 0 s"),
        ({"energy": "0,15 EUR/kWh"}, "decimals are written with a point"),
        ({"kind": "cloud"}, "kind"),
        ({"purchase": "-1 EUR"}, "expected"),
    ],
)
def test_a_figure_that_cannot_be_is_refused(
    change: dict[str, object], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    document = {"gpus": 1, "time": "1 year", "ways": {"own": {**OWN, **change}}}
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ValueError, match=r"plan\.yaml: ways\.own") as error:
        load_plan(path)
    assert reason in str(error.value)


@pytest.mark.parametrize("text", ["", "ways: {", "[]", "\0"])
def test_a_file_that_is_no_plan_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"plan\.yaml: "):
        load_plan(path)


def test_the_example_is_a_plan_and_names_no_vendor() -> None:
    found = costs(CostPlan.model_validate(yaml.safe_load(EXAMPLE)))
    assert [way.name for way in found] == ["own", "reserved", "on demand"]
    assert all(way.total.value > 0 for way in found)
    assert "nobody's prices" in EXAMPLE


@given(st.floats(0, 1), st.floats(0, 1))
def test_using_gpus_more_never_costs_less(one: float, other: float) -> None:
    less, more = sorted((one, other))
    for name in ("own", "reserved", "on demand"):
        assert total(plan(used=less), name) <= total(plan(used=more), name) * (1 + 1e-9)


@given(st.integers(1, 50))
def test_parts_add_up_to_the_total(months: int) -> None:
    for way in costs(plan(time=f"{months} months")):
        assert way.total.value == pytest.approx(sum(part.value for part in way.parts.values()))


def test_money_of_energy_is_power_over_time_at_its_price() -> None:
    assert (read("1 kWh") * read("0.25 EUR/kWh")) == Quantity(pytest.approx(0.25), "EUR")
