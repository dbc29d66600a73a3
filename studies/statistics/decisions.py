"""From samples to a verdict: the reading of an interval, a p-value, seeds that are missing."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from studies.design.hypothesis import Hypothesis
from studies.statistics.claim_tests import p_value
from studies.statistics.comparisons import Sample
from studies.statistics.contrasts import Contrast, contrast
from studies.statistics.permutation import Splits
from studies.statistics.power import TOUCHING, seeds_needed
from studies.statistics.verdict import Status, Verdict


def decided(
    verdict: Verdict,
    parts: Sequence[Sample],
    splits: dict[tuple[int, int], Splits],
    sure: bool = True,
) -> Verdict:
    """A verdict from the samples of the arms, in the order of the hypothesis.

    `sure` tells whether the arms learned whatever their failed seeds would have scored.
    """
    claim, level, family = verdict.hypothesis, verdict.level, verdict.family
    values = [one.at_worst() for one in parts]
    found = contrast(values, claim.weights, level, family)
    verdict = replace(
        verdict,
        status=reading(claim, found),
        effect=found.effect,
        low=found.low,
        high=found.high,
        p=p_value(claim, parts, splits),
    )
    if not (sure and _holds_for_all(claim, parts, level, family)):
        reason = "it hangs on what the failed seeds would have scored: run them again"
        return replace(verdict, status="inconclusive", reason=reason)
    if verdict.status != "inconclusive":
        return verdict
    deviations = [float(np.std(one, ddof=1)) for one in values]
    needed = seeds_needed(
        found.effect, deviations, claim.direction, claim.smallest_effect, family, level
    )
    return replace(verdict, seeds_needed=needed)


def _holds_for_all(claim: Hypothesis, parts: Sequence[Sample], level: float, family: int) -> bool:
    """Is the reading the same whatever the failed seeds would have scored?

    Some at the floor and others at the ceiling spread an arm more than all at either, so that an
    interval may reach further than at both of these: each number of them is looked at.
    """
    if not any(one.unknown for one in parts):
        return True
    readings = (
        reading(claim, contrast(values, claim.weights, level, family))
        for values in product(*(one.possible() for one in parts))
    )
    first = next(readings)
    return all(one == first for one in readings)


def reading(claim: Hypothesis, found: Contrast) -> Status:
    """What an interval says about a claim, given the smallest effect of interest δ.

    greater: supported above +δ, refuted below +δ; less: the mirror image; different: supported
    beyond ±δ on either side, refuted within ±δ; same: the other way round. A bound that lies at δ,
    but for rounding, is on neither side of it.
    """
    inner, outer = claim.smallest_effect - TOUCHING, claim.smallest_effect + TOUCHING
    above, below = found.low > outer, found.high < -outer
    within = -inner < found.low and found.high < inner
    yes, no = {
        "greater": (above, found.high < inner),
        "less": (below, found.low > -inner),
        "different": (above or below, within),
        "same": (within, above or below),
    }[claim.direction]
    return "supported" if yes else "refuted" if no else "inconclusive"
