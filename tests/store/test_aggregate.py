"""Intervals and quantiles against values worked by hand, printed tables and SciPy."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from store.aggregate import Held, Interval, held, t_interval, t_quantile, wilson
from store.errors import StoreError
from tests.messages import Messages


def test_t_interval_of_four_values() -> None:
    # Mean 2.5, s = sqrt(5/3), s / sqrt(4) = 0.645497; t(3, 0.975) = 3.182446.
    interval = t_interval([1.0, 2.0, 3.0, 4.0])
    assert interval.mean == 2.5
    assert interval.low == pytest.approx(2.5 - 3.182446 * 0.6454972, abs=1e-6)
    assert interval.high == pytest.approx(2.5 + 3.182446 * 0.6454972, abs=1e-6)
    assert interval.n == 4


def test_t_interval_widens_with_the_level() -> None:
    # t(1, 0.95) = 6.313752; two values 0 and 2: mean 1, s / sqrt(2) = 1.
    interval = t_interval([0.0, 2.0], level=0.90)
    assert interval.high == pytest.approx(1 + 6.313752, abs=1e-6)


def test_one_value_has_no_bounds() -> None:
    assert t_interval([0.5]) == Interval(0.5, None, None, 1)


def test_equal_values_have_no_width() -> None:
    assert t_interval([0.1] * 3) == Interval(0.1, 0.1, 0.1, 3)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_t_interval_refuses_what_has_no_mean(messages: Messages, values: list[float]) -> None:
    with messages.raises(StoreError):
        t_interval(values)


def test_wilson_of_half() -> None:
    # p = 0.5, n = 10, z = 1.959964: half width = z sqrt(0.025 + z^2/400) / (1 + z^2/10).
    share = wilson(5, 10)
    assert share.mean == 0.5
    assert share.low == pytest.approx(0.236593, abs=1e-6)
    assert share.high == pytest.approx(0.763407, abs=1e-6)


def test_wilson_of_none_and_of_all() -> None:
    # z^2 / (n + z^2) = 3.841459 / 11.841459 for n = 8.
    none, every = wilson(0, 8), wilson(8, 8)
    assert (none.low, every.high) == (0.0, 1.0)
    assert none.high == pytest.approx(0.324408, abs=1e-6)
    assert every.low == pytest.approx(1 - 0.324408, abs=1e-6)


@pytest.mark.parametrize(("k", "n"), [(1, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_share(k: int, n: int) -> None:
    with pytest.raises(StoreError, match=f"got k={k}, n={n}"):
        wilson(k, n)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_lies_between_0_and_1(messages: Messages, level: float) -> None:
    with messages.raises(StoreError):
        t_interval([1.0, 2.0], level)
    with messages.raises(StoreError):
        wilson(1, 2, level)


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([(16, 0.9), (32, 0.8), (64, 0.7)], Held(32, first_length_below=64)),
        ([(16, 0.7), (32, 0.9)], Held(None, first_length_below=16)),
        ([(16, 0.9), (32, 0.9)], Held(32)),
        ([(16, 0.9), (32, None), (64, 0.9)], Held(16, unmeasured=32)),
        ([(16, None)], Held(None, unmeasured=16)),
        ([], Held()),
    ],
)
def test_an_arm_holds_up_to_the_first_length_below_or_unmeasured(
    means: list[tuple[int, float | None]], expected: Held
) -> None:
    assert held(means, 0.8) == expected


@settings(deadline=None, max_examples=25)
@given(st.floats(0.5, 0.9999), st.integers(1, 500))
def test_quantiles_are_those_of_scipy(p: float, freedom: int) -> None:
    expected = float(stdtrit(freedom, p))
    assert t_quantile(p, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("p", "freedom", "printed"),
    [(0.975, 1, 12.7062), (0.975, 7, 2.36462), (0.95, 30, 1.69726), (0.995, 120, 2.61742)],
)
def test_quantiles_are_those_of_the_tables(p: float, freedom: int, printed: float) -> None:
    assert t_quantile(p, freedom) == pytest.approx(printed, abs=5e-5)


@settings(deadline=None, max_examples=25)
@given(st.floats(0.5, 0.999))
def test_one_and_two_degrees_of_freedom_have_closed_forms(p: float) -> None:
    assert t_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-9, abs=1e-9)
    two = (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    assert t_quantile(p, 2) == pytest.approx(two, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("p", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0)])
def test_what_has_no_quantile_is_refused(p: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="a quantile needs"):
        t_quantile(p, freedom)
