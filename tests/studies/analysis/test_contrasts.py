"""Contrasts against numbers worked by hand and against scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from store.aggregate import t_interval
from studies.analysis.contrasts import contrast


def test_two_samples_are_worked_by_hand() -> None:
    # Means 2 and 6, variances 1 and 4 over 3: v = 1/3 and 4/3, so nu = (5/3)^2 / (1/18 + 16/18)
    # = 50/17.
    found = contrast([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]])

    assert found.effect == -4
    assert found.standard_error == pytest.approx(math.sqrt(5 / 3))
    assert found.degrees == pytest.approx(50 / 17)


@pytest.mark.parametrize(("n_a", "n_b"), [(8, 8), (3, 12)])
def test_one_contrast_is_welchs_interval(n_a: int, n_b: int) -> None:
    generator = np.random.default_rng(n_a)
    a, b = generator.normal(1, 1, n_a).tolist(), generator.normal(0, 4, n_b).tolist()

    found = contrast([a, b], level=0.9)

    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_a_family_of_five_gets_one_fifth_of_the_error_each() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(1, 1, 8).tolist(), generator.normal(0, 4, 8).tolist()

    found = contrast([a, b], level=0.95, family=5)

    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.99)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_one_sample_is_students_interval() -> None:
    values = [0.2, 0.5, 0.9, 0.4]

    found = contrast([values], [1.0])

    interval = t_interval(values)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_weights_scale_the_parts() -> None:
    values = [[1.0, 3.0], [2.0, 6.0], [5.0, 5.0]]

    found = contrast(values, [0.5, 0.5, -1.0])

    # (2 + 4) / 2 - 5; variances 2 and 8 over 2 seeds, times 1/4 each.
    assert found.effect == -2
    assert found.standard_error == pytest.approx(math.sqrt(0.25 + 1))


def test_constant_samples_leave_no_width() -> None:
    found = contrast([[0.1] * 3, [0.3] * 3])

    assert found.low == found.high == found.effect == pytest.approx(-0.2)
    assert found.degrees == math.inf


@pytest.mark.parametrize("samples", [[[1.0], [1.0, 2.0]], [[1.0, math.inf], [1.0, 2.0]]])
def test_what_has_no_spread_is_refused(samples: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="at least two finite values a sample"):
        contrast(samples)


def test_every_sample_needs_a_weight() -> None:
    with pytest.raises(ValueError, match="got 2 and 3"):
        contrast([[1.0, 2.0], [1.0, 2.0]], [1.0, 1.0, 1.0])
