"""From two samples to a verdict: the reading of an interval, a p-value, seeds that are missing."""

from dataclasses import replace

import numpy as np

from studies.hypothesis import Hypothesis
from studies.statistics.comparisons import Sample
from studies.statistics.contrasts import Contrast, contrast
from studies.statistics.permutation import Splits, permutation_test, splits_of
from studies.statistics.power import seeds_needed
from studies.statistics.verdict import Status, Verdict


def decided(
    verdict: Verdict, pair: tuple[Sample, Sample], splits: dict[tuple[int, int], Splits]
) -> Verdict:
    claim, level, family = verdict.hypothesis, verdict.level, verdict.family
    a, b = (one.at_worst() for one in pair)
    sizes = (len(a), len(b))
    if sizes not in splits:
        splits[sizes] = splits_of(*sizes)
    found = contrast([a, b], level=level, family=family)
    verdict = replace(
        verdict,
        status=reading(claim, found),
        effect=found.effect,
        low=found.low,
        high=found.high,
        p=p_value(claim, a, b, splits[sizes]),
    )
    if not _holds_for_all(claim, pair, level, family):
        reason = "it hangs on what the failed seeds would have scored: run them again"
        return replace(verdict, status="inconclusive", reason=reason)
    if verdict.status != "inconclusive":
        return verdict
    deviations = (float(np.std(a, ddof=1)), float(np.std(b, ddof=1)))
    needed = seeds_needed(
        found.effect, deviations, claim.direction, claim.smallest_effect, family, level
    )
    return replace(verdict, seeds_needed=needed)


def _holds_for_all(
    claim: Hypothesis, pair: tuple[Sample, Sample], level: float, family: int
) -> bool:
    """Is the reading the same whatever the failed seeds would have scored?"""
    if not any(one.unknown for one in pair):
        return True
    first, second = pair
    readings = {
        reading(claim, contrast([a, b], level=level, family=family))
        for a in (first.at_worst(), first.at_best())
        for b in (second.at_worst(), second.at_best())
    }
    return len(readings) == 1


def reading(claim: Hypothesis, found: Contrast) -> Status:
    """What an interval says about a claim, given the smallest effect of interest δ.

    greater: supported above +δ, refuted below +δ; less: the mirror image; different: supported
    beyond ±δ on either side, refuted within ±δ; same: the other way round.
    """
    delta = claim.smallest_effect
    above, below = found.low > delta, found.high < -delta
    within = -delta < found.low and found.high < delta
    yes, no = {
        "greater": (above, found.high < delta),
        "less": (below, found.low > -delta),
        "different": (above or below, within),
        "same": (within, above or below),
    }[claim.direction]
    return "supported" if yes else "refuted" if no else "inconclusive"


def p_value(claim: Hypothesis, a: list[float], b: list[float], splits: Splits) -> float:
    """The p-value of a claim; of "same", the larger one of two one-sided tests against ±δ.

    Source of the latter: Schuirmann 1987, doi:10.1007/BF01068419.
    """
    if claim.direction == "same":
        delta = claim.smallest_effect
        below = permutation_test([one - delta for one in a], b, "less", splits)
        above = permutation_test([one + delta for one in a], b, "greater", splits)
        return max(below.p, above.p)
    alternative = "two-sided" if claim.direction == "different" else claim.direction
    return permutation_test(a, b, alternative, splits).p
