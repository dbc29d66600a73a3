"""Contrasts of means: their estimates, and intervals that hold for a whole family at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from store.aggregate import mean_of


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
