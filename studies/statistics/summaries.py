"""Summaries over seeds and tasks that a few outliers do not rule, with stratified bootstrap.

Source: Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice" (arXiv:2108.13264).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from store.aggregate import Interval

Scores = Mapping[str, Sequence[float]]
"""The values of one arm, one a seed, by task."""

REPLICATES = 5_000


def interquartile_mean(scores: Scores) -> float:
    """The mean of the middle half of all runs of all tasks: a quarter is cut from either end.

    Of n runs, floor(n / 4) are cut from each end.

    Raises:
        ValueError: If there is no value, or one is not finite.
    """
    values = np.sort(np.concatenate(_arrays(scores)))
    cut = len(values) // 4
    return float(values[cut : len(values) - cut].mean())


def optimality_gap(scores: Scores, target: float = 1.0) -> float:
    """By how much runs fall short of a target on average; what exceeds it does not make up.

    Raises:
        ValueError: If there is no value, or one is not finite.
    """
    values = np.concatenate(_arrays(scores))
    return float(np.maximum(target - values, 0).mean())


def probability_of_improvement(scores: Scores, against: Scores) -> float:
    r"""$P(X > Y) + P(X = Y) / 2$ for a seed of each, averaged over the tasks.

    It tells how often one arm is better, not by how much; .5 where neither is.

    Raises:
        ValueError: If the two do not have the same tasks, or a value is missing or not finite.
    """
    if set(scores) != set(against):
        raise ValueError(
            f"both arms need the same tasks; got {sorted(scores)} and {sorted(against)}"
        )
    each = [_better(*_arrays({"x": scores[task], "y": against[task]})) for task in scores]
    return float(np.mean(each))


def stratified_bootstrap(
    arms: Sequence[Scores],
    statistic: Callable[..., float],
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Return a statistic of one or more arms with its percentile interval.

    Each replicate draws, for every arm and task on its own, as many seeds as there are, with
    replacement. With fewer than ten seeds a task such intervals are too narrow: prefer
    `t_interval` there. `n` of the result is the smallest number of seeds.

    Args:
        arms: One for each argument of the statistic.
        statistic: Such as `interquartile_mean`, or `probability_of_improvement` of two arms.
        level: Of the interval.
        replicates: How many are drawn.
        seed: Of the draws.

    Raises:
        ValueError: If a value is missing or not finite, or the level is not in (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1; got {level}")
    strata = [dict(zip(scores, _arrays(scores), strict=True)) for scores in arms]
    generator = np.random.default_rng(seed)
    drawn = [statistic(*_resampled(strata, generator)) for _ in range(replicates)]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    n = min(len(values) for stratum in strata for values in stratum.values())
    return Interval(statistic(*arms), float(low), float(high), n)


def _resampled(
    strata: Sequence[Mapping[str, np.ndarray]], generator: np.random.Generator
) -> list[dict[str, list[float]]]:
    return [
        {
            task: values[generator.integers(len(values), size=len(values))].tolist()
            for task, values in stratum.items()
        }
        for stratum in strata
    ]


def _better(x: Float[np.ndarray, " x"], y: Float[np.ndarray, " y"]) -> float:
    ordered = np.sort(y)
    below = np.searchsorted(ordered, x, side="left")
    up_to = np.searchsorted(ordered, x, side="right")
    return float((below + up_to).mean() / 2 / len(y))


def _arrays(scores: Scores) -> list[Float[np.ndarray, " _"]]:
    arrays = [np.asarray(values, dtype=float) for values in scores.values()]
    if not arrays or any(not len(values) or not np.isfinite(values).all() for values in arrays):
        raise ValueError(
            f"every task needs at least one value, all of them finite; got {dict(scores)}"
        )
    return arrays
