"""Times that may not be reached, against scipy and numbers worked by hand."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from studies.analysis.survival import Time, kaplan_meier, log_rank


def censored(times: list[Time]) -> stats.CensoredData:
    return stats.CensoredData(
        uncensored=[one.steps for one in times if one.reached],
        right=[one.steps for one in times if not one.reached],
    )


def drawn(seed: int, n: int, cap: int = 60) -> list[Time]:
    steps = np.random.default_rng(seed).integers(1, 100, n)
    return [Time(min(int(one), cap), bool(one < cap)) for one in steps]


def test_a_curve_is_worked_by_hand() -> None:
    # Reached at 100 (4 under way), 200 (3) and never by the two that end at 300.
    found = kaplan_meier([Time(100), Time(200), Time(300, False), Time(300, False)])

    assert found.times == (100, 200)
    assert found.share == pytest.approx((3 / 4, 3 / 4 * 2 / 3))
    assert found.median == 200
    assert found.restricted_mean == pytest.approx(100 + 100 * 3 / 4 + 100 / 2)
    assert (found.reached, found.runs, found.cap) == (2, 4, 300)


def test_a_median_that_too_few_runs_reach_is_not_known() -> None:
    found = kaplan_meier([Time(100), Time(300, False), Time(300, False)])

    assert found.median is None


def test_runs_that_never_get_there_count_with_the_cap() -> None:
    found = kaplan_meier([Time(300, False)] * 3)

    assert (found.times, found.restricted_mean, found.reached) == ((), 300, 0)


def test_without_censoring_the_restricted_mean_is_the_mean() -> None:
    assert kaplan_meier([Time(1), Time(4), Time(10)]).restricted_mean == pytest.approx(5)


@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_that_of_scipy(seed: int) -> None:
    times = drawn(seed, 12)

    found = kaplan_meier(times)

    theirs = stats.ecdf(censored(times)).sf
    assert found.share == pytest.approx(theirs.evaluate(np.array(found.times)))


def test_a_cap_beyond_what_is_known_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is known beyond step 300; got a cap of 400"):
        kaplan_meier([Time(100), Time(300, False)], cap=400)


def test_a_smaller_cap_looks_less_far() -> None:
    assert kaplan_meier([Time(100), Time(300)], cap=200).restricted_mean == pytest.approx(150)


def test_no_run_has_no_curve() -> None:
    with pytest.raises(ValueError, match="got none"):
        kaplan_meier([])


@pytest.mark.parametrize("steps", [-1.0, float("inf"), float("nan")])
def test_a_time_is_finite_and_not_negative(steps: float) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        Time(steps)


@pytest.mark.parametrize("seed", range(5))
def test_the_statistic_is_that_of_scipy(seed: int) -> None:
    a, b = drawn(seed, 6), drawn(seed + 100, 7)

    ours = log_rank(a, b)

    theirs = stats.logrank(censored(a), censored(b)).statistic
    # scipy counts from the other side.
    assert abs(ours.statistic) == pytest.approx(abs(float(theirs)))


def test_a_run_that_ends_when_another_gets_there_is_still_under_way() -> None:
    a = [Time(10), Time(20, False), Time(30)]
    b = [Time(20), Time(20, False), Time(40)]

    # At 10: 6 under way, 3 of them of a; at 20: 5 and 2; at 30: 2 and 1.
    excess = (1 - 3 / 6) + (0 - 2 / 5) + (1 - 1 / 2)
    variance = 1 / 2 * 1 / 2 + 2 / 5 * 3 / 5 + 1 / 2 * 1 / 2
    assert log_rank(a, b).statistic == pytest.approx(excess / variance**0.5)


def test_the_faster_arm_is_told() -> None:
    fast = [Time(step) for step in (10, 12, 14, 16)]
    slow = [Time(step) for step in (30, 35, 40)] + [Time(50, False)]

    assert log_rank(fast, slow).statistic > 0
    assert log_rank(fast, slow, "greater").p == pytest.approx(1 / 70)
    assert log_rank(slow, fast, "less").p == pytest.approx(1 / 70)
    assert log_rank(fast, slow, "less").p == pytest.approx(1)


def test_arms_that_never_get_there_do_not_differ() -> None:
    never = [Time(100, False)] * 4

    assert log_rank(never, never).p == 1.0


def test_an_arm_without_runs_is_refused() -> None:
    with pytest.raises(ValueError, match="got 1 and 0"):
        log_rank([Time(1)], [])


run = st.builds(Time, st.integers(1, 9).map(float), st.booleans())
runs = st.lists(run, min_size=1, max_size=4)


@given(a=runs, b=runs)
def test_swapping_the_arms_turns_the_statistic_round(a: list[Time], b: list[Time]) -> None:
    one, other = log_rank(a, b), log_rank(b, a)

    assert one.statistic == pytest.approx(-other.statistic)
    assert one.p == pytest.approx(other.p)


def test_the_permutation_test_keeps_its_level() -> None:
    generator = np.random.default_rng(0)
    rejected = 0
    for _ in range(400):
        steps = generator.exponential(50, 10).round() + 1
        times = [Time(min(int(one), 60), bool(one < 60)) for one in steps]
        rejected += log_rank(times[:5], times[5:]).p <= 0.05
    # Exact, so at most 5 %; four standard errors of 400 draws are .044.
    assert rejected / 400 <= 0.05 + 0.044


@pytest.mark.parametrize("never", [0, 1])
def test_the_median_is_the_time_by_which_half_of_the_runs_got_there(never: int) -> None:
    # Of n runs at the steps 1 to n, half are there by step n / 2: for n = 24 the product of the
    # shares is .5000000000000001 there.
    for n in range(2, 61):
        reached = [Time(step) for step in range(1, n + 1 - never)]

        found = kaplan_meier([*reached, *[Time(100, False)] * never])

        assert found.median == (n + 1) // 2


def worked(times: list[Time], first: set[int]) -> Fraction:
    """The square of the log-rank statistic with its sign, in whole numbers."""
    excess, variance = Fraction(), Fraction()
    for moment in {one.steps for one in times if one.reached}:
        under_way = [place for place, one in enumerate(times) if one.steps >= moment]
        here = [place for place in under_way if times[place].steps == moment]
        here = [place for place in here if times[place].reached]
        n, d, n_first = len(under_way), len(here), len(first.intersection(under_way))
        excess += len(first.intersection(here)) - Fraction(d * n_first, n)
        if n > 1:
            variance += Fraction(d * n_first * (n - n_first) * (n - d), n * n * (n - 1))
    if variance == 0:
        return Fraction()
    return (1 if excess > 0 else -1) * excess**2 / variance


@pytest.mark.parametrize("seed", range(12))
def test_its_p_value_counts_the_splits_as_in_whole_numbers(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n_a, n_b = draw.integers(1, 5, 2).tolist()
    times = [Time(int(draw.integers(1, 7)), bool(draw.random() < 0.7)) for _ in range(n_a + n_b)]
    every = [worked(times, {*one}) for one in combinations(range(n_a + n_b), n_a)]
    expected = {
        "greater": np.mean([one >= every[0] for one in every]),
        "less": np.mean([one <= every[0] for one in every]),
        "two-sided": np.mean([abs(one) >= abs(every[0]) for one in every]),
    }

    found = {
        side: log_rank(times[:n_a], times[n_a:], side).p
        for side in ("greater", "less", "two-sided")
    }

    assert found == pytest.approx(expected, abs=1e-9)


@given(times=st.lists(run, min_size=1, max_size=7), cap=st.integers(1, 9))
def test_the_restricted_mean_adds_up_the_shares_under_way_step_by_step(
    times: list[Time], cap: int
) -> None:
    cap = min(cap, int(max(one.steps for one in times)))
    share, total = Fraction(1), Fraction()
    for step in range(1, cap + 1):
        total += share
        under_way = sum(one.steps >= step for one in times)
        ending = sum(one.steps == step and one.reached for one in times)
        share *= 1 - Fraction(ending, under_way)

    assert kaplan_meier(times, cap).restricted_mean == pytest.approx(float(total), abs=1e-9)
