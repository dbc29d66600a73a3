"""The permutation test against splits counted by hand, scipy, and its laws."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from studies.analysis.permutation import (
    Alternative,
    permutation_test,
    smallest_p,
    splits_of,
)


def test_two_against_two_is_counted_by_hand() -> None:
    # Of the 6 splits of {1, 2, 5, 9}, {5, 9} against {1, 2} is the most extreme; |t| is as large
    # for its mirror image alone.
    assert permutation_test([5.0, 9.0], [1.0, 2.0], "greater").p == pytest.approx(1 / 6)
    assert permutation_test([5.0, 9.0], [1.0, 2.0], "less").p == 1.0
    assert permutation_test([5.0, 9.0], [1.0, 2.0]).p == pytest.approx(2 / 6)


def test_eight_against_eight_looks_at_all_12870_splits() -> None:
    test = permutation_test([float(i) for i in range(8)], [float(i) for i in range(100, 108)])

    assert (test.splits, test.exact) == (12_870, True)
    assert test.p == pytest.approx(2 / 12_870)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("sizes", [(3, 3), (4, 6), (7, 5)])
def test_it_is_the_exact_test_of_scipy_for_welchs_t(
    alternative: Alternative, sizes: tuple[int, int]
) -> None:
    generator = np.random.default_rng(sum(sizes))
    a, b = generator.normal(0.5, 1, sizes[0]), generator.normal(0, 3, sizes[1])

    def welch(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(stats.ttest_ind(x, y, axis=axis, equal_var=False)[0])

    theirs = stats.permutation_test(
        (a, b), welch, vectorized=True, n_resamples=10**6, alternative="greater"
    )
    t = np.asarray(theirs.null_distribution)
    extreme = {
        "greater": t >= theirs.statistic - 1e-9,
        "less": t <= theirs.statistic + 1e-9,
        "two-sided": np.abs(t) >= abs(theirs.statistic) - 1e-9,
    }

    ours = permutation_test(a.tolist(), b.tolist(), alternative)

    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.p == pytest.approx(extreme[alternative].mean())


def test_equal_constants_do_not_differ() -> None:
    test = permutation_test([0.1 + 0.2] * 8, [0.3] * 8)

    assert (test.p, test.statistic) == (1.0, 0.0)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("sizes", [(8, 8), (5, 7), (20, 20)])
def test_different_constants_reach_the_smallest_p(
    alternative: Alternative, sizes: tuple[int, int]
) -> None:
    test = permutation_test([1.0] * sizes[0], [0.2] * sizes[1], alternative)

    assert test.p == pytest.approx(smallest_p(*sizes, alternative))
    assert test.statistic == math.inf


def test_one_constant_arm_is_no_obstacle() -> None:
    test = permutation_test([1.0] * 5, [0.1, 0.3, 0.2, 0.4, 0.5])

    assert test.p == pytest.approx(2 / 252)
    assert math.isfinite(test.statistic)


@pytest.mark.parametrize(("n", "two_sided"), [(3, 0.1), (4, 2 / 70), (5, 0.0079), (8, 0.00016)])
def test_the_smallest_p_is_the_printed_one(n: int, two_sided: float) -> None:
    assert smallest_p(n, n) == pytest.approx(two_sided, rel=0.04)
    assert smallest_p(n, n, "greater") == pytest.approx(two_sided / 2, rel=0.04)


def test_where_there_are_too_many_splits_some_are_drawn() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(0.9, 1, 12).tolist(), generator.normal(0, 1, 12).tolist()

    drawn = permutation_test(a, b, seed=1)
    again = permutation_test(a, b, seed=1)
    other = permutation_test(a, b, seed=2)

    assert not drawn.exact
    assert drawn.splits == 20_000
    assert drawn == again
    assert drawn.p != other.p
    # Welch's test is close to it for normal values; the drawing itself has a standard error
    # of sqrt(.04 * .96 / 20000) = .0014.
    expected = stats.ttest_ind(a, b, equal_var=False)[1]
    assert drawn.p == pytest.approx(expected, abs=0.01)
    assert drawn.p == pytest.approx(other.p, abs=0.01)


def test_drawn_splits_have_the_right_sizes_and_the_observed_one_first() -> None:
    splits = splits_of(12, 9)

    assert (splits.first.sum(axis=1) == 12).all()
    assert splits.first[0].tolist() == [True] * 12 + [False] * 9


values = st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=4)


@given(a=values, b=values)
def test_swapping_the_arms_swaps_the_sides(a: list[float], b: list[float]) -> None:
    assert permutation_test(a, b, "greater").p == permutation_test(b, a, "less").p
    assert permutation_test(a, b).p == permutation_test(b, a).p


@given(a=values, b=values, shift=st.integers(-100, 100), scale=st.sampled_from([0.5, 2.0, 64.0]))
def test_the_unit_of_the_values_does_not_matter(
    a: list[float], b: list[float], shift: int, scale: float
) -> None:
    changed_a, changed_b = ([scale * (value + shift) for value in sample] for sample in (a, b))

    assert permutation_test(changed_a, changed_b).p == permutation_test(a, b).p


@given(a=values, b=values)
def test_a_p_value_is_no_smaller_than_one_split(a: list[float], b: list[float]) -> None:
    for alternative in ("two-sided", "greater", "less"):
        p = permutation_test(a, b, alternative).p
        assert math.comb(len(a) + len(b), len(a)) ** -1 <= p + 1e-12
        assert p <= 1


@pytest.mark.parametrize(
    ("a", "b"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], []), ([1.0, math.nan], [1.0, 2.0])]
)
def test_what_cannot_be_tested_is_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="at least two finite values an arm"):
        permutation_test(a, b)


KINDS = {
    "works or fails": lambda draw: Fraction(draw.integers(0, 2)),
    "in tenths": lambda draw: Fraction(draw.integers(0, 11), 10),
    "in thirds": lambda draw: Fraction(draw.integers(0, 7), 6),
    "near the ceiling": lambda draw: Fraction(draw.choice([1000, 1000, 999, 998]), 1000),
}


def exactly(a: list[Fraction], b: list[Fraction]) -> Fraction | float:
    """The square of Welch's t with its sign, in whole numbers: a tie is a tie."""

    def mean(values: list[Fraction]) -> Fraction:
        return sum(values, Fraction()) / len(values)

    difference = mean(a) - mean(b)
    variance = sum(
        sum((one - mean(values)) ** 2 for one in values) / (len(values) - 1) / len(values)
        for values in (a, b)
    )
    sign = 1 if difference > 0 else -1
    if variance == 0:
        return 0 if difference == 0 else sign * math.inf
    return sign * difference**2 / variance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(2, 2), (2, 5), (4, 3), (4, 4)])
def test_ties_and_constant_groups_are_counted_as_in_whole_numbers(
    kind: str, sizes: tuple[int, int]
) -> None:
    draw, n_a = np.random.default_rng(sum(sizes)), sizes[0]
    for _ in range(6):
        pooled = [KINDS[kind](draw) for _ in range(sum(sizes))]
        if draw.random() < 0.3:
            pooled[:n_a] = [pooled[0]] * n_a
        every = [
            exactly(
                [pooled[place] for place in chosen],
                [one for place, one in enumerate(pooled) if place not in chosen],
            )
            for chosen in combinations(range(len(pooled)), n_a)
        ]
        observed, values = every[0], [float(one) for one in pooled]
        expected = {
            "greater": np.mean([one >= observed for one in every]),
            "less": np.mean([one <= observed for one in every]),
            "two-sided": np.mean([abs(one) >= abs(observed) for one in every]),
        }

        found = {
            side: permutation_test(values[:n_a], values[n_a:], side).p
            for side in ("greater", "less", "two-sided")
        }

        assert found == pytest.approx(expected, abs=1e-9)
