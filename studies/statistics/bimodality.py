"""Seeds that either work or fail: then a share of successes says more than a mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from store.intervals import Interval, wilson

LEAST_GAP = 0.2
"""Modes closer than this, in units of skill, are not told apart."""

LEAST_RATIO = 2.0
"""The gap between modes is at least this many times the ranges of both together."""

LEAST_SEEDS = 5
"""Among fewer values a wide gap comes about by chance too often."""


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
    `LEAST_SEEDS` of them, the gap is at least `LEAST_GAP`, and it is at least `LEAST_RATIO` times
    the range of the lower group plus that of the upper one. Of 8 values that are spread evenly at
    random over any interval, 1 % look like that; of normal ones, fewer.
    """
    ordered = sorted(values)
    if len(ordered) < LEAST_SEEDS:
        return None
    gaps = [high - low for low, high in pairwise(ordered)]
    gap = max(gaps)
    split = gaps.index(gap) + 1
    low, high = ordered[:split], ordered[split:]
    within = ordered[-1] - ordered[0] - gap
    if gap < LEAST_GAP or gap < LEAST_RATIO * within:
        return None
    between = low[-1] < threshold <= high[0]
    cut = threshold if between else (low[-1] + high[0]) / 2
    share = wilson(len(high), len(ordered))
    return Modes(sum(low) / len(low), sum(high) / len(high), cut, share)
