"""Confidence intervals for a mean and for a share."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from store.errors import StoreError


@dataclass(frozen=True)
class Interval:
    """An estimate with its bounds, in the unit of the values; None where `n` is too small."""

    mean: float
    low: float | None
    high: float | None
    n: int


def t_interval(values: Iterable[float], level: float = 0.95) -> Interval:
    r"""Return the mean of independent values with its Student interval.

    $\bar x \pm t_{n-1} \, s / \sqrt n$, where s has n - 1 below it. One value has no bounds.

    Raises:
        StoreError: If there is no value, one is not finite, or the level is not in (0, 1).
    """
    found = list(map(float, values))
    _check_level(level)
    if not found:
        raise StoreError("an interval needs at least one value; got none")
    if not all(map(math.isfinite, found)):
        raise StoreError(f"an interval needs finite values; got {found}")
    n, mean = len(found), mean_of(found)
    if n == 1:
        return Interval(mean, None, None, 1)
    if len(set(found)) == 1:
        return Interval(mean, mean, mean, n)
    variance = math.fsum([(value - mean) ** 2 for value in found]) / (n - 1)
    half = t_quantile((1 + level) / 2, n - 1) * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n)


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of one or more values; of equal ones that value, free of rounding."""
    return values[0] if len(set(values)) == 1 else math.fsum(values) / len(values)


@dataclass(frozen=True)
class Held:
    """How far an arm holds a level, along growing lengths.

    `last_length_above` is the last length before which, and at which, it is not below the level;
    `first_length_below` the length after it, if it is below there. `unmeasured` is that length if
    nothing was measured there instead, such as beyond a table of positions.
    """

    last_length_above: int | None = None
    first_length_below: int | None = None
    unmeasured: int | None = None


def held(means: Iterable[tuple[int, float | None]], level: float) -> Held:
    """Follow the means at growing lengths, None where nothing was measured, down to a level."""
    above = None
    for length, mean in means:
        if mean is None:
            return Held(above, unmeasured=length)
        if mean < level:
            return Held(above, first_length_below=length)
        above = length
    return Held(above)


def wilson(k: int, n: int, level: float = 0.95) -> Interval:
    r"""Return the share k of n with its Wilson score interval; `mean` is k / n.

    $\frac{p + z^2/2n \pm z \sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}$, inside [0, 1] for every k.

    Source: Wilson 1927, doi:10.1080/01621459.1927.10502953.

    Raises:
        StoreError: If not 0 <= k <= n and n >= 1, or the level is not in (0, 1).
    """
    _check_level(level)
    if not (n >= 1 and 0 <= k <= n):
        raise StoreError(f"a share needs 0 <= k <= n and n >= 1; got k={k}, n={n}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = k / n
    middle = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    # At the ends the bound is exact, where the formula would be off by one rounding.
    low = 0.0 if k == 0 else (middle - half) / scale
    high = 1.0 if k == n else (middle + half) / scale
    return Interval(share, low, high, n)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise StoreError(f"a level lies between 0 and 1; got {level}")


@lru_cache(maxsize=1024)
def t_quantile(p: float, freedom: int) -> float:
    r"""Return the t below which a share p of Student's distribution lies, found by halving.

    Args:
        p: A share between 0.5 and 1.
        freedom: Degrees of freedom ν, at least 1.

    Raises:
        ValueError: If p or the degrees of freedom are out of range.
    """
    if not (0.5 <= p < 1 and freedom >= 1):
        raise ValueError(f"a quantile needs 0.5 <= p < 1 and freedom >= 1; got {p}, {freedom}")
    low, high = 0.0, 1.0
    while _share_within(high, freedom) < 2 * p - 1:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if _share_within(middle, freedom) < 2 * p - 1:
            low = middle
        else:
            high = middle
    return middle


def _share_within(t: float, freedom: int) -> float:
    r"""The share of Student's distribution between -t and t.

    With $\theta = \arctan(t / \sqrt\nu)$ it is, for even ν,
    $\sin\theta \, (1 + \tfrac12 \cos^2\theta + … +
    \tfrac{1 \cdot 3 ⋯ (\nu - 3)}{2 \cdot 4 ⋯ (\nu - 2)} \cos^{\nu - 2}\theta)$,
    and alike for odd ν, with θ added and times 2/π.

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    angle, odd = math.atan(t / math.sqrt(freedom)), freedom % 2
    square = math.cos(angle) ** 2
    term = math.sin(angle) * (math.cos(angle) if odd else 1.0)
    total = term if freedom > 1 else 0.0
    for k in range(1 + odd, freedom - 1, 2):
        term *= square * k / (k + 1)
        total += term
    return 2 / math.pi * (angle + total) if odd else total
