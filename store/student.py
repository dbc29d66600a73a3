"""Student's t distribution, in plain Python: SciPy takes longer to import than a question takes."""

import math
from functools import lru_cache

STEPS = 200
SMALLEST = 1e-300


@lru_cache(maxsize=1024)
def t_quantile(p: float, freedom: int) -> float:
    r"""Return the t below which a share p of Student's distribution lies.

    It solves $1 - \tfrac12 I_{\nu / (\nu + t^2)}(\nu / 2, 1/2) = p$ by halving, for p ≥ 0.5.

    Args:
        p: A share between 0.5 and 1.
        freedom: Degrees of freedom ν, at least 1.

    Raises:
        ValueError: If p or the degrees of freedom are out of range.
    """
    if not (0.5 <= p < 1 and freedom >= 1):
        raise ValueError(f"a quantile needs 0.5 <= p < 1 and freedom >= 1; got {p}, {freedom}")
    low, high = 0.0, 1.0
    while _share_above(high, freedom) > 1 - p:
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _share_above(middle, freedom) > 1 - p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _share_above(t: float, freedom: int) -> float:
    square = t * t
    rest = square / (freedom + square)
    return _incomplete_beta(freedom / (freedom + square), rest, freedom / 2, 0.5) / 2


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """The regularized incomplete beta function at x = 1 - rest, by DLMF 8.17.22."""
    if x == 0 or rest == 0:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(rest, x, b, a)
    log_front = a * math.log(x) + b * math.log(rest) - math.log(a)
    log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 / (1 + d1 / (1 + d2 / (1 + …))), by the method of Lentz."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(STEPS):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _not_zero(1 + term * d)
        c = _not_zero(1 + term / c)
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value - 1


def _not_zero(value: float) -> float:
    return value if abs(value) > SMALLEST else SMALLEST
