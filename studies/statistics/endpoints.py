"""Several endpoints of the same seeds: at which lengths, or in which metrics, do two arms differ?

Scores of one run at several lengths go together, so that a correction which assumes nothing about
them, such as Holm's, asks for too much. Here all endpoints of a run change their arm at once, and
each statistic is compared with the largest one of every split.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from studies.statistics.contrasts import Contrast, contrast
from studies.statistics.permutation import Splits, share_as_extreme, splits_of, statistics

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
