"""Summaries over seeds and tasks against scipy and numbers counted by hand."""

import numpy as np
import pytest
from scipy import stats

from studies.analysis.summaries import (
    Scores,
    interquartile_mean,
    optimality_gap,
    probability_of_improvement,
    stratified_bootstrap,
)


@pytest.mark.parametrize("sizes", [(8, 8), (5, 5, 5), (3, 10), (2,)])
def test_the_interquartile_mean_is_the_trimmed_mean_of_scipy(sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(len(sizes))
    scores = {f"task {n}": generator.normal(size=size).tolist() for n, size in enumerate(sizes)}

    expected = stats.trim_mean(np.concatenate(list(scores.values())), 0.25)

    assert interquartile_mean(scores) == pytest.approx(expected)


def test_the_interquartile_mean_is_counted_by_hand() -> None:
    # Two runs of eight go at either end: (3 + 4 + 5 + 6) / 4.
    assert interquartile_mean({"a": [1.0, 2.0, 3.0, 4.0], "b": [5.0, 6.0, 7.0, 800.0]}) == 4.5


def test_the_optimality_gap_does_not_let_one_run_make_up_for_another() -> None:
    assert optimality_gap({"a": [0.5, 1.0], "b": [2.0, 0.8]}) == pytest.approx(0.7 / 4)


def test_the_probability_of_improvement_is_counted_by_hand() -> None:
    # 2 beats 1, ties 2 and loses to 3; 3 beats 1 and 2 and ties 3: 4 of 6.
    assert probability_of_improvement({"a": [2.0, 3.0]}, {"a": [1.0, 2.0, 3.0]}) == (
        pytest.approx((1 + 0.5 + 2 + 0.5) / 6)
    )


def test_the_probability_of_improvement_averages_the_u_statistics_of_scipy() -> None:
    generator = np.random.default_rng(1)
    one = {task: generator.integers(0, 6, 7).astype(float).tolist() for task in "abc"}
    other = {task: generator.integers(0, 6, 5).astype(float).tolist() for task in "abc"}

    expected = np.mean([stats.mannwhitneyu(one[task], other[task])[0] / (7 * 5) for task in "abc"])

    assert probability_of_improvement(one, other) == pytest.approx(expected)
    assert probability_of_improvement(other, one) == pytest.approx(1 - expected)


def test_the_bootstrap_draws_within_each_task_alone() -> None:
    # Resampled within a task, a task without spread stays what it is.
    scores: Scores = {"a": [0.0] * 6, "b": [1.0] * 6}

    found = stratified_bootstrap([scores], interquartile_mean, replicates=50)

    assert (found.mean, found.low, found.high, found.n) == (0.5, 0.5, 0.5, 6)


def test_the_bootstrap_of_a_mean_is_that_of_scipy() -> None:
    values = np.random.default_rng(2).normal(size=12).tolist()

    def mean(scores: Scores) -> float:
        return float(np.mean(scores["a"]))

    found = stratified_bootstrap([{"a": values}], mean, replicates=4000)

    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(0)
    ).confidence_interval
    # Each end is a quantile of thousands of draws, with a standard error of some .015 here.
    assert found.low == pytest.approx(theirs.low, abs=0.06)
    assert found.high == pytest.approx(theirs.high, abs=0.06)


def test_the_bootstrap_of_two_arms_draws_both() -> None:
    generator = np.random.default_rng(3)
    one = {task: generator.normal(0.4, 1, 15).tolist() for task in "ab"}
    other = {task: generator.normal(0, 1, 15).tolist() for task in "ab"}

    found = stratified_bootstrap([one, other], probability_of_improvement, replicates=500)
    again = stratified_bootstrap([one, other], probability_of_improvement, replicates=500)

    assert found == again
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.mean < found.high < 1


def test_arms_of_other_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"got \['a'\] and \['b'\]"):
        probability_of_improvement({"a": [1.0]}, {"b": [1.0]})


@pytest.mark.parametrize("scores", [{}, {"a": []}, {"a": [float("nan")]}])
def test_what_has_no_summary_is_refused(scores: Scores) -> None:
    with pytest.raises(ValueError, match="at least one value"):
        interquartile_mean(scores)


def test_a_level_lies_between_0_and_1() -> None:
    with pytest.raises(ValueError, match=r"got 95\.0"):
        stratified_bootstrap([{"a": [1.0]}], interquartile_mean, level=95.0)
