r"""Contrasts of means: estimates, intervals that hold for a family, the seeds that these need.

Crossed factors: for levels $i, i'$ of the first and $j, j'$ of the second, cell means $\mu_{ij}$,

- main effect of the first: the mean over j of $\mu_{i'j} - \mu_{ij}$, every j weighted alike;
- interaction: $(\mu_{i'j'} - \mu_{ij'}) - (\mu_{i'j} - \mu_{ij})$, by how much the effect of
  the first factor changes from j to j'. It is 0 where effects add up.

Intervals are Welch's, simultaneous over the family of all contrasts returned. p-values come from
permutations with the studentized contrast as statistic: a main effect permutes the labels of its
factor within each level of the other one, exact where the factor does nothing; an interaction
permutes the residuals of the additive model (Freedman & Lane).

Source: Freedman & Lane 1983, doi:10.1080/07350015.1983.10509354; Pauly, Brunner & Konietschke 2015,
doi:10.1111/rssb.12073.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from store.aggregate import mean_of
from studies.analysis.permutation import (
    Alternative,
    Kind,
    Weights,
    holm,
    permuted,
    share_as_extreme,
    smallest_p,
    splits_of,
    statistics,
)
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


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Endpoint:
    """The difference of two arms in one endpoint.

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
    pooled = (np.array([*a[one], *b[one]], dtype=float) for one in names)
    t = np.stack([np.abs(statistics(values, splits)) for values in pooled])
    adjusted = _step_down(t)
    return {
        one: Endpoint(contrasts[one], share_as_extreme(row), float(p))
        for one, row, p in zip(names, t, adjusted, strict=True)
    }


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


Level = Any
Pair = tuple[Level, Level]
Cells = Mapping[Pair, Mapping[int, float]]
"""The value of each seed, by the levels of the two factors."""

DRAWS = 9_999


@dataclass(frozen=True)
class CrossedEffect:
    """One contrast of a crossed design.

    Args:
        kind: "first" or "second" for a main effect of that factor, or "interaction".
        levels: The two levels of the first factor that are compared; None where it is averaged.
        others: Likewise of the second factor.
        contrast: The estimate with its interval, simultaneous over all contrasts of the design.
        p: Of the permutation test, two-sided.
        p_holm: `p`, adjusted for all contrasts of the design.
    """

    kind: Kind
    levels: Pair | None
    others: Pair | None
    contrast: Contrast
    p: float
    p_holm: float


def crossed(
    cells: Cells,
    references: Pair | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[CrossedEffect]:
    """Estimate and test the main effects and interactions of two crossed factors.

    Every level is compared with the reference of its factor.

    Args:
        cells: Values by (level of the first factor, level of the second) and seed.
        references: The level of each factor that the others are compared with; by default those
            of the first cell.
        level: Of the family of intervals.
        draws: Permutations for each contrast.
        seed: Of the permutations.

    Raises:
        ValueError: If a factor has one level alone, a combination is missing, a cell has fewer
            than two values or one that is not finite, or a reference is no level.
    """
    first, second = _levels(cells, references)
    table = [[np.array(list(cells[i, j].values()), dtype=float) for j in second] for i in first]
    weights = list(_contrasts(first, second))
    generator = np.random.default_rng(seed)
    samples = [sample.tolist() for row in table for sample in row]
    found: list[CrossedEffect] = []
    for kind, levels, others, weight in weights:
        estimate = contrast(samples, weight.ravel().tolist(), level, family=len(weights))
        p = permuted(kind, table, weight, generator, draws)
        found.append(CrossedEffect(kind, levels, others, estimate, p, p))
    adjusted = holm([one.p for one in found])
    return [replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True)]


def _levels(cells: Cells, references: Pair | None) -> tuple[list[Level], list[Level]]:
    """The levels of each factor, the reference first."""
    both = [list(dict.fromkeys(key[place] for key in cells)) for place in (0, 1)]
    for place, levels in enumerate(both):
        if len(levels) < 2:
            raise ValueError(f"a factor has at least two levels; got {levels}")
        if references is not None:
            if references[place] not in levels:
                raise ValueError(f"a reference is one of {levels}; got {references[place]!r}")
            levels.sort(key=lambda one, place=place: one != references[place])
    missing = [(i, j) for i in both[0] for j in both[1] if (i, j) not in cells]
    if missing:
        raise ValueError(f"every combination of levels is needed; {missing[0]} is missing")
    return both[0], both[1]


def _contrasts(
    first: list[Level], second: list[Level]
) -> Iterator[tuple[Kind, Pair | None, Pair | None, Weights]]:
    """Yield every contrast with its weights over the cells."""
    by_first, by_second = (
        [
            ((levels[n], levels[0]), np.eye(len(levels))[n] - np.eye(len(levels))[0])
            for n in range(1, len(levels))
        ]
        for levels in (first, second)
    )
    for levels, weight in by_first:
        yield "first", levels, None, np.outer(weight, np.full(len(second), 1 / len(second)))
    for others, weight in by_second:
        yield "second", None, others, np.outer(np.full(len(first), 1 / len(first)), weight)
    for levels, weight in by_first:
        for others, other_weight in by_second:
            yield "interaction", levels, others, np.outer(weight, other_weight)
