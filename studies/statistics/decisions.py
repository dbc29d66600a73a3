"""From samples to a verdict: the reading of an interval, a p-value, seeds that are missing."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from studies.experiment.hypothesis import Hypothesis
from studies.statistics.claim_tests import p_value
from studies.statistics.comparisons import Sample
from studies.statistics.contrasts import Contrast, contrast, variance_of
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

    It is told with failed seeds at the floor, and holds whatever they would have scored: `sure`
    tells whether the arms learned all the same, the interval must read the same, and p is the
    largest. Some at the floor and others at the ceiling spread an arm more than all at either, so
    that an interval may reach further than at both of these: each number of them is looked at.
    """
    claim, level, family = verdict.hypothesis, verdict.level, verdict.family
    mixtures = list(product(*(one.possible() for one in parts)))
    intervals = [
        contrast([one.values for one in mixture], claim.weights, level, family)
        for mixture in mixtures
    ]
    found = intervals[0]
    verdict = replace(
        verdict,
        status=reading(claim, found),
        effect=found.effect,
        low=found.low,
        high=found.high,
        p=max(p_value(claim, mixture, splits) for mixture in mixtures),
    )
    if not sure or any(reading(claim, one) != verdict.status for one in intervals):
        reason = "it hangs on what the failed seeds would have scored: run them again"
        return replace(verdict, status="inconclusive", reason=reason)
    if verdict.status != "inconclusive":
        return verdict
    deviations = [variance_of(one.values) ** 0.5 for one in mixtures[0]]
    needed = seeds_needed(
        found.effect, deviations, claim.direction, claim.smallest_effect, family, level
    )
    return replace(verdict, seeds_needed=needed)


def reading(claim: Hypothesis, found: Contrast) -> Status:
    """What an interval says about a claim, given the smallest effect of interest δ.

    greater: supported above +δ, refuted below +δ; less: the mirror image; different: supported
    beyond ±δ on either side, refuted within ±δ; same: the other way round. A bound that lies at δ,
    but for rounding, is on neither side of it.
    """
    inner, outer = (claim.smallest_effect * (1 + sign * TOUCHING) for sign in (-1, 1))
    above, below = found.low > outer, found.high < -outer
    within = -inner < found.low and found.high < inner
    yes, no = {
        "greater": (above, found.high < inner),
        "less": (below, found.low > -inner),
        "different": (above or below, within),
        "same": (within, above or below),
    }[claim.direction]
    return "supported" if yes else "refuted" if no else "inconclusive"
