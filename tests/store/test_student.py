"""Quantiles of Student's t against SciPy, printed tables and closed forms."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from store.aggregate import t_quantile


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
