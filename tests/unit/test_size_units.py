"""Amounts with their unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.sizing.units import Quantity, UnitError, read, seconds, size


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("80 GB", 80e9, "B"),
        ("80GB", 80e9, "B"),
        ("1 GiB", 2.0**30, "B"),
        ("400 Gb/s", 50e9, "B/s"),
        ("989.4 TFLOP/s", 989.4e12, "FLOP/s"),
        ("14 us", 14e-6, "s"),
        ("120s", 120.0, "s"),
        ("2 days", 172800.0, "s"),
        ("0.12 EUR/kWh", 0.12 / 3.6e6, "EUR/W/s"),
        ("10,000,000 EUR", 1e7, "EUR"),
        ("1,500.25 EUR", 1500.25, "EUR"),
        ("1_000 GB", 1e12, "B"),
        ("2 EUR/GPU·h", 2 / 3600, "EUR/GPU/s"),
        ("40%", 0.4, ""),
        ("1.5e13", 1.5e13, ""),
    ],
)
def test_an_amount_is_read_with_its_unit(text: str, value: float, unit: str) -> None:
    found = read(text)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.unit == unit


@pytest.mark.parametrize("text", ["", "GB", "80 Gbb", "3 GB/", "3 GB/xyz", "1.2.3 GB", "80 GB GB"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match="expected"):
        read(text)


@pytest.mark.parametrize("text", ["1,5 GB", "2,50 EUR/GPU·h", "0,15 EUR/kWh", "10,0000 EUR"])
def test_a_comma_is_no_decimal_point(text: str) -> None:
    """1,5 GB was read as 15 GB."""
    with pytest.raises(UnitError, match="decimals are written with a point"):
        read(text)


def test_an_amount_without_end_is_refused() -> None:
    with pytest.raises(UnitError, match="expected a finite amount"):
        read("1e400 GB")


def test_a_bit_is_an_eighth_of_a_byte() -> None:
    assert read("8 Gb").value == read("1 GB").value


def test_bytes_over_bandwidth_are_seconds() -> None:
    assert size(980e9) / read("8 GB/s") == seconds(122.5)


def test_power_over_time_at_a_price_is_money() -> None:
    cost = read("1 kW") * read("10 h") * read("0.15 EUR/kWh")
    assert cost.unit == "EUR"
    assert cost.value == pytest.approx(1.5)


@pytest.mark.parametrize(("left", "right"), [("1 GB", "1 s"), ("1 EUR", "1 USD"), ("1", "1 s")])
def test_amounts_of_different_units_are_not_added_or_compared(left: str, right: str) -> None:
    with pytest.raises(UnitError, match="do not mix"):
        read(left) + read(right)
    with pytest.raises(UnitError, match="do not mix"):
        assert read(left) < read(right)


def test_a_number_is_had_of_what_has_no_unit_alone() -> None:
    assert (read("6 GB") / read("2 GB")).number == 3
    with pytest.raises(UnitError):
        assert read("6 GB").number


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (read("980e9 B"), "980 GB"),
        (read("8166666666.7 B/s"), "8.1667 GB/s"),
        (seconds(1138.42), "1138.4 s"),
        (seconds(15552000), "180 days"),
        (seconds(7200), "2 h"),
        (seconds(0.0405), "40.5 ms"),
        (seconds(3.4e-6), "3.4 µs"),
        (seconds(0), "0 s"),
        (Quantity(11848242.4, "EUR"), "11,848,242 EUR"),
        (Quantity(2.514, "EUR"), "2.51 EUR"),
        (Quantity(3600 * 30840000, "GPU·s"), "30,840,000 GPU·h"),
        (read("2500 kWh"), "2.5 MWh"),
    ],
)
def test_an_amount_is_printed_with_the_unit_that_reads_best(amount: Quantity, text: str) -> None:
    assert str(amount) == text


UNITS = st.sampled_from(["B", "s", "FLOP", "token", "W·s", "B/s", "FLOP/s", "EUR/GPU/s", ""])
VALUES = st.floats(min_value=1e-6, max_value=1e18)


@given(VALUES, UNITS, VALUES, UNITS)
def test_dividing_undoes_multiplying(a: float, unit: str, b: float, other: str) -> None:
    product = Quantity(a, unit) * Quantity(b, other)
    back = product / Quantity(b, other)
    assert back.unit == (Quantity(1, unit) * Quantity(1, "")).unit
    assert back.value == pytest.approx(a)


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        found: Quantity | str = read(text)
    except UnitError as error:
        found = str(error)
    assert isinstance(found, Quantity) or "expected" in found
