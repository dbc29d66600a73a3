r"""The studentized permutation test of two samples.

If it makes no difference which arm a seed belongs to, every way to split the pooled seeds into
groups of these sizes is as likely as the one observed. The statistic is Welch's
$t = (\bar a - \bar b) / \sqrt{s_a^2/n_a + s_b^2/n_b}$: so studentized, the test is exact where the
arms have one distribution, and keeps its level for large samples where they share the mean alone.

Source: Janssen 1997, doi:10.1016/S0167-7152(97)00043-6; Chung & Romano 2013, arXiv:1304.5939.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from math import comb
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

Alternative = Literal["two-sided", "greater", "less"]

EXACT_LIMIT = 50_000
"""All splits are tried up to this many, which 9 seeds against 9 stay below."""

DRAWS = 19_999
"""The number of splits that are drawn where there are more."""

SAME = 1e-9
"""Statistics closer than this, relatively, are ties: they differ by rounding."""


@dataclass(frozen=True)
class PermutationTest:
    """The result of a permutation test.

    Args:
        p: The p-value. Among all splits, the share at least as extreme as the observed one; among
            m drawn ones with b as extreme, (b + 1) / (m + 1) (Phipson & Smyth 2010,
            arXiv:1603.05766).
        statistic: Of the observed split. Welch's t is infinite where both samples are constant and
            differ, 0 where they are constant and equal.
        splits: How many splits were looked at.
        exact: Were they all there are?
    """

    p: float
    statistic: float
    splits: int
    exact: bool


@dataclass(frozen=True)
class Splits:
    """Ways to split n_a + n_b seeds into two groups; the first row is the observed one."""

    first: Bool[np.ndarray, "splits seeds"]
    exact: bool


@lru_cache(maxsize=8)
def splits_of(n_a: int, n_b: int, seed: int = 0) -> Splits:
    """Return all ways to split, or as many random ones as `DRAWS` besides the observed one."""
    n, count = n_a + n_b, comb(n_a + n_b, n_a)
    if count <= EXACT_LIMIT:
        chosen = chain.from_iterable(combinations(range(n), n_a))
        index = np.fromiter(chosen, dtype=np.intp, count=count * n_a).reshape(count, n_a)
    else:
        generator = np.random.default_rng(seed)
        drawn = generator.permuted(np.tile(np.arange(n), (DRAWS, 1)), axis=1)[:, :n_a]
        index = np.concatenate([np.arange(n_a).reshape(1, n_a), drawn])
    first = np.zeros((len(index), n), dtype=bool)
    np.put_along_axis(first, index, True, axis=1)
    return Splits(first, exact=count <= EXACT_LIMIT)


def smallest_p(n_a: int, n_b: int, alternative: Alternative = "two-sided") -> float:
    """Return the smallest p-value that samples of these sizes can reach."""
    mirrored = alternative == "two-sided" and n_a == n_b
    count = comb(n_a + n_b, n_a)
    return (2 if mirrored else 1) / count if count <= EXACT_LIMIT else 1 / (DRAWS + 1)


def permutation_test(
    a: Sequence[float], b: Sequence[float], alternative: Alternative = "two-sided", seed: int = 0
) -> PermutationTest:
    """Test whether the mean of `a` differs from, exceeds or falls below that of `b`.

    Args:
        a: Values of one arm, one a seed.
        b: Values of the other arm.
        alternative: What is tested against "no difference".
        seed: Of the draws, where there are too many splits to look at all.

    Raises:
        ValueError: If a sample has fewer than two values, or one that is not finite.
    """
    for values in (a, b):
        if len(values) < 2 or not np.isfinite(values).all():
            raise ValueError(
                f"a permutation test needs at least two finite values an arm; got {list(values)}"
            )
    splits = splits_of(len(a), len(b), seed)
    return tested(statistics(np.array([*a, *b], dtype=float), splits), splits, alternative)


def tested(
    t: Float[np.ndarray, " splits"], splits: Splits, alternative: Alternative
) -> PermutationTest:
    """Return the test whose statistic has these values."""
    return PermutationTest(_p_value(t, alternative), float(t[0]), len(t), splits.exact)


def _p_value(t: Float[np.ndarray, " splits"], alternative: Alternative) -> float:
    return share_as_extreme({"two-sided": np.abs(t), "greater": t, "less": -t}[alternative])


def share_as_extreme(t: Float[np.ndarray, " splits"], observed: float | None = None) -> float:
    """Return the share of statistics that reach the observed one, by default the first."""
    observed = float(t[0]) if observed is None else observed
    slack = SAME * max(1.0, abs(observed)) if np.isfinite(observed) else 0.0
    return float((t >= observed - slack).mean())


def statistics(pooled: Float[np.ndarray, " seeds"], splits: Splits) -> Float[np.ndarray, " splits"]:
    """Welch's t of every split."""
    spread = np.ptp(pooled)
    if spread <= SAME * np.abs(pooled).max():
        return np.zeros(len(splits.first))
    # Centred and scaled, so that what rounding leaves of a variance of zero is told from one.
    values = (pooled - pooled.mean()) / spread
    n_a = int(splits.first[0].sum())
    n_b = len(values) - n_a
    weights = splits.first.astype(float)
    sum_a, square_a = weights @ values, weights @ values**2
    sum_b, square_b = values.sum() - sum_a, (values**2).sum() - square_a
    variance = (square_a - sum_a**2 / n_a) / (n_a - 1) / n_a
    variance = variance + (square_b - sum_b**2 / n_b) / (n_b - 1) / n_b
    difference = sum_a / n_a - sum_b / n_b
    return _over_error(difference, variance)


def _over_error(
    effect: Float[np.ndarray, " splits"], variance: Float[np.ndarray, " splits"]
) -> Float[np.ndarray, " splits"]:
    """Divide by the standard error: where nothing varies, 0 without effect, else infinite."""
    constant = variance < SAME**1.5
    infinite = np.where(np.abs(effect) < SAME, 0.0, np.copysign(np.inf, effect))
    return np.where(constant, infinite, effect / np.sqrt(np.where(constant, 1.0, variance)))


Kind = Literal["first", "second", "interaction"]
Sample = Float[np.ndarray, " _"]
Table = Sequence[Sequence[Sample]]
"""The values of each cell, by the levels of the first factor and then of the second."""

Weights = Float[np.ndarray, "first second"]


def permuted(
    kind: Kind,
    table: Table,
    weights: Weights,
    generator: np.random.Generator,
    draws: int,
    alternative: Alternative = "two-sided",
) -> float:
    """Return the p-value of a contrast of the cell means."""
    cells = [(int(i), int(j)) for i, j in np.argwhere(weights)]
    samples = [table[i][j] for i, j in cells]
    if kind == "interaction":
        samples = _residuals(cells, samples)
    strata = {"first": [j for _, j in cells], "second": [i for i, _ in cells]}
    stratum = np.array(strata.get(kind, [0] * len(cells)))
    sizes = np.array([len(sample) for sample in samples])
    values = np.concatenate(samples)
    weight = np.array([weights[cell] for cell in cells])
    shuffled = values[_orders(np.repeat(stratum, sizes), generator, draws)]
    return _p_value(_studentized(shuffled, sizes, weight), alternative)


def _orders(
    stratum: Int[np.ndarray, " runs"], generator: np.random.Generator, draws: int
) -> Int[np.ndarray, "orders runs"]:
    """Return orders of the runs, each within its stratum; the first is the observed one."""
    observed = np.arange(len(stratum))
    orders = np.tile(observed, (draws + 1, 1))
    for one in np.unique(stratum):
        places = observed[stratum == one]
        orders[1:, places] = generator.permuted(np.tile(places, (draws, 1)), axis=1)
    return orders


def _studentized(
    values: Float[np.ndarray, "orders runs"],
    sizes: Int[np.ndarray, " cells"],
    weights: Float[np.ndarray, " cells"],
) -> Float[np.ndarray, " orders"]:
    """Return a contrast of cell means over its standard error; runs lie cell after cell."""
    scale = np.ptp(values[0])
    if scale <= SAME * np.abs(values[0]).max():
        return np.zeros(len(values))
    values = (values - values[0].mean()) / scale
    in_cell = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    means = values @ in_cell / sizes
    squares = values**2 @ in_cell - sizes * means**2
    variance = (squares / (sizes - 1) / sizes) @ weights**2
    return _over_error(means @ weights, variance)


def _residuals(cells: Sequence[tuple[int, int]], samples: Sequence[Sample]) -> list[Sample]:
    """Return the residuals of the additive model of a 2 × 2 table."""
    rows, columns = ([cell[place] != cells[0][place] for cell in cells] for place in (0, 1))
    sizes = [len(sample) for sample in samples]
    model = np.column_stack(
        [np.ones(sum(sizes)), np.repeat(rows, sizes), np.repeat(columns, sizes)]
    )
    values = np.concatenate(samples)
    left = values - model @ np.linalg.lstsq(model, values, rcond=None)[0]
    # Rounding is not to be taken for noise where the model fits exactly.
    left = np.where(np.abs(left) < SAME * np.abs(values).max(), 0.0, left)
    return np.split(left, np.cumsum(sizes)[:-1])


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    r"""Return the adjusted p-values, which are at most α where Holm's procedure rejects at α.

    With $p_{(1)} \le \dots \le p_{(m)}$: $\tilde p_{(i)} = \max_{j \le i} \min(1, (m-j+1)\,
    p_{(j)})$. The chance of any false rejection in the family stays below α, however the tests
    depend on each other. A hypothesis that was not tested (None) stays in the family, as the
    plan counted it: m includes it.

    Source: Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
    """
    known = [(p, index) for index, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p))
        adjusted[index] = highest
    return adjusted
