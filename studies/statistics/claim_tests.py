"""The p-value of a claim: of a difference, of a difference of differences, or of times."""

from collections.abc import Callable, Sequence

import numpy as np

from studies.experiment.hypothesis import Hypothesis
from studies.statistics.comparisons import Sample
from studies.statistics.crossed_permutation import permuted
from studies.statistics.permutation import Alternative, Splits, permutation_test, splits_of
from studies.statistics.times import Time, log_rank

AllSplits = dict[tuple[int, int], Splits]
"""The splits of samples of two sizes, kept for all claims that share them."""

Test = Callable[[Alternative, float], float]
"""The p-value of an alternative, once so much is added to the first sample."""

SOONER: dict[Alternative, Alternative] = {
    "two-sided": "two-sided",
    "greater": "less",
    "less": "greater",
}
"""Fewer steps are sooner, which is what the log-rank statistic grows with."""

DRAWS, SEED = 9_999, 0
"""Permutations of an interaction, and the seed of their draws."""


def p_value(claim: Hypothesis, parts: Sequence[Sample], splits: AllSplits) -> float:
    """The p-value of a claim about samples without unknown values.

    Of "same" it is the larger one of two one-sided tests against ±δ.

    A difference is tested by permutations of the studentized difference of means, one of times by
    a log-rank test, an interaction by permutations of the residuals of the additive model. Where
    "same" is claimed of times, the means up to the cap are compared.

    Source of the two one-sided tests: Schuirmann 1987, doi:10.1007/BF01068419.
    """
    values = [one.values for one in parts]
    means = _of_means(values, splits) if claim.than is None else _of_interaction(values)
    if claim.direction == "same":
        delta = claim.smallest_effect
        return max(means("less", -delta), means("greater", delta))
    alternative = "two-sided" if claim.direction == "different" else claim.direction
    if claim.than is None and parts[0].reached:
        return _of_times(parts, alternative, splits)
    return means(alternative, 0.0)


def _of_means(values: Sequence[list[float]], splits: AllSplits) -> Test:
    a, b = values
    known = _splits(len(a), len(b), splits)
    return lambda alternative, more: (
        permutation_test([one + more for one in a], b, alternative, known).p
    )


def _of_interaction(values: Sequence[list[float]]) -> Test:
    """The four cells as a table: the change in its rows, the other factor in its columns."""
    weights = np.array([[1.0, -1.0], [-1.0, 1.0]])

    def test(alternative: Alternative, more: float) -> float:
        arm, against, than_arm, than_against = map(np.array, values)
        table = [[arm + more, than_arm], [against, than_against]]
        generator = np.random.default_rng(SEED)
        return permuted("interaction", table, weights, generator, DRAWS, alternative)

    return test


def _of_times(parts: Sequence[Sample], alternative: Alternative, splits: AllSplits) -> float:
    a, b = ([*map(Time, one.values, one.reached)] for one in parts)
    known = _splits(len(a), len(b), splits)
    return log_rank(a, b, SOONER[alternative], known).p


def _splits(n_a: int, n_b: int, known: AllSplits) -> Splits:
    if (n_a, n_b) not in known:
        known[n_a, n_b] = splits_of(n_a, n_b)
    return known[n_a, n_b]
