"""Contrasts of means: estimates, intervals that hold for a family, the seeds that these need."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from store.aggregate import mean_of
from studies.analysis.permutation import Alternative, smallest_p
from studies.experiment.hypothesis import Direction


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of the means of independent samples: estimate, bounds, standard error.

    The degrees of freedom are Welch and Satterthwaite's; infinite where nothing varies.
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


MOST = 1000
"""More seeds than these are not advised: the question is then too fine for the noise."""

TOUCHING = 1e-9
"""A bound closer to δ than this share of it lies at δ: they differ by rounding."""

ALTERNATIVES: dict[Direction, Alternative] = {
    "greater": "greater",
    "less": "less",
    "different": "two-sided",
    "same": "greater",
}
"""The alternative of the permutation test of a claim; "same" is two one-sided tests."""


def distance(effect: float, direction: Direction, smallest_effect: float) -> float:
    """Return how far an effect lies from the nearest bound of its claim; 0 if at it."""
    signs = {"greater": (1,), "less": (-1,)}.get(direction, (1, -1))
    nearest = min(abs(effect - sign * smallest_effect) for sign in signs)
    return nearest if nearest > TOUCHING * smallest_effect else 0.0


def seeds_needed(
    effect: float,
    deviations: Sequence[float],
    direction: Direction,
    smallest_effect: float,
    family: int = 1,
    level: float = 0.95,
    power: float = 0.8,
) -> int | None:
    r"""Return how many seeds per arm would settle a claim, were effect and spread as observed.

    The smallest n with a probability of at least `power` that the interval of the contrast leaves
    out the bound ±δ that is nearest to the effect: $P(T > t_\nu)$ for a noncentral T with
    noncentrality $d\sqrt{n/\sum s_i^2}$ over the arms of the contrast, where d is the distance from
    that bound. Where the effect lies within ±δ and both bounds matter, the chances of missing
    either add up.

    None where more than `MOST` would be needed.
    """

    near = distance(effect, direction, smallest_effect)
    both_matter = direction in ("different", "same") and abs(effect) < smallest_effect

    def is_enough(n: int) -> bool:
        chance = _beyond(n, near, deviations, family, level)
        if both_matter:
            far = 2 * smallest_effect - near
            chance = max(0.0, chance + _beyond(n, far, deviations, family, level) - 1)
        return chance >= power

    # More seeds have more power, so the first number that is enough can be bisected for.
    numbers = range(fewest(direction, family, level), MOST + 1)
    first = bisect_left(numbers, True, key=is_enough)
    return numbers[first] if first < len(numbers) else None


def fewest(direction: Direction, family: int, level: float) -> int:
    """The fewest seeds per arm whose permutation test can reach the level of the family."""
    n = 2
    while smallest_p(n, n, ALTERNATIVES[direction]) * family > 1 - level:
        n += 1
    return n


def _beyond(n: int, away: float, deviations: Sequence[float], family: int, level: float) -> float:
    """Return the chance that an interval leaves out a bound this far away."""
    from scipy.special import nctdtr

    variances = [deviation**2 for deviation in deviations]
    total = sum(variances)
    if total == 0 or away == 0:
        return float(away > 0)
    degrees = (n - 1) * total**2 / sum(one**2 for one in variances)
    shift, edge = away * (n / total) ** 0.5, quantile(degrees, level, family)
    # Where the chance is 1 but for 1e-10, SciPy's function has no number from a shift of 35 on.
    return 1.0 if shift > max(30, 10 * edge) else 1 - float(nctdtr(degrees, shift, edge))
