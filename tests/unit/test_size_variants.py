"""Sweeps with their knee, and what-ifs."""

import pytest

from railwright.sizing.ask_memory import MemoryQuestion
from railwright.sizing.ask_step import StepQuestion
from railwright.sizing.document import Point
from railwright.sizing.parallel import SizingError
from railwright.sizing.units import Quantity
from railwright.sizing.variants import assignment, knee, sweep, values_of, varied, what_if


def question(**more: object) -> StepQuestion:
    given = {"gpu": "h100", "nodes": 8, "model": "llama-3-70b", "tensor": 8, "batch": 512}
    return StepQuestion.model_validate({**given, **more})


def points(*speeds: tuple[int, float]) -> list[Point]:
    return [Point(value=str(nodes), speed=Quantity(speed, "token/s")) for nodes, speed in speeds]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("8,16, 32", ["8", "16", "32"]),
        ("8..64", ["8", "16", "32", "64"]),
        ("6..50", ["6", "12", "24", "48"]),
        ("8..32+8", ["8", "16", "24", "32"]),
        ("400Gb/s,800Gb/s", ["400Gb/s", "800Gb/s"]),
    ],
)
def test_the_values_of_a_sweep(text: str, values: list[str]) -> None:
    assert values_of(text) == values


@pytest.mark.parametrize("text", ["", ",", "0..8", "8..4", "8..4+1", "1..9+0"])
def test_a_sweep_without_values_is_refused(text: str) -> None:
    with pytest.raises(SizingError, match=r"expected values, such as 8,16,32 or 8\.\.64, got none"):
        values_of(text)


@pytest.mark.parametrize("text", ["1..201+1", "1..1000000000000+1", ",".join("8" * 201)])
def test_a_sweep_of_too_many_values_is_refused_before_they_are_made(text: str) -> None:
    with pytest.raises(SizingError, match="expected 200 values at most"):
        values_of(text)


def test_a_sweep_may_have_200_values() -> None:
    assert len(values_of("1..200+1")) == 200


@pytest.mark.parametrize("text", ["nodes", "=8", "nodes=", " = "])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(SizingError, match="expected NAME=VALUE"):
        assignment(text)


def test_an_input_that_is_not_known_is_told_with_the_nearest() -> None:
    with pytest.raises(SizingError, match=r"no input 'node' \(did you mean nodes\?\)"):
        sweep(question(), "node=8,16")


def test_a_value_that_an_input_does_not_take_is_refused() -> None:
    with pytest.raises(SizingError, match="--rail-rate: expected an amount in B/s, such as"):
        varied(question(), {"rail_rate": "400"})


def test_what_comes_from_files_is_no_input() -> None:
    assert not {"found", "measured"} & set(question().inputs())


def test_the_knee_is_the_last_point_before_more_bring_less_than_half() -> None:
    assert knee(points((1, 100), (2, 190), (4, 330), (8, 400), (16, 410))) == "4"


def test_a_sweep_that_scales_has_no_knee() -> None:
    assert knee(points((1, 100), (2, 200), (4, 380))) is None
    assert knee(points((4, 100))) is None
    assert knee([]) is None


def test_the_order_of_the_values_does_not_move_the_knee() -> None:
    assert knee(points((8, 400), (1, 100), (4, 330), (2, 190))) == "4"


def test_a_sweep_over_nodes_has_efficiency_and_a_knee() -> None:
    found = sweep(question(rail_rate="25Gb/s", pipeline=4), "nodes=8..1024")
    assert found.points[0].efficiency == pytest.approx(1.0)
    shares = [point.efficiency for point in found.points if point.efficiency is not None]
    assert shares == sorted(shares, reverse=True)
    assert found.knee is not None
    assert 8 <= int(found.knee) < 1024


def test_values_that_cannot_be_are_listed_with_their_reason() -> None:
    found = sweep(question(), "nodes=8,512,1024")
    refused = {point.value: point.refused for point in found.points if point.refused}
    assert list(refused) == ["1024"]
    assert "batch of 512" in str(refused["1024"])


def test_over_another_input_there_is_no_knee() -> None:
    found = sweep(question(), "rail_rate=100Gb/s,400Gb/s")
    assert found.knee is None
    assert [point.value for point in found.points] == ["100Gb/s", "400Gb/s"]
    assert found.points[0].results["step"].value >= found.points[1].results["step"].value


def test_a_what_if_changes_all_at_once_and_tells_how_results_moved() -> None:
    asked = question(pipeline=4)
    base = asked.answer()
    found = what_if(asked, base, ["peak=1978.8TFLOP/s", "nvlink=900GB/s"])
    assert found.changed == {"peak": "1978.8TFLOP/s", "nvlink": "900GB/s"}
    assert found.moved["step"] == pytest.approx(
        found.answer.results["step"].value / base.results["step"].value - 1
    )
    assert found.moved["step"] < -0.3


def test_a_what_if_names_options_by_dash_or_underscore() -> None:
    asked = MemoryQuestion(gpu="h100", nodes=1, model="llama-3-8b", batch=64)
    found = what_if(asked, asked.answer(), ["micro-batch=2"])
    assert found.moved["memory of a GPU"] > 0
