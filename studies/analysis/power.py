"""How many seeds an answer needs."""

from bisect import bisect_left
from collections.abc import Sequence

from studies.analysis.contrasts import quantile
from studies.analysis.permutation import Alternative, smallest_p
from studies.experiment.hypothesis import Direction

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
"""What the permutation test of a claim looks at; "same" is two one-sided tests."""


def distance(effect: float, direction: Direction, smallest_effect: float) -> float:
    """How far an effect lies from the nearest bound that its claim is judged by; 0 if at it."""
    bounds = {
        "greater": [smallest_effect],
        "less": [-smallest_effect],
        "different": [smallest_effect, -smallest_effect],
        "same": [smallest_effect, -smallest_effect],
    }[direction]
    nearest = min(abs(effect - bound) for bound in bounds)
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

    def reached(n: int) -> bool:
        return _power(n, effect, deviations, direction, smallest_effect, family, level) >= power

    # More seeds have more power, so the first number that is enough can be bisected for.
    numbers = range(fewest(direction, family, level), MOST + 1)
    first = bisect_left(numbers, True, key=reached)
    return numbers[first] if first < len(numbers) else None


def fewest(direction: Direction, family: int, level: float) -> int:
    """The fewest seeds per arm whose permutation test can reach the level of the family."""
    n = 2
    while smallest_p(n, n, ALTERNATIVES[direction]) * family > 1 - level:
        n += 1
    return n


def _power(
    n: int,
    effect: float,
    deviations: Sequence[float],
    direction: Direction,
    smallest_effect: float,
    family: int,
    level: float,
) -> float:
    near = distance(effect, direction, smallest_effect)
    chance = _beyond(n, near, deviations, family, level)
    if direction in ("different", "same") and abs(effect) < smallest_effect:
        far = 2 * smallest_effect - near
        return max(0.0, chance + _beyond(n, far, deviations, family, level) - 1)
    return chance


def _beyond(n: int, away: float, deviations: Sequence[float], family: int, level: float) -> float:
    """The chance that an interval leaves out a bound this far away."""
    from scipy.special import nctdtr

    variances = [deviation**2 for deviation in deviations]
    total = sum(variances)
    if total == 0 or away == 0:
        return float(away > 0)
    degrees = (n - 1) * total**2 / sum(one**2 for one in variances)
    shift, edge = away * (n / total) ** 0.5, quantile(degrees, level, family)
    # Where the chance is 1 but for 1e-10, SciPy's function has no number from a shift of 35 on.
    return 1.0 if shift > max(30, 10 * edge) else 1 - float(nctdtr(degrees, shift, edge))
