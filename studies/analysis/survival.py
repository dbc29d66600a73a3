"""Times that may not be reached: the steps to a criterion, when training ends at a cap.

A run that has not reached the criterion when it ends is censored: it would have taken longer than
that. It is neither dropped nor taken to have ended at the cap. Learning speed and final score are
so told apart: how many runs get there, and how soon those that do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Bool, Float

from studies.analysis.permutation import SAME, Alternative, PermutationTest, splits_of, tested


@dataclass(frozen=True)
class Time:
    """The time that one run took.

    Args:
        steps: Until the criterion was reached, or until the run ended without.
        reached: Was it reached?
    """

    steps: int | float
    reached: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.steps < inf:
            raise ValueError(f"a time is finite and not negative; got {self.steps}")


@dataclass(frozen=True)
class Survival:
    """The share of runs that have not reached the criterion, as a step function of time.

    Args:
        times: When runs reached it, ascending.
        share: The share that had not, from that time on.
        median: The first time at which at most half had not; None if more than half never did.
        restricted_mean: The mean time up to the cap: runs that never reach it count with the cap.
        cap: Up to when the restricted mean looks.
        reached: How many runs reached the criterion.
        runs: How many runs there are.
    """

    times: tuple[float, ...]
    share: tuple[float, ...]
    median: float | None
    restricted_mean: float
    cap: float
    reached: int
    runs: int


def kaplan_meier(times: Sequence[Time], cap: int | float | None = None) -> Survival:
    r"""Estimate the share of runs that have not reached a criterion, over time.

    $S(t) = \prod_{t_i \le t} (1 - d_i / n_i)$, where $d_i$ runs reach it at $t_i$ and $n_i$ have
    not before; the restricted mean is $\int_0^{cap} S(t)\,dt$.

    Args:
        times: One a run.
        cap: Up to when to average; by default the longest time. Arms are compared at one cap.

    Raises:
        ValueError: If there is no run, or the cap lies beyond the last time although a run is
            censored there, so that nothing is known about the time between.

    Source: Kaplan & Meier 1958, doi:10.1080/01621459.1958.10501452; restricted mean: Royston &
        Parmar 2013, doi:10.1186/1471-2288-13-152.
    """
    if not times:
        raise ValueError("a survival curve needs at least one run; got none")
    longest = max(float(one.steps) for one in times)
    cap = longest if cap is None else float(cap)
    at_end = any(one.steps == longest and not one.reached for one in times)
    if cap > longest and at_end:
        raise ValueError(f"nothing is known beyond step {longest:g}; got a cap of {cap:g}")
    steps, reached = _arrays(times)
    moments = np.unique(steps[reached])
    ending = np.array([(steps[reached] == moment).sum() for moment in moments])
    under_way = np.array([(steps >= moment).sum() for moment in moments])
    share = np.cumprod(1 - ending / under_way) if len(moments) else np.array([])
    half = moments[share <= 0.5 * (1 + SAME)]
    return Survival(
        tuple(moments.tolist()),
        tuple(share.tolist()),
        float(half[0]) if len(half) else None,
        _area(moments, share, cap),
        cap,
        int(reached.sum()),
        len(times),
    )


def _area(moments: np.ndarray, share: np.ndarray, cap: float) -> float:
    """The area under a step function that starts at 1."""
    edges = np.concatenate([[0.0], np.minimum(moments, cap), [cap]])
    return float((np.diff(edges) * np.concatenate([[1.0], share])).sum())


def log_rank(
    a: Sequence[Time],
    b: Sequence[Time],
    alternative: Alternative = "two-sided",
    seed: int = 0,
) -> PermutationTest:
    r"""Test whether one arm reaches a criterion sooner than the other.

    $Z = \sum_i (d_{ai} - d_i n_{ai} / n_i) \big/ \sqrt{\sum_i d_i \frac{n_{ai}}{n_i}
    (1 - \frac{n_{ai}}{n_i}) \frac{n_i - d_i}{n_i - 1}}$ over the times $t_i$ at which runs reach
    it, above 0 where `a` is sooner; "greater" asks for that. Its p-value is exact, as the seeds of
    two arms that do not differ can change places; it assumes that both arms are censored alike.

    Raises:
        ValueError: If an arm has no run.

    Source: Mantel 1966; Peto & Peto 1972, doi:10.2307/2344317.
    """
    if not a or not b:
        raise ValueError(f"a log-rank test needs runs of both arms; got {len(a)} and {len(b)}")
    splits = splits_of(len(a), len(b), seed)
    return tested(_z(*_arrays([*a, *b]), splits.first.astype(float)), splits, alternative)


def _z(
    steps: Float[np.ndarray, " runs"],
    reached: Bool[np.ndarray, " runs"],
    first: Float[np.ndarray, "splits runs"],
) -> Float[np.ndarray, " splits"]:
    excess, variance = np.zeros(len(first)), np.zeros(len(first))
    for moment in np.unique(steps[reached]):
        here, under_way = reached & (steps == moment), steps >= moment
        ending, left = int(here.sum()), int(under_way.sum())
        share = first @ under_way / left
        excess += first @ here - ending * share
        if left > 1:
            variance += ending * share * (1 - share) * (left - ending) / (left - 1)
    still = variance < SAME
    return np.where(still, 0.0, excess / np.sqrt(np.where(still, 1.0, variance)))


def _arrays(
    times: Sequence[Time],
) -> tuple[Float[np.ndarray, " runs"], Bool[np.ndarray, " runs"]]:
    return np.array([float(one.steps) for one in times]), np.array([one.reached for one in times])
