"""Seeds that either work or fail: then a share of successes says more than a mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from store.aggregate import Interval, wilson

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
    """Two groups of seeds.

    Args:
        low: The mean of the lower group.
        high: The mean of the upper group.
        cut: The threshold if it lies between the groups, else the middle between them.
        success: The share of seeds in the upper group, with its Wilson interval.
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
    r"""How many times both ranges together the gap between two groups of n values is at least.

    The widest of the n - 1 gaps of evenly spread values takes up a share x of their range or more
    with a probability of at most $(n - 1) (1 - x)^{n - 2}$; a ratio r is a share of r / (1 + r).
    Six times for 5 values, and never less than `LEAST_RATIO`, which 8 and more come down to.

    Source: David & Nagaraja 2003, "Order statistics", section 6.4.
    """
    return max(LEAST_RATIO, ((n - 1) / CHANCE) ** (1 / (n - 2)) - 1)
