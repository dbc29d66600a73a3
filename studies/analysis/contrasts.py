"""Contrasts of means: their estimates, and intervals that hold for a whole family at once."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from store.aggregate import mean_of
from studies.analysis.permutation import Splits, share_as_extreme, splits_of, statistics


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of the means of independent samples.

    Args:
        effect: The estimate.
        low: The lower bound.
        high: The upper bound.
        standard_error: Of the estimate.
        degrees: Of freedom, after Welch and Satterthwaite; infinite where nothing varies.
    """

    effect: float
    low: float
    high: float
    standard_error: float
    degrees: float


def contrast(
    samples: Sequence[Sequence[float]],
    weights: Sequence[float] = (1.0, -1.0),
    level: float = 0.95,
    family: int = 1,
) -> Contrast:
    r"""Estimate a contrast with an interval that does not assume equal variances.

    $\hat\psi = \sum_i w_i \bar x_i$, with $\hat\psi \pm t_\nu \sqrt{\sum_i v_i}$, where
    $v_i = w_i^2 s_i^2 / n_i$ and $\nu = (\sum v_i)^2 / \sum v_i^2/(n_i - 1)$. The intervals of a
    family of m contrasts hold together with probability of at least `level`: each has the level
    $1 - (1 - \text{level}) / m$ (Bonferroni).

    Args:
        samples: Values, one a seed, of each arm or cell.
        weights: One for each sample; by default the first mean minus the second.
        level: Of the family.
        family: How many contrasts are looked at together.

    Raises:
        ValueError: If a sample has fewer than two values, one is not finite, or the numbers of
            samples and weights differ.

    Source: Welch 1947, doi:10.1093/biomet/34.1-2.28; Satterthwaite 1946, doi:10.2307/3002019.
    """
    if len(samples) != len(weights):
        raise ValueError(f"every sample has one weight; got {len(samples)} and {len(weights)}")
    for values in samples:
        if len(values) < 2 or not np.isfinite(values).all():
            raise ValueError(
                f"a contrast needs at least two finite values a sample; got {list(values)}"
            )
    means = np.array([mean_of(values) for values in samples])
    sizes = np.array([len(values) for values in samples])
    each = np.asarray(weights) ** 2 * [variance_of(values) for values in samples] / sizes
    effect, variance = float(means @ np.asarray(weights)), float(each.sum())
    if variance == 0:
        return Contrast(effect, effect, effect, 0.0, float("inf"))
    degrees = variance**2 / float((each**2 / (sizes - 1)).sum())
    half = quantile(degrees, level, family) * variance**0.5
    return Contrast(effect, effect - half, effect + half, variance**0.5, degrees)


def quantile(degrees: float, level: float, family: int = 1) -> float:
    """Student's quantile for two-sided intervals of a family."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - (1 - level) / family / 2))


def variance_of(values: Sequence[float]) -> float:
    """The variance of two or more values; 0 of equal ones, free of rounding."""
    return 0.0 if len(set(values)) == 1 else float(np.var(values, ddof=1))


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Endpoint:
    """How two arms differ in one endpoint.

    Args:
        contrast: The difference of the means, with an interval that holds for all endpoints.
        p: Of the studentized permutation test of this endpoint alone, two-sided.
        p_adjusted: The chance of a statistic as large in any endpoint that is no more extreme.
    """

    contrast: Contrast
    p: float
    p_adjusted: float


def compare_endpoints(
    a: Mapping[Name, Sequence[float]],
    b: Mapping[Name, Sequence[float]],
    level: float = 0.95,
    seed: int = 0,
) -> dict[Name, Endpoint]:
    r"""Test two arms in several endpoints, with p-values that account for all of them.

    Step-down maxT: with $|t_{(1)}| \ge |t_{(2)}| \ge \dots$, the adjusted p-value of the i-th is
    the share of splits with $\max_{j \ge i} |t_{(j)}| \ge |t_{(i)}^{obs}|$, never less than that
    of the one before. The chance of any false claim among the endpoints stays below α; where they
    all move together, little is lost against a single test.

    Args:
        a: The values of one arm by endpoint; the n-th value is that of the same seed in each.
        b: Likewise of the other arm.
        level: Of the family of intervals.
        seed: Of the draws, where there are too many splits to look at all.

    Raises:
        ValueError: If the endpoints differ or none is given, a seed lacks one, an arm has fewer
            than two seeds, or a value is not finite.

    Source: Westfall & Young 1993, "Resampling-based multiple testing", algorithm 4.1;
        Ge, Dudoit & Speed 2003, doi:10.1007/BF02595811.
    """
    _check(a, b)
    names = list(a)
    contrasts = {one: contrast([a[one], b[one]], level=level, family=len(names)) for one in names}
    n_a, n_b = (len(next(iter(arm.values()))) for arm in (a, b))
    splits = splits_of(n_a, n_b, seed)
    t = np.stack([_extremeness(a[one], b[one], splits) for one in names])
    adjusted = _step_down(t)
    return {
        one: Endpoint(contrasts[one], share_as_extreme(row), float(p))
        for one, row, p in zip(names, t, adjusted, strict=True)
    }


def _extremeness(
    a: Sequence[float], b: Sequence[float], splits: Splits
) -> Float[np.ndarray, " splits"]:
    return np.abs(statistics(np.array([*a, *b], dtype=float), splits))


def _step_down(t: Float[np.ndarray, "endpoints splits"]) -> Float[np.ndarray, " endpoints"]:
    order = np.argsort(-t[:, 0], kind="stable")
    largest = np.maximum.accumulate(t[order][::-1], axis=0)[::-1]
    shares = [
        share_as_extreme(row, float(t[one, 0])) for one, row in zip(order, largest, strict=True)
    ]
    adjusted = np.empty(len(t))
    adjusted[order] = np.maximum.accumulate(shares)
    return adjusted


def _check(a: Mapping[Name, Sequence[float]], b: Mapping[Name, Sequence[float]]) -> None:
    if not a or set(a) != set(b):
        raise ValueError(f"both arms need the same endpoints; got {list(a)} and {list(b)}")
    for arm in (a, b):
        sizes = {one: len(values) for one, values in arm.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"every seed has a value of every endpoint; got {sizes} seeds")
