"""Summaries over seeds and tasks that a few outliers do not rule, with stratified bootstrap.

Source: Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice" (arXiv:2108.13264).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from store.aggregate import Interval, wilson
from studies.analysis.results import PENDING, StudyResults
from studies.experiment.search import Point, front, setting_in
from studies.experiment.settings import PARAMETERS

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
    """The mean shortfall of runs from a target; what exceeds it does not make up.

    Raises:
        ValueError: If there is no value, or one is not finite.
    """
    return float(np.maximum(target - np.concatenate(_arrays(scores)), 0).mean())


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


LEAST_GAP = 0.2
"""Modes closer than this, in units of skill, are not told apart."""

LEAST_RATIO = 2.0
"""The gap between modes is at least this many times the ranges of both together."""

CHANCE = 0.01
"""At most so often do values that are spread evenly at random look like two groups."""

LEAST_SEEDS = 5
"""With fewer values one group is mostly a single seed."""


@dataclass(frozen=True)
class Modes:
    """Two groups of seeds, by their means.

    `cut` is the threshold if it lies between the groups, else the middle between them; `success`
    the share of seeds in the upper group, with its Wilson interval.
    """

    low: float
    high: float
    cut: float
    success: Interval


def modes(values: Sequence[float], threshold: float = 0.8) -> Modes | None:
    """Return the two groups into which values fall, or None where they form one.

    Sorted values are split at their widest gap. They are two groups if there are at least
    `LEAST_SEEDS` of them, the gap is at least `LEAST_GAP`, and it is at least `least_ratio` times
    the range of the lower group plus that of the upper one. Of values that are spread evenly at
    random over any interval, at most `CHANCE` look like that; of normal ones, fewer.
    """
    ordered = sorted(values)
    if len(ordered) < LEAST_SEEDS:
        return None
    gaps = [high - low for low, high in pairwise(ordered)]
    gap = max(gaps)
    split = gaps.index(gap) + 1
    low, high = ordered[:split], ordered[split:]
    within = ordered[-1] - ordered[0] - gap
    if gap < LEAST_GAP or gap < least_ratio(len(ordered)) * within:
        return None
    between = low[-1] < threshold <= high[0]
    cut = threshold if between else (low[-1] + high[0]) / 2
    share = wilson(len(high), len(ordered))
    return Modes(sum(low) / len(low), sum(high) / len(high), cut, share)


def least_ratio(n: int) -> float:
    r"""The least gap between two groups of n values, in units of both ranges together.

    The widest of the n - 1 gaps of evenly spread values takes up a share x of their range or more
    with a probability of at most $(n - 1) (1 - x)^{n - 2}$; a ratio r is a share of r / (1 + r).
    Six times for 5 values, and never less than `LEAST_RATIO`, which 8 and more come down to.

    Source: David & Nagaraja 2003, "Order statistics", section 6.4.
    """
    return max(LEAST_RATIO, ((n - 1) / CHANCE) ** (1 / (n - 2)) - 1)


OVERALL_REPLICATES = 2_000


@dataclass(frozen=True)
class Overall:
    """An arm over all tasks.

    `middle` is the interquartile mean of all its seeds of all tasks, with its stratified bootstrap
    interval (95 %); `gap` by how much they fall short of skill 1 on average; `better`, by other
    arm, how often a seed of this one is better, where as good is half better.
    """

    arm: str
    middle: Interval
    gap: float
    better: Mapping[str, float]


def overall(results: StudyResults) -> list[Overall]:
    """Every arm that has a value on every task, the best first; nothing where there is one task.

    A seed's value is its mean skill over the tested lengths beyond the trained ones.
    """
    scores = _scores(results)
    found = [
        Overall(
            arm,
            stratified_bootstrap([own], interquartile_mean, replicates=OVERALL_REPLICATES),
            optimality_gap(own),
            {o: probability_of_improvement(own, other) for o, other in scores.items() if o != arm},
        )
        for arm, own in scores.items()
    ]
    return sorted(found, key=lambda one: -one.middle.mean)


def _scores(results: StudyResults) -> "dict[str, Scores]":
    asked = [(task, arm) for task, arm in results.arms if task.has_skill and arm.beyond]
    tasks = {task.label for task, _ in asked}
    if len(tasks) < 2:
        return {}
    scores: dict[str, dict[str, list[float]]] = {}
    for task, arm in asked:
        values = arm.measured("skill", arm.beyond)
        if values:
            scores.setdefault(arm.name, {})[task.label] = values
    whole = {arm: of_arm for arm, of_arm in scores.items() if of_arm.keys() == tasks}
    return dict(whole) if len(whole) > 1 else {}


def is_settled(results: "StudyResults") -> bool:
    """Return whether the runs of all arms are over, so that a search can go on from them."""
    return not any(arm.count(*PENDING) or not arm.seeds for _, arm in results.arms)


def points(results: "StudyResults") -> list[Point]:
    """Return the arms that have a value for every objective."""
    plan, search = results.plan, results.plan.search
    assert search is not None
    cells = {cell.arm: cell for cell in reversed(plan.cells())}
    found: list[Point] = []
    for name in plan.arms:
        values = [_value(results, name, metric) for metric in search.objectives]
        known = tuple(value for value in values if value is not None)
        if len(known) == len(values):
            found.append(Point(name, setting_in(plan[cells[name]].config, search), known))
    return found


def best(results: "StudyResults") -> list[Point]:
    """Return the Pareto front of a search, the best of the first objective first."""
    search = results.plan.search
    if search is None:
        return []
    found = {one.arm: one for one in points(results)}
    names = front({arm: one.values for arm, one in found.items()}, list(search.objectives.values()))
    return [found[name] for name in names]


def _value(results: "StudyResults", name: str, metric: str) -> float | None:
    """Return the mean over tasks of an objective of an arm; None where a task lacks it."""
    values: list[float] = []
    for task, arm in results.arms:
        if arm.name != name:
            continue
        if metric == PARAMETERS:
            found = [float(run.parameters) for run in arm.runs if run.parameters is not None]
        else:
            each = (arm.values(metric, task.trained[1], split) for split in ("test", "train"))
            found = [value for of_split in each for value in of_split.values()]
        if not found:
            return None
        values.append(sum(found) / len(found))
    return sum(values) / len(values) if values else None
